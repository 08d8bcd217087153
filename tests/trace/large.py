"""Ten million frames deep, and a trie of eleven million stacks: the tree, the table, the picture and the page. A tenth of that unless LONG is
set, and a hundredth with QEMU, for the whole takes minutes and gigabytes."""
import json
import os
import subprocess
import xml.parsers.expat

HERE = os.path.dirname(os.path.abspath(__file__))
CC = "riscv64-linux-gnu-gcc"


STACK = str(1 << 30)  # as the built-in engine's is anyway


def rows(wick, work, program, size, engine="builtin"):
    out = f"{work}/large.json"
    p = subprocess.run([wick, "trace", "-q", "--engine", engine, "--stack-size", STACK, "--json", "-o", out, program, size], capture_output=True, text=True)
    if p.returncode:
        return p.stderr, {}
    with open(out) as f:
        table = json.load(f)
    os.unlink(out)
    return table["total"], {row["name"]: row for row in table["rows"]}


def count_frames(path):
    """How many a picture has, or why it is none. All of it is read by an XML parser, unless it has hundreds of megabytes: that takes a minute."""
    frames = 0
    with open(path, "rb") as f:
        if os.path.getsize(path) > 20000000 and not os.environ.get("LONG"):
            return sum(line.count(b"<rect") for line in f)

        def begin(name, _):
            nonlocal frames
            frames += name == "rect"
        parser = xml.parsers.expat.ParserCreate()
        parser.StartElementHandler = begin
        try:
            parser.ParseFile(f)
        except xml.parsers.expat.ExpatError as error:
            return str(error)
    return frames


def check_pictures(wick, work, say, name, program, size):
    """Drawn to the end; the picture of the whole depth and one of the first frames only."""
    for view, options, begins, ends in (("svg", ["--max-depth", "2000"], b"<?xml", b"</svg>\n"), ("svg", ["--minwidth", "0.01"], b"<?xml", b"</svg>\n"),
                                        ("html", [], b"<!DOCTYPE html>", b"</html>\n")):
        out = f"{work}/large.{view}"
        p = subprocess.run([wick, "trace", "-q", f"--{view}", *options, "-o", out, program, size], capture_output=True, text=True)
        frames = None
        with open(out, "rb") as f:
            first = f.read(len(begins))
            f.seek(-len(ends), os.SEEK_END)
            last = f.read()
        if view == "svg":
            frames = count_frames(out)
        os.unlink(out)
        # The innermost of all have too few instructions to be seen.
        cut = "--max-depth" in options
        drawn = (2000 if cut else int(size) * 99 // 100) if name == "deep" else 100
        say(p.returncode == 0 and first == begins and last == ends and (view != "svg" or (isinstance(frames, int) and frames >= drawn)),
            f"{name}-{view}{'-cut' if cut else ''}", f"{p.returncode} {p.stderr} {first} {last} {frames} of {drawn} frames")


def check(wick, work, say):
    long = bool(os.environ.get("LONG"))
    for name, source, size, less in (("deep", f"{HERE}/deep.c", "10000000" if long else "1000000", "10000000" if long else "100000"),
                                     ("wide", f"{HERE}/../../bench/trace/stacks.c", "7" if long else "6", "7" if long else "5")):
        program = f"{work}/{name}"
        subprocess.run([CC, "-O2", "-static", source, "-o", program], check=True)
        total, found = rows(wick, work, program, size)
        if name == "deep":
            # Each of the n + 1 frames but the last executes the same number of instructions.
            small = rows(wick, work, program, "1000")[1]["deep"]["self"]
            each = (small - rows(wick, work, program, "0")[1]["deep"]["self"]) // 1000
            wanted = small + each * (int(size) - 1000)
            say(found and found["deep"]["self"] == wanted, "deep-counts", f"{found.get('deep') if found else total} wanted {wanted}")
            total, found = rows(wick, work, program, less, "qemu")
            wanted = small + each * (int(less) - 1000)
            say(found and found["deep"]["self"] == wanted, "deep-counts-qemu", f"{found.get('deep') if found else total} wanted {wanted}")
        else:
            own = sum(row["self"] for row_name, row in found.items() if row_name[0] == "f" and row_name[1:].isdigit())
            say(found and found["main"]["total"] > own > 10 ** int(size), "wide-counts", f"{total} {own}")
            found, again = rows(wick, work, program, less)[1], rows(wick, work, program, less, "qemu")[1]
            differ = [k for k in found if k[0] == "f" and k[1:].isdigit() and again.get(k) != found[k]]
            say(again and not differ, "wide-counts-qemu", f"{[(k, again.get(k), found[k]) for k in differ[:2]]}")
        check_pictures(wick, work, say, name, program, size)
