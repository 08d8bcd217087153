"""Formats whose tools are rarely installed, in files made by hand: stackprof, GHC's JSON, samples in Chrome's traces, pprof's older texts, UTF-16."""
import json
import struct

STACKPROF = {"version": 1.2, "mode": "wall", "interval": 1000, "samples": 4, "gc_samples": 0, "missed_samples": 0,
             "frames": {"70098916485820": {"name": "Object#work", "file": "/app/a.rb", "line": 23, "samples": 3}, "18446744073709551615": {"name": "<main>", "file": "/app/a.rb", "line": 1},
                        "7": {"name": "(garbage collection)", "file": ""}},
             "raw": [2, 18446744073709551615, 70098916485820, 2, 1, 7, 1, 1, 18446744073709551615, 1], "raw_timestamp_deltas": [1000, 900, -5, 30]}

GHC = {"program": "demo", "arguments": ["demo"], "end_time": "x", "total_ticks": 12, "tick_interval": 1000, "total_alloc": 900,
       "cost_centres": [{"id": 1, "label": "MAIN", "module": "MAIN", "src_loc": "<built-in>", "is_caf": False}, {"id": 5, "label": "make", "module": "Main", "src_loc": "Main.hs:(4,1)-(6,9)"},
                        {"id": 6, "label": "check", "module": "Main", "src_loc": "Main.hs:9:1-5"}],
       "profile": {"id": 1, "entries": 0, "alloc": 100, "ticks": 0, "children": [{"id": 5, "alloc": 500, "ticks": 9, "children": [{"children": [], "id": 6, "ticks": 1, "alloc": 0}]},
                                                                                 {"id": 6, "alloc": 300, "ticks": 2, "children": []}]}}

CHUNKS = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "main"}}, {"ph": "X", "name": "Task", "pid": 1, "tid": 2, "ts": 5, "dur": 100},
          {"ph": "P", "name": "ProfileChunk", "id": "0x1", "pid": 1, "tid": 9, "ts": 30, "args": {"data": {"cpuProfile": {"samples": [3, 2]}, "timeDeltas": [-4, 30]}}},
          {"ph": "P", "name": "Profile", "id": "0x1", "pid": 1, "tid": 2, "ts": 10, "args": {"data": {"startTime": 10}}},
          {"ph": "P", "name": "ProfileChunk", "id": "0x1", "pid": 1, "tid": 9, "ts": 20, "args": {"data": {"cpuProfile": {
              "nodes": [{"id": 1, "callFrame": {"functionName": "(root)"}}, {"id": 2, "parent": 1, "callFrame": {"functionName": "a", "url": "x.js", "lineNumber": 3}},
                        {"id": 3, "parent": 2, "callFrame": {"functionName": "b", "url": "x.js", "lineNumber": 5}}], "samples": [2, 3]}, "timeDeltas": [0, 20]}}},
          {"ph": "P", "name": "ProfileChunk", "id": "0x2", "pid": 1, "tid": 9, "ts": 21}]

HERMES = {"traceEvents": [], "samples": [{"pid": 1, "tid": "2", "ts": "1000", "weight": "1", "sf": 2}, {"pid": 1, "tid": "2", "ts": "1030", "sf": 1}, {"pid": 1, "tid": "2", "ts": "1035", "sf": "2"},
                                         {"pid": 1, "tid": 3, "ts": 7, "sf": 1}, {"pid": 1, "tid": 3, "ts": 9, "sf": 1}],
          "stackFrames": {"2": {"name": "b", "parent": 1}, "1": {"name": "a", "category": "js"}}}

CONTENTION = b"""--- contentionz 1 ---
cycles/second = 2000000000
sampling period = 100
ms since reset = 5000
discarded samples = 0
  40  3 @ 0x401136 0x401200
  20  1 @ 0x401300
--- Memory map: ---
  00400000-00402000: /no/such/demo
"""

JAVA = b"""--- contentionz 1 ---
format = java
resolution = microseconds
sampling period = 10
   14     1 @ 0x00000003 0x00000004
    2     2 @ 0x00000005

 0x0000003 com.example.leaf (source.java:03)
 0x0000004 com.example.root (source.java:14)
 0x0000005 GC
"""

THREADS = b"""--- threadz 1 ---

--- Thread 7f794ab90940 (name: main/14748) stack: ---
  PC:  0x00401136: helper(arg *)
  0x00401200: main
--- Thread 7f794964e700 (name: thread1/14751) stack: ---
  PC: 0x401300
      0x401400
      creator: 0x401500
--- Thread 7f7948978700 (name: thread3/14759) stack: ---
  [same as previous thread]
--- Memory map: ---
  00400000-00402000: /no/such/demo
"""

GOROUTINES = b"""goroutine profile: total 4
3 @ 0x47d9ee 0x45f1c6 0x4d986b
#\t0x4d986a\tmain.main.func1+0x4a\t/src/g.go:9
#\t0x4d9000\tmain.main+0x10\t\t/src/g.go:12

1 @ 0x4429b1
#\t0x4429b0\tmain.other+0x4a\t/src/g.go:20
"""


def java_cpu():
    words = [0, 3, 1, 10000, 0, 2, 2, 3, 4, 1, 1, 5, 0, 1, 0]
    return b"".join(struct.pack("<I", word) for word in words) + JAVA[JAVA.index(b"\n 0x") + 1:]


def same(say, wick, write, case, name, data, wanted, *words):
    done = wick("fold", "-q", *words, write(name, data))
    say(done.stdout.decode() == wanted, case, (done.stdout + done.stderr).decode())


def jsons(say, wick, write, refused, damage):
    text = json.dumps(STACKPROF).encode()
    same(say, wick, write, "stackprof/wall", "a.json", text, "<main> 30000\n<main>;Object#work 1900000\n")
    same(say, wick, write, "stackprof/samples", "a.json", text, "(garbage collection) 1\n<main> 1\n<main>;Object#work 2\n", "--weight", "samples")
    same(say, wick, write, "stackprof/cpu", "a.json", text.replace(b'"wall"', b'"cpu"'), "(garbage collection) 1000000\n<main> 1000000\n<main>;Object#work 2000000\n")
    same(say, wick, write, "stackprof/object", "a.json", text.replace(b'"wall"', b'"object"'), "(garbage collection) 1\n<main> 1\n<main>;Object#work 2\n")
    refused("stackprof/a frame that is not there", text.replace(b"[2, 18446744073709551615, 70098916485820", b"[2, 18446744073709551615, 70098916485821"), "entry 2")
    refused("stackprof/a stack beyond the end", text.replace(b'"raw": [2', b'"raw": [18446744073709551615'), "entry 0")
    refused("stackprof/no stacks", text.replace(b'"raw":', b'"none":'), "raw: true")
    damage("stackprof", text, 19)
    text = json.dumps(GHC).encode()
    same(say, wick, write, "GHC's JSON/time", "a.prof", text, "MAIN.MAIN;Main.check 2000000\nMAIN.MAIN;Main.make 9000000\nMAIN.MAIN;Main.make;Main.check 1000000\n")
    same(say, wick, write, "GHC's JSON/ticks", "a.prof", text, "MAIN.MAIN;Main.check 2\nMAIN.MAIN;Main.make 9\nMAIN.MAIN;Main.make;Main.check 1\n", "--ghc", "ticks")
    same(say, wick, write, "GHC's JSON/bytes", "a.prof", text, "MAIN.MAIN 100\nMAIN.MAIN;Main.check 300\nMAIN.MAIN;Main.make 500\n", "--ghc", "bytes")
    refused("GHC's JSON/200,000 centres in each other, cut", text[:text.index(b'"profile"')] + b'"profile":' + b'{"id":1,"children":[' * 200000, "byte ")
    damage("ghcprof", text, 19)


def traces(say, wick, write, damage):
    text = json.dumps(CHUNKS).encode()
    same(say, wick, write, "chrome/pieces of a CPU profile", "t.json", text, "main;a 20000\nmain;a;b 26000\n")  # the time that ran backwards counts once
    same(say, wick, write, "chrome/its spans", "t.json", text, "main;Task 100000\n", "--event", "time")
    same(say, wick, write, "chrome/both", "t.json", text, "main;Task 100000\nmain;a 20000\nmain;a;b 26000\n", "--event", "all")
    done = wick("fold", write("t.json", text))
    say(b"1 trace event was left out; --event time" in done.stderr, "chrome/says that spans were left out", done.stderr.decode())
    done = wick("fold", "--event", "cycles", write("t.json", text))
    say(done.returncode and b"only time, cpu" in done.stderr, "chrome/no such event", done.stderr.decode())
    same(say, wick, write, "chrome/samples and their frames", "h.json", json.dumps(HERMES).encode(), "a 7000\na;b 30000\n")
    same(say, wick, write, "chrome/an end by its name", "e.json", b'[{"ph":"B","name":"a","ts":0},{"ph":"B","name":"b","ts":1},{"ph":"E","name":"c","ts":2},{"ph":"E","name":"a","ts":5},{"ph":"X","name":"d","ts":6,"tdur":2},{"ph":"X","ts":9,"dur":1}]',
         "(unnamed) 1000\na 1000\na;b 4000\nd 2000\n")
    maps = b'{"metadata":{\n"sourceMaps":["' + b"x" * 70000 + b'",\n1]},\n"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":2}]}'
    same(say, wick, write, "chrome/long metadata before the events", "m.json", maps, "a 2000\n")
    damage("chrome", text, 19)
    damage("chrome", json.dumps(HERMES).encode(), 19)


def texts(say, wick, write, refused, damage):
    """Sums are those of `go tool pprof -raw`."""
    same(say, wick, write, "pprof's text/contention", "c.txt", CONTENTION, "[demo] 1000\n[demo];[demo] 2000\n")
    same(say, wick, write, "pprof's text/contentions", "c.txt", CONTENTION, "[demo] 100\n[demo];[demo] 300\n", "--weight", "samples")
    same(say, wick, write, "pprof's text/Java's contention", "c.txt", JAVA, "GC 20000\ncom.example.root;com.example.leaf 140000\n")
    same(say, wick, write, "pprof's text/Java's heap", "c.txt", JAVA.replace(b"contentionz", b"heapz").replace(b"microseconds", b"bytes").replace(b"sampling period = 10\n", b""), "GC 1048577\ncom.example.root;com.example.leaf 524295\n")
    same(say, wick, write, "pprof's text/Java's CPU profile", "c.prof", java_cpu(), "GC 10000000\ncom.example.root;com.example.leaf 20000000\n")
    same(say, wick, write, "pprof's text/threads", "c.txt", THREADS, "[demo];[demo] 1\n[demo];[demo];[demo] 2\n")
    same(say, wick, write, "pprof's text/goroutines", "c.txt", GOROUTINES, "main.main;main.main.func1 3\nmain.other 1\n")
    done = wick("report", "-q", "--by", "line", write("c.txt", GOROUTINES))
    say(b"/src/g.go:20" in done.stdout or b"g.go:20" in done.stdout, "pprof's text/lines", done.stdout.decode())
    heap = b"heap profile: 1: 100 [2: 200] @ heapprofile\n 1: 100 [2: 200] @ 0x401136\n#\t0x401136\tmain.keep+0x4a\t/src/g.go:9\n\n# runtime.MemStats\n# Alloc = 7\n--- Memory map: ---\n"
    same(say, wick, write, "pprof's text/names in comments of a heap", "c.txt", heap, "main.keep 100\n")
    done = wick("fold", write("c.txt", heap))
    say(b"could not be read" not in done.stderr, "pprof's text/comments are no torn lines", done.stderr.decode())
    for data in (CONTENTION, JAVA, THREADS, GOROUTINES):
        damage("pprof-text", data, 13)
    damage("gperftools", java_cpu(), 7)
    refused("pprof's text/another event", CONTENTION, "only delay", "--event", "cycles", status=2)


def encodings(say, wick, write):
    text = "a;b 3\na;ü𝄞 4\n"
    for name in ("utf-16-le", "utf-16-be", "utf-8"):
        same(say, wick, write, f"encodings/{name}", "u.txt", ("\ufeff" + text).encode(name), text)
    same(say, wick, write, "encodings/JSON", "u.json", ("\ufeff" + json.dumps(HERMES)).encode("utf-16-le"), "a 7000\na;b 30000\n")
    lone = b"\xff\xfe" + "a;".encode("utf-16-le") + b"\x34\xd8" + " 4\n".encode("utf-16-le") + b"x"
    same(say, wick, write, "encodings/half a pair", "u.txt", lone, "a;\ufffd 4\n")


def units(say, wick, write, profile):
    """Time is nanoseconds, whatever unit pprof has it in; a value that measured nothing says which others did."""
    for unit, scale in (("microseconds", 1000), ("milliseconds", 1000000), ("seconds", 1000000000)):
        same(say, wick, write, f"pprof/{unit}", "u.pb", profile([((1,), (7,))], strings=("", "wall", unit, "main")), f"main {7 * scale}\n")
    done = wick("fold", write("u.pb", profile([((1,), (1 << 62,))], strings=("", "wall", "seconds", "main"))))
    say(done.returncode == 1 and b"byte " in done.stderr, "pprof/seconds beyond 64 bits", done.stderr.decode())
    zero = profile([((1,), (7, 0))], strings=("", "cpu", "nanoseconds", "main", "lock"), types=((1, 2), (4, 2)))
    done = wick("report", write("u.pb", zero))
    say(done.returncode == 1 and b"--event shows others: cpu" in done.stderr, "pprof/a value that is 0 everywhere", done.stderr.decode())


def other(say, wick, write):
    costs = b"events: Ir\n\nfl=a.c\nfn=main\n1 20\ncfn=f\ncalls=1 5\n* 400\n+1 *\n\nfn=f\n5 -300\n"
    done = wick("report", "-q", "--json", "--limit", "0", write("callgrind.out.1", costs))
    found = {row["name"]: row["self"] for row in json.loads(done.stdout)["rows"]} if done.returncode == 0 else {}
    say(found == {"main": 420, "f": 100}, "callgrind/costs as differences", f"{found} {done.stderr}")
    graph = b"@ inst_retired.any [12 samples]\n\n# a comment\n// another\n\n50.00%  [12]     f @ /boot/kernel/kernel\n 100.0%  [12]      g\n"
    same(say, wick, write, "pmcstat/lines of other things", "p.txt", graph, "g;f 12\n")
    clock = b"demo     9/9     198791.127353: %scpu-clock: \n\t             643 beta (/bin/demo)\n\n"
    for case, period, wanted in (("without a period", b"", b"1 sample in all"), ("with a period", b"2000000 ", b"2.00 ms in all")):
        done = wick("report", "-q", write("clock.txt", clock % period))
        say(wanted in done.stdout, f"perf/a clock {case}", (done.stdout + done.stderr).decode())
    broken = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "A"}, {"name": "B"}]},
              "profiles": [{"type": "evented", "name": "p", "unit": "none", "startValue": 0, "endValue": 9, "events": [{"type": "O", "frame": 0, "at": 0}]}]}
    late = [{"type": "O", "frame": 0, "at": 3}, {"type": "O", "frame": 1, "at": 2}]
    crossed = [{"type": "O", "frame": 0, "at": 0}, {"type": "O", "frame": 1, "at": 2}, {"type": "C", "frame": 0, "at": 3}]
    for case, events, why in (("never closed", None, b"leave a frame open"), ("not in order", late, b"earlier"), ("crossed", crossed, b"not the innermost")):
        broken["profiles"][0]["events"] = events or broken["profiles"][0]["events"]
        done = wick("report", write("b.speedscope.json", json.dumps(broken).encode()))
        say(done.returncode == 1 and why in done.stderr and b"byte " in done.stderr and done.stderr.count(b"\n") == 1, f"speedscope/events {case}", done.stderr.decode())


def stacks(say, wick, write):
    """Stacks that begin as the one before, and numbers that only begin alike; events with spaces and without."""
    frames = [{"name": f"f{i}"} for i in range(13)]
    lists = [[0, 1], [0, 12], [0, 1, 2], [0, 1, 2, 3], [0, 12, 3], [], [1], [0, 1]]
    file = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames},
            "profiles": [{"type": "sampled", "name": "p", "unit": "none", "startValue": 0, "endValue": 9, "samples": lists, "weights": [1 << i for i in range(len(lists))]}]}
    wanted = sorted(f"{';'.join(['p', *(f'f{i}' for i in stack)])} {sum(1 << i for i, other in enumerate(lists) if other == stack)}" for stack in {tuple(stack): stack for stack in lists}.values())
    events = [{"type": "O", "frame": 1, "at": 0}, {"type": "O", "frame": 2, "at": 1.5}, {"type": "C", "frame": 2, "at": 4}, {"type": "C", "frame": 1, "at": 10}]
    for form in ({"separators": (",", ":")}, {}, {"indent": 2}):
        file["profiles"][0] = {**file["profiles"][0], "type": "sampled"}
        done = wick("fold", "-q", write("s.json", json.dumps(file, **form).encode()))
        say(sorted(done.stdout.decode().splitlines()) == wanted, f"speedscope/stacks {form}", (done.stdout + done.stderr).decode() + str(wanted))
        evented = {**file, "profiles": [{"type": "evented", "name": "p", "unit": "milliseconds", "startValue": 0, "endValue": 10, "events": events}]}
        same(say, wick, write, f"speedscope/events {form}", "e.json", json.dumps(evented, **form).encode(), "p;f1 7500000\np;f1;f2 2500000\n")


def tests(say, wick, write, refused, damage, profile):
    jsons(say, wick, write, refused, damage)
    traces(say, wick, write, damage)
    texts(say, wick, write, refused, damage)
    encodings(say, wick, write)
    units(say, wick, write, profile)
    other(say, wick, write)
    stacks(say, wick, write)
