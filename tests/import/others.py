"""Files made by hand of what other tools write: gperftools' CPU profiles, older heap profiles, stacks without frames."""
import glob
import json
import os
import shutil
import struct
import subprocess

MAPS = b"""00400000-00402000 r-xp 00000000 08:01 12 /no/such/demo
7f0000000000-7f0000001000: /no/such/lib.so (@2000)
"""
BURNS = b"""#include <time.h>
static volatile unsigned long sum;
__attribute__((noinline)) void burn(void) { for (int i = 0; i < 10000; i++) sum += i; }
int main(void) { while (clock() < CLOCKS_PER_SEC / 2) burn(); return 0; }
"""


def cpu_profile(records, form="<Q", period=10000, maps=MAPS):
    """Records are (count, addresses leaf first)."""
    words = [0, 3, 0, period, 0]
    for count, addresses in records:
        words += [count, len(addresses), *addresses]
    return b"".join(struct.pack(form, word) for word in [*words, 0, 1, 0]) + maps


def gperftools(say, wick, write, refused, damage):
    records = [(3, [0x401136, 0x401200]), (2, [0x401000])]
    wanted = b"[demo] 20000000\n[demo];[demo] 30000000\n"
    for form in ("<Q", ">Q", "<I", ">I"):
        done = wick("fold", "-q", write("made.prof", cpu_profile(records, form)))
        say(done.stdout == wanted, f"gperftools/words {form}", (done.stdout + done.stderr).decode())
    done = wick("fold", "-q", write("made.prof", cpu_profile([(1, [0x401136, 0x7f0000000010]), (1, [0x401136])])))
    say(done.stdout == b"[demo] 10000000\n[lib.so];[demo] 10000000\n", "gperftools/a short line of the maps", done.stdout.decode())
    done = wick("fold", "-q", "--weight", "samples", write("made.prof", cpu_profile(records)))
    say(done.stdout == b"[demo] 2\n[demo];[demo] 3\n", "gperftools/samples", done.stdout.decode())
    handler = [(1, [0x401000 + i, 0x7f0000000010, 0x401800 + i]) for i in range(40)]
    done = wick("fold", "-q", write("made.prof", cpu_profile([*handler, (1, [0x401300, 0x401300, 0x401200])])))
    say(done.stdout == b"[demo];[demo] 410000000\n", "gperftools/what the signal handler left", done.stdout.decode())
    whole = cpu_profile(records)
    refused("a count of gperftools' beyond the file", whole[:48] + struct.pack("<Q", 1 << 60) + whole[56:], "byte 40")
    damage("gperftools", whole)


def profiler(say, wick, write, folder):
    """What libprofiler itself writes, as google-pprof has it."""
    library = glob.glob("/usr/lib/*/libprofiler.so.0")
    if not library or not shutil.which("google-pprof"):
        print("skip gperftools/real: libprofiler or google-pprof is not installed")
        return
    program, made = os.path.join(folder, "burns"), os.path.join(folder, "burns.prof")
    subprocess.run(["cc", "-g", "-O1", "-fno-omit-frame-pointer", write("burns.c", BURNS), "-o", program], check=True)
    subprocess.run([program], env={**os.environ, "LD_PRELOAD": library[0], "CPUPROFILE": made}, stderr=subprocess.DEVNULL, check=True)
    told = subprocess.run(["google-pprof", "--text", program, made], capture_output=True, text=True).stdout.splitlines()
    wanted = {words[5]: int(words[0]) for words in (line.split() for line in told) if len(words) == 6 and words[0].isdigit()}
    done = wick("report", "-q", "--json", "--limit", "0", "--weight", "samples", made)
    found = {row["name"]: row["self"] for row in json.loads(done.stdout)["rows"] if row["self"]} if done.returncode == 0 else {}
    same = wanted.get("burn") and found.get("burn") == wanted["burn"] and sum(found.values()) == sum(wanted.values())
    say(same, "gperftools/real, as google-pprof has it", f"{found} {wanted}")


def heaps(say, wick, write):
    """Each kind's way to say how far apart samples were, with sums that pprof gives."""
    row = b"     1:   524288 [     2:  1048576] @ 0x401136\n"
    for kind, wanted in ((b"heapz_v2/524288", 829411), (b"heap/1048576", 829411), (b"growthz", 524288), (b"growth", 524288)):
        data = b"heap profile:    1:  524288 [    2:  1048576] @ " + kind + b"\n" + row + b"MAPPED_LIBRARIES:\n" + MAPS
        done = wick("fold", "-q", write("made.heap", data))
        say(done.stdout == b"[demo] %d\n" % wanted, f"heap/by hand/{kind.decode()}", (done.stdout + done.stderr).decode())


def several_values(say, wick, write):
    """As memray writes it: bytes in one profile, allocations in another."""
    profiles = [{"type": "sampled", "name": name, "unit": unit, "startValue": 0, "endValue": 9, "samples": [[0], [0, 1]], "weights": weights}
                for name, unit, weights in (("Memory", "bytes", [500, 7000]), ("Allocations", "none", [2, 3]), ("Memory", "bytes", [10, 20]))]
    whole = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "main"}, {"name": "keep"}]}, "profiles": profiles}
    path = write("values.json", json.dumps(whole).encode())
    done = wick("fold", path)
    say(done.stdout == b"Memory;main 510\nMemory;main;keep 7020\n" and b"--event samples" in done.stderr, "speedscope/several values", (done.stdout + done.stderr).decode())
    done = wick("fold", "--event", "samples", path)
    say(done.stdout == b"Allocations;main 2\nAllocations;main;keep 3\n" and not done.stderr, "speedscope/the other value", (done.stdout + done.stderr).decode())
    done = wick("fold", "--event", "cycles", path)
    say(done.returncode == 2 and b"--event cycles" in done.stderr and done.stderr.count(b"\n") == 1, "speedscope/no such value", done.stderr.decode())


def empty_stacks(say, wick, write, folder, pprof, otlp):
    """A stack without frames is counted, and is there after each way through another format."""
    sampled = {"$schema": "https://www.speedscope.app/file-format-schema.json", "name": "t", "shared": {"frames": [{"name": "main"}]},
               "profiles": [{"type": "sampled", "name": "t", "unit": "none", "startValue": 0, "endValue": 12, "samples": [[], [0]], "weights": [5, 7]}]}
    files = {"pprof": pprof([((), (5,)), ((1,), (7,))]), "otlp": otlp([(0, 5), (1, 7)]), "speedscope": json.dumps(sampled).encode()}
    for form, data in files.items():
        path = write(f"empty.{form}", data)
        done = wick("fold", "-q", path)
        say(done.stdout == b"[no stack] 5\nmain 7\n", f"stacks without frames/{form}", (done.stdout + done.stderr).decode())
        for to in ("pprof", "otlp", "speedscope", "firefox"):
            again = os.path.join(folder, f"empty.{form}.{to}")
            wick("export", "-q", "--to", to, path, "-o", again)
            done = wick("fold", "-q", again)
            say(done.stdout == b"[no stack] 5\nmain 7\n", f"stacks without frames/{form}/through {to}", (done.stdout + done.stderr).decode())
    sampled["profiles"][0]["unit"] = "milliseconds"
    done = wick("fold", "-q", write("gap.json", json.dumps(sampled).encode()))
    say(done.stdout == b"main 7000000\n", "stacks without frames/a gap in time", done.stdout.decode())
