"""What a page or an exported profile holds, as sorted folded lines: `data.py FILE`."""
import base64, gzip, json, re, struct, sys

text = open(sys.argv[1]).read()
lines = {}
if text.startswith("{"):
    profile = json.loads(text)
    names = [frame["name"] for frame in profile["shared"]["frames"]]
    print("frames:", len(names))
    for one in profile["profiles"]:
        for stack, weight in zip(one["samples"], one["weights"]):
            line = ";".join(names[frame] for frame in stack)
            lines[line] = lines.get(line, 0) + weight
else:
    data = gzip.decompress(base64.b64decode(re.search(r'id="profile">([^<]*)<', text).group(1)))
    length, = struct.unpack("<I", data[:4])
    about, at = json.loads(data[4:4 + length]), 4 + length

    def number():
        global at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    stacks, open_names = [""], []
    for _ in range(about["nodes"]):
        up = number()
        open_names = open_names[:len(open_names) - up + 1 - 1] if up else open_names
        open_names = open_names + [about["places"][number()][0]]
        stacks.append(";".join(open_names))
    node = 0
    for _ in range(about["cells"]):
        node += number()
        number(), number()
        lines[stacks[node]] = lines.get(stacks[node], 0) + number()
for line in sorted(lines):
    print(line, lines[line])
