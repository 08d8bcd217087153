"""What the tests of recordings share: running wick, asking perf and wick what is in a file."""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../parity"))
from compare import unwound_otherwise  # noqa: E402

BUILD = os.environ.get("BUILD", os.path.abspath(os.path.join(HERE, "../../build")))
WICK = os.environ.get("WICK", os.path.join(BUILD, "wick"))
WORK = os.environ.get("WORK", os.path.join(BUILD, "work/record"))
PERF_ENV = {key: value for key, value in os.environ.items() if not key.endswith("SAN_OPTIONS")}


def skip(name, why):
    print(f"skip {name}: {why}", flush=True)


def say(good, name, why=""):
    print(f"ok {name}" if good else f"FAIL {name}: {why}", flush=True)


def wick(*words, **options):
    return subprocess.run([WICK, *words], cwd=WORK, capture_output=True, text=True, errors="replace", **options)


def perf_script(path):
    done = subprocess.run(["perf", "script", "-i", path], cwd=WORK, capture_output=True, env=PERF_ENV)
    return done.stdout


def carrier_lines(text):
    """Where perf shows the carrier's records. Frames are none: BPF programs of others run in the kernel below whatever is sampled."""
    return re.findall(r"(?mi)^[^\s|].*bpf.*|^.*(?:bpf_event|bpf-output).*", "\n".join(line for line in text.splitlines() if "[k] bpf" not in line))


def folded(path):
    done = wick("fold", "-q", path)
    return done.stdout


def same_text(name, path, unwound=False):
    """What perf prints of wick's file is what wick prints of it; of stacks that both have to unwind, those that perf does not break off."""
    if not shutil.which("perf") or b"version 6.1." not in subprocess.run(
            ["perf", "--version"], capture_output=True, env=PERF_ENV).stdout:
        print(f"skip {name}: the pinned perf, 6.1, is not installed", flush=True)
        return
    ours = subprocess.run([WICK, "script", "-q", "--compat=perf", path], cwd=WORK, capture_output=True).stdout
    theirs = perf_script(path)
    wrong = unwound_otherwise(theirs, ours)[1] if unwound else [] if ours == theirs else ["differs"]
    say(not wrong and len(theirs) > 1000, name, f"{len(ours)} bytes against perf's {len(theirs)}: {wrong[:1]}")


def has_stack(name, path):
    lines = folded(path)
    found = re.search(r"(^|\n)spinner[^\n]*;middle_work;leaf_work \d+", lines)
    say(found is not None, name, "no stack spinner;…;middle_work;leaf_work in: " + lines[:300])


def samples_of(done):
    found = re.search(r"wick: (\d+) samples? of", done.stderr)
    return int(found.group(1)) if found else -1


def lost_of(done):
    found = re.search(r"wick: (\d+) samples? (?:was|were) lost", done.stderr)
    return int(found.group(1)) if found else 0


def record_some(name, *words, command=("./restless", "steady", "200")):
    """A recording that must succeed."""
    for _ in range(4):  # a BPF program on the same tracepoint, whoever's it is, swallows its events for as long as it is there
        done = wick("record", "-o", "some.data", *words, *(["--", *command] if command else []))
        if done.returncode != 0 or samples_of(done) != 0 or not any("sched:" in word for word in words):
            break
        time.sleep(1)
    say(done.returncode == 0 and samples_of(done) > 0, name, f"{done.returncode}: {done.stderr}")
    return done


def unfinished(path):
    """The recordings under way that are to have this name, or were until somebody killed the recorder."""
    return glob.glob(glob.escape(os.path.join(WORK, path)) + ".unfinished-*")


def wait_for_bytes(path, size, process=None):
    """Until a recording has so many bytes: however long the machine takes, but not for ever."""
    end = time.monotonic() + 600
    while time.monotonic() < end and (process is None or process.poll() is None):
        if any(os.path.getsize(part) >= size for part in unfinished(path)):
            return True
        time.sleep(0.02)
    return False


def wait_until(condition):
    """What is to come comes within ten minutes, however busy the machine is."""
    end = time.monotonic() + 600
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()
