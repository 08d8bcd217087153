"""--srcline: every output that has frames says their file and line."""
import base64
import gzip
import os
import re

from common import WICK, WORK, run, say, wick


def page(path):
    """The profile inside an HTML page."""
    with open(path, encoding="utf-8") as file:
        packed = re.search(r'id="profile">([^<]*)<', file.read()).group(1)
    return gzip.decompress(base64.b64decode(packed))


def read(path):
    if path.endswith(".html"):
        return page(path)
    with open(path, "rb") as file:
        return file.read()


def check_lines(program, data):
    folder = os.path.join(WORK, "lines")
    os.makedirs(folder, exist_ok=True)
    here = lambda leaf: os.path.join(folder, leaf)
    texts = {"fold": ["fold"], "script": ["script"], "report": ["report", "--limit", "0"], "csv": ["report", "--csv"], "json": ["report", "--json"]}
    outputs = {view: wick(*command, "--srcline", data) for view, command in texts.items()}
    before = here("before.folded")  # half of it, so that there is a change
    with open(before, "wb") as file:
        file.write(b"".join(outputs["fold"].splitlines(True)[::2]))
    files = {"flame": ["flame", "-o", here("a.svg")], "html": ["flame", "--html", "-o", here("a.html")], "diff": ["diff", "-o", here("d.svg"), before],
             "diff-html": ["diff", "--html", "-o", here("d.html"), before], "diff-table": ["diff", "--table", "--limit", "0", "-o", here("d.txt"), before],
             "diff-csv": ["diff", "--csv", "-o", here("d.csv"), before], "diff-json": ["diff", "--json", "-o", here("d.json"), before],
             "diff-folded": ["diff", "--folded", "-o", here("d.folded"), before]}
    for view, command in files.items():
        wick(*command, "--srcline", data)
        outputs[view] = read(command[command.index("-o") + 1])
    done = run([WICK, "profile", "-q", "--srcline", "-g", "dwarf", "-o", folder, "--name", "run", "--min-samples", "1", "--allow-partial", "--", program, "100"])
    for leaf in ("stacks.folded", "flamegraph.svg", "flamegraph.html", "flamegraph-reverse.svg", "profile.csv", "report.txt"):
        outputs["profile/" + leaf] = read(here("run/" + leaf)) if done.returncode == 0 else done.stderr
    missing = [view for view, text in outputs.items() if not re.search(rb"chain\.c:\d+", text)]
    say("lines", f"no line in {', '.join(missing)}" if missing else None)
    with open(here("rules"), "w", encoding="utf-8") as file:
        file.write("ours: file chain.c\n")
    table = wick("report", "--srcline", "--by", "category", "--categories", here("rules"), "--csv", data)
    say("lines/categories", None if re.search(rb"^ours,[1-9]", table, re.M) else f"nothing is in chain.c: {table}")
    plain = [view for view, command in texts.items() if re.search(rb"chain\.c:\d+", wick(*command, data))]
    say("lines/unasked", f"lines in {', '.join(plain)}" if plain else None)
