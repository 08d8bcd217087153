"""Threads under QEMU take turns in a fixed order: every byte of the output is the same in every run, the C library's included. And what can't
be ordered ends all the same, and is said."""
import os
import re
import shutil
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
KINDS = ("static", "dynamic")
# What each program ends with and prints; spin's threads wait for each other without the kernel, computing's main ends all others.
PROGRAMS = {
    "async.cc": (0, "6\n"),
    "computing.c": (3, "main is done\n"),
    "computing.c abort": (134, "main is done\n"),
    "condition.c": (0, "10620\n"),
    "heap.c": (0, "done\n"),
    "mixed.c": (4, "main 0\nlast 15 5\n"),
    "mutex.c": (0, None),
    "sleeping.c": (0, "8 8 8 8\n"),
    "spin.c": (0, "15 20\n"),
}


def build(work, machine, kind, source):
    program = f"{work}/threaded-{source.split('.')[0]}-{machine}-{kind}"
    compiler = f"{machine}-linux-gnu-" + ("g++" if source.endswith("cc") else "gcc")
    subprocess.run([compiler, "-O2", *(["-static"] if kind == "static" else []), f"{HERE}/threaded/{source}", "-o", program, "-lpthread"],
                   check=True)
    return program


def start(wick, work, number, program, *options, arguments=(), **others):
    out = f"{work}/threaded.{number}"
    if os.path.exists(out):
        os.unlink(out)
    return out, subprocess.Popen([wick, "trace", "--engine", "qemu", *options, "-o", out, program, *arguments], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, **others)


def finish(out, process):
    printed, said = process.communicate()
    with open(out) as f:
        return process.returncode, printed, f.read(), said


def several(wick, work, times, program, *options, arguments=()):
    """Runs that disturb each other."""
    started = [start(wick, work, i, program, *options, arguments=arguments, stdin=subprocess.DEVNULL) for i in range(times)]
    return [finish(*run) for run in started]


def check_same(wick, work, say, machine, kind, name):
    source, *arguments = name.split()
    status, wanted = PROGRAMS[name]
    program = build(work, machine, kind, source)
    runs = several(wick, work, 20 if os.environ.get("LONG") else 3, program, arguments=arguments)
    say(all(run[0] == status and wanted in (None, run[1]) for run in runs), f"threaded-ends-{name.replace(' ', '-')}-{machine}-{kind}",
        f"{[(run[0], run[1], run[3]) for run in runs]}")
    outs = {run[2] for run in runs}
    say(len(outs) == 1 and len(outs.pop()) > 1000 and not any("may differ" in run[3] for run in runs),
        f"threaded-same-bytes-{name.replace(' ', '-')}-{machine}-{kind}", f"runs differ; {[run[3] for run in runs]}")


def check_first_gone(wick, work, say, machine):
    """What is loaded when the first thread is gone has its names, though the process's own number knows no memory any more."""
    runs = several(wick, work, 3, build(work, machine, "dynamic", "leader.c"))
    say(all(run[:2] == (5, "2\n") and re.search(r";work;_*cbrt\w*[; ]", run[2]) for run in runs) and len({run[2] for run in runs}) == 1,
        f"threaded-first-gone-{machine}", f"{[run[:2] for run in runs]} {runs[0][2][-500:]}")


def check_options(wick, work, say, machine):
    """The same where other callbacks count; and side by side, if that is wanted: what a thread does by itself stays the same."""
    program = build(work, machine, "static", "mutex.c")
    for options in (["--weight", "branches"], ["--budget", "2000000"], ["--table"]):
        outs = {run[2] for run in several(wick, work, 3, program, *options)}
        say(len(outs) == 1 and outs.pop(), f"threaded-same-bytes-{options[0][2:]}-{machine}", "runs differ")
    (ordered,), (free,) = several(wick, work, 1, program), several(wick, work, 1, program, "--parallel")
    own = [[line for line in run[2].splitlines() if ";fib " in line] for run in (ordered, free)]
    say(ordered[0] == free[0] == 0 and own[0] == own[1] and len(own[0]) > 5, f"threaded-parallel-{machine}", f"{ordered[3]} {free[3]}")


def check_outside(wick, work, say):
    """Two threads wait for what comes from outside, in an order that nobody knows."""
    program = f"{work}/outside"
    subprocess.run(["x86_64-linux-gnu-gcc", "-O2", f"{HERE}/outside.c", "-o", program, "-lpthread"], check=True)
    pipes = [os.pipe(), os.pipe()]
    out, process = start(wick, work, 0, program, arguments=[str(p[0]) for p in pipes], pass_fds=[p[0] for p in pipes],
                         stdin=subprocess.DEVNULL)
    first = process.stdout.readline()  # both threads were made
    os.write(pipes[1][1], b"xx")
    os.write(pipes[0][1], b"x")
    for pipe in pipes:
        os.close(pipe[1])
    status, printed, text, said = finish(out, process)
    for pipe in pipes:
        os.close(pipe[0])
    say(status == 0 and first == "begun\n" and printed == "end\n" and ";work;fib" in text and
        re.search(r"\d+ waits? of a thread (was|were) ended from outside .* may differ", said), "threaded-outside", f"{status} {first} {printed} {said}")


def check_many(wick, work, say, machine):
    """More threads, one after the other, than there is room for."""
    (run,) = several(wick, work, 1, build(work, machine, "static", "chain.c"))
    say(run[0] == 0 and "wick: 105 threads were not counted" in run[3], f"threaded-many-{machine}", f"{run[0]} {run[3]}")


def check_refused(wick, work, say, machine):
    """Where the watch can't have descriptors of its own there is no order, and that is said."""
    refuse, out = f"{work}/refuse", f"{work}/threaded.0"
    subprocess.run(["cc", "-O1", f"{HERE}/../programs/refuse.c", "-o", refuse], check=True)
    p = subprocess.run([refuse, "EPERM", "close_range", wick, "trace", "--engine", "qemu", "-o", out, build(work, machine, "static", "condition.c")],
                       capture_output=True, text=True)
    say(p.returncode == 0 and p.stdout == "10620\n" and "threads could not be run in a fixed order" in p.stderr, f"threaded-refused-{machine}",
        f"{p.returncode} {p.stdout} {p.stderr}")


def check_full_pipe(wick, work, say, machine):
    """A thread that waits in a call which is brief as a rule, for one that waits for the turn."""
    program = build(work, machine, "static", "full.c")
    (run,) = several(wick, work, 1, program)
    say(run[0] == 0 and run[1] == "1000000\n" and "may differ" in run[3], f"threaded-full-pipe-{machine}", f"{run[0]} {run[1]} {run[3]}")


def check_stopped(wick, work, say, machine):
    """Ctrl-C while threads compute."""
    program = build(work, machine, "static", "endless.c")
    out, process = start(wick, work, 0, program, stdin=subprocess.DEVNULL)
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    status, _, text, said = finish(out, process)
    say(status == 1 and first == "begun\n" and text.startswith("[partial];") and ";work " in text and "interrupted after" in said,
        f"threaded-interrupted-{machine}", f"{status} {said} {text[:200]}")


def is_there(machine):
    return shutil.which(f"qemu-{machine}") and shutil.which(f"{machine}-linux-gnu-g++")


def check(wick, work, say):
    machines = [machine for machine in ("riscv64", "aarch64", "x86_64") if is_there(machine)]
    for machine in machines:
        for kind in KINDS:
            for name in PROGRAMS:
                check_same(wick, work, say, machine, kind, name)
        check_first_gone(wick, work, say, machine)
        check_options(wick, work, say, machine)
        check_many(wick, work, say, machine)
        check_refused(wick, work, say, machine)
        check_full_pipe(wick, work, say, machine)
        check_stopped(wick, work, say, machine)
    if "x86_64" in machines:
        check_outside(wick, work, say)
    p = subprocess.run([wick, "trace", "--parallel", "--engine", "builtin", f"{work}/threaded-mutex-riscv64-static"], capture_output=True, text=True)
    say(p.returncode == 2 and "only QEMU" in p.stderr, "threaded-parallel-builtin", f"{p.returncode} {p.stderr}")
