"""Heap profiles as text: what gperftools' and jemalloc's allocators write of a program, compared with what pprof and jeprof say of it; and by hand."""
import glob
import os
import re
import shutil
import subprocess

PROGRAM = b"""#include <stdlib.h>
void *kept[1000];
__attribute__((noinline)) void keep(int n) { for (int i = 0; i < n; i++) kept[i] = malloc(10000); }
__attribute__((noinline)) void waste(int n) { for (int i = 0; i < n; i++) { void *volatile p = malloc(5000); free(p); } }
int main(void) { keep(500); waste(300); return 0; }
"""
BY_HAND = b"""heap profile:    3:  300 [    5:  500] @ heapprofile
     1:  100 [    2:  200] @ 0x401136 0x40114c
     2:  200 [    3:  300] @ 0x401136
what is this
MAPPED_LIBRARIES:
00400000-00402000 r-xp 00000000 08:01 12 /no/such/demo
"""
JEMALLOC = b"""heap_v2/524288
  t*: 3: 300 [5: 500]
  t0: 3: 300 [5: 500]
@ 0x401136 0x40114c
  t*: 1: 1048576 [2: 2097152]
  t0: 1: 1048576 [2: 2097152]
MAPPED_LIBRARIES:
00400000-00402000 r-xp 00000000 08:01 12 /no/such/demo
"""


def library(name):
    found = glob.glob(f"/usr/lib/*/{name}")
    return found[0] if found else None


def rows(text):
    """Names and bytes of what google-pprof and jeprof print with --show_bytes."""
    return {name: int(flat) for flat, name in re.findall(r"^\s*(\d+)\s+[\d.]+%\s+[\d.]+%\s+\d+\s+[\d.]+%\s+(\S+)", text, re.M)}


def compare(say, wick, case, tool, program, made, event):
    done = wick("report", "-q", "--json", "--limit", "0", "--event", event, made)
    found = {name: int(own) for name, own in re.findall(r'"name": *"([^"]+)".*?"self": *(\d+)', done.stdout.decode())}
    say(found.get("keep", 0) >= 4000000 if tool != "jeprof" else sum(found.values()) > 4000000, f"heap/{case}/{event}", f"{found} {done.stderr}")
    if not shutil.which(tool):
        print(f"skip heap/{case}/{event} as {tool} has it: it is not installed")
        return
    told = subprocess.run([tool, "--text", "--show_bytes", f"--{event}", program, made], capture_output=True, text=True).stdout
    wanted = rows(told)
    total = sum(wanted.values())
    say(wanted and abs(sum(found.values()) - total) <= total / 10000, f"heap/{case}/{event} as {tool} has it", f"{found} {wanted}")
    if tool == "google-pprof":
        say(all(found.get(name) == flat for name, flat in wanted.items() if flat), f"heap/{case}/{event} of each function", f"{found} {wanted}")


def real(say, wick, write, folder):
    program = os.path.join(folder, "allocates")
    done = subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", write("allocates.c", PROGRAM), "-o", program], capture_output=True, text=True)
    if done.returncode:
        print("skip heap: there is no C compiler")
        return
    for case, name, env, pattern, tool, events in (
            ("gperftools", "libtcmalloc.so.4", {"HEAPPROFILE": os.path.join(folder, "tc")}, "tc.*.heap", "google-pprof", ("inuse_space", "alloc_space")),
            ("jemalloc", "libjemalloc.so.2", {"MALLOC_CONF": f"prof:true,prof_final:true,lg_prof_sample:12,prof_prefix:{folder}/je"}, "je.*.heap", "jeprof", ("inuse_space",))):
        path = library(name)
        if path:
            subprocess.run([program], env=dict(os.environ, LD_PRELOAD=path, **env), capture_output=True)
        made = glob.glob(os.path.join(folder, pattern))
        if not made:
            print(f"skip heap/{case}: " + ("it wrote no profile" if path else f"{name} is not installed"))
            continue
        for event in events:
            compare(say, wick, case, tool, program, made[0], event)
        stacks = wick("fold", "-q", made[0]).stdout
        say(b"main;keep" in stacks, f"heap/{case}/callers", stacks.decode()[:500])


def by_hand(say, wick, write, refused, damage):
    for case, data, words, wanted in (
            ("in use", BY_HAND, [], b"[demo] 200\n[demo];[demo] 100\n"), ("allocated", BY_HAND, ["--event", "alloc_space"], b"[demo] 300\n[demo];[demo] 200\n"),
            ("objects", BY_HAND, ["--weight", "samples"], b"[demo] 2\n[demo];[demo] 1\n"),
            ("scaled", JEMALLOC, [], b"[demo];[demo] %d\n" % int(1048576 / (1 - 2.718281828459045 ** -2)))):
        done = wick("fold", *words, write("hand.heap", data))
        say(done.stdout == wanted and (b"1 line could not be read" in done.stderr) == (data is BY_HAND), f"heap/by hand/{case}", (done.stdout + done.stderr).decode())
    refused("heap/no such event", BY_HAND, "only inuse_space", "--event", "cycles", status=2)
    refused("heap/no head", b"heap profile: x\n", "byte 0", "--from", "heap")
    damage("heap", BY_HAND, 3)
    damage("heap", JEMALLOC, 3)
