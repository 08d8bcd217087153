"""riscv64, aarch64 and x86_64 under QEMU, static and dynamic, with threads: counts against QEMU's own log of what it executed, and
stacks against those of the built-in engine."""
import collections
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
MACHINES = ("riscv64", "aarch64", "x86_64")
OWN = ("main", "work", "sorted", "compare", "fib")


def compiler(machine, source):
    return f"{machine}-linux-gnu-" + ("g++" if source.endswith("cc") else "gcc")


def build(work, machine, kind, source):
    program = f"{work}/{os.path.basename(source).split('.')[0]}-{machine}-{kind}"
    subprocess.run([compiler(machine, source), "-O2", *(["-static"] if kind == "static" else []), source, "-o", program, "-lpthread"],
                   check=True)
    return program


def libraries(machine):
    return [] if machine == "x86_64" else ["-L", f"/usr/{machine}-linux-gnu"]


def executed(work, machine, program):
    """How many instructions of each function QEMU says it executed, one by one, in the environment that wick gives: none."""
    log = f"{work}/executed"
    subprocess.run([shutil.which(f"qemu-{machine}"), *libraries(machine), "-singlestep", "-d", "exec,nochain", "-D", log, program],
                   check=True, stdout=subprocess.PIPE, env={})
    counts = collections.Counter()
    with open(log, errors="replace") as lines:
        for line in lines:
            if line.startswith("Trace "):
                counts[line.rsplit("] ", 1)[-1].strip()] += 1
    os.unlink(log)
    return counts


def own_counts(path):
    counts = collections.Counter()
    with open(path) as lines:
        for line in lines:
            stack, count = line.rsplit(" ", 1)
            counts[stack.rsplit(";", 1)[-1]] += int(count)
    return counts


def check_counts(wick, work, say, machine, kind):
    program, out = build(work, machine, kind, f"{HERE}/threads.c"), f"{work}/machine.folded"
    p = subprocess.run([wick, "trace", "--engine", "qemu", "-o", out, program], capture_output=True, text=True)
    got = own_counts(out) if os.path.exists(out) else {}
    for _ in range(3):  # QEMU logs an instruction twice if a thread is interrupted just before it
        wanted = executed(work, machine, program)
        differ = {name: (got.get(name), wanted[name]) for name in OWN if got.get(name) != wanted[name] or not wanted[name]}
        if not differ:
            break
    say(p.returncode == 0 and not differ, f"counts-{machine}-{kind}", f"status {p.returncode} {p.stderr} got, wanted: {differ}")
    stacks = [line.rsplit(" ", 1)[0] for line in open(out)] if got else []
    missing = [s for s in ("work;fib;fib", "work;sorted;qsort", "compare") if not any(s in stack for stack in stacks)]
    say(not missing and not any("main;work" in stack for stack in stacks), f"threads-{machine}-{kind}", f"missing {missing}")


def check_totals(wick, work, say, machine, kind):
    """All of a program with one thread, the loader and the C library included: not one instruction more or less. (On x86 QEMU says of
    a repeated instruction how often it went round.)"""
    program, out = build(work, machine, kind, f"{HERE}/programs/recursion.c"), f"{work}/machine.folded"
    wanted = sum(executed(work, machine, program).values())
    p = subprocess.run([wick, "trace", "--engine", "qemu", "--cycles", "-o", out, program], capture_output=True, text=True)
    got = sum(own_counts(out).values())
    say(p.returncode == 0 and got == wanted and f"Cycles: {got}\n" in p.stdout, f"total-{machine}-{kind}", f"{got}, wanted {wanted}; {p}")


def check_weights(wick, work, say, machine):
    """What capstone tells, and what it does not: fib has one branch a call."""
    program, out = f"{work}/threads-{machine}-static", f"{work}/machine.folded"
    p = subprocess.run([wick, "trace", "-q", "--engine", "qemu", "--weight", "branches", "-o", out, program], capture_output=True, text=True)
    say(p.returncode == 0 and 0 < own_counts(out)["fib"] < 3171, f"weight-branches-{machine}", f"{p.returncode} {own_counts(out)['fib']}")
    p = subprocess.run([wick, "trace", "--engine", "qemu", "--weight", "loaded", "-o", out, program], capture_output=True, text=True)
    say(p.returncode == 2 and "only instructions and branches" in p.stderr, f"weight-loaded-{machine}", f"{p.returncode} {p.stderr}")


def levels(stacks, caller):
    """How many instructions at each depth of the recursion below a caller."""
    found = {}
    for stack, count in stacks.items():
        match = re.search(rf"(?:^|;)main;{caller}((?:;fib)+)$", stack)
        if match:
            found[match[1].count(";")] = count
    return found


def check_signals(wick, work, say, machine, kind):
    """Handlers run on top of what they interrupt, wherever that is, and not one instruction of it goes elsewhere: a recursion that was
    interrupted twenty times has, at each depth, a multiple of what it has when nobody disturbs it."""
    program, out = build(work, machine, kind, f"{HERE}/signals.c"), f"{work}/machine.folded"
    p = subprocess.run([wick, "trace", "--engine", "qemu", "-o", out, program], capture_output=True, text=True)
    with open(out) as lines:
        stacks = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}
    busy, once = levels(stacks, "busy"), levels(stacks, "after")
    times = busy.get(1, 0) // once.get(1, 1)
    say(p.returncode == 0 and p.stdout == "5 56 1\n" and "no call" not in p.stderr and len(once) == 10 and times > 0
        and busy == {k: v * times for k, v in once.items()}, f"signals-{machine}-{kind}", f"{p} {busy} {once}")
    wanted = (r";main;raise;.*;on_raised;leaf$", r";main;fault;raise;.*;on_fault;(__libc_)?siglongjmp", r";main;busy(;fib)*;on_tick$")
    missing = [w for w in wanted if not any(re.search(w, ";" + stack) for stack in stacks)]
    wrong = [s for s in stacks if re.search(r"on_(raised|tick).*;(main|busy|after|fib|fault)", s) or re.search(r"on_fault.*;(busy|after)", s)]
    say(not missing and not wrong, f"signal-stacks-{machine}-{kind}", f"missing {missing} wrong {wrong[:3]}")


def check_forked(wick, work, say):
    program, out = f"{work}/threads-riscv64-static", f"{work}/machine.folded"
    results = []
    for arguments in ([], ["fork"]):
        p = subprocess.run([wick, "trace", "--engine", "qemu", "-o", out, program, *arguments], capture_output=True, text=True)
        results.append((p.returncode, own_counts(out)["fib"], own_counts(out)["forked"]))
    say(results[0] == results[1] and results[0][0] == 0, "forked-process-is-not-counted", results)


def shape(path, names):
    """The stacks of the program's own functions: what a library does in between depends on the machine."""
    found = set()
    with open(path) as lines:
        for line in lines:
            frames = [f for f in re.split(r"[; (.]", line.rsplit(" ", 1)[0]) if f in names]
            if frames and frames[0] == "main":
                found.add(";".join(frames))
    return found


def check_shapes(wick, work, say, name, functions):
    source = glob_one(f"{HERE}/programs/{name}")
    names = set(functions.split())
    results = {}
    for machine in MACHINES:
        for kind in ("static", "dynamic"):
            if not shutil.which(compiler(machine, source)):
                continue
            program, out = build(work, machine, kind, source), f"{work}/machine.folded"
            subprocess.run([wick, "trace", "-q", "-o", out, program], check=True, stdout=subprocess.DEVNULL)
            results[machine, kind] = shape(out, names)
    wanted = results.pop(("riscv64", "static"))  # the built-in engine's
    for (machine, kind), got in results.items():
        say(got == wanted and len(got) > 3, f"stacks-{name}-{machine}-{kind}",
            f"missing {sorted(wanted - got)[:3]} too many {sorted(got - wanted)[:3]}")


def own_functions(work, source):
    """The names of what a source defines, as the linker knows them; not what templates make, which has several."""
    subprocess.run([compiler("x86_64", source), "-O2", "-c", source, "-o", f"{work}/own.o"], check=True)
    lines = subprocess.run(["nm", "--defined-only", f"{work}/own.o"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for kind, name in (line.split()[-2:] for line in lines) if kind in "tT"}


def write_functions(path, program, own):
    """Where each function is; a part that was split off is its function's."""
    ranges = {}
    for line in subprocess.run(["nm", "-S", "--defined-only", program], capture_output=True, text=True, check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTwWiI" and int(fields[1], 16):
            start = int(fields[0], 16)
            name = fields[3].removesuffix(".cold")
            ranges[start] = (start + int(fields[1], 16), name if name in own else "-")
    with open(path, "w") as f:
        for start, (end, name) in sorted(ranges.items()):
            f.write(f"{start:x} {end:x} {name}\n")


def folded_own(lines, own):
    """Of each stack of a program's own functions, how many instructions."""
    counts = collections.Counter()
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        frames = stack.split(";")
        if frames[-1] in own:
            counts[";".join(f for f in frames if f in own)] += int(count)
    return counts


STEPPED = ("activations.c", "longjmp.c", "recursion.c")  # some ten thousand steps each; the others have millions
STEPPED_LONG = ("catching.cc", "exceptions.cc", "switches.c", "tailcalls.c")


def check_stepped(wick, work, say, name):
    """x86_64 on the processor itself, one instruction after the other, its stack told by the stack pointer alone: the same stacks, the same counts."""
    source, program, out = f"{HERE}/programs/{name}", f"{work}/stepped-{name}", f"{work}/machine.folded"
    own = own_functions(work, source)
    subprocess.run([compiler("x86_64", source), "-O2", "-static", source, f"{work}/steps.o", "-o", program], check=True)
    write_functions(f"{work}/functions", program, own)
    p = subprocess.run(["sh", "-c", 'exec "$0" 3>&1 >&2', program], capture_output=True, text=True, env={"STEPS": f"{work}/functions"})
    wanted = folded_own(p.stdout.splitlines(), own)
    q = subprocess.run([wick, "trace", "--no-demangle", "-o", out, program], capture_output=True, text=True)
    got = folded_own(open(out), own)
    differ = sorted(k for k in set(got) | set(wanted) if got[k] != wanted[k])
    say(p.returncode == q.returncode == 0 and p.stderr == q.stdout and not differ and len(wanted) > 1, f"stepped-{name}",
        f"{p.returncode} {q} {len(wanted)} stacks; stack, got, wanted: {[(k, got[k], wanted[k]) for k in differ[:3]]}")


def check_steps(wick, work, say):
    if os.uname().machine != "x86_64" or not shutil.which("qemu-x86_64"):
        print("skip stepped: this machine is no x86_64, or has no qemu-x86_64")
        return
    subprocess.run(["cc", "-O2", "-c", f"{HERE}/steps.c", "-o", f"{work}/steps.o"], check=True)
    for name in STEPPED + (STEPPED_LONG if os.environ.get("LONG") else ()):
        check_stepped(wick, work, say, name)


def glob_one(path):
    return path + (".c" if os.path.exists(path + ".c") else ".cc")


def is_there(machine):
    return shutil.which(f"qemu-{machine}") and shutil.which(f"{machine}-linux-gnu-g++")


def check(wick, work, say):
    for machine in MACHINES:
        if not is_there(machine):
            print(f"skip {machine}: no qemu-{machine} or no {machine}-linux-gnu-g++")
            continue
        for kind in ("static", "dynamic"):
            check_counts(wick, work, say, machine, kind)
            check_signals(wick, work, say, machine, kind)
            if machine != "x86_64":
                check_totals(wick, work, say, machine, kind)
        if machine != "riscv64":
            check_weights(wick, work, say, machine)
    check_forked(wick, work, say)
    check_steps(wick, work, say)
    check_shapes(wick, work, say, "longjmp", "main work deep activation")
    check_shapes(wick, work, say, "activations", "main deeper leap after")
    check_shapes(wick, work, say, "exceptions", "main retry middle leaf")
    check_shapes(wick, work, say, "catching", "main past ping pong again after raise_at")
    check_shapes(wick, work, say, "recursion", "main fib ackermann even odd")
