"""What goes wrong, and what wick says of it: exit statuses, losses, a full disk, invalid command lines."""
import os
import re
import shutil
import signal
import subprocess
import tempfile

from common import PERF_ENV, WICK, WORK, lost_of, samples_of, say, skip, unfinished, wick

PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs")


# ---- statuses ----

def statuses():
    """A target's status is never taken for wick's own, which are 1 to 5."""
    for status, passed in ((1, 101), (2, 102), (3, 103), (4, 104), (5, 105), (6, 6), (101, 101), (126, 126), (127, 127), (255, 255)):
        for name, words in (("record", ["record", "-q", "-g", "none", "-o", "status.data"]),
                            ("profile", ["profile", "-q", "-g", "none", "-o", "runs", "--name", "status"])):
            if name == "profile" and status not in (3, 4, 127):
                continue
            done = wick(*words, "--", "sh", "-c", f"exit {status}")
            say(done.returncode == passed and f"sh ended with status {status}\n" in done.stderr, f"{name} of a target that ends with {status}",
                f"{done.returncode}: {done.stderr}")
    for number in (signal.SIGSEGV, signal.SIGTERM, signal.SIGKILL):
        for words in (["record", "-q"], ["record", "-q", "--method", "ptrace"], ["record", "-q", "--duration", "60"]):
            done = wick(*words, "-g", "none", "-o", "status.data", "--", "sh", "-c", f"kill -{int(number)} $$")
            say(done.returncode == 128 + number and f"ended by signal {int(number)}" in done.stderr, f"{' '.join(words)}: a target that dies of {number.name}",
                f"{done.returncode}: {done.stderr}")
    done = wick("record", "-q", "-g", "none", "--duration", "0.2", "-o", "status.data", "--", "sh", "-c", "trap 'exit 3' TERM; while :; do :; done")
    say(done.returncode == 0, "a target that wick ended did not fail", f"{done.returncode}: {done.stderr}")


# ---- the command line ----

def one_line(name, status, wanted, *words):
    """An error is one line that names what is wrong."""
    done = wick("record", "-o", "none.data", *words)
    say(done.returncode == status and done.stderr.startswith("wick: ") and done.stderr.count("\n") == 1 and wanted in done.stderr,
        f"wrong: {name}", f"{done.returncode}: {done.stderr}")


def command_lines():
    true = ["--", "true"]
    for words in (["record", "-q", "-o", "own.data"], ["profile", "-q", "--allow-partial", "-o", "runs", "--name", "own"]):
        done = wick(*words, "sh", "-c", "echo $0", "-l", "--kind")
        say(done.stdout.startswith("-l\n"), f"{words[0]}: a command's options are its own", f"{done.returncode}: {done.stdout} {done.stderr}")
    one_line("no duration", 2, "--duration: '0'", "--duration", "0", *true)
    one_line("a negative delay", 2, "--delay: '-1'", "--delay", "-1", *true)
    one_line("every 0 events", 2, "-c: '0'", "-c", "0", *true)
    one_line("more events than can be counted", 2, "-c goes up to", "-c", "18446744073709551615", *true)
    one_line("no frequency", 2, "-F: '0'", "-F", "0", *true)
    one_line("a thread that is not there", 1, "thread 4194305: no such thread", "-t", "4194305")
    one_line("process 0", 1, "process 0: no such process", "-p", "0")
    one_line("no number", 2, "-p: 'abc'", "-p", "abc")
    one_line("a folder that is no cgroup", 1, "cgroup /tmp: a directory, but not a cgroup", "-a", "--cgroup", "/tmp", *true)
    one_line("no CPU", 2, "-C: '3-1' is not a list of CPUs", "-C", "3-1", *true)
    one_line("an empty event", 2, "an event without a name", "-e", "cpu-clock,", *true)
    one_line("no such modifier", 2, "cpu-clock:z: no such modifier", "-e", "cpu-clock:z", *true)
    one_line("a modifier that only groups have", 2, "cpu-clock:S: no such modifier", "-e", "cpu-clock:S", *true)
    one_line("counters that are not there", 3, "no counters called 'nosuch'", "-e", "nosuch/event=1/", *true)
    one_line("a term that is none", 2, "'nonsense=1' is neither", "-e", "software/nonsense=1/", *true)
    one_line("an event of which nothing is left", 2, "cpu-clock:k: with -u nothing is left", "-e", "cpu-clock:k", "-u", *true)
    one_line("a stack too large", 2, "from 8 to 65528", "-g", "dwarf,99999", *true)
    one_line("a buffer of 0", 2, "is not a size", "-m", "0", *true)
    one_line("a program that is none", 2, "/etc/passwd: Permission denied", "--", "/etc/passwd")
    one_line("no target", 2, "nothing to record", "-g", "fp")
    one_line("a cgroup alone", 2, "-a --cgroup", "--cgroup", "x", *true)
    one_line("a folder that is not there", 1, "/nonexistent/x: No such file", "-o", "/nonexistent/x", *true)
    one_line("too much compressed", 2, "up to 19", "-z", "20", *true)


def nothing_is_replaced():
    """A program that can't be started has no recording to put in another's place, whoever notices."""
    with open(os.path.join(WORK, "no-interpreter"), "w", encoding="ascii") as file:
        file.write("#!/no/such/interpreter\n")
    os.chmod(os.path.join(WORK, "no-interpreter"), 0o755)
    for name, program, wanted in (("is nowhere", "no-such-program", "No such file"), ("has no such path", "/no/such/program", "No such file"),
                                  ("is a folder", "/usr", "/usr: Is a directory"), ("is no program", "/etc/passwd", "Permission denied"),
                                  ("only exec can tell", "./no-interpreter", "No such file")):
        with open(os.path.join(WORK, "kept.data"), "w", encoding="ascii") as file:
            file.write("kept")
        done = wick("record", "-o", "kept.data", "--", program)
        with open(os.path.join(WORK, "kept.data"), encoding="ascii") as file:
            say(done.returncode == 2 and wanted in done.stderr and file.read() == "kept" and not unfinished("kept.data"),
                f"a target that {name} replaces nothing", f"{done.returncode}: {done.stderr} {unfinished('kept.data')}")


def levels_agree():
    """What `wick doctor` says of the whole system and what recording it says."""
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        level = int(file.read())
    if os.geteuid() != 0 or not shutil.which("setpriv") or level <= 0:
        return skip("levels agree", "takes root, setpriv and a kernel that refuses")
    other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    advice = re.compile(r"kernel\.perf_event_paranoid=(-?\d)")
    with tempfile.TemporaryDirectory(prefix="wick-levels.") as folder:
        os.chmod(folder, 0o777)
        doctor = subprocess.run([*other, WICK, "doctor"], cwd=folder, capture_output=True, text=True).stdout
        done = subprocess.run([*other, WICK, "record", "-e", "cpu-clock", "-a", "--duration", "0.1"], cwd=folder, capture_output=True, text=True)
    say(done.returncode == 3 and advice.findall(done.stderr) == ["0"], "levels agree, recording", f"{done.returncode}: {done.stderr}")
    system = re.search(r"system-wide \(-a\).*\n(.*)", doctor)
    say(system is not None and advice.findall(system[1]) == ["0"], "levels agree, doctor", doctor)


# ---- losses ----

def losses_are_said():
    done = wick("record", "-e", "cpu-clock", "-m", "32K", "-g", "dwarf,65528", "-o", "lost.data", "--", "./restless", "steady", "200")
    say(done.returncode == 0 and samples_of(done) == 0 and lost_of(done) > 0 and "a larger --buffer, a lower -F or a smaller stack" in done.stderr,
        "samples that never fit", f"{done.returncode}: {done.stderr}")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", os.path.join(PROGRAMS, "throttled.c"), "-o", "throttled.so", "-ldl"], cwd=WORK, check=True)
    done = wick("record", "-e", "cpu-clock", "-g", "fp", "-o", "throttled.data", "-p", str(os.getpid()), "--duration", "0.2",
                env=dict(os.environ, LD_PRELOAD="./throttled.so", ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"))
    say(done.returncode == 0 and "the kernel throttled the sampling 3 times: a lower -F avoids it" in done.stderr, "throttling", f"{done.returncode}: {done.stderr}")
    say(lost_of(done) == 7, "dropped samples", f"{done.returncode}: {done.stderr}")


# ---- a full disk ----

def on_small_disk(size, *words, first="true"):
    """Runs wick with a disk of `size` at ./small, which nobody else sees; what is left there is copied to ./kept. On one CPU: what was mapped stands in
    the buffer of the CPU where that was, and it may be another's that fills the disk."""
    folder = os.path.join(WORK, "small")
    os.makedirs(folder, exist_ok=True)
    shutil.rmtree(os.path.join(WORK, "kept"), ignore_errors=True)
    line = f'mount -t tmpfs -o size={size} tmpfs "$0" || exit 77; {first}; "$@"; status=$?; cp -a "$0" kept; exit $status'
    return subprocess.run(["unshare", "-m", "sh", "-c", line, folder, WICK, *words], cwd=WORK, capture_output=True, text=True, errors="replace", timeout=120)


def full_disk():
    probe = on_small_disk("1m", "--version") if shutil.which("unshare") else None
    if not probe or probe.returncode != 0:
        return skip("a full disk", "no small disk can be mounted: " + (probe.stderr.strip() if probe else "unshare is not installed"))
    load = ["--", "./restless", "pair", "20000"]  # far more than the disk takes
    for name, words in (("perf events", []), ("compressed", ["-z", "1", "-g", "dwarf,65528"]), ("ptrace", ["--method", "ptrace"])):
        done = on_small_disk("256k" if name == "compressed" else "1500k", "record", *words, "-o", "small/full.data", *load)
        said = re.search(r"small/full.data: No space left on device\n(?:wick: .*\n)*?wick: what was recorded before that, (\d+) samples, is in small/full.data",
                         done.stderr)
        say(done.returncode == 1 and said is not None, f"a full disk, {name}", f"{done.returncode}: {done.stderr}")
        read = wick("fold", "kept/full.data")
        say(read.returncode == 0 and "leaf_work" in read.stdout and "cut short" in read.stderr, f"a full disk, {name}/what there is is readable",
            f"{read.returncode}: {read.stderr}")
        if name == "perf events" and shutil.which("perf"):
            theirs = subprocess.run(["perf", "script", "-F", "ip,sym", "-i", "kept/full.data"], cwd=WORK, capture_output=True, env=PERF_ENV).stdout
            say(b"leaf_work" in theirs, "a full disk/perf reads it, too", theirs[:200])
    done = on_small_disk("1500k", "record", "-o", "small/full.data", *load, first="echo earlier >small/full.data")
    left = re.search(r"what was recorded before that, \d+ samples, is in (small/full.data.unfinished-\w+)$", done.stderr, re.M)
    with open(os.path.join(WORK, "kept/full.data"), "rb") as file:
        kept = file.read() == b"earlier\n"
    read = wick("fold", left[1].replace("small", "kept")) if left else None
    say(done.returncode == 1 and kept and read and "leaf_work" in read.stdout, "a full disk/an earlier recording is kept", f"{done.returncode}: {done.stderr}")
    done = on_small_disk("1500k", "profile", "-o", "small/runs", "--name", "full", *load)
    left = [name for _, folders, files in os.walk(os.path.join(WORK, "kept/runs")) for name in folders + files]
    say(done.returncode == 1 and "No space left on device" in done.stderr and not left, "a full disk, wick profile", f"{done.returncode}: {left} {done.stderr}")


def many_mappings():
    """A process that has mapped a file called python in 5,000 places costs neither a write nor a look at the file for each of them."""
    places = 5000
    if os.geteuid() != 0 or not shutil.which("strace"):
        return skip("many mappings", "takes root and strace")
    subprocess.run(["gcc", "-O1", os.path.join(PROGRAMS, "mappings.c"), "-o", "mappings"], cwd=WORK, check=True)
    target = subprocess.Popen(["./mappings", "./python-places", str(places)], cwd=WORK, stdout=subprocess.PIPE, text=True)
    no_leaks = dict(PERF_ENV, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")  # they are searched for by ptrace, which strace uses
    try:
        if target.stdout.readline() != "ready\n":
            return say(False, "many mappings", "the target did not start")
        done = subprocess.run(["strace", "-f", "-e", "trace=openat,write", "-o", "mappings.strace", WICK, "record", "-a", "--duration", "1", "-o", "mappings.data"],
                              cwd=WORK, capture_output=True, text=True, errors="replace", env=no_leaks)
    finally:
        target.kill()
        target.wait()
        os.remove(os.path.join(WORK, "python-places"))
    if done.returncode == 3:
        return skip("many mappings", done.stderr.strip())
    with open(os.path.join(WORK, "mappings.strace"), encoding="utf-8", errors="replace") as file:
        calls = file.read().splitlines()
    writes = sum("write(" in line for line in calls)
    opened = sum(f"/proc/{target.pid}/map_files/" in line for line in calls)
    say(done.returncode == 0 and 0 < writes < places / 2, "many mappings are written together", f"{done.returncode}: {writes} writes {done.stderr}")
    say(opened < places / 2, "many mappings of one file are not all looked at", f"{opened} times opened")


def all_parts():
    for part in (statuses, command_lines, nothing_is_replaced, levels_agree, losses_are_said, full_disk, many_mappings):
        part()
