"""Java Flight Recorder: a recording that Debian's JDK makes, compared with `jfr print`; and files made by hand for what none writes."""
import json
import os
import shutil
import struct
import subprocess

PROGRAM = """public class Load {
    static final Object lock = new Object();
    static byte[][] kept = new byte[64][];
    static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    static void allocate(int n) { for (int i = 0; i < n; i++) kept[i % 64] = new byte[10000 + i % 100]; }
    static void contend() { synchronized (lock) { fib(29); } }
    public static void main(String[] words) throws Exception {
        Thread[] threads = new Thread[3];
        for (int i = 0; i < 3; i++) {
            threads[i] = new Thread(() -> { for (int k = 0; k < 25; k++) { contend(); allocate(1500); } }, "worker-" + i);
            threads[i].start();
        }
        for (Thread thread : threads) thread.join();
        java.util.concurrent.locks.LockSupport.parkNanos(50_000_000);
        synchronized (lock) { lock.wait(50); }
    }
}
"""
SETTINGS = """<?xml version="1.0" encoding="UTF-8"?><configuration version="2.0">
<event name="jdk.ExecutionSample"><setting name="enabled">true</setting><setting name="period">10 ms</setting></event>
<event name="jdk.NativeMethodSample"><setting name="enabled">true</setting><setting name="period">10 ms</setting></event>
<event name="jdk.ObjectAllocationInNewTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ObjectAllocationOutsideTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ObjectAllocationSample"><setting name="enabled">true</setting><setting name="throttle">300/s</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.JavaMonitorEnter"><setting name="enabled">true</setting><setting name="threshold">1 ms</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.JavaMonitorWait"><setting name="enabled">true</setting><setting name="threshold">1 ms</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ThreadPark"><setting name="enabled">true</setting><setting name="threshold">1 ms</setting><setting name="stackTrace">true</setting></event>
</configuration>"""
WEIGHTS = {"jdk.ExecutionSample": None, "jdk.NativeMethodSample": None, "jdk.ObjectAllocationSample": "weight", "jdk.ObjectAllocationInNewTLAB": "tlabSize",
           "jdk.ObjectAllocationOutsideTLAB": "allocationSize", "jdk.JavaMonitorEnter": "duration", "jdk.JavaMonitorWait": "duration", "jdk.ThreadPark": "duration"}


def weight_of(event, values):
    field = WEIGHTS[event]
    if not field:
        return 1
    value = values[field]
    return round(float(value[2:-1]) * 1e9) if isinstance(value, str) else value


def against_jfr(say, wick, write, folder):
    """Weights of each stack, event by event, as `jfr print` has them."""
    if not all(shutil.which(tool) for tool in ("java", "javac", "jfr")):
        print("skip jfr: there is no JDK")
        return
    write("Load.java", PROGRAM.encode())
    made = os.path.join(folder, "load.jfr")
    done = subprocess.run(["javac", "Load.java"], cwd=folder, capture_output=True, text=True)
    settings = write("load.jfc", SETTINGS.encode())
    done = subprocess.run(["java", f"-XX:StartFlightRecording=filename={made},settings={settings}", "-Xmx128m", "-cp", folder, "Load"], capture_output=True, text=True) if done.returncode == 0 else done
    if done.returncode or not os.path.exists(made):
        print(f"skip jfr: nothing was recorded: {(done.stdout + done.stderr).strip()[-300:]}")
        return
    told = subprocess.run(["jfr", "print", "--json", "--stack-depth", "2000", "--events", ",".join(WEIGHTS), made], capture_output=True, text=True)
    wanted = {}
    for event in json.loads(told.stdout)["recording"]["events"]:
        values, stack = event["values"], (event["values"].get("stackTrace") or {"frames": []})["frames"]
        names = [frame["method"]["type"]["name"].replace("/", ".") + "." + frame["method"]["name"] for frame in reversed(stack)]
        thread = values.get("sampledThread") or values.get("eventThread") or {}
        names = [(thread.get("javaName") or thread.get("osName") or "").replace(" ", "_"), *names]
        names = names if any(names) else ["[no stack]"]  # neither frames nor a thread
        sums = wanted.setdefault(event["type"], {})
        sums[";".join(names)] = sums.get(";".join(names), 0) + weight_of(event["type"], values)
    say(len(wanted) >= 5 and "jdk.ExecutionSample" in wanted, "jfr/there is something to compare", str({event: len(sums) for event, sums in wanted.items()}))
    for event, sums in wanted.items():
        folded = wick("fold", "-q", "--event", event, made)
        found = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in folded.stdout.decode().splitlines()}
        # jfr prints durations rounded to nanoseconds, each; a stack that weighs nothing is not folded
        off = [(name, weight, found.get(name, 0)) for name, weight in sums.items() if abs(found.get(name, 0) - weight) > (100 if WEIGHTS[event] == "duration" else 0)]
        say(not off and set(found) <= set(sums), f"jfr/{event} as jfr print has it", f"{off[:3]} {sorted(set(found) - set(sums))[:2]} {folded.stderr[:200]}")
    shown = wick("fold", "-q", made).stdout
    say(shown and shown == wick("fold", "-q", "--event", "jdk.ExecutionSample", made).stdout, "jfr/samples of running code are what is shown")
    say(b";[B" in wick("fold", "-q", "--by", "class", "--event", "jdk.ObjectAllocation*", made).stdout or b"[B" in wick("report", "-q", "--by", "label:class", "--event", "jdk.ObjectAllocation*", made).stdout,
        "jfr/what was allocated is a label")
    whole = open(made, "rb").read()
    twice = wick("fold", "-q", write("twice.jfr", whole + whole)).stdout.decode()
    say(twice and twice == "".join(f"{line.rpartition(' ')[0]} {2 * int(line.rpartition(' ')[2])}\n" for line in shown.decode().splitlines()), "jfr/several chunks", twice[:300])
    done = wick("export", "-q", "--to", "speedscope", made, "-o", os.path.join(folder, "load.speedscope.json"))
    times = json.load(open(os.path.join(folder, "load.speedscope.json")))["profiles"]
    say(done.returncode == 0 and all(profile["endValue"] > profile["startValue"] for profile in times), "jfr/times", str(times)[:300])
    for words, part in ((["--event", "cycles"], "only jdk.ExecutionSample"), (["--pid", "3"], "")):
        done = wick("fold", *words, made)
        say(done.returncode in (0, 1, 2) and part in done.stderr.decode() and done.stderr.count(b"\n") <= 1, f"jfr/{words[0]}", done.stderr.decode())


# ---- by hand

def packed(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def string(text):
    return b"\x03" + packed(len(text.encode())) + text.encode()


TYPES = {  # id: (name, fields: (name, type, constant, array))
    1: ("int", []), 2: ("long", []), 3: ("java.lang.String", []), 4: ("boolean", []),
    10: ("jdk.types.Symbol", [("string", 3, 0, 0)]), 11: ("java.lang.Class", [("name", 10, 1, 0)]),
    12: ("jdk.types.Method", [("type", 11, 1, 0), ("name", 10, 1, 0)]), 13: ("jdk.types.FrameType", [("description", 3, 0, 0)]),
    14: ("jdk.types.StackFrame", [("method", 12, 1, 0), ("lineNumber", 1, 0, 0), ("type", 13, 1, 0)]),
    15: ("jdk.types.StackTrace", [("truncated", 4, 0, 0), ("frames", 14, 0, 1)]), 16: ("java.lang.Thread", [("osName", 3, 0, 0), ("osThreadId", 2, 0, 0), ("javaName", 3, 0, 0)]),
    20: ("jdk.ExecutionSample", [("startTime", 2, 0, 0), ("sampledThread", 16, 1, 0), ("stackTrace", 15, 1, 0)]),
    17: ("jdk.types.ThreadState", [("name", 3, 0, 0)]),
    21: ("jdk.ThreadPark", [("startTime", 2, 0, 0), ("duration", 2, 0, 0), ("eventThread", 16, 1, 0), ("stackTrace", 15, 1, 0), ("parkedClass", 11, 1, 0)]),
}


def event(kind, content):
    length = len(content) + len(packed(kind)) + 4
    return bytes([length & 0x7f | 0x80, length >> 7 & 0x7f | 0x80, length >> 14 & 0x7f | 0x80, length >> 21]) + packed(kind) + content


def description(types):
    words = []

    def word(text):
        text = str(text)
        if text not in words:
            words.append(text)
        return packed(words.index(text))

    def element(name, attributes, children=()):
        out = word(name) + packed(len(attributes)) + b"".join(word(key) + word(value) for key, value in attributes.items())
        return out + packed(len(children)) + b"".join(children)
    classes = [element("class", {"id": number, "name": name},
                       [element("field", dict({"name": field, "class": kind}, **({"constantPool": "true"} if constant else {}), **({"dimension": "1"} if array else {})))
                        for field, kind, constant, array in fields]) for number, (name, fields) in types.items()]
    tree = element("root", {}, [element("metadata", {}, classes), element("region", {"locale": "en"})])
    return event(0, packed(1) + packed(0) + packed(1) + packed(len(words)) + b"".join(map(string, words)) + tree)


def pool(kind, constants):
    return packed(kind) + packed(len(constants)) + b"".join(packed(number) + value for number, value in constants.items())


def chunk(types=None, frames=2, weight=5000000, major=2, size=None, stack=1, more=b""):
    types = types or TYPES
    symbols = pool(10, {1: string("demo/Main"), 2: string("main"), 3: string("work"), 4: b"\x05" + packed(3) + b"na\xef"})
    frame = {1: packed(1) + packed(7) + packed(1), 2: packed(2) + packed(9) + packed(2)}
    pools = [symbols, pool(11, {1: packed(1)}), pool(12, {1: packed(1) + packed(2), 2: packed(1) + packed(3)}), pool(13, {1: string("Interpreted"), 2: string("JIT compiled")}),
             pool(15, {1: b"\x00" + packed(frames) + frame[2] + frame[1]}), pool(16, {1: string("system") + packed(42) + string("worker")}), pool(17, {1: string("STATE_SLEEPING")})]
    constants = event(1, packed(1) + packed(0) + packed(0) + b"\x01" + packed(len(pools)) + b"".join(pools))
    events = event(20, packed(1000) + packed(1) + packed(stack) + more) + event(20, packed(2000) + packed(1) + packed(1) + more)
    events += event(21, packed(3000) + packed(weight) + packed(1) + packed(1) + packed(1))
    body = events + constants
    whole = body + description(types)
    length = 68 + len(whole) if size is None else size
    return b"FLR\0" + struct.pack(">HHQQQQQQQI", major, 1, length, 68 + len(events), 68 + len(body), 10**18, 10**9, 1000, 10**9, 1) + whole


def by_hand(say, wick, write, refused, damage):
    whole = chunk()
    done = wick("fold", "-q", write("hand.jfr", whole))
    say(done.stdout == b"worker;demo.Main.main;demo.Main.work 2\n", "jfr/by hand", (done.stdout + done.stderr).decode())
    done = wick("fold", "-q", "--event", "jdk.ThreadPark", "--by", "class", write("hand.jfr", whole))
    say(done.stdout == b"demo.Main;demo.Main.main;demo.Main.work 5000000\n", "jfr/by hand/a wait", (done.stdout + done.stderr).decode())
    wall = dict(TYPES)
    wall[20] = ("profiler.WallClockSample", [*TYPES[20][1], ("state", 17, 1, 0), ("samples", 1, 0, 0)])
    done = wick("fold", "-q", write("hand.jfr", chunk(types=wall, more=packed(1) + packed(7))))
    say(done.stdout == b"worker;demo.Main.main;demo.Main.work 14\n", "jfr/by hand/samples that stand for several", (done.stdout + done.stderr).decode())
    done = wick("fold", "-q", "--by", "thread_state", write("hand.jfr", chunk(types=wall, more=packed(1) + packed(7))))
    say(done.stdout == b"STATE_SLEEPING;demo.Main.main;demo.Main.work 14\n", "jfr/by hand/the state of a thread", (done.stdout + done.stderr).decode())
    other = {**TYPES, 20: ("demo.Request", TYPES[20][1]), 21: ("demo.Reply", TYPES[21][1])}
    done = wick("fold", "--event", "demo.Request", write("hand.jfr", chunk(types=other)))
    say(done.stdout == b"worker;demo.Main.main;demo.Main.work 2\n", "jfr/by hand/any event with stacks", (done.stdout + done.stderr).decode())
    for words in (["fold"], ["report"]):
        done = wick(*words, write("hand.jfr", chunk(types=other)))
        say(b"demo.Request, demo.Reply" in done.stderr, f"jfr/by hand/only other events, {words[0]}", (done.stdout + done.stderr).decode())
    inside = dict(TYPES)
    inside[15] = ("jdk.types.StackTrace", [("truncated", 4, 0, 0), ("frames", 15, 0, 1)])
    for case, data, part in (("a type that holds itself", chunk(types=inside), "byte "), ("more frames than bytes", chunk(frames=1 << 30), "byte "), ("another version", chunk(major=1), "version 1"),
                             ("incomplete", chunk(size=0), "jfr assemble"), ("a chunk longer than the file", chunk(size=10**9), "byte "),
                             ("a negative value", chunk(weight=(1 << 63) + 5), "byte ")):
        refused(f"jfr/{case}", data, part, *(["--event", "jdk.ThreadPark"] if "negative" in case else []))
    damage("jfr", whole, 11)
