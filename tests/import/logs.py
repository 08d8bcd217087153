"""valgrind's DHAT and massif, and V8's log: made by hand, and by the tools, with their own sums."""
import glob
import os
import re
import shutil
import subprocess

ALLOCATES = b"""#include <stdlib.h>
static void *kept[64];
__attribute__((noinline)) void *deep(int n) { return n ? deep(n - 1) : malloc(1000); }
__attribute__((noinline)) void *other(void) { return malloc(5000); }
int main(void) {
    for (int i = 0; i < 30; i++) {
        void *gone = deep(3);
        if (i % 2) free(gone); else kept[i] = gone;
        kept[i + 30] = other();
        free(calloc(10, 30));
    }
    return 0;
}
"""
DHAT = b"""{"dhatFileVersion":2,"mode":"heap","verb":"Allocated","bklt":true,"bkacc":true,"te":9,"tg":5
,"pps":[{"tb":50000,"tbk":50,"tl":3,"mb":26000,"mbk":26,"gb":25000,"gbk":25,"eb":1000,"ebk":1,"rb":0,"wb":5,"acc":[-1000,50],"fs":[1,2,3]}
,{"tb":700,"tbk":7,"gb":0,"gbk":0,"eb":0,"ebk":0,"fs":[4,3]}]
,"ftbl":["[root]","0x48417B4: malloc (in /usr/lib/vg.so)","0x109192: deep (m.c:3)","0x1091F0: main (m.c:5)","0x4F: ??? (in /usr/lib/x.so)"]}
"""
MASSIF = b"""desc: --detailed-freq=1
cmd: ./m
time_unit: i
#-----------
snapshot=0
#-----------
time=1
mem_heap_B=9000
mem_heap_extra_B=1
mem_stacks_B=0
heap_tree=detailed
n0: 9000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
#-----------
snapshot=1
#-----------
time=2
mem_heap_B=6300
mem_heap_extra_B=1
mem_stacks_B=0
heap_tree=peak
n3: 6300 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 5000 0x1091C4: other (m.c:4)
  n0: 3000 0x10920F: main (m.c:5)
  n1: 2000 0x10920F: run(int) (m.c:9)
   n0: 2000 0x10920F: (below main) (in /usr/lib/libc.so.6)
 n0: 1000 0x109192: ???
 n0: 300 in 2 places, all below massif's threshold (1.00%)
"""
LOG = rb"""v8-version,11,3,244,8,-node.38,0
shared-library,/usr/bin/node,0x400000,0x500000,0
code-creation,Builtin,2,10800,0x410000,768,ArrayMap
code-creation,JS,10,1,0x1000,256,main /tmp/a.js:1:1,0x9,~
code-creation,JS,11,1,0x2000,256,f\x2Cg /tmp/a.js:2:9,0x9,^
tick,0x2010,1000,0,0x0,0,0x1010
tick,0x2010,2000,0,0x0,0,-1000,overflow
code-move,0x2000,0x3000
tick,0x2010,3000,0,0x0,0,0x1010
tick,0x3010,4000,0,0x0,1,0x1010
tick,0x1,5000,1,0x410004,6,0x1010
tick,0x400010,6000,0,0x0,6
code-delete,0x3000
tick,0x3010,7000,0,0x0,0
code-creation,JS,13,1,0x1008,8, /tmp/a.js:3:1,0x9,*
tick,0x1010,8000,0,0x0,0
tick,0x100a,8000,0,0x0,0
"""
FOLDED = b"""(anonymous) 1
[node] 1
[unknown] 2
main;ArrayMap 1
main;[unknown] 1
main;f,g 2
main;f,g;(garbage collector) 1
"""


def total(text):
    return sum(int(line.rsplit(b" ", 1)[1]) for line in text.splitlines())


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1).replace(",", "")) if found else None


def by_hand(say, wick, write, refused, damage):
    dhat = write("made.dhat.json", DHAT)
    for event, wanted in (("alloc_space", b"main;[x.so] 700\nmain;deep;malloc 50000\n"), ("peak_space", b"main;deep;malloc 25000\n"), ("inuse_space", b"main;deep;malloc 1000\n")):
        done = wick("fold", "-q", "--event", event, dhat)
        say(done.stdout == wanted, f"dhat/by hand/{event}", (done.stdout + done.stderr).decode())
    say(wick("fold", "-q", dhat).stdout == wick("fold", "-q", "--event", "alloc_space", dhat).stdout, "dhat/by hand/without --event")
    done = wick("fold", "-q", "--srcline", dhat)
    say(b"main:m.c:5;deep:m.c:3;malloc 50000" in done.stdout, "dhat/by hand/lines", done.stdout.decode())
    refused("a frame of DHAT's that is not there", DHAT.replace(b"[4,3]", b"[9,3]"), "no frame 9")
    done = wick("fold", write("cut.dhat.json", DHAT[:-2]))
    say(done.returncode == 0 and b"1 file is cut off" in done.stderr and not wick("fold", dhat).stderr, "dhat/by hand/cut off", done.stderr.decode())
    done = wick("fold", "-q", write("made.massif", MASSIF))
    wanted = b"(below main);run(int);other 2000\n[below massif's threshold] 300\n[unknown] 1000\nmain;other 3000\n"
    say(done.stdout == wanted, "massif/by hand/the peak", (done.stdout + done.stderr).decode())
    done = wick("fold", "-q", write("made.massif", MASSIF.replace(b"=peak", b"=detailed")))
    say(done.stdout == b"[no stack] 9000\n", "massif/by hand/the largest", (done.stdout + done.stderr).decode())
    refused("no detailed snapshot of massif's", MASSIF.replace(b"=peak", b"=empty").replace(b"=detailed\nn0", b"=empty\nn0"), "--detailed-freq")
    done = wick("fold", "-q", write("made.log", LOG))
    say(done.stdout == FOLDED, "v8log/by hand", (done.stdout + done.stderr).decode())
    many = b"".join(b"code-creation,JS,10,1,0x%x,16,f%d /a.js:1:1,0x9,~\n" % (0x100000 - 16 * i, i) for i in range(9000))
    ticks = b"".join(b"tick,0x%x,%d,0,0x0,0\n" % (0x100000 - 16 * i + 3, i) for i in range(0, 9000, 7))
    done = wick("fold", "-q", write("many.log", LOG.split(b"\n", 1)[0] + b"\n" + many + ticks))
    wanted = b"".join(sorted(b"f%d 1\n" % i for i in range(0, 9000, 7)))
    say(done.stdout == wanted, "v8log/by hand/more code than the short list holds", done.stdout[:200].decode() + done.stderr.decode())
    made = b"code-creation,JS,10,1,0x%x,%d,%s /a.js:1:1,0x9,~\n"
    reused = made % (0x1800, 16, b"gone") + b"code-delete,0x1800\n" + made % (0x1700, 16, b"over") + made % (0x1000, 4096, b"whole") + b"tick,0x1900,5,0,0x0,0\ntick,0x1750,6,0,0x0,0\ntick,0x1100,7,0,0x0,0\n"
    done = wick("fold", "-q", write("reused.log", LOG.split(b"\n", 1)[0] + b"\n" + reused))
    say(done.stdout == b"whole 3\n", "v8log/by hand/code where other code was", (done.stdout + done.stderr).decode())
    for form, data in (("dhat", DHAT), ("massif", MASSIF), ("v8log", LOG)):
        damage(form, data)


def valgrind(say, wick, write, folder):
    if not shutil.which("valgrind"):
        print("skip valgrind: it is not installed")
        return
    program, dhat, massif = (os.path.join(folder, name) for name in ("allocates", "dhat.out.1", "massif.out.1"))
    subprocess.run(["cc", "-g", "-O0", write("allocates.c", ALLOCATES), "-o", program], check=True)
    told = subprocess.run(["valgrind", "--tool=dhat", f"--dhat-out-file={dhat}", program], capture_output=True, text=True)
    if told.returncode or not os.path.exists(dhat):
        print(f"skip valgrind: it does not run: {told.stderr.strip()[-200:]}")
        return
    for event, words in (("alloc_space", "Total:"), ("peak_space", "At t-gmax:"), ("inuse_space", "At t-end:")):
        done, wanted = wick("fold", "-q", "--event", event, dhat), number(words + r"\s+([\d,]+) bytes", told.stderr)
        say(wanted and total(done.stdout) == wanted, f"dhat/real/{event}", f"{wanted} {done.stdout.decode()}")
    done = wick("fold", "-q", dhat)
    say(b"main;deep;deep;deep;deep;malloc 30000\n" in done.stdout and b"main;other;malloc 150000\n" in done.stdout, "dhat/real/stacks", done.stdout.decode())
    subprocess.run(["valgrind", "--tool=massif", "--peak-inaccuracy=0", f"--massif-out-file={massif}", program], capture_output=True, check=True)
    peak = number(r"mem_heap_B=(\d+)\n(?:mem_\w+=\d+\n)*heap_tree=peak", open(massif).read())
    done = wick("fold", "-q", massif)
    say(peak and total(done.stdout) == peak and b"main;other 150000\n" in done.stdout, "massif/real", f"{peak} {done.stdout.decode()}")


def node(say, wick, write, folder):
    if not shutil.which("node"):
        print("skip v8log/real: node is not installed")
        return
    script = write("ticks.js", b"function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\nconst end = Date.now() + 500;\nwhile (Date.now() < end) fib(20);\n")
    subprocess.run(["node", "--prof", f"--logfile={folder}/ticks.log", "--no-logfile-per-isolate", script], cwd=folder, capture_output=True)
    log = glob.glob(f"{folder}/ticks.log")
    told = subprocess.run(["node", "--prof-process", *log], cwd=folder, capture_output=True, text=True).stdout
    ticks, wanted = number(r"\((\d+) ticks", told), sum(map(int, re.findall(r"^ +(\d+) +[\d.]+% +[\d.]+%  JS: .?fib ", told.split("[C++]")[0], re.M)))
    if not ticks or not wanted:
        print(f"skip v8log/real: node counted nothing: {told[:200]}")
        return
    done = wick("fold", "-q", *log)
    own = sum(int(line.rsplit(b" ", 1)[1]) for line in done.stdout.splitlines() if line.rsplit(b" ", 1)[0].split(b";")[-1] == b"fib")
    say(total(done.stdout) == ticks and own == wanted, "v8log/real, as node's own processor has it", f"{total(done.stdout)} of {ticks}, {own} of {wanted}")
