"""Recordings of a perf that is newer than the pinned one (tests/fixtures/newer): what it wrote with -z, in a file and through a pipe, and what it printed."""
import lzma
import os
import re

from common import WORK, say, wick

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/newer")


def unpack(name, to):
    path = os.path.join(WORK, to)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with lzma.open(os.path.join(FOLDER, name + ".xz")) as source, open(path, "wb") as file:
        file.write(source.read())


def plain(text):
    """Newer perfs print addresses as they were, and another number of blanks."""
    return [re.sub(r"\s+", " ", re.sub(r"^\s+[0-9a-f]+ ", "\t", line)).rstrip() for line in text.splitlines()]


def all_parts():
    unpack("restless", "newer/root/tmp/newer/restless")
    for name, samples in (("packed", 349), ("stream", 241)):
        unpack(f"{name}.data", f"newer/{name}.data")
        with lzma.open(os.path.join(FOLDER, name + ".txt.xz"), "rt") as file:
            theirs = plain(file.read())
        ours = plain(wick("script", "-q", "--no-inline", "--compat=perf", "--symfs", "newer/root", f"newer/{name}.data").stdout)
        wrong = [pair for pair in zip(ours, theirs) if pair[0] != pair[1]]
        say(len(ours) == len(theirs) and not wrong and sum("leaf_work" in line for line in ours) > 200, f"perf 7.2, {name}: its text",
            f"{len(ours)} lines, perf {len(theirs)}: {wrong[:3]}")
        count = sum(int(line.rpartition(" ")[2]) for line in wick("fold", "-q", "--event", "all", "--weight", "samples", f"newer/{name}.data").stdout.splitlines())
        say(count == samples, f"perf 7.2, {name}: its samples", f"{count}, not {samples}")
