"""Stacks that samples have no whole copy of: deeper than the copy, or interrupted by a handler on an alternate stack. As root, a BPF program copies the rest."""
import os
import re

from common import PROGRAMS, WICK, WORK, build, run, say, wick


def said_of(data):
    return run([WICK, "fold", "-o", "/dev/null", data]).stderr.decode(errors="replace")


def recorded(program, name, milliseconds, *options):
    """A recording with enough samples: on a busy machine a program that counts elapsed time gets few."""
    data = os.path.join(WORK, name + ".data")
    for _ in range(5):
        run([WICK, "record", "-q", *options, "-o", data, "--", program, str(milliseconds)])
        found = re.search(r"(\d+) stacks? (?:was|were) unwound", said_of(data))
        if found and int(found.group(1)) >= 150:
            break
        milliseconds *= 3
    return data


def stacks(data):
    return [line.rsplit(" ", 1)[0].split(";")[1:] for line in wick("fold", "-q", "--no-inline", data).decode().splitlines()]


def check_deeper(folder):
    program = build("deeper", f"gcc -O2 -g -fomit-frame-pointer -fno-optimize-sibling-calls {PROGRAMS}/deeper.c -pthread", folder)
    data = recorded(program, "deeper", 400)
    found = [stack for stack in stacks(data) if "bottom" in stack]
    wrong = [stack for stack in found if sum(frame == "down" for frame in stack) != 401 or not {"main", "other"} & set(stack)]
    say("beyond/deep", None if found and not wrong else f"{len(wrong)} of {len(found)} stacks lack callers: {[len(stack) for stack in wrong[:5]]} {said_of(data)}")
    small = recorded(program, "deeper-none", 400, "--keep=none")
    say("beyond/deep, not kept", None if "cut at 16384 bytes" in said_of(small) else said_of(small))


def check_alternate(folder):
    program = build("signals", f"gcc -O2 -g -fomit-frame-pointer {PROGRAMS}/signals.c", folder)
    data = recorded(program, "alternate", 700)
    found = [stack for stack in stacks(data) if "on_alternate" in stack]
    wrong = [stack for stack in found if "main" not in stack or stack.index("main") > stack.index("on_alternate")]
    say("beyond/alternate stack", None if found and not wrong else f"{len(wrong)} of {len(found)} stacks lack what was interrupted: {wrong[:2]} {said_of(data)}")
    said = said_of(recorded(program, "alternate-none", 700, "--keep=none"))
    good = "signal handler on an alternate stack" in said and "record with -g dwarf" not in said
    say("beyond/alternate stack, not copied: the note says so", None if good else said)


def check_beyond():
    if os.geteuid() != 0 or not os.path.exists("/sys/kernel/btf/vmlinux") or os.uname().machine != "x86_64":
        print("skip beyond: copying more of a stack needs root, BPF with the kernel's types, and x86_64", flush=True)
        return
    folder = os.path.join(WORK, "programs")
    os.makedirs(folder, exist_ok=True)
    check_deeper(folder)
    check_alternate(folder)
