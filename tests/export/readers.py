"""Reads what `wick export` writes, by the formats' own definitions and not by wick's code: each reader gives {track: {stack: weight}},
stacks root first, tracks named as `wick fold --show-tid` names its roots."""
import collections
import decimal
import gzip
import json
import re

decimal.getcontext().prec = 60


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


def rows(table, number):
    """Element 0 stands for nothing."""
    assert table[number][0] == b"", f"element 0 of table {number} is something"
    return table[number]


def collect(data):
    table = collections.defaultdict(list)
    for number, value in fields(data):
        table[number].append(value)
    return table


class Otlp:
    """ProfilesData, opentelemetry-proto 1.11."""

    def __init__(self, data):
        top = collect(data)
        assert len(top[1]) == len(top[2]) == 1
        table = collect(top[2][0])
        strings = [text.decode("utf-8") for text in rows(table, 5)]
        mappings = [message(row) for row in rows(table, 1)]
        assert [message(row) for row in table[4]] == [{1: bytes(16), 2: bytes(8)}], "link 0 is something"
        functions = [message(row) for row in rows(table, 3)]
        self.attributes = [None] + [(strings[m[1]], self.value(m[2])) for m in map(message, rows(table, 6)[1:])]
        self.frames, self.kinds, self.build_ids = [()], [None], {}
        for row in rows(table, 2)[1:]:
            item = collect(row)
            lines = [message(line) for line in item[3]]
            assert all(0 < line[1] < len(functions) for line in lines) and (not item[1] or item[1][0] < len(mappings))
            self.frames.append(tuple(strings[functions[line[1]][1]] for line in reversed(lines)))
            self.kinds.append(dict(self.attributes[i] for i in packed(item[4][0]))["profile.frame.type"])
        for mapping in mappings[1:]:
            assert mapping.get(1, 0) < mapping[2]
            for index in packed(mapping.get(5, b"")):
                self.build_ids[strings[mapping[4]]] = self.attributes[index]
        stacks = [packed(message(row).get(1, b"")) for row in rows(table, 7)]
        scope = collect(message(top[1][0])[2])
        assert message(scope[1][0])[1] == b"wick"
        self.profiles, self.labelled, ids = [], [], set()
        for data in scope[2]:
            profile, found = collect(data), {}
            kind = message(profile[1][0])
            ids.add(profile[7][0])
            assert len(profile[7][0]) == 16
            for sample in map(message, profile[2]):
                labels = dict(self.attributes[i] for i in packed(sample.get(2, b"")))
                (weight,) = packed(sample[4])
                frames = tuple(frame for location in reversed(stacks[sample[1]]) for frame in self.frames[location])
                assert frames and weight < 1 << 63
                self.labelled.append((labels, frames, weight))
                add(found, root_of(labels.get("thread.name"), labels.get("process.pid"), labels.get("thread.id")), frames, weight)
            self.profiles.append((strings[kind[1]], strings[kind[2]], found))
        assert len(ids) == len(self.profiles)

    @staticmethod
    def value(data):
        value = message(data)
        return value[3] if 3 in value else value[1].decode("utf-8")


def otlp(path):
    with open(path, "rb") as file:
        return Otlp(file.read())


def root_of(comm, pid, tid):
    numbers = "" if tid is None else f"-{'?' if pid is None else pid}/{tid}"
    return as_folded(comm if comm and numbers and numbers in comm else (comm or "") + numbers)


def as_folded(name):
    return name.replace(" ", "_").replace("\t", "_").replace(";", ":")


def pprof(path):
    with open(path, "rb") as file:
        return Pprof(file.read())


def load(path):
    """Numbers exactly as they are written."""
    with open(path, "rb") as file:
        return json.loads(file.read().decode("utf-8"), parse_float=decimal.Decimal)


def add(found, track, stack, weight):
    stacks = found.setdefault(track, {})
    stacks[stack] = stacks.get(stack, 0) + weight


def nanoseconds(microseconds):
    return round(decimal.Decimal(microseconds) * 1000)


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


def table_of(table):
    """A table of columns, which must all be as long as it says."""
    for name, column in table.items():
        assert name in ("length", "weightType") or len(column) == table["length"], f"{name}: {len(column)}, not {table['length']}"
    return table


def firefox(path):
    """A processed profile of version 60."""
    document = load(path)
    meta, shared = document["meta"], {name: value if name == "stringArray" else table_of(value) for name, value in document["shared"].items()}
    assert meta["preprocessedProfileVersion"] == 60 and any(c["color"] == "grey" for c in meta["categories"])
    strings, frames, functions, stacks = (shared[name] for name in ("stringArray", "frameTable", "funcTable", "stackTable"))
    assert all(-1 <= r < shared["resourceTable"]["length"] for r in functions["resource"])
    assert all(s is None or s < shared["sources"]["length"] for s in functions["source"])
    assert all(lib < len(document["libs"]) for lib in shared["resourceTable"]["lib"]) and all(c < len(meta["categories"]) for c in frames["category"])
    assert all(re.fullmatch("[0-9A-F]{33}", lib["breakpadId"]) for lib in document["libs"])
    names, found, ids = [strings[functions["name"][f]] for f in frames["func"]], {}, set()
    for thread in document["threads"]:
        samples = table_of(thread["samples"])
        table_of(thread["markers"])
        assert samples["time"] == sorted(samples["time"]), "samples are not in order of time"
        assert (thread["pid"], thread["tid"]) not in ids, "two threads have one number"
        ids.add((thread["pid"], thread["tid"]))
        track = root_of(thread["name"], thread["pid"], str(thread["tid"]).split(".")[0])
        for stack, weight in zip(samples["stack"], samples["weight"]):
            path = []
            while stack is not None:
                path.append(names[stacks["frame"][stack]])
                assert stacks["prefix"][stack] is None or stacks["prefix"][stack] < stack, "a stack stands before its beginning"
                stack = stacks["prefix"][stack]
            weight = weight * 1000000 if samples["weightType"] == "tracing-ms" else weight
            assert weight == int(weight)
            add(found, track, tuple(reversed(path)), int(weight))
    return found


def chrome(path):
    """Complete events, callers first; what a frame weighs is its time without that of those it calls."""
    open_frames, threads, found, own = {}, {}, {}, []
    for event in load(path)["traceEvents"]:
        key = (event["pid"], event["tid"])
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                threads[key] = event["args"]["name"]
            continue
        assert event["ph"] == "X"
        start, end = nanoseconds(event["ts"]), nanoseconds(decimal.Decimal(event["ts"]) + event["dur"])
        stack = open_frames.setdefault(key, [])
        while stack and stack[-1]["end"] <= start:
            stack.pop()
        frame = {"end": end, "own": end - start, "key": key, "name": event["name"], "parent": stack[-1] if stack else None}
        if stack:
            assert end <= stack[-1]["end"], "a frame ends after its caller"
            stack[-1]["own"] -= end - start
        stack.append(frame)
        own.append(frame)
    for frame in own:
        if not frame["own"]:
            continue
        path, at = [], frame
        while at:
            path.append(at["name"])
            at = at["parent"]
        pid, tid = frame["key"]
        track = as_folded(threads[frame["key"]]) if tid >= 1 << 31 else root_of(threads[frame["key"]], pid, tid)
        add(found, track, tuple(reversed(path)), frame["own"])
    return found


def cpuprofile(path):
    """One line of time: tracks, where there are several, are the first frame."""
    document = load(path)
    nodes = {node["id"]: node for node in document["nodes"]}
    parents = {child: node["id"] for node in document["nodes"] for child in node["children"]}
    assert document["nodes"][0]["callFrame"]["functionName"] == "(root)" and len(parents) == len(nodes) - 1
    samples, deltas, found, times = document["samples"], document["timeDeltas"], {}, {}
    assert len(samples) == len(deltas) and samples[-1] == 1 and sum(deltas) == document["endTime"]
    now = decimal.Decimal(0)
    for sample, length in zip(samples, deltas[1:]):
        times[sample] = times.get(sample, 0) + nanoseconds(now + length) - nanoseconds(now)
        now += length
    for sample, weight in times.items():
        path = []
        while sample != 1:
            path.append(nodes[sample]["callFrame"]["functionName"])
            sample = parents[sample]
        if path != ["(idle)"]:
            add(found, "", tuple(reversed(path)), weight)
    return found


class Callgrind:
    """Self, and with calls, of each (object, file, function), by callgrind's rules."""

    def __init__(self, text):
        self.own, self.calls, self.callers, names, state, totals = {}, {}, {}, {}, {}, {}
        lines = iter(text.split("\n"))
        assert next(lines) == "# callgrind format"
        for line in lines:
            key, equals, value = line.partition("=")
            if re.fullmatch("(version|creator|cmd|desc|positions|events|summary|totals): .*", line):
                totals[line.split(":")[0]] = line.split(": ", 1)[1]
            elif equals and key in ("ob", "fl", "fn", "cob", "cfi", "cfn"):
                number, _, name = value.partition(" ")
                kind = {"cfi": "fl"}.get(key, key[-2:])
                if name:
                    assert (kind, number) not in names
                    names[kind, number] = name
                state[key] = names[kind, number]
            elif key == "calls":
                cost = int(next(lines).split()[1])
                caller, callee = (state["ob"], state["fl"], state["fn"]), (state["cob"], state["cfi"], state["cfn"])
                self.calls[caller] = self.calls.get(caller, 0) + cost
                self.callers[callee, caller] = self.callers.get((callee, caller), 0) + cost
            elif line:
                cost, function = int(line.split()[1]), (state["ob"], state["fl"], state["fn"])
                self.own[function] = self.own.get(function, 0) + cost
        assert totals["summary"] == totals["totals"] and totals["positions"] == "line"
        self.total = int(totals["totals"].split()[0])

    def functions(self):
        """{name: (self, total)}; of functions that share a name, the sums."""
        found = {}
        for key in set(self.own) | set(self.calls):
            own, calls = self.own.get(key, 0), self.calls.get(key, 0)
            before = found.get(key[2], (0, 0))
            found[key[2]] = (before[0] + own, before[1] + own + calls)
        return found


def callgrind(path):
    with open(path, "rb") as file:
        return Callgrind(file.read().decode("utf-8", "surrogateescape"))
