"""Small perf.data files to damage: a real recording, thinned out, with a record of every type that it lacks."""
import struct

ATTRIBUTES_AT, DATA_AT, FEATURES_AT = 24, 40, 72
SAMPLE_ID_ALL = 1 << 18
# Types that the kernel (1–22) and perf itself (64–84) write, and how many bytes each has at least after its header.
LEAST = {1: 40, 2: 16, 3: 16, 4: 24, 5: 24, 6: 24, 7: 24, 8: 16, 10: 72, 11: 24, 12: 8, 13: 8, 14: 0, 15: 8, 16: 24, 17: 24,
         18: 24, 19: 16, 20: 16, 21: 8, 22: 24, 64: 64, 65: 8, 68: 0, 69: 8, 70: 8, 72: 40, 73: 8, 74: 8, 75: 8, 76: 40,
         77: 16, 78: 16, 79: 24, 80: 8, 82: 0, 84: 8}
NAMES = {1: "MMAP", 2: "LOST", 3: "COMM", 4: "EXIT", 7: "FORK", 9: "SAMPLE", 10: "MMAP2", 13: "LOST_SAMPLES", 17: "KSYMBOL",
         22: "DEFERRED", 66: "TRACING_DATA", 67: "BUILD_ID", 68: "FINISHED_ROUND", 71: "AUXTRACE", 81: "COMPRESSED"}
# (offset, bytes) of the fields; what is not listed is taken by whole words.
FIELDS = {1: [(8, 4), (12, 4), (16, 8), (24, 8), (32, 8), (40, 8)],
          10: [(8, 4), (12, 4), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8), (64, 4), (68, 4), (72, 8)],
          2: [(8, 8), (16, 8)], 3: [(8, 4), (12, 4), (16, 8)], 4: [(8, 4), (12, 4), (16, 4), (20, 4), (24, 8)],
          7: [(8, 4), (12, 4), (16, 4), (20, 4), (24, 8)], 13: [(8, 8)], 17: [(8, 8), (16, 4), (20, 2), (22, 2), (24, 8)],
          22: [(8, 8), (16, 8), (24, 8)]}


def name_of(kind):
    return NAMES.get(kind, f"type-{kind}")


class Attribute:
    def __init__(self, data, at):
        self.at = at
        self.size = struct.unpack_from("<I", data, at + 4)[0]
        self.sample_type, self.flags = struct.unpack_from("<Q", data, at + 24)[0], struct.unpack_from("<Q", data, at + 40)[0]
        self.ids_at, self.ids_size = struct.unpack_from("<QQ", data, at + self.size)

    def trailer_size(self):
        bits = (1 << 1) | (1 << 2) | (1 << 6) | (1 << 9) | (1 << 7) | (1 << 16)
        return 8 * bin(self.sample_type & bits).count("1") if self.flags & SAMPLE_ID_ALL else 0


class PerfFile:
    """Where everything stands in a well-formed file."""

    def __init__(self, data):
        self.data = bytes(data)
        each = struct.unpack_from("<Q", data, 16)[0]
        start, size = struct.unpack_from("<QQ", data, ATTRIBUTES_AT)
        self.attributes = [Attribute(data, at) for at in range(start, start + size, each)]
        self.data_start, size = struct.unpack_from("<QQ", data, DATA_AT)
        self.data_end = self.data_start + size
        self.records = []  # (offset, type, size with what follows the record)
        at = self.data_start
        while at < self.data_end:
            kind, _, size = struct.unpack_from("<IHH", data, at)
            if kind == 71:
                size += struct.unpack_from("<Q", data, at + 8)[0]
            elif kind == 66:
                size += (struct.unpack_from("<I", data, at + 8)[0] + 7) & ~7
            self.records.append((at, kind, size))
            at += size

    def record(self, index):
        at, _, size = self.records[index]
        return self.data[at:at + size]

    def features(self):
        """(where the entry stands, offset, size) of each feature section."""
        bits = int.from_bytes(self.data[FEATURES_AT:FEATURES_AT + 32], "little")
        return [(at, *struct.unpack_from("<QQ", self.data, at))
                for at in range(self.data_end, self.data_end + 16 * bin(bits).count("1"), 16)]

    def with_records(self, records):
        """The same file with other records; the feature sections move along."""
        body = b"".join(records)
        shift = len(body) - (self.data_end - self.data_start)
        out = bytearray(self.data[:self.data_start] + body + self.data[self.data_end:])
        struct.pack_into("<Q", out, DATA_AT + 8, len(body))
        for at, offset, size in self.features():
            struct.pack_into("<QQ", out, at + shift, offset + shift, size)
        return PerfFile(out)

    def put(self, at, size, value):
        out = bytearray(self.data)
        out[at:at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
        return bytes(out)

    def get(self, at, size):
        return int.from_bytes(self.data[at:at + size], "little")


def thin(full, samples=6, each=3):
    """A few records of each type, in their order; samples spread over the file."""
    count, kept = {}, []
    of_samples = [i for i, (_, kind, _) in enumerate(full.records) if kind == 9]
    wanted = set(of_samples[::max(1, len(of_samples) // samples)][:samples])
    for i, (_, kind, _) in enumerate(full.records):
        count[kind] = count.get(kind, 0) + 1
        if i in wanted if kind == 9 else count[kind] <= each:
            kept.append(full.record(i))
    return full.with_records(kept)


def with_every_type(file):
    """What real recordings seldom hold, before the last samples: zeroes of the least size, with a trailer like the others'."""
    present = {kind for _, kind, _ in file.records}
    at, kind, size = next(r for r in file.records if r[1] in (1, 3, 10))
    trailer = file.attributes[0].trailer_size()
    tail = file.data[at + size - trailer:at + size] if trailer else b""
    extra = []
    for kind, least in sorted(LEAST.items()):
        if kind not in present:
            body = bytes(least) + (tail if kind < 64 else b"")
            extra.append(struct.pack("<IHH", kind, 0, 8 + len(body)) + body)
    extra.append(struct.pack("<IHHQQQIIII", 71, 0, 48, 16, 0, 0, 0, 0, 0, 0) + bytes(16))  # AUXTRACE and its payload
    records = [file.record(i) for i in range(len(file.records))]
    return file.with_records(records[:-2] + extra + records[-2:])


def fields_of_record(file, index):
    """(name, offset in the file, bytes) of every field."""
    at, kind, size = file.records[index]
    fields = [("type", at, 4), ("misc", at + 4, 2), ("size", at + 6, 2)]
    inner = FIELDS.get(kind) or [(word, 8) for word in range(8, size - 7, 8)]
    if kind == 9 and len(inner) > 24:  # a long call chain: its ends are enough
        inner = inner[:16] + inner[-8:]
    fields += [(f"at-{offset}", at + offset, width) for offset, width in inner if offset + width <= size]
    trailer = file.attributes[0].trailer_size() if kind < 64 and kind != 9 else 0
    fields += [(f"trailer-{i}", at + size - trailer + i, 8) for i in range(0, trailer, 8) if trailer <= size - 8]
    return fields
