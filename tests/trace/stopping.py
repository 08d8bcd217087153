"""Runs that are cut short: faults, kills, Ctrl-C, budgets and checkpoints; and what both engines start a program with."""
import base64
import gzip
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "../programs"))
import lacking  # noqa: E402

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


def stream_records(total):
    """A stream of that many instructions: 0x1000 calls 0x2000, which goes round."""
    def record(pc, target, length, count, kind):
        return struct.pack("<QQIHBB", pc, target, length, count, kind, 0)
    data = b"WICKFLOW" + struct.pack("<II", 1, 0) + record(0x1000, 0x2000, 4, 1, 3)
    return data + record(0x2000, 0x2000, 4000, 1000, 1) * ((total - 1) // 1000)


def check_stream_signal(wick, out, say, number):
    """The simulator still runs, but sends no more."""
    if os.path.exists(out):
        os.unlink(out)
    process = subprocess.Popen([wick, "trace", "--engine", "stream", "--checkpoint", str(STEP), "-o", out], stdin=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    process.stdin.write(stream_records(3 * STEP))
    process.stdin.flush()
    while not os.path.exists(out) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    said = process.stderr.read().decode()
    process.stdin.close()
    process.wait()
    process.stderr.close()
    text = open(out).read()
    count = re.search(r"Partial flamegraph written to .* \((\d+) instructions\)", said)
    say(process.returncode == 1 and marked(text) and count and whole(text) == int(count[1]) and "interrupted" in said and "0x1000;0x2000 " in text,
        f"{signal.Signals(number).name}-stream", f"{process.returncode} {said} {text[:200]}")


def check_killed_guest(wick, program, out, say):
    """Somebody kills QEMU, not wick."""
    process = start(wick, program, out, "--engine", "qemu")
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
        children = [int(pid) for pid in f.read().split()]
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    said = process.communicate()[1]
    text = open(out).read()
    say(len(children) == 1 and process.returncode == 1 and marked(text) and whole(text) and "signal 9" in said, "killed-qemu",
        f"{process.returncode} {said} {text[:200]}")


def check_progress(wick, program, out, say, engine):
    """On a terminal: how many, and how many a second, once there is something to be said; then Ctrl-C, typed."""
    if lacking.terminal():
        print(f"skip progress-and-ctrl-c-{engine}: {lacking.terminal()}", flush=True)
        return
    pid, terminal = pty.fork()
    if not pid:
        os.execv(wick, [wick, "trace", "--engine", engine, "-o", out, program])
    said = b""
    progress = rb"\d+ million instructions, \d+ million a second"
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the terminal is closed: it has ended
            piece = b""
        if not piece:
            break
        if re.search(progress, said + piece) and not re.search(progress, said):
            os.write(terminal, b"\x03")
        said += piece
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    text = open(out).read()
    say(re.search(progress, said) and status == 1 and marked(text) and b"interrupted after" in said, f"progress-and-ctrl-c-{engine}",
        f"{status} {said[-300:]} {text[:200]}")


def check_checkpoints(wick, program, out, say, engine):
    """Whoever reads the file at any moment finds a whole one, with a multiple of the step counted (QEMU is not stopped for it, so there it
    is any number); a kill leaves it."""
    process = start(wick, program, out, "--engine", engine)
    step = STEP if engine == "builtin" else 1
    sums, torn = set(), None
    while len(sums) < 5 and torn is None and process.poll() is None:
        text = open(out).read()
        count = whole(text)
        if not count or count % step or not marked(text):
            torn = text
        sums.add(count)
    process.kill()
    process.communicate()
    text = open(out).read()
    left = [name for name in os.listdir(os.path.dirname(out)) if name.startswith(os.path.basename(out)) and name != os.path.basename(out)]
    for name in left:  # what was being written when the kill came, beside the published one
        os.unlink(os.path.join(os.path.dirname(out), name))
    say(torn is None and len(sums) == 5, f"checkpoints-are-whole-{engine}", f"{sums} {torn}")
    say(process.returncode == -9 and marked(text) and (whole(text) or step + 1) % step == 0 and whole(text), f"checkpoint-survives-a-kill-{engine}",
        text[:200])


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


VIEWS = ("folded", "svg", "html", "table", "csv", "json")


def twice(wick, work, data, *options):
    """The same run two times, or why it is none."""
    outs = []
    for _ in range(2):
        p = subprocess.run([wick, "trace", "-q", *options, "-o", f"{work}/out"], input=data, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        outs.append(open(f"{work}/out", "rb").read() if p.returncode == 0 else p.stderr)
    return outs[0] == outs[1] and len(outs[0]) > 20


def check_determinism(wick, work, say, programs):
    """Same program, same input: same bytes, of every view, from every engine."""
    times = 20 if os.environ.get("LONG") else 2
    for program in programs:
        say(same(wick, work, program, "qemu", "folded", times), f"same-bytes-qemu-{os.path.basename(program)}", f"{times} runs differ")
    for view in VIEWS:
        for engine in ("builtin", "qemu"):
            say(same(wick, work, programs[0], engine, view), f"same-bytes-{engine}-{view}", "two runs differ")
        say(twice(wick, work, stream_records(5000), "--engine", "stream", "--as", view), f"same-bytes-stream-{view}", "two runs differ")


def check_chance(wick, work, say, machines):
    """What a program is given for chance is the same in every run: it works as often as those bytes say."""
    source = f"{work}/chance.c"
    with open(source, "w") as f:
        f.write("#include <sys/auxv.h>\n"
                "static volatile int n;\n"
                "__attribute__((noinline)) static void work(int times) { while (times--) n++; }\n"
                "int main(void) { const unsigned char *bytes = (const unsigned char *)getauxval(AT_RANDOM);\n"
                "for (int i = 0; i < 16; i++) work(bytes[i] * 16); return 0; }\n")
    for machine in machines:
        program = f"{work}/chance-{machine}"
        subprocess.run([f"{machine}-linux-gnu-gcc", "-O2", "-static", source, "-o", program], check=True)
        outs = {run_of(wick, work, program, "qemu", "folded") for _ in range(3)}
        say(len(outs) == 1 and b";main;work " in outs.pop(), f"same-chance-{machine}", "runs differ")


def run_of(wick, work, program, engine, view):
    subprocess.run([wick, "trace", "-q", "--engine", engine, "--as", view, "-o", f"{work}/out", program], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return open(f"{work}/out", "rb").read()


def same(wick, work, program, engine, view, times=2):
    outs = {run_of(wick, work, program, engine, view) for _ in range(times)}
    return len(outs) == 1 and len(outs.pop()) > 100


def check(wick, work, say, finite, qemu):
    program, out = f"{work}/endless", f"{work}/stopped/out"
    os.makedirs(os.path.dirname(out), exist_ok=True)
    subprocess.run([CC, "-O2", "-static", f"{HERE}/endless.c", "-o", program], check=True)
    engines = ("builtin", "qemu") if qemu else ("builtin",)
    for engine in engines:
        for number in (signal.SIGTERM, signal.SIGINT):
            check_signal(wick, program, out, say, engine, number)
        check_fault(wick, program, out, say, engine)
        check_checkpoints(wick, program, out, say, engine)
        check_progress(wick, program, out, say, engine)
    for number in (signal.SIGTERM, signal.SIGINT):
        check_stream_signal(wick, out, say, number)
    if qemu:
        check_killed_guest(wick, program, out, say)
    check_checkpoint_end(wick, finite, out, say)
    check_views(wick, program, out, say)
    check_enrich(wick, program, out, say)
    if qemu:
        check_start(wick, work, say)
