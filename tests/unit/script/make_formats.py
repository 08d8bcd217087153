#!/usr/bin/env python3
"""Write formats.data, a recording whose tracepoints have one format from formats.list each, and formats.txt, which is perf's text of it.

With a folder as argument, write the hostile formats of tests/cases/hostile-formats there: they must neither crash a reader nor print what is
not in the file."""
import os
import re
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = 104  # bytes before the data of dynamic fields
# declaration, offset, size, signed
FIELDS = [("int a", 8, 4, 1), ("unsigned int b", 12, 4, 0), ("u64 c", 16, 8, 0), ("char comm[8]", 24, 8, 0),
          ("__data_loc char[] str", 32, 4, 0), ("__data_loc u32[] arr", 36, 4, 0), ("u8 mac[6]", 40, 6, 0), ("u16 h", 46, 2, 0),
          ("u8 ip6[16]", 48, 16, 0), ("u16 sh[4]", 64, 8, 0), ("long l", 72, 8, 1), ("void * p", 80, 8, 0), ("__u8 ip4[4]", 88, 4, 0),
          ("__data_loc cpumask_t cpus", 92, 4, 0), ("__data_loc __u8[] sa", 96, 4, 0), ("s8 t", 100, 1, 1), ("s16 s", 102, 2, 1)]
COMMON = [("unsigned short common_type", 0, 2, 0), ("int common_pid", 4, 4, 1)]
HOSTILE = {"hex": '"%s", __print_hex(REC->comm, 100000000)', "hex-str": '"%s", __print_hex_str(REC->comm, 2000000)',
           "array": '"%s", __print_array(REC->comm, 100000000, 8)', "index": '"%d", REC->comm[3000000000]',
           "sizeof": '"%pS %x", sizeof(int), sizeof(a)', "width": '"%*s", 100000000, "x"', "division": '"%d", REC->a / 0',
           "no-field": '"%s %s", __get_str(nothing), __print_flags(REC->nothing, "|", { 1, "A" })'}


def lines(fields):
    return "".join(f"\tfield:{name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n" for name, offset, size, signed in fields)


def format_of(number, text):
    """Only the fields that the format names, so that the file stays small."""
    used = [field for field in FIELDS if re.search(r"\b%s\b" % re.search(r"(\w+)(\[\d+\])?$", field[0]).group(1), text)]
    return f"name: e{number}\nID: {number}\nformat:\n{lines(COMMON)}\n{lines(used)}\nprint fmt: {text}\n".encode()


def payload_of(number):
    record, tail = bytearray(RECORD), b""
    struct.pack_into("<H2xi iIQ 8s", record, 0, number, 42, -5, 3000000000, 0x123456789abcdef0, b"bash\0\0xy")
    struct.pack_into("<6B H", record, 40, 1, 2, 0xab, 0xcd, 0xef, 9, 513)
    struct.pack_into("<16s 4H", record, 48, bytes.fromhex("20010db8000000000000000000000001"), 1, 2, 3, 65535)
    struct.pack_into("<qQ4B", record, 72, -2, 0xffffffff81000123, 127, 0, 0, 1)
    struct.pack_into("<bxh", record, 100, -3, -300)
    for at, data in ((32, b"hello\0"), (36, struct.pack("<3I", 10, 20, 0xffffffff)), (92, struct.pack("<Q", 0x8f1)),
                     (96, struct.pack("<HH4B8x", 2, 0x5000, 10, 0, 0, 1))):
        struct.pack_into("<I", record, at, len(data) << 16 | RECORD + len(tail))
        tail += data + bytes(-len(data) % 4)
    return bytes(record) + tail


def tracing_data(formats):
    out = b"\x17\x08\x44tracing0.6\0" + struct.pack("<BBI", 0, 8, 4096)
    page = "".join(f"\tfield: {name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n" for name, offset, size, signed in (
        ("u64 timestamp", 0, 8, 0), ("local_t commit", 8, 8, 1), ("int overwrite", 8, 1, 1), ("char data", 16, 4080, 1)))
    out += b"header_page\0" + struct.pack("<Q", len(page)) + page.encode()
    out += b"header_event\0" + struct.pack("<QII", 0, 0, 1) + b"sys\0" + struct.pack("<I", len(formats))
    for text in formats:
        out += struct.pack("<Q", len(text)) + text
    return out + struct.pack("<IIQ", 0, 0, 0)


def record(kind, misc, body):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def recording(texts):
    attribute_size, ids_at, first = 128, 104, 100
    sample_type = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16  # ip, tid, time, cpu, period, raw, identifier
    ids = b"".join(struct.pack("<Q", first + i) for i in range(len(texts)))
    attributes = [struct.pack("<IIQQQQQ", 2, attribute_size, first + i, 1, sample_type, 4, 1 << 18 | 1 << 0).ljust(attribute_size, b"\0")
                  for i in range(len(texts))]
    table = b"".join(attribute + struct.pack("<QQ", ids_at + 8 * i, 8) for i, attribute in enumerate(attributes))
    data = record(3, 0, struct.pack("<II8sIIQIIQ", 42, 42, b"prog", 42, 42, 1000, 0, 0, first))
    for i in range(len(texts)):
        raw = payload_of(first + i)
        raw += bytes(-(4 + len(raw)) % 8)
        data += record(9, 2, struct.pack("<QQIIQIIQI", first + i, 0x1234, 42, 42, 2000 + i, 0, 0, 1, len(raw)) + raw)
    trace = tracing_data([format_of(first + i, text) for i, text in enumerate(texts)])
    descriptions = struct.pack("<II", len(texts), attribute_size)
    for i, attribute in enumerate(attributes):
        descriptions += attribute + struct.pack("<II64sQ", 1, 64, f"sys:e{first + i}".encode(), first + i)
    attributes_at, data_at = ids_at + len(ids), ids_at + len(ids) + len(table)
    sections_at = data_at + len(data) + 32
    head = b"PERFILE2" + struct.pack("<QQQQQQQQQQQQ", 104, attribute_size + 16, attributes_at, len(table), data_at, len(data), 0, 0,
                                     1 << 1 | 1 << 12, 0, 0, 0)  # TRACING_DATA, EVENT_DESC
    sections = struct.pack("<QQQQ", sections_at, len(trace), sections_at + len(trace), len(descriptions))
    return head + ids + table + data + sections + trace + descriptions


def write(path, texts):
    with open(path, "wb") as file:
        file.write(recording(texts))


if len(sys.argv) > 1:
    for name, text in HOSTILE.items():
        write(os.path.join(sys.argv[1], name + ".data"), [text])
else:
    with open(os.path.join(HERE, "formats.list")) as file:
        write(os.path.join(HERE, "formats.data"), file.read().splitlines())
    with open(os.path.join(HERE, "formats.txt"), "wb") as file:
        subprocess.run(["perf", "script", "--symfs", "/nonexistent", "--kallsyms", "/dev/null", "-i", os.path.join(HERE, "formats.data")],
                       stdout=file, stderr=subprocess.DEVNULL, check=True)
