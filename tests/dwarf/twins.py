"""Programs whose stacks perf never brings to a name that says "start": stripped, with .debug_frame alone, of 32 bits. The truth comes from elsewhere:
each has a twin, the same program not stripped, at the same addresses, whose symbols name the frames; and the source says who calls whom."""
import collections
import os
import re
import shutil

from common import PROGRAMS, WORK, build, record, run, say, wick

SORT = r"(qsort\w*|(__GI_+)?qsort_r|msort_with_tmp(\.part\.0)?)"
# Who may call a function of chain.c, and of signals.c, directly.
CHAIN = {"leaf": r"middle|compare|find", "middle": r"work", "compare": SORT + r"|\[libc[^;]*\]", "find": r"bsearch|sort_some|\[libc[^;]*\]", "sort_some": r"work",
         "work": r"main|thread_main", "thread_main": r"start_thread|\[libc[^;]*\]", "main": r"__libc_start\w*|\[libc[^;]*\]"}
SIGNALS = {"burn": r"busy|on_alternate|on_ordinary", "busy": r"main", "on_alternate": r"__restore_rt|\[[^;]*\]|__kernel_\w*sigreturn",
           "on_ordinary": r"__restore_rt|\[[^;]*\]|__kernel_\w*sigreturn", "main": r"__libc_start\w*|\[libc[^;]*\]"}
FLAGS = "-O2 -g -fomit-frame-pointer"
TWINS = {
    "stripped": (f"gcc {FLAGS} {PROGRAMS}/chain.c -pthread", CHAIN, ["-s"]),
    "debug-frame": (f"gcc {FLAGS} {PROGRAMS}/chain.c -pthread -fno-asynchronous-unwind-tables -fno-unwind-tables", CHAIN, None),
    "32-bits": (f"gcc {FLAGS} -m32 {PROGRAMS}/chain.c -pthread", CHAIN, None),
    "32-bit-signals": (f"gcc {FLAGS} -m32 {PROGRAMS}/signals.c", SIGNALS, None),
}


def stacks(data, *options):
    for line in wick("fold", "-q", "--no-inline", "--mark-incomplete", "--weight", "samples", *options, data).decode().splitlines():
        stack, count = line.rsplit(" ", 1)
        yield stack.split(";")[1:], int(count)


def impossible(frames, callers):
    """The first pair that the source does not have, or None. The first frame of a cut or broken stack has no caller to check."""
    if frames[:1] in (["[truncated]"], ["[broken]"]):
        frames = frames[1:]
    for caller, callee in zip(frames, frames[1:]):
        if callee in callers and not re.fullmatch(callers[callee], caller):
            return caller, callee
    return None


def check_twin(name, folder):
    command, callers, strip = TWINS[name]
    program = build("twin-" + name, command, folder)
    if not program:
        print(f"skip twins/{name}: no 32-bit libraries", flush=True)
        return
    twin = os.path.join(folder, "symfs-" + name)
    shutil.rmtree(twin, ignore_errors=True)
    os.makedirs(twin + folder)
    shutil.copy(program, twin + program)  # what names the frames
    if strip:
        run(["strip", *strip, program], os.environ)
    data = record(program, folder, "200")
    for library in re.findall(rb"\((/[^)]*\.so[^)]*)\)", wick("script", "-q", "--no-inline", data)):
        path = library.decode()
        if os.path.exists(path) and not os.path.exists(twin + path):
            os.makedirs(os.path.dirname(twin + path), exist_ok=True)
            shutil.copy(path, twin + path)
    named, wrong, whole, total = collections.Counter(), [], 0, 0
    for frames, count in stacks(data, "--symfs", twin):
        pair = impossible(frames, callers)
        if pair:
            wrong.append(pair)
        if "main" in frames or "thread_main" in frames:
            whole += count
        total += count
        named.update(frame for frame in frames if frame in callers)
    unseen = sorted(set(callers) - set(named) - {"on_ordinary", "on_alternate"})  # how often signals come depends on the machine
    if wrong or unseen:
        say(f"twins/{name}", f"{len(wrong)} pairs are impossible, {wrong[:2]}; not seen: {unseen}")
    elif strip and "main" in {frame for frames, _ in stacks(data) for frame in frames}:
        say(f"twins/{name}", "the program itself has names")
    else:
        print(f"    twins/{name}: {whole} of {total} stacks begin in main or its thread's function", flush=True)
        # The others are the loader's, or were cut on the alternate stack: how many depends on the machine.
        say(f"twins/{name}", None if whole >= (0.01 if callers is SIGNALS else 0.95) * total else f"only {whole} of {total} stacks begin in main or its thread's function")


def check_twins():
    folder = os.path.join(WORK, "twins")
    os.makedirs(folder, exist_ok=True)
    for name in TWINS:
        check_twin(name, folder)
