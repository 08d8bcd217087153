"""How stacks end, of recorded chains as well, and what is said of it; and what is said where a machine's stacks can't be unwound."""
import collections
import os
import re
import shutil

from common import PERF_ENV, PROGRAMS, WICK, WORK, build, endings, run, say, wick

from lines import read

import fixtures

FIRST = {"start_thread", "__libc_start_call_main", "__libc_start_main", "__libc_start_main_impl", "_start", "_dl_start_user", "ret_from_fork",
         "ret_from_fork_asm", "clone3", "__clone3"}


def said(*arguments):
    return run([WICK, *arguments]).stderr.decode(errors="replace")


def record_chains(program, *arguments):
    data = program + ".fp.data"
    done = run(["perf", "record", "-q", "-N", "-B", "-e", "cpu-clock:u", "-F", "499", "-g", "-o", data, "--", program, *arguments], PERF_ENV)
    if not os.path.exists(data):
        raise RuntimeError(done.stderr.decode(errors="replace").strip()[-300:])
    return data


def depths(text):
    """Of each sample: how many frames, and what the outermost is."""
    blocks = [block.strip().split("\n")[1:] for block in text.split("\n\n") if block.strip()]
    return [(len(frames), frames[-1].split()[1].split("+")[0] if frames else "") for frames in blocks]


def check_deep(folder):
    """2,000 frames: perf stops at 127, wick at 1,024, and both count as cut."""
    data, options = os.path.join(folder, "deep.data"), ["--no-inline", "--symfs", os.path.join(folder, "symfs")]
    for name, limit, more in (("own", 1024, []), ("perf", 127, ["--compat=perf"])):
        found = depths(wick("script", *more, *options, data).decode())
        deep = [depth for depth, last in found if "deep" in last or "anonymous" in last]
        shallow = [depth for depth, last in found if last == "_start"]
        right = len(deep) == 3 and set(deep) == {limit} and len(shallow) == 3 and max(shallow) < limit
        say(f"ends/deep/{name}", None if right else f"{found}")
        counts = endings(data, [*more, *options])
        say(f"ends/deep/{name}-counted", None if counts == {"truncated": 3, "complete": 3} else f"{dict(counts)}")
        text = said("fold", "-o", "/dev/null", *more, *options, data)
        expected = f"6 stacks were unwound (50.0 % complete; 50.0 % cut at 65528 bytes or {limit} frames)"
        say(f"ends/deep/{name}-said", None if expected in text else text)


def check_recorded():
    """A recording of all CPUs, kernel threads too: as the outermost frames of perf's own text say."""
    fixtures.unpack()
    expected = collections.Counter()
    for depth, last in depths(fixtures.read("system", "script.txt").decode(errors="replace")):
        expected["complete" if last in FIRST else "truncated" if depth >= 127 else "broken"] += 1
    data = fixtures.unpacked("system", "perf.data")
    options = ["--symfs", fixtures.SYMFS, "--kallsyms", os.path.join(fixtures.FIXTURES, "system/kallsyms")]
    counts = endings(data, options)
    whole = 100 * counts["complete"] / sum(counts.values())
    say("ends/chains/counted", None if counts == expected and len(counts) > 1 else f"{dict(counts)}, not {dict(expected)}")
    text = said("fold", "-o", "/dev/null", "--weight", "samples", *options, data)
    sentence = rf"{sum(counts.values())} stacks were recorded as call chains \({whole:.1f} % complete; \d+\.\d % broken, by code without frame pointers"
    say("ends/chains/said", None if re.search(sentence, text) else text)
    threads = [line for line in wick("fold", "--mark-incomplete", *options, data).decode(errors="replace").splitlines() if ";ret_from_fork" in line]
    say("ends/chains/kernel-threads", None if threads and not any("[broken]" in line for line in threads) else f"{threads[:2]}")


def check_said(folder):
    """Every command that unwinds says how many stacks are whole, of each recording, and marks the others when asked to."""
    options = ["--symfs", os.path.join(folder, "symfs")]
    cut, whole = os.path.join(folder, "modern.data"), os.path.join(folder, "chain.data")
    out = lambda leaf: os.path.join(WORK, "said." + leaf)
    commands = {"fold": ["fold", "-o", out("folded")], "flame": ["flame", "-o", out("svg")], "html": ["flame", "--html", "-o", out("html")],
                "script": ["script", "-o", out("txt")], "report": ["report", "--limit", "0", "-o", out("report")], "csv": ["report", "--csv", "-o", out("csv")],
                "json": ["report", "--json", "-o", out("json")], "diff": ["diff", "--table", "--limit", "0", "-o", out("diff"), whole],
                "speedscope": ["export", "--to", "speedscope", "-o", out("speedscope.json")]}
    sentence = r"67 stacks were unwound \(46\.3 % complete; 53\.7 % cut at 8192 bytes or 1024 frames: record with -g dwarf,16384\)"
    for name, command in commands.items():
        path = command[command.index("-o") + 1]
        text = said(*command, *options, cut)
        right = re.search(sentence, text) and (name != "diff" or re.search(r"43 stacks were unwound \(100\.0 % complete\)", text))
        say(f"ends/said/{name}", None if right else text)
        before = read(path)
        if name == "html":
            say("ends/marked/html", None if "the page does not take it" in said(*command, *options, "--mark-incomplete", cut) else "neither taken nor refused")
            continue
        said(*command, *options, "--mark-incomplete", cut)
        say(f"ends/marked/{name}", None if b"[truncated]" in read(path) and b"[truncated]" not in before else "[truncated] is not there, or unasked")


def check_chains(folder):
    """Recorded now: chains that were cut, that are whole, and that end in code without frame pointers."""
    flags = "-O1 -fno-optimize-sibling-calls"
    cut = build("recursion", f"gcc {flags} -fno-omit-frame-pointer {PROGRAMS}/recursion.c", folder)
    broken = build("recursion-nofp", f"gcc {flags} -fomit-frame-pointer {PROGRAMS}/recursion.c", folder)
    for name, program, depth, expected in (("cut", cut, "2000", "truncated"), ("whole", cut, "20", "complete"), ("broken", broken, "20", "broken")):
        data = record_chains(program, "150", depth)
        counts = endings_in_program(data)
        # Of code that keeps no frame pointers, none that is whole; of the other, a sample may fall where its frame is not there yet.
        right = counts[expected] and (counts["complete"] == 0 if expected == "broken" else counts[expected] == max(counts.values()))
        say(f"ends/chains/{name}", None if right else f"{dict(counts)}")


    nameless = nameless_library(cut, folder)
    counts = endings_in_program(record_chains(cut, "150", "20"), "--symfs", nameless)
    say("ends/chains/main-of-a-nameless-library", None if counts["complete"] == max(counts.values(), default=0) > 0 else f"{dict(counts)}")


def endings_in_program(data, *options):
    counts = collections.Counter()
    for line in wick("fold", "-q", "--mark-incomplete", "--weight", "samples", *options, data).decode().splitlines():
        if ";spend" in line:  # not the loader's
            counts[next((mark for mark in ("truncated", "broken") if f";[{mark}];" in line), "complete")] += int(line.rsplit(" ", 1)[1])
    return counts


def nameless_library(program, folder):
    """A folder for --symfs with the program and the C library, without the latter's debug symbols: what calls main() has no name there."""
    root = os.path.join(folder, "nameless")
    library = re.search(r"libc\.so\.6 => (\S+)", run(["ldd", program], os.environ).stdout.decode())[1]
    for path in (program, os.path.realpath(library)):
        os.makedirs(root + os.path.dirname(path), exist_ok=True)
        shutil.copy(path, root + path)
    # Without these it leads to no debug symbols that are installed.
    run(["objcopy", "-R", ".note.gnu.build-id", "-R", ".gnu_debuglink", root + os.path.realpath(library)], os.environ)
    return root


def check_architecture(folder):
    """A recording of a machine that is not unwound, and files of another machine than the recording's, are said."""
    aarch64 = os.path.join(folder, "deep-nofp.dwarf4k.data")
    with open(aarch64, "rb") as file:
        content = file.read()
    patched = os.path.join(WORK, "riscv64.data")
    with open(patched, "wb") as file:
        file.write(content.replace(b"aarch64\0", b"riscv64\0"))
    options = ["-o", "/dev/null", "--symfs", os.path.join(folder, "symfs"), "--kallsyms", os.path.join(folder, "kallsyms")]
    text = said("fold", *options, patched)
    say("ends/architecture/recording", None if re.search(r"\d+ samples? comes? from a machine whose stacks wick cannot unwind", text) else text)


def check_foreign(folder):
    program = build("recursion64", f"gcc -O2 {PROGRAMS}/recursion.c", folder)
    other = build("recursion32", f"gcc -O2 -m32 {PROGRAMS}/recursion.c", folder)
    if not other:
        print("skip ends/architecture/file: no 32-bit libraries", flush=True)
        return
    data = program + ".data"
    run(["perf", "record", "-q", "-N", "-B", "-e", "cpu-clock:u", "-F", "499", "--call-graph", "dwarf,4096", "-o", data, "--", program, "100", "10"], PERF_ENV)
    before = said("fold", "-o", "/dev/null", data)
    shutil.copy(other, program)
    after = said("fold", "-o", "/dev/null", "--symfs", "/", data)  # without it, no file is used that was replaced
    found = re.search(r"(\d+) stacks? (?:goes|go) through files of another architecture", after)
    right = found and int(found.group(1)) > 0 and "another architecture" not in before and "broken" in after
    say("ends/architecture/file", None if right else after)
