"""wick record --keep=all, and .wick files: opened in a root directory that has nothing but wick and the libraries that wick loads, under names of
their own, they give the same bytes as on the machine that made them."""
import os
import re
import resource
import shutil
import signal
import subprocess

from common import PERF_ENV, WICK, WORK, carrier_lines, folded, samples_of, say, skip, wick

PROGRAM = r"""
#include <stdlib.h>
#include <time.h>
static volatile unsigned long sink;
static inline __attribute__((always_inline)) unsigned long stirred(unsigned long x) {
    return (x * 6364136223846793005ul) ^ (x >> 7);
}
__attribute__((noinline)) void leaf_work(unsigned long n) { for (unsigned long i = 0; i < n; i++) sink += stirred(i); }
static int order(const void *a, const void *b) { leaf_work(200); return *(const int *)a - *(const int *)b; }
int main(int argc, char **argv) { /* SECONDS */
    static int numbers[1000];
    struct timespec now;
    do {
        for (int i = 0; i < 1000; i++) numbers[i] = (int)(stirred(i) & 0xffff);
        qsort(numbers, 1000, sizeof *numbers, order);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec + now.tv_nsec / 1e9 < atof(argv[1]));
    return argc > 2;
}
"""

COMMANDS = (["fold"], ["fold", "--srcline"], ["fold", "--no-inline"], ["report"], ["flame", "-o", "-"], ["flame", "--srcline", "-o", "-"], ["flame", "--no-inline", "-o", "-"])
ROOT = os.path.join(WORK, "root")
ENVIRONMENT = {**os.environ, "WICK_CACHE": "off"}


def build_programs():
    """`whole` has a build id and its debug information; `parted` has no build id, and its debug information in a file of its own."""
    with open(os.path.join(WORK, "apart.c"), "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    for line in ("gcc -O2 -g -Wl,--build-id=sha1 apart.c -o whole", "gcc -O2 -g -Wl,--build-id=none apart.c -o parted", "objcopy --only-keep-debug parted parted.debug",
                 "objcopy --strip-all --add-gnu-debuglink=parted.debug parted"):
        subprocess.run(line.split(), cwd=WORK, check=True)


def empty_root():
    """Makes it; gives how to run wick there, or None and why that can't be."""
    shutil.rmtree(ROOT, ignore_errors=True)
    os.makedirs(os.path.join(ROOT, "wick"))
    libraries = re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", WICK], capture_output=True, text=True).stdout)
    for path in [WICK, *libraries]:
        shutil.copy(path, os.path.join(ROOT, "wick"))
    loader = next((os.path.basename(path) for path in libraries if os.path.basename(path).startswith("ld-")), None)
    if not loader or not shutil.which("chroot"):
        return None, "ldd names no loader, or chroot is not installed"
    why = ""
    for before in (["chroot"], ["unshare", "-r", "chroot"]):
        words = [*before, ROOT, f"/wick/{loader}", "--library-path", "/wick", f"/wick/{os.path.basename(WICK)}"]
        try:
            done = subprocess.run([*words, "--version"], capture_output=True, text=True, errors="replace")
        except OSError as error:
            why += f"{error}; "
            continue
        if done.returncode == 0:
            return words, None
        why += (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[0] + "; "
    return None, why


def outputs(words, folder, name):
    """What each command writes about a file: bytes, or its status and what it says."""
    found = []
    for command in COMMANDS:
        done = subprocess.run([*words, *command, name], cwd=folder, env=ENVIRONMENT, capture_output=True)
        found.append(done.stdout if done.returncode == 0 else (done.returncode, done.stderr))
    return found


def same_in_an_empty_root():
    words, why = empty_root()
    if not words:
        return skip("an empty root directory", why)
    line = "./whole 0.2; ./parted 0.2"
    for name, *options in (("all.data", "--keep=all"), ("some.data",)):
        done = wick("record", *options, "-o", name, "--", "sh", "-c", line)
        say(done.returncode == 0 and samples_of(done) > 0, f"recorded for an empty root: {name}", done.stderr)
    say(wick("save", "all.data", "-o", "all.wick").returncode == 0, "saved for an empty root")
    here = outputs([WICK], WORK, "all.data")
    saved = outputs([WICK], WORK, "all.wick")
    text = here[1].decode() if isinstance(here[1], bytes) else ""
    say(all(re.search(rf"^{comm};.*stirred:apart\.c:\d+", text, re.M) for comm in ("whole", "parted")), "both programs have inlined functions and lines", text[:500])
    for name in ("all.data", "all.wick", "some.data"):
        shutil.copy(os.path.join(WORK, name), ROOT)
    for name, expected in (("all.data", here), ("all.wick", saved)):
        got = outputs(words, "/", name)
        wrong = [" ".join(command) for command, a, b in zip(COMMANDS, expected, got) if a != b or not isinstance(a, bytes)]
        say(not wrong, f"{name} gives the same bytes in an empty root", f"{wrong}: {[one for one in got if not isinstance(one, bytes)][:1]}")
    lost = outputs(words, "/", "some.data")[0]
    say(isinstance(lost, bytes) and b"leaf_work" not in lost, "without --keep=all the empty root has no names", str(lost)[:300])


def perf_reads_it():
    if not shutil.which("perf"):
        return skip("perf and --keep=all", "perf is not installed")
    run = lambda *words: subprocess.run(words, cwd=WORK, capture_output=True, text=True, errors="replace", env=PERF_ENV)  # noqa: E731
    done = wick("record", "--keep=all", "-g", "fp", "-o", "perf.data", "--", "./whole", "0.2")
    script = run("perf", "script", "-i", "perf.data", "-F", "comm,ip,sym")
    stacks = len(re.findall(r"^\S", script.stdout, re.M))
    say(stacks == samples_of(done) > 0 and not carrier_lines(script.stdout), "perf reads a recording made with --keep=all", f"{stacks}, {done.stderr}: {script.stderr[:300]}")


def bounds():
    """A program that is too large is left out with a note, the others are kept; where nothing can be written any more, the recording is as without."""
    shutil.copy(os.path.join(WORK, "whole"), os.path.join(WORK, "large"))
    os.truncate(os.path.join(WORK, "large"), 1200 << 20)
    done = wick("record", "--keep=all", "-g", "fp", "-o", "large.data", "--", "./large", "0.1")
    os.unlink(os.path.join(WORK, "large"))
    say(done.returncode == 0 and "1 file that the recording needs was not kept" in done.stderr and "large)" in done.stderr, "what is larger than --keep=all keeps is a note", done.stderr)

    shutil.copy(os.path.join(WORK, "whole"), os.path.join(WORK, "noisy"))
    with open(os.path.join(WORK, "noisy"), "ab") as file:
        file.write(os.urandom(1 << 20))  # which nothing can pack

    def small_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512 << 10, 512 << 10))
    done = wick("record", "--keep=all", "-g", "none", "-o", "short.data", "--", "./noisy", "0.1", preexec_fn=small_files)
    say(done.returncode == 0 and "--keep=all could not keep" in done.stderr and "leaf_work" in folded("short.data"), "a recording is whole where its files could not be kept",
        done.stderr + folded("short.data")[:300])
    done = wick("record", "--keep=all", "-o", "-", "--", "true")
    say(done.returncode == 2 and "needs a file" in done.stderr, "--keep=all of a stream is refused", done.stderr)


def all_parts():
    build_programs()
    same_in_an_empty_root()
    perf_reads_it()
    bounds()
