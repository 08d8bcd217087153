"""Call graphs of callgrind: what valgrind writes of a program, compared with callgrind_annotate; what `wick export` writes, with the recording; and by hand."""
import json
import os
import re
import shutil
import subprocess

PROGRAM = b"""#include <string.h>
#define SEPARATE __attribute__((noipa))
SEPARATE static int leaf(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; return s; }
SEPARATE static int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
SEPARATE static int odd(int n);
SEPARATE static int even(int n) { return n ? odd(n - 1) : leaf(3); }
SEPARATE static int odd(int n) { return n ? even(n - 1) : leaf(4); }
static inline __attribute__((always_inline)) int inlined(int n) { return
#line 7 "other.h"
    leaf(n) +
    leaf(2 * n);
#line 20 "graph.c"
}
SEPARATE static int work(int n) { char b[64]; memset(b, n, 64); return inlined(n) + b[3] + fact(6) + even(9); }
int main(void) { int s = 0; for (int i = 0; i < 50; i++) s += work(i); return s == 7; }
"""
BY_HAND = b"""# callgrind format
version: 1
pid: 7
positions: instr line
events: Ir Dr

ob=(1) /bin/demo
fl=(1) demo.c
fn=(1) main
0x10 16 400 20
cfn=(2) work
calls=5 0x40 30
+4 +2 9000 100
jcnd=3/4 0x12 16
* *
fi=(2) inline.h
+1 3 50
cob=(2) /lib/libx.so
cfi=(3) x.c
cfn=(3) (helper)
calls=1 0 1
* * 7
fe=(1)
* -1 5

thread: 2
fn=(2)
0x40 31 9000 100
what is this
ob=(2)
fl=(3)
fn=(3)
0 1 7

totals: 9462 120
"""


def rows(wick, *words):
    done = wick("report", "-q", "--json", "--limit", "0", *words)
    found = {}
    for row in json.loads(done.stdout)["rows"] if done.stdout else []:
        found[row["name"]] = (row["self"], row["total"])
    return found


def edges(path):
    """Every self cost and call of a file, names written out: the test's own reading of the format."""
    names, costs, here, called, calls = {"ob": {}, "fl": {}, "fn": {}}, {}, {}, {}, None
    for line in open(path, encoding="utf-8", errors="surrogateescape").read().splitlines():
        key, mark, value = line.partition("=")
        if mark and re.fullmatch("[a-z]+", key):
            space = {"ob": "ob", "cob": "ob", "fn": "fn", "cfn": "fn"}.get(key, "fl")
            if key == "calls":
                calls = int(value.split()[0])
                continue
            number, name = re.fullmatch(r"\((\d+)\)(?: (.*))?", value).groups()
            if name is not None:
                names[space][number] = name
            (called if key[0] == "c" else here)[key[-2:] if key != "fi" and key != "fe" else "at"] = names[space][number]
            if key == "fl":
                here["at"] = here["fl"]
            continue
        if not re.match(r"\d", line):
            continue
        at, *numbers = map(int, line.split())
        function = (here["ob"], here["fl"], here["fn"], here["at"], at)
        if calls is not None:
            function += (called["ob"], called["fi"], called["fn"])
        sums = costs.setdefault(function, [0] * (len(numbers) + 1))
        for i, number in enumerate([calls or 0] + numbers):
            sums[i] += number
        calls = None
    return costs


def annotated(path, inclusive):
    """By name: the numbers that callgrind_annotate says, one for each file that the function has code from."""
    text = subprocess.run(["callgrind_annotate", "--threshold=100", "--show-percs=no", "--auto=no", f"--inclusive={inclusive}", path],
                          capture_output=True, text=True).stdout
    text = text[text.rindex("file:function\n"):]
    found = {}
    for number, name in re.findall(r"^ *([\d,]+) .*?[^ ]*:(\S.*?)(?: \[[^\]]*\])?$", text, re.M):
        found.setdefault(name, []).append(int(number.replace(",", "")))
    return found


def real(say, wick, write, folder):
    if not (shutil.which("valgrind") and shutil.which("callgrind_annotate")):
        print("skip callgrind/real: valgrind is not installed")
        return
    program = os.path.join(folder, "graph")
    done = subprocess.run(["cc", "-g", "-O1", write("graph.c", PROGRAM), "-o", program], capture_output=True, text=True)
    if done.returncode:
        print(f"skip callgrind/real: the program is not compiled: {done.stderr.strip()[:200]}")
        return
    for case, options in (("lines", []), ("caches and jumps", ["--cache-sim=yes", "--collect-jumps=yes"]), ("instructions", ["--dump-instr=yes"]),
                          ("parts", ["--dump-before=fact", "--combine-dumps=yes"]), ("plain names", ["--compress-strings=no", "--compress-pos=no"]),
                          ("threads", ["--separate-threads=yes"])):
        made = os.path.join(folder, "callgrind." + case.replace(" ", "-"))
        done = subprocess.run(["valgrind", "--tool=callgrind", *options, f"--callgrind-out-file={made}", program], capture_output=True, text=True)
        if case == "threads":
            made += "-01"
        if not os.path.exists(made):
            say(False, f"callgrind/real/{case}", done.stderr[-300:])
            continue
        found = rows(wick, made)
        if case == "parts":  # callgrind_annotate takes calls that have not come back for self costs
            whole = rows(wick, os.path.join(folder, "callgrind.lines"))
            names = ("main", "work", "leaf", "fact", "even", "odd")
            done = wick("report", made)
            say(all(found[name][0] == whole[name][0] for name in names) and not done.stderr, f"callgrind/real/{case}/self of each function", f"{found} {whole} {done.stderr}")
            back(say, wick, folder, f"callgrind/real/{case}", made)
            continue
        own, told = annotated(made, "no"), annotated(made, "yes")
        wrong = [(name, values, found.get(name)) for name, values in own.items() if sum(values) and found.get(name, (0, 0))[0] != sum(values)]
        say(sum(own.get("leaf", [])) > 1000 and not wrong, f"callgrind/real/{case}/self of each function", str(wrong[:4]))
        # what calls of a function cost is said with its own file, and what else it has code from is less; a file whose name is spelled in two ways divides them
        wanted = ("main", "work", "leaf", "fact", "even", "_dl_start", "dl_main", "_dl_relocate_object", "_dl_lookup_symbol_x")
        wrong = [(name, told[name], found.get(name)) for name in wanted if name in told and found.get(name, (0, 0))[1] not in (max(told[name]), sum(told[name]))]
        say({"work", "leaf", "fact", "even"} <= set(told) and not wrong and found["leaf"][0] == found["leaf"][1], f"callgrind/real/{case}/totals", str(wrong[:4]))
        back(say, wick, folder, f"callgrind/real/{case}", made)
    if os.path.exists(os.path.join(folder, "callgrind.lines")):
        views(say, wick, os.path.join(folder, "callgrind.lines"), os.path.join(folder, "callgrind.instructions"))


def back(say, wick, folder, case, made):
    """Exported again, and once more: the same sums, and from then on the same bytes."""
    once, twice = os.path.join(folder, "once.callgrind"), os.path.join(folder, "twice.callgrind")
    done = [wick("export", "-q", "--event", "all", made, "-o", once), wick("export", "-q", "--event", "all", once, "-o", twice)]
    one, other = rows(wick, made), rows(wick, once)
    say(not any(x.returncode for x in done) and one and one == other, f"{case}/exported again", str([(n, v, other.get(n)) for n, v in one.items() if other.get(n) != v][:3]))
    if not any(x.returncode for x in done):
        bodies = [open(path, "rb").read().partition(b"positions:")[2] for path in (once, twice)]
        say(bodies[0] == bodies[1] and edges(once) == edges(twice), f"{case}/exported twice", "")
    for which in ("callers", "callees"):
        one, other = (wick("report", "-q", f"--{which}", "leaf" if which == "callers" else "work", path).stdout for path in (made, once))
        say(one and one == other, f"{case}/{which}", f"{one} {other}")


def views(say, wick, lines, instructions):
    done = wick("report", "-q", "--callers", "leaf", "--threshold", "0", lines).stdout.decode()
    say(re.search(r"^ +[\d.]+ % +work$", done.partition("leaf")[2], re.M), "callgrind/callers", done)
    done = wick("report", "-q", "--callees", "work", "--threshold", "0", lines).stdout.decode()
    say(all(re.search(rf"^ +[\d.]+ %.* {name}$", done, re.M) for name in ("leaf", "fact", "even")), "callgrind/callees", done)
    done = wick("diff", "-q", "--json", lines, instructions)
    changed = {row["name"]: row for row in json.loads(done.stdout)["rows"]} if done.stdout else {}
    own = rows(wick, lines)
    say("work" in changed and str(own["work"][1]) in json.dumps(changed["work"]) and str(own["work"][0]) in json.dumps(changed["work"]),
        "callgrind/diff", f"{changed.get('work')} {own.get('work')} {done.stderr[:200]}")


def of_recording(say, wick, folder, name, words):
    """What wick writes has the sums of the recording; read again, it has them still."""
    made = os.path.join(folder, f"{name}.callgrind")
    done = wick("export", "-q", *words, "-o", made)
    wanted, found = rows(wick, *words), rows(wick, made)
    wrong = [(n, v, found.get(n)) for n, v in wanted.items() if found.get(n) != v]
    say(done.returncode == 0 and wanted and not wrong, f"round trip/callgrind/{name}/sums", f"{done.stderr[:200]} {wrong[:3]}")
    again = os.path.join(folder, f"{name}-again.callgrind")
    wick("export", "-q", made, "-o", again)
    say(os.path.exists(again) and edges(made) == edges(again), f"round trip/callgrind/{name}/edges", "")


def by_hand(say, wick, write):
    made = write("hand.callgrind", BY_HAND)
    found = rows(wick, made)
    say(found == {"main": (455, 9462), "work": (9000, 9000), "(helper)": (7, 7)}, "callgrind/by hand/rows", str(found))
    say(rows(wick, "--event", "Dr", made) == {"main": (20, 120), "work": (100, 100)}, "callgrind/by hand/another event", "")
    lines = rows(wick, "--by", "line", made)
    say(lines == {"demo.c:31": (9000, 9000), "demo.c:16": (400, 400), "inline.h:3": (50, 57), "x.c:1": (7, 7), "demo.c:2": (5, 5), "demo.c:18": (0, 9000)},
        "callgrind/by hand/lines", str(lines))
    done = wick("report", "--tid", "2", "--by", "thread", made)
    say(b"100.00 %" in done.stdout and b"7/2" in done.stdout and b"1 line could not be read" in done.stderr, "callgrind/by hand/threads", (done.stdout + done.stderr).decode())
    done = wick("report", write("totals.callgrind", BY_HAND.replace(b"9462", b"9463")))
    say(b"do not add up" in done.stderr or b"does not add up" in done.stderr, "callgrind/by hand/totals", done.stderr.decode())
    for case, words in (("flame", ["flame", "-o", made + ".svg"]), ("fold", ["fold"]), ("tree", ["report", "--tree"]), ("export", ["export", "--to", "pprof", "-o", made + ".pb"]),
                        ("script", ["save", "-o", made + ".wick"]), ("diff", ["diff", made, "-o", made + ".svg"]), ("focus", ["report", "--focus", "main"])):
        done = wick(*words, made)
        say(done.returncode == 1 and done.stderr.count(b"\n") == 1 and b"call graph" in done.stderr and not os.path.exists(made + ".svg"),
            f"callgrind/needs stacks/{case}", f"{done.returncode} {done.stderr.decode()}")
    done = wick("report", made, write("stacks.folded", b"a;b 3\n"))
    say(done.returncode == 1 and b"has no stacks" in done.stderr and done.stderr.count(b"\n") == 1, "callgrind/with stacks", done.stderr.decode())
    two = rows(wick, made, made)
    say(two.get("main") == (910, 18924), "callgrind/two files add up", str(two))


def hostile(say, wick, write, step):
    for case, data, part in (
            ("no events", b"# callgrind format\nfn=main\n1 5\n", "events:"),
            ("sums that pass 2^64", b"# callgrind format\nevents: Ir\nfn=main\n1 18446744073709551615\n2 18446744073709551615\n", "2^64"),
            ("calls that pass 2^64", b"# callgrind format\nevents: Ir\nfn=main\n1 1\n" + b"cfn=x\ncalls=1 1\n1 18446744073709551615\n" * 2, "2^64"),
            ("more events than lines can bear", b"# callgrind format\nevents:" + b" E" * 100000 + b"\n", "byte 200027: the line before has more than 256 events"),
            ("nothing", b"# callgrind format\nevents: Ir\n", "no samples")):
        done = wick("report", "-q", write("hostile.callgrind", data))
        say(done.returncode == 1 and done.stderr.count(b"\n") == 1 and part.encode() in done.stderr, f"callgrind/hostile/{case}", f"{done.returncode} {done.stderr.decode()}")
    for case, data in (("a number that was not told", b"fn=(9)\n1 5\n"), ("more costs than events", b"fn=f\n1 5 6\n1 5\n"), ("a line below 0", b"fn=f\n-5 5\n1 5\n"),
                       ("a huge line", b"fn=f\n99999999999 5\n1 5\n"), ("a cost of nobody", b"1 7\nfn=f\n1 5\n"), ("a call of nobody", b"fn=f\ncalls=1 1\n1 7\n1 5\n")):
        done = wick("report", "--json", write("hostile.callgrind", b"# callgrind format\nevents: Ir\n" + data))
        say(done.returncode == 0 and json.loads(done.stdout)["total"] == 5 and b"could not be read" in done.stderr, f"callgrind/hostile/{case}", (done.stdout + done.stderr).decode())
    ring = b"# callgrind format\nevents: Ir\n" + b"".join(b"fn=f%d\n1 1\ncfn=f%d\ncalls=1 1\n1 9\n" % (i, (i + 1) % 100000) for i in range(100000))
    done = wick("report", "-q", "--json", write("ring.callgrind", ring))
    say(done.returncode == 0 and b'"total":100000' in done.stdout, "callgrind/hostile/a ring of 100,000 functions", done.stderr.decode())
    bad = []
    for at in range(0, len(BY_HAND), step):
        for data in (BY_HAND[:at], BY_HAND[:at] + bytes([BY_HAND[at] ^ (1 << at % 8)]) + BY_HAND[at + 1:]):
            done = wick("report", "-q", "--from", "callgrind", write("damaged", data))
            if done.returncode not in (0, 1, 2) or done.stderr.count(b"\n") > 1:
                bad.append((at, done.returncode, done.stderr[-200:]))
    say(not bad, "damage/callgrind", str(bad[:2]))
