"""What wick keeps with a recording by its carrier (docs/carrier.md): perf maps, the vdso, files of containers and deleted ones, labels. perf 6.1, a
pipe, `perf inject` and a recorder that is killed must not mind it, nor lose it."""
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import zlib

from common import PERF_ENV, WICK, WORK, carrier_lines, folded, same_text, say, skip, unfinished, wait_for_bytes, wick

JIT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile long sink;
__attribute__((noinline)) static void work(char *p) {
#if defined(__x86_64__)
    ((void (*)(void))p)();
#else
    for (int i = 0; i < 1000000; i++) sink += i;
#endif
}
int main(int argc, char **argv) { /* SECONDS [remove] */
    static const unsigned char code[] = {0x48, 0xc7, 0xc0, 0, 0, 0x10, 0, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
    char name[64], *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, code, sizeof code);
    snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
    FILE *file = fopen(name, "w");
    fprintf(file, "%lx 1000 jitted_loop\n", (long)p);
    fclose(file);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    struct timespec now;
    do { work(p); clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); } while (now.tv_sec + now.tv_nsec / 1e9 < atof(argv[1]));
    if (argc > 2) unlink(name);
    return 0;
}
"""


def entries(path):
    """What the carrier of a file has: (kind, key, size) of each whole entry, by a reader of its own."""
    with open(os.path.join(WORK, path), "rb") as file:
        data = file.read()
    pipe = struct.unpack_from("<Q", data, 8)[0] == 16
    at, size = (16, len(data) - 16) if pipe else struct.unpack_from("<QQ", data, 40)
    end = min(at + size, len(data))
    found, parts = {}, {}
    while at + 8 <= end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        if length < 8:
            break
        record = data[at:at + length]
        if kind == 18 and record[16:24] == b"wickkeep":
            entry, what, part, total, payload, key, _, crc = struct.unpack_from("<I8xIIQIIII", record, 12)
            assert zlib.crc32(record[8:52] + record[56:56 + payload]) == crc, "a checksum is wrong"
            assert parts.get(entry, 0) == part, "parts are out of order"
            parts[entry] = part + 1
            if part == 0:
                found[entry] = [what, record[56:56 + key], total, record[56 + key:56 + payload]]
        at += length + (struct.unpack_from("<Q", record, 8)[0] if kind == 71 else struct.unpack_from("<I", record, 8)[0] if kind == 66 else 0)
    return list(found.values())


def maps_in(path):
    return [struct.unpack("<I", key[:4])[0] for kind, key, _, _ in entries(path) if kind == 1]


def files_in(path):
    return [key[32:].decode() for kind, key, _, _ in entries(path) if kind == 2]


def share(path, pattern, *words):
    """How much of the weight is in stacks that have it."""
    weights = [(line.rsplit(" ", 1)[0], int(line.rsplit(" ", 1)[1])) for line in wick("fold", "-q", *words, path).stdout.splitlines()]
    total = sum(weight for _, weight in weights)
    return sum(weight for stack, weight in weights if re.search(pattern, stack)) / total if total else 0


def is_root():
    return os.geteuid() == 0


def build(name, text, *flags):
    with open(os.path.join(WORK, name + ".c"), "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["gcc", "-O1", "-g", *flags, name + ".c", "-o", name], cwd=WORK, check=True)


# ---- perf maps ----

def perf_maps():
    done = wick("record", "-g", "fp", "-o", "jit.data", "--", "./jit", "0.4", "remove")
    pid = int(done.stdout.split()[0])
    say(not os.path.exists(f"/tmp/perf-{pid}.map") and maps_in("jit.data") == [pid], "the perf map is kept", f"{maps_in('jit.data')}: {done.stderr}")
    say(share("jit.data", "jitted_loop") > 0.9, "a kept perf map names code", folded("jit.data")[:300])
    done = wick("record", "-g", "fp", "--keep", "none", "-o", "none.data", "--", "./jit", "0.1", "remove")
    say(done.returncode == 0 and not entries("none.data"), "--keep none keeps nothing", f"{entries('none.data')} {done.stderr}")
    done = wick("record", "-g", "fp", "--method", "ptrace", "-o", "ptrace.data", "--", "./jit", "0.4", "remove")
    say(share("ptrace.data", "jitted_loop") > 0.9, "a perf map is kept by the ptrace sampler", done.stderr + folded("ptrace.data")[:300])
    return pid


def other_user():
    """Root profiles another user's program: that user's map is believed, somebody else's is not."""
    if not is_root() or not shutil.which("setpriv"):
        return skip("another user's perf map", "needs root and setpriv")
    as_user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with tempfile.TemporaryDirectory(prefix="wick-test-") as folder:
        os.chmod(folder, 0o755)
        shutil.copy(os.path.join(WORK, "jit"), folder)
        done = wick("record", "-g", "fp", "-o", "user.data", "--", *as_user, folder + "/jit", "0.3")
        pid = int(done.stdout.split()[0])
        os.unlink(f"/tmp/perf-{pid}.map")
        say(maps_in("user.data") == [pid] and share("user.data", "jitted_loop", "--comm", "jit") > 0.9, "another user's perf map is kept", done.stderr)
        process = subprocess.Popen([*as_user, folder + "/jit", "1.5"], stdout=subprocess.PIPE, text=True)
        pid = int(process.stdout.readline())
        os.chown(f"/tmp/perf-{pid}.map", 12345, 12345)
        done = wick("record", "-g", "fp", "-o", "stranger.data", "-p", str(pid), "--duration", "0.5")
        process.wait()
        os.unlink(f"/tmp/perf-{pid}.map")
        say(done.returncode == 0 and not maps_in("stranger.data"), "a stranger's perf map is not kept", done.stderr)


# ---- what others make of it ----

def others(pid):
    """perf and hotspot read jit.data as if there were no carrier."""
    if not shutil.which("perf"):
        return skip("the carrier and perf", "perf is not installed")
    run = lambda *words, **more: subprocess.run(words, cwd=WORK, capture_output=True, text=True, errors="replace", env=PERF_ENV, **more)  # noqa: E731
    script, report = run("perf", "script", "-i", "jit.data"), run("perf", "report", "-i", "jit.data", "--stdio")
    stacks = len(re.findall(r"^\S", script.stdout, re.M))
    counted = int(re.search(r"^# Samples: (\d+)", report.stdout, re.M).group(1))
    seen = carrier_lines(script.stdout) + carrier_lines(report.stdout)
    say(stacks == counted > 10 and not script.stderr and not seen and report.stdout.count("# Samples:") == 1,
        "perf does not see the carrier", f"{stacks}, {counted}, {seen[:3]}: {script.stderr}{report.stderr}")
    same_text("perf script of it is wick's", "jit.data")
    for flags in ([], ["-b"], ["-s"]):
        run("perf", "inject", *flags, "-i", "jit.data", "-o", "injected.data")
        say(maps_in("injected.data") == [pid] and folded("injected.data") == folded("jit.data"),
            f"perf inject {' '.join(flags)} keeps the carrier", str(maps_in("injected.data")))
    with open(os.path.join(WORK, "piped.data"), "wb") as file:
        wick_process = subprocess.Popen([WICK, "record", "-q", "-g", "fp", "-o", "-", "--", "./jit", "0.3", "remove"], cwd=WORK,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stream = wick_process.communicate()[0]
        file.write(stream[stream.index(b"PERFILE2"):])  # what the program prints comes there, too
    script = run("perf", "script", "-i", "-", stdin=open(os.path.join(WORK, "piped.data"), "rb"))
    say(len(re.findall(r"^\S", script.stdout, re.M)) > 10 and "rror" not in script.stderr, "perf reads a stream with a carrier", script.stderr)
    say(len(maps_in("piped.data")) == 1 and share("piped.data", "jitted_loop") > 0.9, "a stream has a carrier", folded("piped.data")[:300])
    done = wick("record", "-z", "3", "-g", "fp", "-o", "packed.data", "--", "./jit", "0.3", "remove")
    say(share("packed.data", "jitted_loop") > 0.9, "a packed recording has a carrier", done.stderr)


def killed():
    """What was written before the recorder was killed is there."""
    target = subprocess.Popen(["./jit", "20"], cwd=WORK, stdout=subprocess.PIPE, text=True)
    pid = int(target.stdout.readline())
    short = subprocess.Popen(["sh", "-c", "while :; do ./jit 0.4 remove; done"], cwd=WORK, stdout=subprocess.PIPE, text=True)
    recorder = subprocess.Popen([WICK, "record", "-q", "-g", "fp", "-o", "kept-killed.data", "-p", str(short.pid)], cwd=WORK, stderr=subprocess.PIPE)
    wait_for_bytes("kept-killed.data", 300000, recorder)
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    for process in (target, short):
        process.kill()
        process.wait()
    os.unlink(f"/tmp/perf-{pid}.map")
    os.rename(unfinished("kept-killed.data")[0], os.path.join(WORK, "kept-killed.data"))
    say(len(maps_in("kept-killed.data")) > 1 and share("kept-killed.data", "jitted_loop", "--comm", "jit") > 0.5, "a killed recorder leaves its carrier",
        f"{maps_in('kept-killed.data')} {folded('kept-killed.data')[:200]}")
    if shutil.which("perf"):
        done = subprocess.run(["perf", "script", "-i", "kept-killed.data"], cwd=WORK, capture_output=True, text=True, errors="replace", env=PERF_ENV)
        say(len(done.stdout) > 1000, "perf reads what a killed recorder left", done.stderr)


# ---- files ----

def gone_files():
    """A program that is deleted or replaced while it runs has its names, though nothing is left at its path."""
    for name, then in (("deleted", "rm gone"), ("rebuilt", "cp spinner gone.new; mv gone.new gone")):
        for id in ("with", "without"):
            subprocess.run(["gcc", "-O1", "-g", "-pthread", "spinner.c", "-o", "gone", "-Wl,--build-id" + ("=none" if id == "without" else "")],
                           cwd=WORK, check=True)
            done = wick("record", "-o", "gone.data", "--", "sh", "-c",
                        f"./gone 0.5 & until readlink /proc/$!/exe | grep -q gone; do sleep 0.02; done; sleep 0.05; {then}; wait")
            named = share("gone.data", STACK, "--comm", "gone")
            kept = [path for path in files_in("gone.data") if path.endswith("/gone")]
            say(named >= 0.98 and kept, f"a program {name} while it runs, {id} a build id", f"{named} {kept} {done.stderr}")


STACK = "(main|start_thread);spin"  # nearly all that the spinner does is below
WHOLE = "(_start|clone3?);.*" + STACK
INSIDE = """
mount -t tmpfs none inside && cp hidden inside/program && cp jit inside && cd inside && mount -t tmpfs none /tmp || exit 1
eval "$1"
"""


def containers():
    """A program whose path is seen in a mount namespace of its own only, alive and after it ended."""
    probe = subprocess.run(["unshare", "-m", "-p", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True)
    if probe.returncode != 0:
        return skip("containers", "unshare -m -p is not permitted")
    os.makedirs(os.path.join(WORK, "inside"), exist_ok=True)
    with open(os.path.join(WORK, "inside.sh"), "w", encoding="utf-8") as file:
        file.write(INSIDE)
    start = ["unshare", "-m", "-p", "--fork", "--mount-proc", "sh", "inside.sh"]
    for id, flags in (("with", ["-Wl,--build-id"]), ("without", ["-Wl,--build-id=none"])):
        subprocess.run(["gcc", "-O0", "-g", "-pthread", "spinner.c", "-o", "hidden", *flags], cwd=WORK, check=True)
        done = wick("record", "-o", "inside.data", "--", *start, "./program 0.5")
        os.rename(os.path.join(WORK, "hidden"), os.path.join(WORK, "hidden.away"))
        named, whole = share("inside.data", STACK, "--comm", "program"), share("inside.data", WHOLE, "--comm", "program")
        say(named >= 0.98 and whole >= 0.98, f"a container's program, launched, {id} a build id", f"{named} {whole} {done.stderr}")
        os.rename(os.path.join(WORK, "hidden.away"), os.path.join(WORK, "hidden"))
        for words in (["-p"], ["-a"]):
            process = subprocess.Popen([*start, "./program 30"], cwd=WORK)
            pid = wait_for_program("program")
            done = wick("record", "-o", "inside.data", *words, *([str(pid)] if words == ["-p"] else []), "--duration", "0.6")
            name = f"a container's program, {words[0]}, {id} a build id"
            named = share("inside.data", STACK, "--comm", "program")
            say(named >= 0.99, name + ", alive", f"{named} {done.stderr} {wick('fold', '--comm', 'program', 'inside.data').stdout[:300]}")
            os.kill(pid, signal.SIGKILL)
            process.wait()
            named = share("inside.data", STACK, "--comm", "program")
            say(named >= 0.99, name + ", after it ended", f"{named}")
    # The container lives long enough to be seen by a recorder that has to wait for a CPU; its programs do not.
    many = wick("record", "-o", "many.data", "--", *start, "sleep 1; for i in 1 2 3 4 5 6; do ./program 0.05; done; sleep 1")
    named = share("many.data", STACK, "--comm", "program")
    say(named >= 0.95, "a container's short-lived programs", f"{named} {many.stderr}")
    done = wick("record", "-g", "fp", "-o", "inside.data", "--", *start, "./jit 2")
    named = share("inside.data", "jitted_loop", "--comm", "jit")
    say(named >= 0.9, "a container's perf map, by its own pid", f"{named} {done.stdout} {maps_in('inside.data')} {done.stderr}")


def wait_for_program(comm):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = subprocess.run(["pgrep", "-n", "-x", comm], capture_output=True, text=True).stdout.split()
        if found and os.path.realpath(f"/proc/{found[0]}/exe").endswith("/inside/program"):
            return int(found[0])
        time.sleep(0.02)
    raise RuntimeError(f"{comm} does not start")


def labels():
    """The cgroup of every process is told once."""
    wick("record", "-g", "none", "-o", "labels.data", "--", "./spinner", "0.05")
    found = [bytes for kind, _, _, bytes in entries("labels.data") if kind == 3]
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        paths = [line.rstrip("\n").split(":", 2)[2] for line in file]
    say(len(found) == 1 and any(found[0].startswith(f"cgroup\0{path}\0".encode()) for path in paths), "a process's cgroup is kept", f"{found} {paths}")

def kernel_names():
    """Of the kernel's functions that were hit, the names are kept; another kernel's list, or none, does not matter."""
    hide = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /proc/kallsyms && exec "$@"', "sh"]
    if not is_root() or subprocess.run([*hide, "true"], capture_output=True).returncode != 0:
        return skip("names of kernel functions", "root, and a mount namespace, are needed to hide /proc/kallsyms")
    for words, has_names in ((["-g", "fp"], True), (["-g", "dwarf"], True), (["--keep=none"], False)):
        name = "plain.data" if words == ["-g", "fp"] else "kernel.data"
        done = wick("record", *words, "-o", name, "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300000")
        here = wick("fold", "-q", name).stdout
        there = subprocess.run([*hide, WICK, "fold", "-q", name], cwd=WORK, env=dict(os.environ, HOME=WORK), capture_output=True, text=True).stdout
        say("vfs_write" in here and (there == here if has_names else "vfs_write" not in there), f"names of kernel functions, {' '.join(words)}", f"{done.stderr} {there[:500]}")
    sizes = [size for kind, _, size, _ in entries("plain.data") if kind == 12]
    say(len(sizes) == 1 and sizes[0] < 100000, "no more than the functions that were hit", str(sizes))


def all_parts():
    build("jit", JIT)
    others(perf_maps())
    for part in (other_user, killed, gone_files, containers, labels, kernel_names):
        part()
