"""What samply saves beside a profile: functions at the profile's bare addresses."""
import copy
import json
import os

UUID, AGED = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "0A1B2C3D4E5F60718293A4B5C6D7E8F90"
PROFILE = {"meta": {"preprocessedProfileVersion": 60, "categories": [{"name": "User"}]},
           "libs": [{"path": "/x/demo", "debugName": "demo", "breakpadId": AGED, "codeId": None}, {"path": "/x/lib.so", "breakpadId": "F" * 32 + "0"}],
           "shared": {"stackTable": {"prefix": [None, 0, 1, 0], "frame": [0, 1, 2, 3]}, "frameTable": {"func": [0, 1, 2, 3], "address": [16, 32, 48, 16], "inlineDepth": [0, 0, 0, 0]},
                      "funcTable": {"name": [0, 1, 2, 0], "resource": [0, 0, 0, 1]}, "resourceTable": {"lib": [0, 1]}, "stringArray": ["0x10", "0x20", "0x30"]},
           "threads": [{"name": "t", "pid": 1, "tid": 1, "samples": {"stack": [2, 1, 3], "time": [1, 2, 3]}}]}
SIDECAR = {"string_table": ["UNKNOWN", "main", "work", "inlined", "/x/a.c"],
           "data": [{"debug_name": "demo", "debug_id": UUID, "code_id": "", "symbol_table": [
               {"rva": 8, "size": 9, "symbol": 1}, {"rva": 30, "symbol": 2, "frames": [
                   {"function": 3, "file": 4, "line": 7}, {"function": None, "file": None, "line": None}, {"function": None, "file": 4, "line": 9}]}],
               "known_addresses": [[16, 0], [32, 1]]}]}
NAMED, BARE = b"t;main;0x10 1\nt;main;work;inlined 1\nt;main;work;inlined;0x30 1\n", b"t;0x10;0x10 1\nt;0x10;0x20 1\nt;0x10;0x20;0x30 1\n"


def changed(*path, to):
    """The sidecar with one value changed."""
    whole = copy.deepcopy(SIDECAR)
    at = whole
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return json.dumps(whole).encode()


def remove(*paths):
    for path in paths:
        if os.path.exists(path):
            os.remove(path)


def tests(say, wick, write, pack):
    data = json.dumps(PROFILE).encode()
    plain, packed = write("samply.json", data), write("samply.json.gz", pack(data))
    beside = [os.path.join(os.path.dirname(plain), name) for name in ("samply.syms.json", "samply.json.syms.json")]
    remove(*beside)
    say(wick("fold", "-q", plain).stdout == BARE, "samply/no symbols beside it")
    for name, profiles in (("samply.syms.json", [plain, packed]), ("samply.json.syms.json", [packed])):
        made = write(name, json.dumps(SIDECAR).encode())
        for path in profiles:
            done = wick("fold", path)
            say(done.stdout == NAMED and not done.stderr, f"samply/{name} of {os.path.basename(path)}", (done.stdout + done.stderr).decode())
        done = wick("fold", "-q", "--no-inline", profiles[0])
        say(done.stdout == NAMED.replace(b";inlined", b""), f"samply/{name}/without inlines", done.stdout.decode())
        done = wick("report", "-q", "--by", "line", profiles[0])
        say(b"a.c:7" in done.stdout, f"samply/{name}/lines", done.stdout.decode())
        remove(made)
    write("samply.syms.json", changed("data", 0, "debug_id", to=AGED))
    say(wick("fold", "-q", plain).stdout == NAMED, "samply/an id in capital letters")
    write("samply.syms.json", changed("data", 0, "debug_id", to=UUID + "-1"))
    say(wick("fold", "-q", plain).stdout == BARE, "samply/an id of another age")
    write("samply.syms.json", json.dumps({"data": SIDECAR["data"], "string_table": SIDECAR["string_table"]}).encode())
    say(wick("fold", "-q", plain).stdout == NAMED, "samply/strings last")
    settled = write("settled.json", json.dumps({**PROFILE, "meta": {**PROFILE["meta"], "symbolicated": True}}).encode())
    os.replace(write("settled", json.dumps(SIDECAR).encode()), settled.replace(".json", ".syms.json"))
    say(wick("fold", "-q", settled).stdout == BARE, "samply/a profile that has its names")
    hostile(say, wick, write, plain)
    remove(*beside)


def hostile(say, wick, write, plain):
    """The profile is shown as it is, with one line that says why."""
    symbol, address = ("data", 0, "symbol_table", 1), ("data", 0, "known_addresses", 0)
    for name, data in {"empty": b"{}", "no JSON": b"\0" * 100, "a symbol without a name": changed(*symbol, "symbol", to=5), "a huge number": changed(*symbol, "symbol", to=1 << 40),
                       "a negative one": changed(*symbol, "symbol", to=-1), "a line's function": changed(*symbol, "frames", 0, "function", to=99), "its file": changed(*symbol, "frames", 0, "file", to=99),
                       "an address without a symbol": changed(*address, to=[16, 2]), "an address alone": changed(*address, to=[16]), "depth": b'{"data":' + b"[" * 1000000,
                       "cut": json.dumps(SIDECAR).encode()[:-9]}.items():
        write("samply.syms.json", data)
        done = wick("fold", plain)
        say(done.returncode == 0 and done.stdout == BARE and done.stderr.count(b"\n") == 1 and b"beside" in done.stderr, f"samply/hostile/{name}", (done.stdout + done.stderr).decode(errors="replace"))
    whole, bad = json.dumps(SIDECAR).encode(), []
    for at in range(0, len(whole), 7):
        write("samply.syms.json", whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1:])
        done = wick("fold", plain)
        if done.returncode or done.stderr.count(b"\n") > 1:
            bad.append((at, done.returncode, done.stderr[:200]))
    say(not bad, "samply/hostile/flipped bits", str(bad[:3]))
