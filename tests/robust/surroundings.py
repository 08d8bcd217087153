"""What can go wrong around a sound recording: inputs of other kinds, outputs that fail, files that change, signals."""
import contextlib
import os
import pwd
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

import fixtures
import lacking
from runner import WORK, Place, report, run, skip, start, wrong_failure


def check(name, why):
    report("surroundings/" + name, why)


def refused(result, place, word):
    """Status 1, one line that says so, nothing published."""
    why = result.ending() or ("status 0" if result.status == 0 else wrong_failure(result, place, byte=False))
    if not why and word not in result.lines[0]:
        why = f"{result.lines[0]!r} does not say {word!r}"
    return why


# ---- inputs ----

def inputs(place, file, lookup):
    def fold(path):
        return run(["fold", *lookup, "-o", place.output, path])

    os.mkdir(place.folder + "/directory")
    check("input/directory", refused(fold(place.folder + "/directory"), place, "directory"))
    check("input/missing", refused(fold(place.folder + "/missing"), place, "No such file"))
    for name, content in (("one-byte", b"P"), ("zeroes", bytes(4096)), ("noise", bytes(range(256)) * 16)):
        with open(place.folder + "/" + name, "wb") as out:
            out.write(content)
        check("input/" + name, refused(fold(place.folder + "/" + name), place, name))
    with open(place.folder + "/empty", "wb"):
        result = run(["fold", *lookup, place.folder + "/empty"])
    fine = result.status == 0 and not result.out and len(result.lines) == 1 and "empty" in result.lines[0]
    check("input/empty", None if fine else f"status {result.status}: {result.err!r}")
    nothing(place, file, lookup)
    os.symlink("loop", place.folder + "/loop")
    check("input/link-to-itself", refused(fold(place.folder + "/loop"), place, "loop"))
    unreadable(place, file, lookup)
    fifo(place, file, lookup)


def nothing(place, file, lookup):
    """A recording of no samples says so, in every command."""
    data = bytearray(file.data[:file.data_start])
    data[48:56] = bytes(8)  # the data's size
    data[72:104] = bytes(32)  # and no features behind it
    path = place.folder + "/no-samples"
    with open(path, "wb") as out:
        out.write(data)
    for words, status in ((["fold"], 0), (["script"], 0), (["flame", "-o", place.output], 1), (["report"], 1), (["export", "--to", "pprof"], 1)):
        result = run([*words, *lookup, path])
        fine = result.status == status and not result.out and f"1 recording has no samples: the program ended too soon, or only waited ({path})" in result.lines[-1]
        check("input/no-samples-" + words[0], None if fine else f"status {result.status}: {result.err!r}")


def unreadable(place, file, lookup):
    if os.geteuid() != 0:
        user = None
    else:
        try:
            user = pwd.getpwnam("nobody").pw_uid
        except KeyError:
            return skip("surroundings/input/unreadable", "root may read everything, and there is no user nobody")
    folder = "/tmp/wick-robust-%d" % os.getpid()
    os.mkdir(folder)
    os.chmod(folder, 0o755)
    path = folder + "/perf.data"
    with open(path, "wb") as out:
        out.write(file.data)
    os.chmod(path, 0)
    program = shutil.copy(os.environ.get("WICK", "build/wick"), folder + "/wick")
    os.chmod(program, 0o755)
    done = subprocess.run([program, "fold", path], user=user, capture_output=True, stdin=subprocess.DEVNULL,
                          env={"ASAN_OPTIONS": "exitcode=99", "HOME": folder})
    why = None if done.returncode == 1 and b"Permission denied" in done.stderr and done.stderr.count(b"\n") == 1 and not done.stdout \
        else f"status {done.returncode}: {done.stderr!r}"
    shutil.rmtree(folder)
    check("input/unreadable", why)


def feed(path, content):
    with open(path, "wb") as out, contextlib.suppress(BrokenPipeError):
        out.write(content)


def fifo(place, file, lookup):
    """A recording that comes through a pipe is a recording."""
    path = place.folder + "/fifo"
    os.mkfifo(path)
    expected = place.run("fold", file.data, *lookup)
    folded = place.published() if expected.status == 0 else None
    os.unlink(place.output)
    writer = threading.Thread(target=feed, args=(path, file.data))
    writer.start()
    through = run(["fold", *lookup, path])
    writer.join()
    piped = subprocess.run([os.environ.get("WICK", "build/wick"), "fold", *lookup, "-"], input=file.data, capture_output=True)
    check("input/fifo", None if folded and through.out == folded else f"status {through.status}: {through.err!r}")
    check("input/standard-input", None if folded and piped.stdout == folded else f"status {piped.returncode}: {piped.stderr!r}")


# ---- progress ----

def read_terminal(master):
    """All that was written to the other end until nobody has it open."""
    said = b""
    with contextlib.suppress(OSError):  # EIO: closed
        while block := os.read(master, 65536):
            said += block
    return said


def slow_run(place, file, words, terminal, kind="xterm"):
    """The recording comes through a pipe, and its second half more than a second after wick began. (status, output, standard error)"""
    path = place.folder + "/slow-pipe"
    os.mkfifo(path)
    master, slave = os.openpty() if terminal else (None, subprocess.PIPE)
    process = start(["fold", *words, path], kind, stderr=slave)
    with open(path, "wb") as out:  # returns when wick has opened it, too
        out.write(file.data[:len(file.data) // 2])
        out.flush()
        time.sleep(1.1)
        out.write(file.data[len(file.data) // 2:])
    os.unlink(path)
    if not terminal:
        out, err = process.communicate()
        return process.returncode, out, err
    os.close(slave)
    out, err = process.stdout.read(), read_terminal(master)
    os.close(master)
    return process.wait(), out, err


def progress(place, file, lookup):
    if lacking.terminal():
        return skip("surroundings/progress", lacking.terminal())
    expected = run(["fold", "-q", *lookup, place.input]).out if place.run("fold", file.data, *lookup).status == 0 else None
    os.unlink(place.output)
    shown = re.compile(rb"(\r\x1b\[Kwick: [a-z]+(; bytes: [0-9]+| [0-9]+ %))+\r\x1b\[K")
    status, out, err = slow_run(place, file, lookup, True)
    # It is wiped off before anything else is said.
    fine = status == 0 and out == expected and out and shown.match(err) and b"\x1b" not in shown.sub(b"", err, count=1)
    check("progress/terminal", None if fine else f"status {status}: {err!r}")
    for name, words, terminal, kind in (("quiet", ["-q", *lookup], True, "xterm"), ("no-terminal", lookup, False, "xterm"), ("dumb", lookup, True, "dumb")):
        status, out, err = slow_run(place, file, words, terminal, kind)
        fine = status == 0 and out == expected and b"\r" not in err.replace(b"\r\n", b"\n") and b"\x1b" not in err
        check("progress/" + name, None if fine else f"status {status}: {err!r}")
    return None


# ---- outputs ----

def outputs(place, lookup, data):
    for command in ("fold", "script", "flame"):
        closes_early(command, data, lookup)
        closed_before(command, data, lookup)
        full(place, command, data, lookup)
    for words in (["--help"], ["help", "profile"], ["--version"], ["doctor"]):
        printed(words)
    check("output/no-such-folder", refused(run(["fold", "-q", *lookup, "-o", place.folder + "/no/such", data]), place, "No such"))
    disk_full(place, data, lookup)
    with open(place.output, "wb") as out:
        out.write(b"good\n")
    place.run("fold", b"PERFILE2 and nothing else")  # removes the output first: put it back
    with open(place.output, "wb") as out:
        out.write(b"good\n")
    result = run(["fold", "-o", place.output, place.input])
    kept = place.published() == b"good\n" and place.left() == ["result"]
    check("output/failure-keeps-old", None if result.status == 1 and kept else f"status {result.status}, left {place.left()}")
    os.unlink(place.output)


def closes_early(command, data, lookup):
    process = start([command, "-q", *lookup, "-o", "-", data])
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    status = process.wait()
    check(f"output/closes-early/{command}", None if status == 0 and not err else f"status {status}: {err!r}")


def closed_before(command, data, lookup):
    """Nobody reads at all; and there is no standard output."""
    reading, writing = os.pipe()
    os.close(reading)
    result = run([command, "-q", *lookup, "-o", "-", data], stdout=writing)
    os.close(writing)
    check(f"output/nobody-reads/{command}", None if result.status == 0 and not result.err else f"status {result.status}: {result.err!r}")

    def no_output():
        os.close(1)
    result = run([command, "-q", *lookup, "-o", "-", data], preexec_fn=no_output)
    fine = result.status == 1 and len(result.lines) == 1 and "standard output" in result.lines[0]
    check(f"output/none/{command}", None if fine else f"status {result.status}: {result.err!r}")


def printed(words):
    """What is no profile, into a full device, to nobody, and to no output at all."""
    case = "output/printed/" + " ".join(words)
    with open("/dev/full", "wb") as device:
        result = run(words, stdout=device)
    check(case + "/full", None if result.status == 1 and "No space" in result.lines[-1] else f"status {result.status}: {result.err!r}")
    reading, writing = os.pipe()
    os.close(reading)
    result = run(words, stdout=writing)
    os.close(writing)
    check(case + "/nobody-reads", None if result.status == 0 and not result.err else f"status {result.status}: {result.err!r}")

    def no_output():
        os.close(1)
    result = run(words, preexec_fn=no_output)
    check(case + "/none", None if result.status == 1 and "standard output" in result.lines[-1] else f"status {result.status}: {result.err!r}")


def full(place, command, data, lookup):
    result = run([command, "-q", *lookup, "-o", "/dev/full", data])
    check(f"output/full-device/{command}", refused(result, place, "No space"))
    with open("/dev/full", "wb") as device:
        result = run([command, "-q", *lookup, "-o", "-", data], stdout=device)
    check(f"output/full-standard-output/{command}", refused(result, place, "No space"))


def disk_full(place, data, lookup):
    """A limit on the size of files stands in for a full disk; and a real one, where mounting is allowed."""
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    result = run(["script", "-q", *lookup, "-o", place.output, data], preexec_fn=small_files, restore_signals=False)
    check("output/file-size-limit", refused(result, place, "too large"))
    wick = os.environ.get("WICK", "build/wick")
    script = 'mount -t tmpfs -o size=16k none "$1" || exit 77; shift; "$@"; status=$?; ls -A "$MOUNT" >&2; exit $status'
    mount = place.folder + "/mount"
    os.makedirs(mount, exist_ok=True)
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", mount, wick, "script", "-q", *lookup, "-o", mount + "/result", data],
                          capture_output=True, env=dict(os.environ, MOUNT=mount))
    if done.returncode == 77 or b"unshare" in done.stderr:
        return skip("surroundings/output/full-disk", "mounting is not allowed here; a limit on file sizes stood in")
    fine = done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"No space" in done.stderr
    check("output/full-disk", None if fine else f"status {done.returncode}: {done.stderr!r}")


# ---- files that change ----

def big_recording(file, size):
    """Many times the same samples, sparse pages of other records between them: slow enough to be caught in the act."""
    samples = [file.record(i) for i, (_, kind, _) in enumerate(file.records) if kind == 9]
    sides = [file.record(i) for i, (_, kind, _) in enumerate(file.records) if kind in (1, 3, 10)]
    block = b"".join(samples) * 64
    return file.with_records(sides + [block] * (size // len(block))).data


# ---- signals ----

def signals(place, file, lookup):
    path = place.folder + "/slow"
    os.mkfifo(path)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        process = start(["fold", *lookup, "-o", place.output, path])
        with open(path, "wb") as out:  # returns when wick has opened it, too
            out.write(file.data[:200])
            out.flush()
            process.send_signal(number)
            status = process.wait()
        process.communicate()
        why = None if status in (128 + number, -number) and not place.left() else f"status {status}, left {place.left()}"
        check(f"signal/{number.name}-while-reading", why)
    interrupted_output(place, file, lookup)


def interrupted_output(place, file, lookup):
    """Somebody reads a little of the output, then presses Ctrl-C: it ends, and what was there before stays."""
    with open(place.input, "wb") as out:
        out.write(big_recording(file, 8 << 20))
    process = start(["script", *lookup, "-o", "-", place.input])
    process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    status = process.wait()  # the pipe is full, so it cannot have ended by itself
    process.communicate()
    check("signal/SIGINT-while-writing", None if status in (130, -2) else f"status {status}")


def run_all(file, lookup):
    place = Place("surroundings")
    data = fixtures.unpacked("threads", "perf.data")
    os.makedirs(os.path.join(place.folder, "out"), exist_ok=True)
    inputs(place, file, lookup)
    progress(place, file, lookup)
    outputs(place, fixtures.lookup_options("threads"), data)
    signals(place, file, lookup)
    shutil.rmtree(os.path.join(WORK, "place-surroundings"), ignore_errors=True)
