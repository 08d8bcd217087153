"""Code that is in no file, or in files that come and go: the vdso, what is made at run time, libraries that take each other's place."""
import collections
import os
import re

from common import PERF_ENV, PROGRAMS, WICK, WORK, build, endings, record, run, say, wick


def folded(data, *options):
    """(frames, samples) of each stack."""
    for line in wick("fold", "-q", "--weight", "samples", "--no-inline", *options, data).decode().splitlines():
        stack, count = line.rsplit(" ", 1)
        yield stack.split(";"), int(count)


def stands_below(frames, *names):
    """Whether they stand in the stack one directly below the other, root first."""
    return any(all(re.fullmatch(name, frame) for name, frame in zip(names, frames[i:])) for i in range(len(frames) - len(names) + 1))


def check_made(folder):
    """The vdso, and code made at run time, with a name and without: walked through to the start."""
    program = build("jit", f"gcc -O2 -g -fomit-frame-pointer {PROGRAMS}/jit.c", folder)
    data = record(program, folder, "300")
    seen = collections.Counter()
    for frames, count in folded(data):
        whole = frames[1] == "_start" and "main" in frames
        seen["vdso"] += count * (whole and stands_below(frames, "call_vdso", "(__GI___)?clock_gettime", "__vdso_clock_gettime"))
        seen["named"] += count * (whole and stands_below(frames, "call_made", "made_and_named"))
        seen["nameless"] += count * (whole and stands_below(frames, "call_made", r"\[perf-\d+\.map\]|\[anon\]"))
    for kind in ("vdso", "named", "nameless"):
        say(f"places/{kind}", None if seen[kind] else "no whole stack goes through it")
    counts = endings(data, [])
    # A frame is not there yet at the first instruction, and no rule says so.
    say("places/whole", None if counts["broken"] <= 0.05 * counts["complete"] else f"{dict(counts)}")
    path = next((word for word in run([WICK, "script", data]).stdout.decode().split() if "/tmp/perf-" in word), None)
    if path and os.path.exists(path.strip("()")):
        os.unlink(path.strip("()"))


def check_libraries(folder):
    """Two libraries at one address, one after the other: each sample is read by the rules and names of the one that was there."""
    flags = "-O2 -g -fomit-frame-pointer"
    program = build("comes-and-goes", f"gcc {flags} {PROGRAMS}/dlopen.c", folder)
    libraries = [build(f"{name}.so", f"gcc {flags} -shared -fPIC -DWHICH={which} {PROGRAMS}/plugin.c", folder) for which, name in ((1, "one"), (2, "two"))]
    data = os.path.join(folder, "libraries.data")
    run(["perf", "record", "-q", "-N", "-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,8192", "-o", data, "--", program, *libraries, "0.3"], PERF_ENV)
    places = collections.defaultdict(set)
    for line in run(["perf", "script", "--show-mmap-events", "-i", data], PERF_ENV).stdout.decode().splitlines():
        found = re.search(r"MMAP2.*\[(0x[0-9a-f]+)\(.*r-xp (\S+\.so)$", line)
        if found:
            places[found.group(1)].add(os.path.basename(found.group(2)))
    shared = [place for place, names in places.items() if {"one.so", "two.so"} <= names]
    seen, wrong = collections.Counter(), []
    for frames, count in folded(data):
        inner = [frame for frame in frames if frame.startswith("inner_of_")]
        if inner and stands_below(frames, "_start", ".*", ".*", "main", "plugin_work", "inner_of_."):
            seen[inner[-1]] += count
        elif inner and "_start" in frames:
            wrong.append(";".join(frames))
    if not shared:
        print("skip places/libraries: they were never at one address", flush=True)
    elif wrong or len(seen) != 2:
        say("places/libraries", f"{dict(seen)}, and {wrong[:1]}")
    else:
        say("places/libraries")


def check_places():
    folder = os.path.join(WORK, "places")
    os.makedirs(folder, exist_ok=True)
    check_made(folder)
    check_libraries(folder)
