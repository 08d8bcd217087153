"""Same input, same bytes: every output there is, with any number of threads, in any locale, time zone and year, whatever hashes are keyed with."""
import os
import shutil
import subprocess

from options import CHANGE, SCRIPT, STACKS, WICK, WORK, fixtures

THIN = bool(os.environ.get("SANITIZED")) and not os.environ.get("LONG")  # locale and clock change what is printed, not what is read
CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
/* Twelve years ahead. */
static const time_t ahead = 12L * 365 * 86400;
time_t time(time_t *to) { struct timespec now; clock_gettime(CLOCK_REALTIME, &now); if (to) *to = now.tv_sec; return now.tv_sec; }
int gettimeofday(struct timeval *restrict to, void *restrict zone) { struct timespec now; clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec; to->tv_usec = now.tv_nsec / 1000; return 0; }
int clock_gettime(clockid_t clock, struct timespec *to) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, to);
    to->tv_sec += ahead;
    return status;
}
"""
SEED = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
/* The same bytes for everybody: hashes are keyed with them. */
ssize_t getrandom(void *to, size_t size, unsigned flags) { memset(to, atoi(getenv("SEED")), size); return (ssize_t)size; }
"""
GUEST = "static int sum(int n) { return n ? n + sum(n - 1) : 0; }\nint main(int count, char **words) { return sum(20 + count) & 1 && words == 0; }\n"


def write(name, content):
    path = os.path.join(WORK, name)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def outputs():
    """(name, the command, whether it takes -j)."""
    script, stacks, change = write("same.txt", SCRIPT), write("same.folded", STACKS), write("change.folded", CHANGE)
    other = write("other.folded", STACKS.replace(b"60", b"45") + b"main;new 12\n")
    def recorded(name):
        return [*fixtures.lookup_options(name), fixtures.unpacked(name, "perf.data")]
    waits, threads = recorded("off-cpu"), recorded("threads")
    sources = {"text": [script], "folded": [stacks], "recording": threads, "both": [*threads, script]}
    table = [(f"fold {name}", ["fold", *source]) for name, source in sources.items()]
    table += [(f"script {name}", ["script", *recorded(name)]) for name in ("threads", "two-events", "off-cpu")]
    for kind in ([], ["-i"], ["--reverse"], ["--flamechart"], ["--hash"], ["--random"], ["--colordiffusion"], ["--html"], ["--weight", "samples", "--show-tid", "--mark-all"]):
        table += [(f"flame {name} {' '.join(kind)}", ["flame", *kind, *source, "-o", "-"]) for name, source in sources.items()]
    for times in ("--off-cpu", "--wall"):
        table += [(f"{command} {times} {' '.join(kind)}", [command, times, *kind, *waits])
                  for command, kind in (("fold", ["--show-state"]), ("flame", ["-o", "-"]), ("flame", ["--html", "-o", "-"]), ("report", ["--by", "state"]), ("report", ["--csv"]))]
    for by in ("function", "object", "category", "thread", "process"):
        for form in ([], ["--csv"], ["--json"]):
            table.append((f"report by {by} {' '.join(form)}", ["report", "--by", by, *form, *threads]))
    for form in (["-o", "-"], ["--html", "-o", "-"], ["--folded"], ["--table"], ["--csv"], ["--json"], ["--by", "category", "--csv"], ["-n", "-s", "--folded"]):
        table.append((f"diff {' '.join(form)}", ["diff", stacks, other, *form]))
    for kind in ("speedscope", "pprof", "firefox", "callgrind", "cpuprofile", "chrome", "otlp"):
        table += [(f"export {name} --to {kind}", ["export", "--to", kind, *sources[name]]) for name in ("text", "recording", "both")]
        table += [(f"export --wall --to {kind}", ["export", "--wall", "--to", kind, *waits]),
                  (f"export --event all --to {kind}", ["export", "--event", "all", "--to", kind, *recorded("two-events")])]
    table.append(("diff of recordings", ["diff", threads[-1], recorded("two-events")[-1], *threads[:-1], "--folded"]))
    table.append(("flame of a diff", ["flame", change, "-o", "-"]))
    return [(name, command, True) for name, command in table] + traces()


def traces():
    compiler = shutil.which("riscv64-linux-gnu-gcc")
    if not compiler:
        print("skip same/trace: riscv64-linux-gnu-gcc is not installed")
        return []
    source, guest = write("guest.c", GUEST), os.path.join(WORK, "guest")
    subprocess.run([compiler, "-O1", "-static", source, "-o", guest], check=True)
    return [(f"trace --as {view}", ["trace", "--as", view, "-o", "-", guest], False) for view in ("folded", "svg", "html", "table", "csv", "json")]


def locale_made(name):
    """The environment of a locale of our own making, or None with the reason said."""
    folder = os.path.join(WORK, "locales")
    os.makedirs(folder, exist_ok=True)
    try:
        done = subprocess.run(["localedef", "--no-archive", "-i", name, "-f", "UTF-8", os.path.join(folder, name + ".UTF-8")], capture_output=True, text=True)
    except OSError as error:
        done = error
    if not os.path.isdir(os.path.join(folder, name + ".UTF-8")):
        print(f"skip same/locale {name}: {str(getattr(done, 'stderr', done)).strip().splitlines()[0]}")
        return None
    return {"LOCPATH": folder, "LC_ALL": name + ".UTF-8", "LANGUAGE": name[:2]}


def clock_made():
    library = os.path.join(WORK, "clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", write("clock.c", CLOCK), "-o", library, "-ldl"], check=True)
    year = [int(subprocess.run(["date", "+%Y"], env=dict(os.environ, **more), capture_output=True, text=True).stdout) for more in ({}, {"LD_PRELOAD": library})]
    assert year[1] - year[0] in (11, 12), f"{year}: the clock was not set"
    return preloaded(library)


def preloaded(library):
    return {"LD_PRELOAD": library, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def seed_made():
    library = os.path.join(WORK, "seed.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", write("seed.c", SEED), "-o", library], check=True)
    return preloaded(library)


def surroundings():
    """(name, environment, -j). What a machine does not have is left out, and says so."""
    yield "-j 7 in Tokyo", {"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"}, "7"
    if not THIN:
        yield "-j 2 without a locale", {"LC_ALL": "", "LANG": "xx_YY", "TZ": ":nowhere"}, "2"
        for name in ("de_DE", "tr_TR"):
            env = locale_made(name)
            if env:
                yield f"-j 3 in {name}", {**env, "TZ": "America/St_Johns"}, "3"
        yield "-j 2 in another year", clock_made(), "2"
    for seed in ("1",) if THIN else ("1", "254"):
        yield f"-j 2 with hashes keyed by {seed}", {**seed_made(), "SEED": seed}, "2"


def run(command, takes_jobs, jobs, env):
    env = dict({key: value for key, value in os.environ.items() if key not in ("LANG", "LANGUAGE", "TZ") and not key.startswith("LC_")},
               HOME=os.path.join(WORK, "no-home"), **env)
    done = subprocess.run([WICK, command[0], *(["-j", jobs] if takes_jobs else []), *command[1:]], cwd=WORK, env=env, capture_output=True, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def run_all(report):
    fixtures.unpack()
    table = outputs()
    first = {name: run(command, jobs, "1", {"LC_ALL": "C", "TZ": "UTC"}) for name, command, jobs in table}
    bad = [f"{name}: {status}, {len(out)} bytes, {err[-200:]!r}" for name, (status, out, err) in first.items() if status != 0 or len(out) < 20]
    report(f"same/all {len(table)} outputs", bad[0] if bad else None)
    for around, env, jobs in surroundings():
        other = [name for name, command, takes_jobs in table if run(command, takes_jobs, jobs, env) != first[name]]
        report("same/" + around, f"other bytes: {', '.join(other)}" if other else None)
