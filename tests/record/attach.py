"""Who is recorded: the target, its children too, and never wick itself."""
import os
import re
import shutil
import signal
import subprocess

from common import PERF_ENV, WICK, WORK, folded, perf_script, record_some, say, samples_of, skip, wait_for_bytes, wick


def comms(path):
    return {re.split(r"[; ]", line)[0] for line in folded(path).splitlines()}


def not_itself():
    """From the first instruction of the target on, and nothing of the recorder or of what it was before it became the target."""
    for name, words in (("every fault", ["-e", "page-faults", "-c", "1", "-g", "none"]), ("a high rate", ["-e", "cpu-clock", "-c", "50000", "-g", "none"]),
                        ("switches", ["-e", "context-switches", "-c", "1", "-g", "none"]), ("a delay", ["-g", "none", "--delay", "0.01"]),
                        ("ptrace", ["--method", "ptrace", "-g", "none"])):
        done = record_some(f"not itself, {name}", *words, command=("./restless", "waits", "2") if name == "switches" else ("./restless", "steady", "200"))
        say(comms("some.data") == {"restless"}, f"not itself, {name}/no other", f"{comms('some.data')} {done.stderr}")
    # The shell that runs wick has it among its children.
    for method in ("perf", "ptrace"):
        line = f"./restless steady 2000 & '{WICK}' record -q --method {method} -g none -p $$ --duration 0.5 -o shell.data; status=$?; kill $!; exit $status"
        done = subprocess.run(["sh", "-c", line], cwd=WORK, capture_output=True, text=True)
        found = comms("shell.data")
        say(done.returncode == 0 and "restless" in found and "wick" not in found, f"not itself, though a child, {method}",
            f"{done.returncode}: {found} {done.stderr}")


def outlived():
    """A child that outlives the process attached to is recorded to its end."""
    parent = subprocess.Popen(["sh", "-c", "read line; ./restless steady 700 & exit 0"], cwd=WORK, stdin=subprocess.PIPE, text=True)
    if os.path.exists(os.path.join(WORK, "outlived.data")):
        os.unlink(os.path.join(WORK, "outlived.data"))
    recorder = subprocess.Popen([WICK, "record", "-g", "none", "-p", str(parent.pid), "-o", "outlived.data"], cwd=WORK, stderr=subprocess.PIPE, text=True)
    wait_for_bytes("outlived.data", 1000, recorder)
    parent.communicate("go\n")
    said = recorder.communicate(timeout=120)[1]
    say(recorder.returncode == 0 and "restless;leaf_work" in folded("outlived.data"), "a child that outlives its parent", f"{recorder.returncode}: {said}")


def zombies():
    """A child that has ended, and that nobody has asked for, is no hindrance."""
    script = "import os, sys\nif os.fork() == 0: os._exit(0)\nprint('made', flush=True)\nwhile True: sum(range(1000))"
    target = subprocess.Popen(["python3", "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        target.stdout.readline()
        for method in ("perf", "ptrace"):
            done = wick("record", "--method", method, "-g", "none", "-p", str(target.pid), "--duration", "0.4", "-o", "zombie.data")
            say(done.returncode == 0 and samples_of(done) > 0, f"a child that nobody has buried, {method}", f"{done.returncode}: {done.stderr}")
    finally:
        target.kill()
        target.communicate()


def twice():
    """Named twice is recorded once."""
    target = subprocess.Popen(["./restless", "steady", "1000000"], cwd=WORK)
    try:
        done = record_some("named twice", "-e", "cpu-clock", "-c", "1000000", "-g", "none", "-p", f"{target.pid},{target.pid}", "-t", str(target.pid),
                           "--duration", "0.4", command=())
        times = re.findall(r"\s(\d+\.\d+):\s+\d+ cpu-clock", wick("script", "-q", "--compat=perf", "some.data").stdout)
        rate = len(times) / max(0.001, float(times[-1]) - float(times[0])) if len(times) > 1 else 0
        say(len(times) > 1 and rate < 1500, "named twice/counted once", f"{rate} samples a second: {done.stderr}")
    finally:
        target.kill()
        target.wait()


def beside_perf():
    """A recording of the whole system changes nothing in what perf is told of its target."""
    if not shutil.which("perf"):
        return skip("perf beside a recording of the system", "it is not installed")
    if os.path.exists(os.path.join(WORK, "beside.data")):
        os.unlink(os.path.join(WORK, "beside.data"))
    recorder = subprocess.Popen([WICK, "record", "-q", "-a", "-g", "none", "-o", "beside.data"], cwd=WORK, stderr=subprocess.PIPE, text=True)
    wait_for_bytes("beside.data", 1000, recorder)
    done = subprocess.run(["perf", "record", "-q", "-o", "theirs.data", "./restless", "steady", "100"], cwd=WORK, env=PERF_ENV, capture_output=True, text=True)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=120)[1]
    if recorder.returncode == 3:
        return skip("perf beside a recording of the system", said.strip())
    return say(recorder.returncode == 0 and done.returncode == 0 and b"leaf_work" in perf_script("theirs.data"), "perf beside a recording of the system", f"{recorder.returncode} {said} {done.returncode} {done.stderr}")


def all_parts():
    for part in (not_itself, outlived, zombies, twice, beside_perf):
        part()
