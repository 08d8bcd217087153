"""Places in code of a recording that was exported and read back: their objects, build ids, addresses and frames."""
import csv
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "export")]
import readers  # noqa: E402

LARGEST = 1 << 53  # what a number of JavaScript holds


def places(path, below):
    """All that pprof's file says of places: it is the format that has everything, and is read here without wick."""
    with open(path, "rb") as file:
        found = readers.Pprof(file.read())
    rows = set()
    for locations, _, _ in found.samples:
        for mapping, address, lines in locations:
            if mapping and address < below:
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
    below = LARGEST if form == "firefox" else 1 << 64
    one, other = places(direct, below), places(again, below)
    say(one == other and (one or name == "kernel-only"), f"{case}/places", f"{len(one)} and {len(other)}: {sorted(one ^ other)[:4]}")
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
