"""What other programs make of wick's files: perf report's numbers, the header's fields, build ids, hotspot's parser."""
import csv
import glob
import os
import re
import shutil
import subprocess

from common import PERF_ENV, WORK, perf_script, record_some, samples_of, say, skip, unwound_otherwise, wick

SHOWN = 0.0051  # perf rounds to two digits behind the point
ADDRESS = r"0x[0-9a-f]+|[0-9a-f]{16}"


def perf(*words):
    return subprocess.run(["perf", *words], cwd=WORK, capture_output=True, text=True, errors="replace", env=PERF_ENV).stdout


# ---- perf report ----

def perf_table(path, *words):
    """By symbol: what perf says of it in the first and, with --children, in the second column; and how many rows that was."""
    table = {}
    text = perf("report", "--stdio", "--no-inline", "-g", "none", "--sort", "sym", "-i", path, *words)
    for row in re.findall(r"^ +(\d+\.\d+)%(?: +(\d+\.\d+)%)?  \[.\] (\S+)", text, re.M):
        first, second, rows = table.get(row[2], (0, 0, 0))
        table[row[2]] = (first + float(row[0]), second + float(row[1] or 0), rows + 1)
    return table


def wick_table(path):
    text = wick("report", "-q", "--compat=perf", "--no-inline", "--csv", path).stdout
    return {row["function"]: (float(row["self_pct"]), float(row["inclusive_pct"])) for row in csv.DictReader(text.splitlines())}


def differences(theirs, ours, column, which, broken):
    """Of symbols in both tables; perf names what it does not know by its address, without 0x where nothing was mapped."""
    return [(name, row[column], ours.get(name)) for name, row in theirs.items() if not re.fullmatch(ADDRESS, name) and
            abs(row[column] - ours.get(name, (-1, -1))[which]) > SHOWN * row[2] + broken]


def period_of(sample):
    return int(re.search(rb"\d+\.\d+:\s+(\d+) \S+:", sample)[1])


def broken_share(path):
    """How many per cent are in stacks that perf breaks off or makes up, and what is wrong with others."""
    theirs = perf_script(path)
    ours = wick("script", "-q", "--compat=perf", path).stdout.encode(errors="surrogateescape")
    broken, wrong = unwound_otherwise(theirs, ours)
    whole = sum(period_of(sample) for sample in theirs.split(b"\n\n") if sample.strip())
    return 100 * sum(map(period_of, broken)) / whole if whole else 0, wrong


def is_nameless(function, theirs):
    """[libc.so.6] is a place in it that has no symbol: perf says where."""
    in_a_file = re.fullmatch(r"\[[^\]]+\]", function) and any(re.fullmatch(ADDRESS, name) for name in theirs)
    return function.startswith("[unknown") or in_a_file


def same_numbers(name, path):
    if not shutil.which("perf"):
        return skip(f"{name}: perf report", "perf is not installed")
    ours, self_only, children = wick_table(path), perf_table(path, "--no-children"), perf_table(path, "--children")
    broken, wrong = broken_share(path)
    wrong += differences(self_only, ours, 0, 0, 0) + differences(children, ours, 0, 1, broken) + differences(children, ours, 1, 0, 0)
    missing = [function for function in ours if function not in children and not is_nameless(function, children)]
    say(len(children) >= 5 and self_only and not wrong and not missing and broken < 5, f"{name}: perf report says the same",
        f"{len(children)}: {wrong[:5]} {missing[:5]}, {broken:.2f} % of perf's broken")


def numbers():
    for name, words in (("frame pointers", ["-g", "fp"]), ("DWARF", []), ("ptrace", ["--method", "ptrace"])):
        record_some(f"for perf report, {name}", *words, command=("./spinner", "0.4"))
        same_numbers(name, "some.data")


# ---- the header ----

# Not the same in two recordings, or by intent not perf's: its own name, the events' flags, and the kernel's list of event sources in another order.
OWN = ("captured on", "data offset", "data size", "feat offset", "perf version", "cmdline", "event", "node0 meminfo", "time of", "sample duration", "pmu mappings",
       "clockid", "reference time", "missing features", "node")
LEFT_OUT = {"CACHE", "MEM_TOPOLOGY", "BPF_PROG_INFO", "BPF_BTF", "PMU_CAPS", "CPU_PMU_CAPS"}  # nobody needs them to read a profile


def header_of(path):
    lines = perf("report", "--header-only", "-I", "-i", path).splitlines()
    start = next((i for i, line in enumerate(lines) if "CPU cache info" in line), len(lines))
    caches = {line for line in lines[start:] if re.match(r"#  L\d |# CPU cache|#    \d+ \[|# memory nodes", line)}
    return [line for line in lines if line not in caches and not re.match(r"# (bpf_prog_info|\tsub_prog|btf info)", line)]


def field(lines, name):
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"# {name}")), "")


def headers():
    if not shutil.which("perf"):
        return skip("the header", "perf is not installed")
    record_some("for the header", "-e", "cpu-clock", "-g", "fp")
    perf("record", "-q", "-e", "cpu-clock", "-F", "997", "-g", "-o", "theirs.data", "./restless", "steady", "200")
    ours, theirs = header_of("some.data"), header_of("theirs.data")
    plain = [[line for line in lines if not line.startswith(tuple(f"# {name}" for name in OWN))] for lines in (ours, theirs)]
    say(plain[0] == plain[1] and len(plain[0]) > 8, "the header's fields are perf's", str(set(plain[0]) ^ set(plain[1])))
    missing = set(field(ours, "missing features").split()) - set(field(theirs, "missing features").split())
    say(missing <= LEFT_OUT, "the header lacks nothing", str(missing))
    sources = [sorted(field(lines, "pmu mappings").split(", ")) for lines in (ours, theirs)]
    say(sources[0] == sources[1], "the header's event sources are perf's", str(sources))
    wanted = {"type = 1", "{ sample_period, sample_freq } = 997", "inherit = 1", "mmap = 1", "comm = 1", "freq = 1", "enable_on_exec = 1", "task = 1",
              "sample_id_all = 1", "mmap2 = 1", "comm_exec = 1", "disabled = 1"}
    events = [set(re.split(r", (?![a-z]+ \}|sample_freq)", field(lines, "event"))) for lines in (ours, theirs)]
    say(wanted <= events[0] and wanted <= events[1], "the header describes the event", f"{wanted - events[0]} {wanted - events[1]}")
    say("record" in field(ours, "cmdline") and "./restless steady 200" in field(ours, "cmdline"), "the header has the command", field(ours, "cmdline"))
    say("monotonic" in "".join(ours) and len(perf("script", "--time", "0%-50%", "-F", "time", "-i", "some.data").splitlines()) > 5,
        "the header knows the times", field(ours, "clockid"))
    ids = [dict(reversed(line.split(maxsplit=1)) for line in perf("buildid-list", "-i", path).splitlines()) for path in ("some.data", "theirs.data")]
    wrong = {path: id for path, id in ids[1].items() if path != "[vdso]" and ids[0].get(path) != id}
    say(os.path.join(os.path.realpath(WORK), "restless") in ids[0] and ids[1] and not wrong, "the header has the build ids", f"{wrong} of {ids}")


# ---- hotspot ----

def hotspot():
    """hotspot's own parser counts and names what wick recorded, with perf events and with ptrace."""
    parsers = glob.glob("/usr/lib/*/libexec/hotspot-perfparser") + [path for path in [os.environ.get("HOTSPOT_PERFPARSER")] if path]
    if not parsers:
        return skip("hotspot", "it is not installed")
    for name, words in (("perf events", []), ("ptrace", ["--method", "ptrace"])):
        done = record_some(f"for hotspot, {name}", *words)
        said = subprocess.run([parsers[0], "--input", "some.data", "--print-stats"], cwd=WORK, capture_output=True, text=True, env=PERF_ENV)
        count = re.search(r"^samples: (\d+)$", said.stdout + said.stderr, re.M)
        subprocess.run([parsers[0], "--input", "some.data", "--output", "some.parsed"], cwd=WORK, capture_output=True, env=PERF_ENV)
        with open(os.path.join(WORK, "some.parsed"), "rb") as file:
            parsed = file.read()
        say(count and int(count.group(1)) == samples_of(done) and all(word in parsed for word in (b"leaf_work", b"middle_work")),
            f"hotspot reads it, {name}", said.stdout + said.stderr)


def all_parts():
    for part in (numbers, headers, hotspot):
        part()
