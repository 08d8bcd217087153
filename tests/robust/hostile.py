"""Recordings that nobody made by accident: huge, deep, cyclic, or full of bytes that mean something where they end up."""
import csv
import ctypes
import gzip
import io
import json
import os
import re
import struct
import subprocess
import xml.etree.ElementTree
import zlib

import programs
from runner import LONG, SANITIZED, WICK, report, start, wrong_damaged, wrong_output

USER, EXEC_COMM = 2, 1 << 13
CONTEXT_USER = (1 << 64) - 512


class Maker:
    """Records that look like those of a recording with samples of IP, TID, TIME, PERIOD and a call chain."""

    def __init__(self, template):
        assert template.attributes[0].sample_type == 0x127 and template.attributes[0].trailer_size() == 16
        self.template, self.records, self.time = template, [], 1000

    def add(self, kind, misc, body, trailer=True):
        body += bytes(-len(body) % 8) + (struct.pack("<IIQ", 1, 1, self.time) if trailer else b"")
        self.records.append(struct.pack("<IHH", kind, misc, 8 + len(body)) + body)
        self.time += 1

    def mmap(self, pid, start, length, path=b"/nothing/here", offset=0):
        self.add(10, USER, struct.pack("<IIQQQIIQQII", pid, pid, start, length, offset, 0, 0, 0, 0, 5, 2) + path + b"\0")

    def fork(self, pid, parent):
        self.add(7, 0, struct.pack("<IIIIQ", pid, parent, pid, parent, self.time))

    def comm(self, pid, name):
        self.add(3, EXEC_COMM, struct.pack("<II", pid, pid) + name + b"\0")

    def sample(self, pid, chain, period=1):
        chain = [CONTEXT_USER, *chain]
        self.add(9, USER, struct.pack(f"<QIIQQQ{len(chain)}Q", chain[-1], pid, pid, self.time, period, len(chain), *chain), False)

    def file(self):
        return self.template.with_records(self.records).data


def whole_space(maker):
    for begin, length in ((0, (1 << 64) - 1), (1, (1 << 64) - 1), ((1 << 64) - 4096, 4096), (0, 1 << 63), (1 << 63, 1 << 63)):
        maker.mmap(7, begin, length)
        maker.mmap(2**32 - 1, begin, length)
        for address in (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 5000):
            maker.sample(7, [address, address])


def cyclic_forks(maker):
    maker.mmap(7, 4096, 4096)
    for _ in range(100000 if LONG else 5000):
        maker.fork(8, 7)
        maker.fork(7, 8)
        maker.fork(9, 9)
    maker.sample(7, [4100])


MAPPED_EACH = 100
PID, PARENT, TIME = 0x7a11ed01, 0x7a11ed02, 0x7a11ed037a11ed03


def many_mmaps(maker, processes=500 if SANITIZED else 1000):
    """Each process is the child of the one before and maps over what it got. One is made, the others are it with other numbers."""
    def add(method, *arguments):
        maker.time = TIME
        method(*arguments)
    add(maker.fork, PID, PARENT)
    for i in range(MAPPED_EACH):
        add(maker.mmap, PID, 65536 * (i * 37 % 101), 65536 + 4096)
    add(maker.sample, PID, [65536 * 50, 65536 * 51])
    one = b"".join(maker.records)
    word = lambda value: struct.pack("<I", value)
    maker.records = [one.replace(struct.pack("<Q", TIME), struct.pack("<Q", 1000 + pid)).replace(word(PARENT), word(pid - 1)).replace(word(PID), word(pid))
                     for pid in range(10, 10 + processes)]


def million_mmaps(template, place):
    """A million over ten thousand forked processes: linear in time, or it would not end within the limit, and in memory."""
    peaks = []
    for processes in (2500, 10000):
        maker = Maker(template)
        many_mmaps(maker, processes)
        with open(place.input, "wb") as out:
            out.write(maker.file())
        with open(place.output, "wb") as out:
            process = start(["fold", "-j", "2", "--keep-unknown", place.input], stdout=out, stderr=subprocess.DEVNULL, memory=False)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        folded, peak = place.published(), usage.ru_maxrss * 1024
        if status or total(folded) != processes:
            return report("hostile/million_mmaps", f"{processes} processes: status {status}, {len(folded)} bytes")
        peaks.append(peak)
    os.unlink(place.output)
    # Eight times the file, which is mapped and in it: 700 bytes for a mapping and the versions of the tree that hold it.
    fine = peaks[1] < 5 * peaks[0] and peaks[1] < 8.5 * os.path.getsize(place.input)
    os.unlink(place.input)
    report("hostile/million_mmaps", None if fine or SANITIZED else f"{peaks} bytes")


def twins(template, place):
    """One place in code at many addresses, as a file that is mapped again and again: nodes that are alike. What is mapped last makes the
    builder look for them; were they all in its index, that would take a minute."""
    maker, many = Maker(template), 250000
    for i in range(many):
        maker.mmap(7, 65536 * (i + 1), 4096)
    for i in range(many):
        maker.sample(7, [65536 * (i + 1) + 16])
    maker.mmap(7, 1 << 46, 4096, b"/nothing/else")
    maker.sample(7, [1 << 46])
    result = place.run("fold", maker.file(), "-j", "1", "--keep-unknown")
    why = wrong_damaged("fold", result, place) or (f"status {result.status}: {result.err[:300]!r}" if result.status else None)
    report("hostile/twins", why or (None if place.published() == b":7;[else] 1\n:7;[here] %d\n" % many else f"{place.published()[:300]!r}"))


def many_threads(maker):
    for pid in range(10, 10 + (1000000 if LONG else 20000)):
        maker.comm(pid, b"comm-%d" % pid)
        maker.sample(pid, [4096])


def same_build_ids(maker):
    """Build ids of one path, as many as make anything that compares each with each run out of time."""
    maker.add(67, USER, struct.pack("<i24s", 7, b"12345678901234567890") + b"/nothing/here\0", False)
    maker.records = [maker.records[-1] * (1000000 if LONG else 400000)]
    maker.mmap(7, 4096, 4096)
    maker.sample(7, [4100])


def deep_chains(maker):
    maker.mmap(7, 0, 1 << 40)
    for seed in range(200 if LONG else 20):
        maker.sample(7, [4096 + 16 * ((i * 7919 + seed) % 8000) for i in range(8180)])


def odd_bytes(maker):
    names = [b"a\n;b 1", b"\x1b[31mred\x07", b"</title><script>", b"\xff\xfe\x80", b"&amp;\"'", b"", b" ", b"# c", b"x 5"]
    for i, name in enumerate(names):
        maker.comm(10 + i, name)
        maker.mmap(10 + i, 4096, 4096, b"/tmp/" + name + b"/lib\n\x1b]0;t\x07.so")
        maker.sample(10 + i, [4100, 4200])


def total(folded):
    return sum(int(line.rsplit(b" ", 1)[1]) for line in folded.splitlines())


def why_odd(command, result, place, samples):
    """The terminal sees no control characters, the SVG is XML, and each line of folded text is a stack."""
    if re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", result.err):
        return f"control characters on standard error: {result.err!r}"
    if command == "flame":
        xml.etree.ElementTree.fromstring(place.published())
    if command == "fold" and total(place.published()) != samples:
        return f"the weights add up to {total(place.published())}, not {samples}"
    return None


def check(maker, make, command, place):
    make(maker)
    result = place.run(command, maker.file(), *([] if command == "script" else ["--keep-unknown"]))
    why = wrong_damaged(command, result, place)
    if not why and result.status != 0:
        why = f"status {result.status}: {result.err[:300]!r}"
    if not why and make is odd_bytes:
        why = why_odd(command, result, place, sum(1 for record in maker.records if record[0] == 9))
    report(f"hostile/{make.__name__}/{command}", why)


CONTROLS = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]")
CALLGRIND = re.compile(rb"(# callgrind format|version: 1|(creator|cmd|desc|positions|events|summary|totals): ?.*|"
                       rb"c?(ob|fl|fi|fn)=\(\d+\)( .+)?|calls=\d+ \d+|\d+( \d+)+|)")


def even_rows(out):
    rows = list(csv.reader(io.StringIO(out.decode(errors="surrogateescape"), newline=""), strict=True))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1, rows


def no_controls(out):
    assert not CONTROLS.search(out), out


def callgrind(out):
    no_controls(out)
    for line in out.split(b"\n"):
        assert CALLGRIND.fullmatch(line), line


VIEWS = [("report", no_controls), ("report --by object", no_controls), ("report --csv", even_rows), ("report --by object --csv", even_rows),
         ("report --json", json.loads), ("diff --table", no_controls), ("diff --csv", even_rows), ("diff --json", json.loads),
         ("fold -v", None), ("export --to callgrind", callgrind), ("export --to pprof", gzip.decompress), ("export --to otlp", None),
         *((f"export --to {name}", json.loads) for name in ("speedscope", "firefox", "cpuprofile", "chrome"))]


def odd_views(template, place):
    """Names that mean something in CSV, JSON, Callgrind's lines or on a terminal mean nothing there: in comms, files, functions and in what
    the header tells of the machine, which -v prints."""
    names = [b"=1+1", b"a\"b", b"</script><script>", b"\x1b[31m\x07", b"\xff\xfe", b"x,y", b"fn=(2)", b"\\u0000", b"\xe2\x80\xa8", b"(3) c"]
    maker = Maker(template)
    odd_bytes(maker)
    inputs = {"recording": maker.file().replace(b"record", b"\x1b[31m\x07"), "folded": b"".join(b"main;" + name + b";y 1\n" + name + b" 2\n" for name in names)}
    for kind, content in inputs.items():
        for view, check in VIEWS:
            command, *options = view.split()
            twice = [place.input] if command == "diff" else []
            result, why = place.run(command, content, *options, *(["--keep-unknown"] if kind == "recording" else []), *twice), None
            if result.status != 0 or CONTROLS.search(result.err):
                why = f"status {result.status}, {result.err[:300]!r}"
            try:
                if not why and check:
                    check(place.published())
            except Exception as wrong:  # whatever the reader says
                why = f"{type(wrong).__name__}: {wrong}"[:500]
            report(f"hostile/odd_views/{kind}/{view.replace(' ', '')}", why)


def threads_of_one(place):
    """Exports name a process by its first thread: whoever looks through all of them for each is not done in time."""
    with open(place.input, "wb") as out:
        out.write(b"".join(b"app 7/%d 1.%06d: 1 cycles: \n\t1000 f (/bin/x)\n\n" % (7 + i, i) for i in range(300000)))
    for name in ("chrome", "firefox", "speedscope", "cpuprofile", "pprof", "callgrind", "otlp"):
        process = start(["export", "--to", name, "-o", place.output, place.input])
        _, err = process.communicate()
        report(f"hostile/threads_of_one/{name}", None if process.returncode == 0 and place.published() else f"status {process.returncode}: {err[:300]!r}")
        os.unlink(place.output)


def threads_of_none(place):
    """A process without a first thread, and as many names as threads: whoever looks through all of them for each is not done in time."""
    result = place.run("report", b"".join(b"app%d 7/%d 1.%06d: 1 cycles: \n\t1000 f (/bin/x)\n\n" % (i, 8 + i, i) for i in range(200000)), "--by", "process", "--csv")
    fine = result.status == 0 and b"app0-7" in (place.published() or b"")
    report("hostile/threads_of_none", None if fine else f"status {result.status}: {result.err[:300]!r}")


def long_comm(place):
    """The name of a process, which all its threads get: 300 kB that would make 500 MB of text."""
    names = [{"name": "process_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "\u00e4" * 50000}}]
    spans = [{"name": "f", "ph": "X", "pid": 1, "tid": i, "ts": i, "dur": 5} for i in range(5000)]
    content = json.dumps({"traceEvents": names + spans}).encode()
    for view in ("report --by thread", "flame --html", "export --to otlp"):
        command, *options = view.split()
        result = place.run(command, content, *options)
        size = len(place.published() or b"")
        report(f"hostile/long_comm/{view.replace(' ', '')}", None if result.status == 0 and 0 < size < 30 << 20 else f"status {result.status}, {size} bytes: {result.err[:300]!r}")


def repeated_stack(place):
    """Threads with the stack of the one before, which is deep: it is walked once."""
    deep = "--- threadz 1 ---\n\n--- Thread 1 (name: a/1) stack: ---\n  PC: " + " ".join(hex(i) for i in range(1, 30000)) + "\n"
    result = place.run("fold", (deep + "--- Thread 2 (name: b/1) stack: ---\n  [same as previous thread]\n" * 20000).encode(), "--keep-unknown")
    fine = result.status == 0 and (place.published() or b"").endswith(b" 20001\n")
    report("hostile/repeated_stack", None if fine else f"status {result.status}: {result.err[:300]!r}")


def deep_text(command, place, depth):
    """Text has no limit on the depth of a stack."""
    lines = b";".join(b"f%d" % (i % 1000) for i in range(depth)) + b" 1\n"
    result = place.run(command, b"".join(b"r%d;" % i + lines for i in range(3)))
    why = wrong_damaged(command, result, place) or (f"status {result.status}: {result.err[:300]!r}" if result.status else None)
    report(f"hostile/deep_text/{command}", why)


def deep_diff(place):
    """The page of two deep stacks: whoever climbs from every frame to the root is not done in time."""
    with open(place.input, "wb") as out:
        out.write(b";".join(b"f%d" % (i % 1000) for i in range(400000)) + b" 1\n")
    process = start(["diff", "--html", "-o", place.output, place.input, place.input])
    _, err = process.communicate()
    report("hostile/deep_diff", None if process.returncode == 0 and place.published() else f"status {process.returncode}: {err[:300]!r}")
    os.unlink(place.output)


def one_name(place):
    """A picture whose frames share one name of 10 MB: whoever makes it anew for each is not done in time."""
    frame = '<g fg:n="0"><title>a (1 samples, 0.00%%)</title><rect x="%.4f%%" y="0" width="0.0010%%" height="15" fg:x="%d" fg:w="1"/></g>\n'
    with open(place.input, "w", encoding="ascii") as out:
        out.write('<svg xmlns="http://www.w3.org/2000/svg" xmlns:fg="x"><metadata id="names"><fg:n>' + "a" * 10_000_000 + '</fg:n></metadata><svg id="frames" total_samples="100000">')
        out.writelines(frame % (i / 1000, i) for i in range(100000))
        out.write("</svg></svg>\n")
    process = start(["report", "-q", "--csv", "--from", "svg", "-o", place.output, place.input])
    _, err = process.communicate()
    report("hostile/one_name", None if process.returncode == 0 and place.published() else f"status {process.returncode}: {err[:300]!r}")
    if process.returncode == 0:
        os.unlink(place.output)


def field(number, content):
    """A field of protobuf: a number, or a message."""
    def digits(value):
        return bytes([value & 127 | 128]) + digits(value >> 7) if value > 127 else bytes([value])
    return digits(number << 3) + digits(content) if isinstance(content, int) else digits(number << 3 | 2) + digits(len(content)) + content


def shared_lines(place):
    """A stack of 20,000 times one location, into which 20,000 functions are inlined: 100 kB that mean 400 million frames."""
    parts = [(1, field(1, 1) + field(2, 1)), (2, field(1, bytes([1]) * 20000) + field(2, bytes([5]))), (4, field(1, 1) + field(4, field(1, 1)) * 20000), (5, field(1, 1) + field(2, 2))]
    content = b"".join(field(number, part) for number, part in parts + [(6, b""), (6, b"cpu"), (6, b"f")])
    for command in ("fold", "flame"):
        result = place.run(command, content)
        fine = result.status == 1 and len(result.lines) == 1 and not place.left()
        report(f"hostile/shared_lines/{command}", None if fine else f"status {result.status}: {result.err[:300]!r}")


def java_places(place):
    """What a Java profile says of its numbers is read once, however often its head says so, and a long name is hashed once."""
    count = 4000
    again = "".join(["--- heapz 1 ---\n", "format = java\n" * count, "resolution = bytes\n7048 1 @ 0x1 0x2\n", *(f"0x{i:x} f{i} (a.java:3)\n" for i in range(1, count))])
    long = "--- heapz 1 ---\nformat = java\nresolution = bytes\n7048 1 @ " + "0x1 " * 100000 + "\n0x1 " + "x" * 500000 + " (a.java:3)\n"
    for name, content, options in (("said again", again, []), ("a long name", long, ["--fold-recursion"])):
        result = place.run("fold", content.encode(), *options)
        why = wrong_output("fold", place.published() or b"") if result.status == 0 and place.published() else f"status {result.status}: {result.err[:300]!r}"
        report(f"hostile/java_places/{name}", why)


def kept(maker, kind, key, content):
    """An entry that the recording keeps, packed, in one record."""
    zstd, packed = ctypes.CDLL("libzstd.so.1"), ctypes.create_string_buffer(60000)
    zstd.ZSTD_compress.restype = ctypes.c_size_t
    packed = packed[:zstd.ZSTD_compress(packed, ctypes.c_size_t(len(packed)), content, ctypes.c_size_t(len(content)), 3)]
    fixed = struct.pack("<HHI8sIIQIII", 0, 1, len(maker.records), b"wickkeep", kind, 0, len(packed), len(key) + len(packed), len(key), 1)
    body = key + packed
    maker.add(18, 0, fixed + struct.pack("<I", zlib.crc32(body, zlib.crc32(fixed))) + body, False)


def kept_memory(template, place):
    """Parts of stacks that pack well: the memory that they take depends on the size of the file."""
    maker = Maker(template)
    for _ in range(4):
        kept(maker, 13, struct.pack("<I", 0), bytes(50 << 20))
        kept(maker, 14, b"", bytes(50 << 20))
    maker.mmap(7, 4096, 4096)
    maker.sample(7, [4100])
    with open(place.input, "wb") as out:
        out.write(maker.file())
    # Not by the peak that the kernel counts: that of a forked process begins with its parent's.
    done = subprocess.run(["prlimit", *([] if SANITIZED else ["--data=300000000"]), WICK, "fold", "-j", "2", "--keep-unknown", "-o", place.output, place.input], stdin=subprocess.DEVNULL,
                          capture_output=True)
    fine = done.returncode == 0 and b"7 kept parts of deep stacks" in done.stderr
    report("hostile/kept_memory", None if fine else f"status {done.returncode}: {done.stderr[:300]!r}")
    if os.path.exists(place.output):
        os.unlink(place.output)


def run_all(template, place):
    if not SANITIZED or LONG:
        million_mmaps(template, place)
        twins(template, place)
        deep_diff(place)
        one_name(place)
        threads_of_one(place)
        threads_of_none(place)
        repeated_stack(place)
    for make in (whole_space, cyclic_forks, many_mmaps, many_threads, same_build_ids, deep_chains, odd_bytes):
        for command in ("fold", "flame", "script"):
            check(Maker(template), make, command, place)
    odd_views(template, place)
    shared_lines(place)
    java_places(place)
    long_comm(place)
    kept_memory(template, place)
    programs.run_all(lambda: Maker(template), place)
    for command in ("fold", "flame"):
        deep_text(command, place, 1000000 if LONG else 100000)
