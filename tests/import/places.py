"""Places in code of a recording that was exported and read back: their objects, build ids, addresses and frames."""
import csv
import json
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "export")]
import readers  # noqa: E402


def places(path):
    """All that pprof's file says of places: it is the format that has everything, and is read here without wick."""
    with open(path, "rb") as file:
        found = readers.Pprof(file.read())
    rows = set()
    for locations, _, _ in found.samples:
        for mapping, address, lines in locations:
            if mapping and address:
                rows.add((found.text(mapping[5]), found.text(mapping.get(6, 0)), address, tuple(lines)))
    return rows


def weights(wick, path):
    """Rows of the report by address: name with its address, self, total."""
    rows = csv.DictReader(wick("report", "-q", "--by", "address", "--csv", path).stdout.decode().splitlines())
    return sorted((row["address"], row["self_ns"], row["inclusive_ns"]) for row in rows)


def round_trip(say, wick, work, name, form, lookup, data):
    case = f"round trip/{form}/{name}"
    once, direct, again = (os.path.join(work, f"{name}-{form}-{turn}") for turn in ("places", "direct.pb.gz", "again.pb.gz"))
    for to, words in ((form, (*lookup, data, "-o", once)), ("pprof", (*lookup, data, "-o", direct)), ("pprof", (once, "-o", again))):
        done = wick("export", "-q", "--to", to, *words)
        if done.returncode:
            say(False, f"{case}/places", done.stderr.decode(errors="replace"))
            return
    one, other = places(direct), places(again)
    say(one and one == other, f"{case}/places", f"{len(one)} and {len(other)}: {sorted(one ^ other)[:4]}")
    ids = {row[1] for row in one}
    say(name in ("kernel-only", "node", "forks") or any(len(text) >= 32 for text in ids), f"{case}/build ids", str(ids))
    for by in (["--by", "object"], []):
        one, other = (wick("report", "-q", *by, *words).stdout for words in ((*lookup, data), (once,)))
        say(one and one == other, f"{case}/{'objects' if by else 'functions'}", other[:1000].decode(errors="replace"))
    one, other = (wick("fold", "-q", "--no-inline", *words).stdout for words in ((*lookup, data), (once,)))
    say(one and one == other, f"{case}/without inlines", other[:1000].decode(errors="replace"))
    if form == "otlp":
        one, other = weights(wick, direct), weights(wick, once)
        say(one and one == other and any("@0x" in row[0] for row in one), f"{case}/by address", str([pair for pair in zip(one, other) if pair[0] != pair[1]][:3]))


def inlined_chain(rows):
    """A stack of so many functions, each inlined into the one before it, of which all are sampled."""
    count, numbers = rows, list(range(rows))
    return json.dumps({"meta": {"preprocessedProfileVersion": 60, "categories": []}, "libs": [{"path": "/x.so", "codeId": "aa"}],
                       "shared": {"stackTable": {"prefix": [None, *numbers[:-1]], "frame": numbers}, "frameTable": {"func": [0] * count, "address": [5] * count, "inlineDepth": numbers},
                                  "funcTable": {"name": [0], "resource": [0]}, "resourceTable": {"lib": [0]}, "stringArray": ["f"]},
                       "threads": [{"name": "t", "pid": 1, "tid": 1, "samples": {"stack": numbers, "time": numbers}}]}).encode()


def inlines(say, wick, write, refused):
    path = write("inlines.json", inlined_chain(3))
    for case, words, wanted in (("of one place", ["fold"], b"t;f 1\nt;f;f 1\nt;f;f;f 1\n"), ("left out", ["fold", "--no-inline"], b"t;f 3\n")):
        done = wick(*words, "-q", path)
        say(done.stdout == wanted, f"by hand/inlined functions/{case}", (done.stdout + done.stderr).decode())
    done = wick("report", "-q", "--by", "address", path)
    say(b"f@0x5" in done.stdout, "by hand/inlined functions/their address", done.stdout.decode())
    for words in ([], ["--no-inline"]):
        refused(f"30,000 functions inlined into each other{' '.join(['', *words])}", inlined_chain(30000), "more work", *words)
