"""What the checks of this group share: where things are, and how a program is built, recorded and read."""
import collections
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
PROGRAMS = os.path.join(TOP, "tests/programs")
sys.path[:0] = [PROGRAMS, os.path.join(TOP, "tests/parity")]

BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
WICK = os.environ.get("WICK", os.path.join(BUILD, "wick"))
WORK = os.environ.get("WORK", os.path.join(BUILD, "work/dwarf"))
ENV = dict(os.environ, HOME=os.path.join(WORK, "home"), LC_ALL="C.UTF-8", DEBUGINFOD_URLS="")
PERF_ENV = {key: value for key, value in ENV.items() if not key.endswith("SAN_OPTIONS")}


def say(name, why=None):
    print(f"FAIL {name}: {why}" if why else f"ok {name}", flush=True)


def run(command, env=ENV):
    return subprocess.run(command, capture_output=True, env=env)


def wick(*arguments):
    done = run([WICK, *arguments])
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace").strip()[-300:] or f"status {done.returncode}")
    return done.stdout


def no_recording():
    if not shutil.which("perf"):
        return "perf is not installed"
    version = run(["perf", "--version"], PERF_ENV).stdout.decode()
    if not version.startswith("perf version 6.1."):
        return f"this is {version.strip()}, the pinned oracle is 6.1"
    probe = os.path.join(WORK, "probe")
    run(["perf", "record", "-q", "-N", "-e", "cpu-clock", "--call-graph", "dwarf", "-o", probe, "--", "true"], PERF_ENV)
    return None if os.path.exists(probe) else "the machine does not allow recording"


def build(name, command, folder):
    """The program's path, or None when a compiler is missing."""
    program = os.path.join(folder, name)
    if not shutil.which(command.split()[0]) or ("fuse-ld=lld" in command and not shutil.which("ld.lld")):
        return None
    done = run(command.split() + ["-o", program], os.environ)
    if done.returncode and "-m32" in command:
        return None  # no 32-bit libraries
    if done.returncode:
        raise RuntimeError("does not build: " + done.stderr.decode(errors="replace").strip()[-300:])
    return program


def record(program, folder, argument, frequency="999", least=100):
    """With at least so many samples: on a busy machine a program gets less of its time, and is given more."""
    data = program + ".data"
    for _ in range(6):
        done = run(["perf", "record", "-q", "-N", "-e", "cpu-clock", "-F", frequency, "--call-graph", "dwarf,16384", "-o", data, "--", program, argument], PERF_ENV)
        if not os.path.exists(data):
            raise RuntimeError(done.stderr.decode(errors="replace").strip()[-300:])
        # perf 6.1 falls over what the kernel writes while another recording asks for build ids.
        read = run(["perf", "script", "-F", "comm", "-i", data], PERF_ENV)
        if read.returncode == 0 and read.stdout.count(b"\n") >= least:
            break
        if read.returncode == 0:
            argument = f"{3 * float(argument):g}"  # whole numbers stay whole: some programs read nothing else
    return data


def endings(data, options):
    counts = collections.Counter()
    for line in wick("fold", "--mark-incomplete", "--weight", "samples", *options, data).decode(errors="replace").splitlines():
        stack, weight = line.rsplit(" ", 1)
        ending = re.search(r"(?:^|;)\[(truncated|broken)\]", stack)
        counts[ending.group(1) if ending else "complete"] += int(weight)
    return counts
