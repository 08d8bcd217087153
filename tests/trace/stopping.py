"""Runs that are cut short: faults, kills, Ctrl-C, budgets and checkpoints; and what both engines start a program with."""
import base64
import gzip
import os
import re
import signal
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CC = "riscv64-linux-gnu-gcc"
STEP = 1000000


def whole(text):
    """The sum of a folded file that is all there, else None."""
    lines = text.splitlines()
    if not text.endswith("\n") or not all(re.fullmatch(r"\S+ \d+", line) for line in lines):
        return None
    return sum(int(line.rsplit(" ", 1)[1]) for line in lines)


def marked(text):
    return all(line.startswith("[partial];") for line in text.splitlines())


def start(wick, program, out, *options):
    """A run of which a checkpoint is there already."""
    if os.path.exists(out):
        os.unlink(out)
    process = subprocess.Popen([wick, "trace", *options, "--checkpoint", str(STEP), "-o", out, program], stderr=subprocess.PIPE, text=True)
    while not os.path.exists(out) and process.poll() is None:
        time.sleep(0.01)
    return process


def check_signal(wick, program, out, say, engine, number):
    process = start(wick, program, out, "--engine", engine)
    process.send_signal(number)
    said = process.communicate()[1]
    text = open(out).read()
    count = re.search(r"Partial flamegraph written to .* \((\d+) instructions\)", said)
    say(process.returncode == 1 and marked(text) and count and whole(text) == int(count[1]) and "interrupted" in said,
        f"{signal.Signals(number).name}-{engine}", f"{process.returncode} {said} {text[:200]}")


def check_checkpoints(wick, program, out, say):
    """Whoever reads the file at any moment finds a whole one, with a multiple of the step counted; a kill leaves it."""
    process = start(wick, program, out, "--engine", "builtin")
    sums, torn = set(), None
    while len(sums) < 5 and torn is None and process.poll() is None:
        text = open(out).read()
        count = whole(text)
        if not count or count % STEP or not marked(text):
            torn = text
        sums.add(count)
    process.kill()
    process.communicate()
    text = open(out).read()
    left = [name for name in os.listdir(os.path.dirname(out)) if name.startswith(os.path.basename(out)) and name != os.path.basename(out)]
    for name in left:  # what was being written when the kill came, beside the published one
        os.unlink(os.path.join(os.path.dirname(out), name))
    say(torn is None and len(sums) == 5, "checkpoints-are-whole", f"{sums} {torn}")
    say(process.returncode == -9 and marked(text) and (whole(text) or 1) % STEP == 0, "checkpoint-survives-a-kill", text[:200])


def check_checkpoint_end(wick, program, out, say):
    results = []
    for options in ([], ["--checkpoint", "1000"], ["--flamegraph-checkpoint-cycles", "777"]):
        p = subprocess.run([wick, "trace", *options, "--flamegraph", out, program, "argument"], capture_output=True, text=True)
        results.append((p.returncode, open(out).read(), p.stderr))
    say(results[0] == results[1] == results[2], "checkpoints-change-nothing", [r[:1] + r[2:] for r in results])
    p = subprocess.run([wick, "trace", "--checkpoint", "100000", "-o", "/nowhere/at/all", program, "argument"], capture_output=True, text=True)
    say(p.returncode == 1 and "checkpoint: " in p.stderr and p.stderr.count("\n") > 1, "failed-checkpoint-warns", p.stderr)


def check_fault(wick, program, out, say, engine):
    p = subprocess.run([wick, "trace", "--engine", engine, "-o", out, program, "fault"], capture_output=True, text=True)
    text = open(out).read()
    wanted = "store of 4 bytes at 0x8.*outer" if engine == "builtin" else "signal 11"
    say(p.returncode == 1 and marked(text) and ";outer;inner " in text and re.search(wanted, p.stderr), f"fault-{engine}",
        f"{p.returncode} {p.stderr} {text[:200]}")


def content(path, view):
    text = open(path).read()
    if view != "html":
        return text
    return gzip.decompress(base64.b64decode(re.search(r'id="profile">([^<]*)<', text)[1])).decode(errors="replace")


def check_views(wick, program, out, say):
    """Every view, and in each of them that it is partial."""
    for view, wanted in (("folded", r"^\[partial\];"), ("svg", r">partial</text>[\s\S]*\[partial\]"), ("html", r"\[partial\]"),
                         ("table", r"\[partial\]"), ("csv", r'"\[partial\]",'), ("json", r"\[partial\]")):
        for option in (["--as", view], *([[f"--{view}"]] if view != "folded" else [])):
            p = subprocess.run([wick, "trace", *option, "-o", out, program, "fault"], capture_output=True, text=True)
            text = content(out, view)
            say(p.returncode == 1 and re.search(wanted, text) and "inner" in text, f"view-{'-'.join(option).strip('-')}",
                f"{p.returncode} {p.stderr} {text[:300]}")


def check_enrich(wick, program, out, say):
    subprocess.run([wick, "trace", "-q", "--raw", "-o", out, program, "fault"], capture_output=True)
    p = subprocess.run([wick, "enrich", out, "--elf", program], capture_output=True, text=True)
    say(p.returncode == 0 and marked(p.stdout) and re.search(r";outer[^;]*;inner", p.stdout), "enrich-partial", f"{p.returncode} {p.stderr} {p.stdout[-300:]}")


def check_start(wick, work, say):
    program = f"{work}/start"
    subprocess.run([CC, "-O2", "-static", f"{HERE}/start.c", "-o", program], check=True)
    outs = [subprocess.run([wick, "trace", "-q", "--engine", engine, "--env", "A=b", "--env", "HOME=/x", "--env", "EMPTY=", "-o", f"{work}/out",
                            program, "one", "two three"], capture_output=True, text=True).stdout for engine in ("builtin", "qemu")]
    say(outs[0] == outs[1] and outs[0].count("\n") > 20, "same-start", f"{outs}")


def check_determinism(wick, work, say, programs):
    for program in programs:
        outs = []
        for _ in range(2):
            subprocess.run([wick, "trace", "-q", "--engine", "qemu", "-o", f"{work}/out", program], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            outs.append(open(f"{work}/out", "rb").read())
        say(outs[0] == outs[1] and len(outs[0]) > 100, f"qemu-same-bytes-{os.path.basename(program)}", "two runs differ")


def check(wick, work, say, finite, qemu):
    program, out = f"{work}/endless", f"{work}/stopped/out"
    os.makedirs(os.path.dirname(out), exist_ok=True)
    subprocess.run([CC, "-O2", "-static", f"{HERE}/endless.c", "-o", program], check=True)
    engines = ("builtin", "qemu") if qemu else ("builtin",)
    for engine in engines:
        for number in (signal.SIGTERM, signal.SIGINT):
            check_signal(wick, program, out, say, engine, number)
        check_fault(wick, program, out, say, engine)
    check_checkpoints(wick, program, out, say)
    check_checkpoint_end(wick, finite, out, say)
    check_views(wick, program, out, say)
    check_enrich(wick, program, out, say)
    if qemu:
        check_start(wick, work, say)
