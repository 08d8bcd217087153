"""Runs wick within limits and says what is wrong with how it ended."""
import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
import threading

WICK = os.environ.get("WICK") or os.path.join(os.environ.get("BUILD", "build"), "wick")
WORK = os.environ.get("WORK") or os.path.join(os.environ.get("BUILD", "build"), "work/robust")
SANITIZED = bool(os.environ.get("SANITIZED"))
LONG = bool(os.environ.get("LONG"))
SECONDS = 20  # of CPU: a hundred times what the slowest case takes
MEMORY = 768 << 20  # of address space; the sanitizers reserve terabytes
print_lock = threading.Lock()


def report(name, why=None):
    with print_lock:
        print(f"FAIL {name}: {why}" if why else f"ok {name}", flush=True)


def skip(name, why):
    with print_lock:
        print(f"skip {name}: {why}", flush=True)


def limit(process, memory):
    """From outside, for a function that runs between fork and exec makes Python copy its own page tables: that costs more than most runs of wick."""
    limits = [(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5)), (resource.RLIMIT_CORE, (0, 0))]
    if memory and not SANITIZED:
        limits.append((resource.RLIMIT_AS, (MEMORY, MEMORY)))
    with contextlib.suppress(ProcessLookupError):  # it may have ended already
        for kind, most in limits:
            resource.prlimit(process.pid, kind, most)


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err
        self.lines = err.decode(errors="replace").splitlines()

    def ending(self):
        """What no run may do, or None."""
        if self.status < 0:
            return f"ended by {signal.Signals(-self.status).name}"
        if self.status not in (0, 1):
            return f"status {self.status}: {self.err[:300]!r}"
        bad = [line for line in self.lines if not line.startswith("wick: ")]
        return f"strange line on standard error: {bad[0]!r}" if bad else None


def start(arguments, kind="xterm", memory=True, **options):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    env = dict(os.environ, HOME=os.path.join(WORK, "no-home"), TERM=kind)
    process = subprocess.Popen([WICK, *arguments], env=env, **options)
    limit(process, memory)
    return process


def run(arguments, **options):
    process = start(arguments, **options)
    out, err = process.communicate()
    return Result(process.returncode, out or b"", err or b"")


class Place:
    """A folder of its own for each worker: the damaged file, and the output, which must be there or not."""

    def __init__(self, number):
        self.folder = os.path.join(WORK, f"place-{number}")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "out"))
        self.input = os.path.join(self.folder, "perf.data")
        self.output = os.path.join(self.folder, "out", "result")

    def run(self, command, content, *arguments):
        if content is not None:
            with open(self.input, "wb") as file:
                file.write(content)
        if os.path.exists(self.output):
            os.unlink(self.output)
        return run([command, "-j", "2", *arguments, "-o", self.output, self.input])

    def left(self):
        return sorted(os.listdir(os.path.join(self.folder, "out")))

    def published(self):
        if not os.path.exists(self.output):
            return None
        with open(self.output, "rb") as file:
            return file.read()


FOLDED = re.compile(rb"(?:[^\n]+ [0-9]+\n)*")


def wrong_output(command, text):
    if command == "fold" and not FOLDED.fullmatch(text):
        return "published something that is not folded text"
    if command == "flame" and not (text.startswith(b"<?xml") and text.rstrip().endswith(b"</svg>")):
        return "published something that is not a whole SVG"
    return None


def wrong_failure(result, place, byte=True):
    """For status 1: one line, with the offset, and nothing published."""
    if len(result.lines) != 1:
        return f"{len(result.lines)} lines on standard error: {result.err[:300]!r}"
    if byte and not re.search(r"\bbyte [0-9]+\b", result.lines[0]):
        return f"no byte offset in {result.lines[0]!r}"
    if place.left():
        return f"left {place.left()}"
    return None


NOT_ONE_PLACE = ("wick: there are no stacks to draw", "wick: the weights add up to more than 2^64")


def refused_whole(result):
    """Refused for what all of it comes to, not for one byte; notes may follow."""
    return result.status == 1 and bool(result.lines) and result.lines[0] in NOT_ONE_PLACE


def wrong_damaged(command, result, place):
    """Damage may be harmless or fatal, but either way as promised."""
    why = result.ending()
    if not why and result.status == 1:
        why = (f"left {place.left()}" if place.left() else None) if refused_whole(result) else wrong_failure(result, place)
    if not why and result.status == 0:
        why = wrong_output(command, place.published()) if place.left() == ["result"] else f"left {place.left()}"
    return why
