"""What an event's name stands for: what wick asks the kernel for is what perf asks for, whatever the machine has. strace answers in the kernel's
place, and a made-up PMU stands in for the processor's."""
import os
import re
import shutil
import subprocess

from common import PERF_ENV, WICK, WORK, say, skip

NAMES = """
    cycles cpu-cycles instructions cache-references cache-misses branches branch-instructions branch-misses bus-cycles ref-cycles stalled-cycles-frontend
    stalled-cycles-backend idle-cycles-frontend idle-cycles-backend cpu-clock task-clock page-faults faults context-switches cs cpu-migrations migrations
    minor-faults major-faults alignment-faults emulation-faults dummy bpf-output cgroup-switches
    L1-dcache-loads L1-dcache-load-misses L1-dcache-stores L1-dcache-store-misses L1-dcache-prefetches L1-dcache-prefetch-misses L1-icache-loads
    L1-icache-load-misses L1-icache-prefetches LLC-loads LLC-load-misses LLC-stores LLC-store-misses LLC-prefetches LLC-prefetch-misses dTLB-loads
    dTLB-load-misses dTLB-stores dTLB-store-misses iTLB-loads iTLB-load-misses branch-loads branch-load-misses node-loads node-load-misses node-stores
    node-store-misses node-prefetches l1d l1d-miss l1d-read-miss L1-dcache-misses-load L1-data-access L2-read-ops LLC-speculative-read-miss bpu-misses btb
    d-tlb-write-refs i-tlb-miss Data-TLB-loads Instruction-TLB-load-misses L1-dcache-load-refs L1-dcache
    r1a8 r0 rff rFFFFFFFF 0:0 1:2 4:0x1a8
    sched:sched_switch sched:sched_waking syscalls:sys_enter_openat
    cpu/config=0x1a8/ cpu/config=1,config1=2,config2=3/ cpu/event=0x3c/ cpu/event=60,umask=1/ cpu/event=0x3c,umask=0x41,inv,cmask=2/ cpu/event=0xcd,umask=1,ldlat=30/
    cpu/cpu-cycles/ cpu/mem-loads/ cpu/mem-loads,ldlat=7/ cpu/r1a8/ cpu/parts=0xab/ cpu/high=1/ software/config=1/
    cycles:u cycles:k cycles:h cycles:uk cycles:kh cycles:ukh cycles:p cycles:pp cycles:ppp cycles:P cycles:up cycles:ppu cycles:G cycles:H cycles:GH cycles:uG
    cycles:kH cycles:pG cycles:I cycles:D cycles:e cycles:uD cycles:ukhGHDIe cpu-clock:u cpu-clock:k page-faults:u L1-dcache-load-misses:u LLC-loads:ppk
    r1a8:u r1a8:pp 4:0x1a8:u cpu/event=0x3c/u cpu/event=0x3c/ppk cpu/event=0x3c/H cpu/mem-loads/P sched:sched_switch:u sched:sched_switch:k
""".split()
SHOWN = ("type", "config", "config1", "config2", "precise_ip", "exclude_user", "exclude_kernel", "exclude_hv", "exclude_idle", "exclude_host", "exclude_guest",
         "pinned", "exclusive")
PMUS = {"cpu": (4, {"event": "config:0-7", "umask": "config:8-15", "inv": "config:23", "cmask": "config:24-31", "ldlat": "config1:0-15", "parts": "config:0-3,32-35",
                    "high": "config2:63"}, {"cpu-cycles": "event=0x3c", "mem-loads": "event=0xcd,umask=0x1,ldlat=3"}), "software": (1, {}, {})}


def make_pmus(folder):
    for name, (number, formats, events) in PMUS.items():
        files = {"type": str(number), **{f"format/{term}": text for term, text in formats.items()}, **{f"events/{event}": text for event, text in events.items()}}
        for path, text in files.items():
            path = os.path.join(folder, name, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(text + "\n")


def asked_for(*command):
    """The attributes of every event on the first CPU, in their order."""
    words = [word for name in NAMES for word in ("-e", name)]
    line = 'mount --bind made-pmus /sys/bus/event_source/devices && exec "$@"'
    done = subprocess.run(["unshare", "-m", "sh", "-c", line, "sh", "strace", "-f", "-v", "-qq", "-e", "trace=perf_event_open", "-e",
                           "inject=perf_event_open:retval=900", *command, *words, "--", "true"], cwd=WORK, capture_output=True, text=True, env=PERF_ENV)
    calls = re.findall(r"perf_event_open\(\{(.*)\}, -?\d+, 0, -1, ", done.stderr)
    shown = [{key: value.split(" /*")[0] for key, value in re.findall(r"(\w+)=([^,]*)", call)} for call in calls if "enable_on_exec=1" in call]
    return [tuple(call.get(key, "0") for key in SHOWN) for call in shown], done.stderr


def all_parts():
    if not all(shutil.which(tool) for tool in ("perf", "strace", "unshare")) or os.geteuid() != 0:
        return skip("spellings of events", "it takes root, perf, strace and unshare")
    if subprocess.run(["unshare", "-m", "mount", "--bind", "/tmp", "/sys/bus/event_source/devices"], capture_output=True).returncode != 0:
        return skip("spellings of events", "no PMU can be made up here")
    if not os.path.exists("/sys/kernel/tracing/events/sched/sched_switch/id"):
        return skip("spellings of events", "no tracepoints are to be seen")
    make_pmus(os.path.join(WORK, "made-pmus"))
    theirs, perf_said = asked_for("perf", "record", "-q", "-o", "spelled.data")
    ours, wick_said = asked_for(WICK, "record", "-q", "-g", "none", "-o", "spelled.data")
    ours, theirs = ours[:len(NAMES)], theirs[:len(NAMES)]
    wrong = [f"{name}: {dict(zip(SHOWN, a))}, perf {dict(zip(SHOWN, b))}" for name, a, b in zip(NAMES, ours, theirs) if a != b]
    return say(len(theirs) == len(ours) == len(NAMES) and not wrong, "spellings of events mean what they mean to perf",
               f"{len(ours)} and perf's {len(theirs)} of {len(NAMES)}: {wrong[:8]} {'' if wrong else wick_said[-300:] + perf_said[-300:]}")
