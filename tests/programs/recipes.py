"""How each test program is built and recorded, for the fixtures and for live comparisons.

`{programs}` is the folder of the sources, `{dir}` the one where the program stands. A recipe may say more:
after    a command that replaces the program when it has been recorded     cache   programs to put into the build-id cache before
attach   perf joins the running program                                    gone    the program removes its own file
scrub    other processes are taken out of the recording before it is kept  env     for the build
stream   perf writes to a pipe; only for live comparisons, like all with `live`
odd      odd values are put into its call chains before it is kept
truth    what the program prints is kept, too
"""

CC = "gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls"
CXX = "g++ -std=c++17 -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls"
RUSTC = "rustc -C opt-level=1 -C force-frame-pointers=yes -C strip=debuginfo"
RECORD = "perf record -q -N -e cpu-clock -F 997 -g"
CACHED = "perf record -q -e cpu-clock -F 3997 -g"
PLAIN = f"{CC} {{programs}}/plain.c -o plain"


def recipe(build=PLAIN, run="{dir}/plain 0.3", record=RECORD, **more):
    return dict(build=build, run=run, record=record, **more)


RECIPES = {
    "c": recipe(f"{CC} -g {{programs}}/plain.c -o plain"),
    "cpp": recipe(f"{CXX} {{programs}}/templates.cc -o templates", "{dir}/templates 0.5"),
    "rust": recipe(f"{RUSTC} {{programs}}/hot.rs -o hot", "{dir}/hot 0.4"),
    "rust-v0": recipe(f"{RUSTC} -C symbol-mangling-version=v0 {{programs}}/hot.rs -o hot", "{dir}/hot 0.3"),
    "rust-legacy": recipe(f"{RUSTC} -C symbol-mangling-version=legacy -Z unstable-options {{programs}}/hot.rs -o hot",
                          "{dir}/hot 0.3", env={"RUSTC_BOOTSTRAP": "1"}),
    "node": recipe("cp {programs}/hot.js .", "node --perf-basic-prof {dir}/hot.js 0.5"),
    "threads": recipe(f"{CC} -pthread {{programs}}/threads.c -o threads", "{dir}/threads 0.5"),
    "broken-names": recipe(f"{CC} -pthread -DBROKEN {{programs}}/threads.c -o threads-broken", "{dir}/threads-broken 0.3"),
    "forks": recipe(f"{CC} {{programs}}/forks.c -o forks", "{dir}/forks 0.04"),
    "dlopen": recipe(f"{CC} {{programs}}/dlopen.c -o dlopen && {CC} -shared -fPIC -DWHICH=1 {{programs}}/plugin.c -o one.so"
                     f" && {CC} -shared -fPIC -DWHICH=2 {{programs}}/plugin.c -o two.so",
                     "{dir}/dlopen {dir}/one.so {dir}/two.so 0.4"),
    # The file goes while the program runs; its build id is in the mmap record, for perf can no longer read it at the end.
    "deleted": recipe(run="{dir}/plain 0.3 unlink", record=RECORD + " --buildid-mmap", gone=True),
    "deleted-cached": recipe(run="{dir}/plain 0.3 unlink", record=RECORD + " --buildid-mmap", gone=True, cache=["plain"],
                             build=PLAIN + " -DVARIANT=2"),
    "deleted-attached": recipe(run="{dir}/plain 2 unlink", attach=True, gone=True, build=PLAIN + " -DVARIANT=3"),
    "replaced": recipe(after=PLAIN + " -DVARIANT=5", build=PLAIN + " -DVARIANT=4"),
    "replaced-cached": recipe(after=PLAIN + " -DVARIANT=7", build=PLAIN + " -DVARIANT=6", cache=["plain"]),
    "stripped": recipe(PLAIN + " -s -rdynamic"),
    "stripped-no-chain": recipe(PLAIN + " -s", record=RECORD.replace(" -g", "")),
    "static": recipe(PLAIN + " -static"),
    "nopie": recipe(PLAIN + " -no-pie"),
    "lld": recipe(PLAIN + " -fuse-ld=lld"),
    "system": recipe(f"{PLAIN} && {CC} -pthread {{programs}}/threads.c -o threads", record=RECORD.replace("997", "499") + " -a",
                     run="sh -c '{dir}/plain 0.3 & {dir}/threads 0.2; wait; sleep 0.05'", scrub=True),
    "two-events": recipe(record=RECORD + " -e page-faults"),
    "two-events-no-chain": recipe(record=RECORD.replace(" -g", "") + " -e context-switches:u -e page-faults"),
    "no-chain": recipe(record=RECORD.replace(" -g", "")),
    "system-no-chain": recipe(record=RECORD.replace("997", "499").replace(" -g", "") + " -a", scrub=True),
    "odd-chains": recipe(odd=True),
    "user-only": recipe(record=RECORD.replace("cpu-clock", "cpu-clock:u")),
    "kernel-only": recipe(record=RECORD.replace("cpu-clock", "cpu-clock:k")),
    "kernel-last": recipe(record=RECORD.replace("cpu-clock", "cpu-clock:k") + " --tail-synthesize --no-buffering"),
    "fixed-period": recipe(record="perf record -q -N -e cpu-clock -c 1000000 -g"),
    "group": recipe(record="perf record -q -N -e '{{cpu-clock,page-faults}}:S' -F 997 -g"),
    "trace": recipe(f"{CC} {{programs}}/forks.c -o forks", "{dir}/forks 0.02", RECORD + " -e sched:sched_switch -e sched:sched_process_exec"),
    "trace-no-chain": recipe(f"{CC} {{programs}}/forks.c -o forks", "{dir}/forks 0.02",
                             RECORD.replace(" -g", "") + " -e sched:sched_process_fork -e syscalls:sys_enter_execve"),
    "mixed-chains": recipe(record=RECORD.replace(" -g", "").replace("cpu-clock", "cpu-clock/call-graph=fp/") + " -e page-faults/call-graph=no/"),
    # A 32-bit program has another vdso; where the 64-bit one is recorded too, perf mixes them up. Its image is in the build-id cache.
    "narrow": recipe(f"{CC} -m32 {{programs}}/signals.c -o signals", "{dir}/signals 300", CACHED, live=True),
    "narrow-system": recipe(f"{CC} -m32 {{programs}}/signals.c -o signals && {CC} {{programs}}/signals.c -o wide",
                            "sh -c '{dir}/signals 200; {dir}/wide 200'", CACHED + " -a", live=True),
    "stream": recipe(stream=True, live=True),
    "several-files": recipe(f"{CC} -pthread {{programs}}/threads.c -o threads", "{dir}/threads 0.5", record=RECORD + " --threads", live=True),
    "several-files-packed": recipe(f"{CC} -pthread {{programs}}/threads.c -o threads", "{dir}/threads 0.5", record=RECORD + " --threads -z", live=True),
    "stream-trace": recipe(record=RECORD + " -e sched:sched_switch --switch-events", stream=True, live=True),
    "packed": recipe(record=RECORD + " -z", live=True),
    "packed-system": recipe(record=RECORD + " -z -a -e context-switches", live=True),
    "stream-packed": recipe(record=RECORD + " -z", stream=True, live=True),
    # It takes a perf that was built with BPF skeletons, which Debian's is not: make BUILD_BPF_SKEL=1.
    "off-cpu": recipe(f"{CC} -pthread {{programs}}/waits.c -o waits", "{dir}/waits 5", RECORD + " --off-cpu", truth=True),
    "addresses": recipe(record=RECORD.replace("cpu-clock", "page-faults").replace("-F 997", "-c 1") + " -d"),
}
