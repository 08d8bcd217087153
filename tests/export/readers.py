"""Reads what `wick export` writes, by the formats' own definitions and not by wick's code: each reader gives {track: {stack: weight}},
stacks root first, tracks named as `wick fold --show-tid` names its roots."""
import collections
import gzip
import json


def fields(data):
    """The fields of a protobuf message: (number, value) with bytes or an unsigned number."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        elif tag & 7 == 2:
            length = varint()
            yield tag >> 3, data[at:at + length]
            at += length
        else:
            raise ValueError(f"wire type {tag & 7} at {at}")
    if at != len(data):
        raise ValueError("a field goes beyond its message")


def packed(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = shift = 0
    return values


def message(data):
    """The last value of each field, for messages without repeated ones."""
    return dict(fields(data))


class Pprof:
    """profile.proto. Says ValueError to whatever pprof would not take."""

    def __init__(self, data):
        if data[:2] == b"\x1f\x8b":
            assert data[4:8] == bytes(4), "the gzip header has a time"
            data = gzip.decompress(data)
        table = collections.defaultdict(list)
        for number, value in fields(data):
            table[number].append(value)
        self.strings = [text.decode("utf-8") for text in table[6]]
        assert self.strings[0] == "" and len(set(self.strings)) == len(self.strings)
        self.types = [(self.text(m.get(1, 0)), self.text(m.get(2, 0))) for m in map(message, table[1])]
        self.functions = self.numbered(table[5], message)
        self.mappings = self.numbered(table[3], message)
        self.locations = self.numbered(table[4], lambda data: [(k, message(v) if k == 4 else v) for k, v in fields(data)])
        self.samples = [self.sample(data) for data in table[2]]
        self.comments = [self.text(index) for index in table[13]]
        self.default = self.text(table[14][0]) if table[14] else ""
        self.period = table[12][0] if table[12] else 0

    def text(self, index):
        return self.strings[index]

    def numbered(self, items, read):
        """Ids are 1, 2, 3 …: Parca wants them so."""
        found = [read(data) for data in items]
        assert [dict(item)[1] for item in found] == list(range(1, len(found) + 1)), "ids are not in sequence"
        return [None, *found]

    def sample(self, data):
        locations, values, labels = [], [], {}
        for number, value in fields(data):
            if number == 1:
                locations += packed(value)
            elif number == 2:
                values += packed(value)
            else:
                label = message(value)
                labels[self.text(label[1])] = self.text(label[2]) if 2 in label else label.get(3, 0)
        assert len(values) == len(self.types) and all(value < 1 << 63 for value in values)
        return [self.location(number) for number in locations], values, labels

    def location(self, number):
        """(mapping, address, its frames innermost first)."""
        item = self.locations[number]
        plain = dict(pair for pair in item if pair[0] != 4)
        lines = [(self.text(self.functions[line[1]][2]), self.text(self.functions[line[1]].get(4, 0)), line.get(2, 0))
                 for kind, line in item if kind == 4]
        assert lines and plain.get(2, 0) < len(self.mappings)
        mapping = self.mappings[plain.get(2, 0)]
        assert not mapping or mapping.get(2, 0) <= plain.get(3, 0) < mapping[3], "an address is outside of its mapping"
        return mapping, plain.get(3, 0), lines

    def column(self, name):
        return [kind for kind, _ in self.types].index(name)

    def stacks(self, name=None):
        column = self.column(name or self.default)
        found = {}
        for locations, values, labels in self.samples:
            track = found.setdefault(root_of(labels.get("thread"), labels.get("pid"), labels.get("tid")), {})
            frames = tuple(frame for _, _, lines in reversed(locations) for frame, _, _ in reversed(lines))
            track[frames] = track.get(frames, 0) + values[column]
        return found


def root_of(comm, pid, tid):
    numbers = "" if tid is None else f"-{'?' if pid is None else pid}/{tid}"
    return as_folded((comm or "") + numbers)


def as_folded(name):
    return name.replace(" ", "_").replace("\t", "_").replace(";", ":")


def pprof(path):
    with open(path, "rb") as file:
        return Pprof(file.read())


def load(path):
    with open(path, "rb") as file:
        return json.loads(file.read().decode("utf-8"))


def speedscope(path):
    """What its importer does with sampled profiles; gaps are left out."""
    document = load(path)
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    frames, found = document["shared"]["frames"], {}
    assert len({json.dumps(frame) for frame in frames}) == len(frames), "a frame is there twice"
    for profile in document["profiles"]:
        assert profile["type"] == "sampled" and len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"] - profile["startValue"]
        track = found.setdefault(as_folded(profile["name"]), {})
        for stack, weight in zip(profile["samples"], profile["weights"]):
            if stack:
                key = tuple(frames[frame]["name"] for frame in stack)
                track[key] = track.get(key, 0) + weight
    return found
