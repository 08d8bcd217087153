"""Every option of `wick flame --help`, on a command line, by what it does to the file that is drawn. An option without a case here fails."""
import base64
import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(HERE, "..", folder) for folder in ("parity", "programs", "robust")]
import fixtures  # noqa: E402
import perffile  # noqa: E402

WICK = os.environ.get("WICK", os.path.join(HERE, "../../build/wick"))
WORK = os.environ.get("WORK", os.path.join(HERE, "../../build", "work", "pictures"))
# Only a recording made now, and by unwinding, can have these, or a server: the groups waits, offcpu, dwarf, python, browser and net look at them.
LIVE = {"wakers", "mark-incomplete", "native-frames", "source", "debuginfod", "no-debuginfod", "debuginfod-limit", "debuginfod-time", "credentials", "allow-partial", "store-timeout"}

STACKS = (b"main;work;inner_loop_of_the_work 60\nmain;idle 30\nmain;tiny 1\nlib::a;lib::b 9\n")
CHANGE = b"main;gone 40 0\nmain;new 0 60\nmain;same 40 40\n"
SCRIPT = b"".join(b"%s %d/%d [%03d] %d.000000: %d %s: \n%s\n" % sample for sample in (
    (b"web", 10, 10, 0, 1, 100, b"cpu-clock", b"\tffff1 do_sys ([kernel.kallsyms])\n\t400 serve+0x1 (/bin/web)\n\t401 main+0x1 (/bin/web)\n"),
    (b"web", 10, 11, 1, 2, 200, b"cpu-clock", b"\t7f1 jitted (/tmp/perf-10.map)\n\t402 rec+0x1 (/bin/web)\n\t402 rec+0x1 (/bin/web)\n\t401 main+0x1 (/bin/web)\n"),
    (b"db", 20, 20, 0, 3, 400, b"cpu-clock", b"\t900 [unknown] (/lib/libx.so)\n\t500 La/B;::f->La/B;::g (/tmp/perf-20.map)\n\t901 [unknown] ([unknown])\n"),
    (b"db", 20, 20, 0, 4, 800, b"page-faults", b"\t903 fault+0x1 (/bin/db)\n")))
VTUNE = b"Function Stack,CPU Time:Self,Module\nTotal,0,\n main,0.5,app\n  work,1.5,lib.so\n"
DTRACE = b"CPU ID\n\n  app`work+0x3\n  app`main+0x1f\n    3\n"
GHC = (b"\tTue Jan  1 00:00 2030 Time and Allocation Profiling Report  (Final)\n\n\t   x +RTS -p -RTS\n\n\ttotal time  =        0.10 secs   (100 ticks @ 1000 us, 1 processor)\n"
       b"\ttotal alloc =   1,000 bytes  (excludes profiling overheads)\n\nCOST CENTRE MODULE    SRC    %time %alloc\n\nMAIN        MAIN      <built-in> 100.0  100.0\n\n\n"
       b"                                    individual      inherited\n"
       b"COST CENTRE MODULE SRC    no. entries %time %alloc  %time %alloc  ticks  bytes\n\n"
       b"MAIN        MAIN   <b>    1         0  40.0   30.0  100.0  100.0     40    300\n"
       b" work       Main   x.hs   2         1  60.0   70.0   60.0   70.0     60    700\n")


class Frame:
    def __init__(self, line):
        self.line = line
        self.title, self.name = re.search(r"<title>(([^<]*) \([^<(]*\))?", line).groups()
        rect = dict(re.findall(r'([\w:]+)="([^"]*)"', re.search(r"<rect[^>]*>", line).group(0)))
        self.y, self.height, self.x, self.width = int(rect["y"]), int(rect["height"]), int(rect["fg:x"]), int(rect["fg:w"])
        self.colour = tuple(int(rect["fill"][at:at + 2], 16) for at in (1, 3, 5))
        label = re.search(r"<text[^>]*>([^<]*)<", line)
        self.label = label.group(1) if label else None


class Picture:
    def __init__(self, text):
        self.text = text
        self.list = [Frame(line) for line in text.splitlines() if re.match(r"<g[ >].*<title>", line)]
        self.frames = {}
        for frame in self.list:
            self.frames.setdefault(frame.name, frame)
        self.names = set(self.frames)

    def __getitem__(self, name):
        return self.frames[name]


def call(*words, data=b"", status=0, cwd=WORK):
    env = dict(os.environ, HOME=os.path.join(WORK, "no-home"))
    done = subprocess.run([WICK, *words], input=data, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == status, f"{' '.join(words)}: status {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}"
    return done.stdout, done.stderr.decode(errors="replace")


def draw(*options, data=STACKS):
    return Picture(call("flame", "--no-javascript", *options, "-o", "-", "-", data=data)[0].decode())


def script(*options):
    return draw("-q", *options, data=SCRIPT)


def recording(name, *options, symbols=True):
    lookup = fixtures.lookup_options(name) if symbols else []
    return Picture(call("flame", "-q", *lookup, *options, "-o", "-", fixtures.unpacked(name, "perf.data"))[0].decode())


def write(name, content):
    with open(os.path.join(WORK, name), "w", encoding="utf-8") as file:
        file.write(content)
    return name


def page(*options, data=STACKS):
    html = call("flame", "--html", *options, "-o", "-", "-", data=data)[0]
    assert html.startswith(b"<!DOCTYPE html>")
    packed = gzip.decompress(base64.b64decode(re.search(rb'id="profile">([^<]*)<', html).group(1)))
    return json.loads(packed[4:4 + struct.unpack("<I", packed[:4])[0]])


def is_blue(frame):
    red, green, blue = frame.colour
    return blue > red + 40 and blue > green + 40


# ---- cases: the options each stands for, in its name ----

def html():
    assert page()["places"][0][0] == "lib::a"


def categories():
    rules = write("rules", "mine: function idle\n")
    assert any(place[:1] + place[2:3] == ["idle", "mine"] for place in page("--categories", rules)["places"])


def flamechart():
    data = b"b;x 1\na;x 2\nb;x 3\n"
    chart = draw("--flamechart", data=data)
    assert [(f.name, f.x) for f in chart.list if f.y == chart["b"].y] == [("b", 0), ("a", 1), ("b", 3)]
    assert ">Flame Chart<" in chart.text and [f.name for f in draw(data=data).list if f.name in "ab"] == ["a", "b"]


def base():
    assert draw("--base", "work", "--base", "lib::b").names == {"all", "work", "inner_loop_of_the_work", "lib::b"}


def title():
    assert '<text id="title"' in draw().text and ">Flame Graph</text>" in draw().text
    assert ">My &lt;own&gt;</text>" in draw("--title", "My <own>").text


def subtitle():
    assert 'id="subtitle"' not in draw().text and ">below</text>" in draw("--subtitle", "below").text


def notes():
    assert re.search(r"<!--[^>]*\nbuilt - -by x\n-->", draw("--notes", "built --by x").text)


def inverted():
    for option in ("--inverted", "-i"):
        assert draw(option)["all"].y < draw(option)["main"].y
    assert draw()["all"].y > draw()["main"].y and ">Icicle Graph<" in draw("-i").text


def reverse():
    picture = draw("--reverse")
    assert {f.name for f in picture.list if f.y == picture["idle"].y} == {"idle", "inner_loop_of_the_work", "tiny", "lib::b"}


def minwidth():
    assert "tiny" in draw().names and "lib::b" in draw("--minwidth", "2").names and "tiny" not in draw("--minwidth", "2").names
    assert "tiny" not in draw("--minwidth", "12px").names and "tiny" in draw("--minwidth", "11px").names


def total():
    assert "idle (30 samples, 15.00%)" in draw("--total", "200").text and "idle (30 samples, 30.00%)" in draw("--total", "7").text


def factor():
    assert "idle (75 samples, 30.00%)" in draw("--factor", "2.5").text


def countname():
    assert "idle (30 ms, 30.00%)" in draw("--countname", "ms").text


def nametype():
    full = call("flame", "--nametype", "Place:", "-o", "-", "-", data=STACKS)[0]
    assert b"Place:" in full and b"Function:" not in full


def rootname():
    assert "everything" in draw("--rootname", "everything").names


def shape():
    assert draw("--shape", "after", data=CHANGE)["new"].width == 60 and "gone" not in draw("--shape", "after", data=CHANGE).names
    assert "new" not in draw("--shape", "before", data=CHANGE).names and {"gone", "new"} < draw("--shape", "both", data=CHANGE).names


def negate():
    assert draw(data=CHANGE)["new"].colour == draw("--negate", data=CHANGE)["gone"].colour[:0] + (255, 100, 100)
    assert draw("--negate", data=CHANGE)["new"].colour == (100, 100, 255)


def colors():
    for option in ("--colors", "-c"):
        assert all(is_blue(frame) for frame in draw(option, "blue").list if frame.name != "all")
    assert not any(is_blue(frame) for frame in draw("-c", "red").list)


def hash_():
    alike = b"abcone 1\nabcone_ 1\nzzz 1\n"
    by_hash, by_name = draw("--hash", "-c", "green", data=alike), draw("-c", "green", data=alike)
    assert by_hash["abcone"].colour == by_hash["abcone_"].colour != by_hash["zzz"].colour
    assert by_name["abcone"].colour != by_name["abcone_"].colour


def random():
    data = b"a;a;a;a;a 1\n"
    assert len({f.colour for f in draw("--random", data=data).list[1:]}) > 1 and len({f.colour for f in draw(data=data).list[1:]}) == 1


def colordiffusion():
    picture = draw("--colordiffusion")
    by_width = sorted({(f.width, f.colour[1]) for f in picture.list})
    assert all(f.colour[0] == 255 and f.colour[1] == f.colour[2] for f in picture.list)
    assert [green for _, green in by_width] == sorted((green for _, green in by_width), reverse=True) and by_width[0][1] > by_width[-1][1]


def cp():
    path = os.path.join(WORK, "palette.map")
    with open(path, "w", encoding="ascii") as file:
        file.write("idle->rgb(1,2,3)\n")
    assert draw("--cp")["idle"].colour == (1, 2, 3)
    with open(path, encoding="ascii") as file:
        assert {line.split("->")[0] for line in file} >= {"idle", "work", "tiny"}
    os.unlink(path)


def palette_file():
    write("other.map", "work->rgb(9,8,7)\n")
    assert draw("--palette-file", "other.map")["work"].colour == (9, 8, 7)


def bgcolors():
    assert draw("--bgcolors", "#123456").text.count("#back{fill:#123456}") == 1
    for name, bottom in (("yellow", "#eeeeb0"), ("blue", "#e0e0ff"), ("green", "#e0ffe0"), ("grey", "#e8e8e8")):
        assert f'stop-color="{bottom}"' in draw("--bgcolors", name).text
    assert "stop-color" not in draw().text


def search_color():
    assert "#frames .m rect{fill:#00ff00}" in draw("--search-color", "#00ff00").text


def uicolor():
    assert "fill:#aa0000;--ink:#aa0000" in draw("--uicolor", "#aa0000").text


def stroke_color():
    assert "#frames rect{stroke:#0000ff" in draw("--stroke-color", "#0000ff").text
    assert draw("--stroke-color", "none").text == draw().text


def width():
    assert re.search(r'<svg [^>]*width="700"', draw("--width", "700").text) and not re.search(r'<svg [^>]*width="700"', draw().text)


def height():
    assert {f.height for f in draw("--height", "30").list} == {29} and {f.height for f in draw().list} == {15}


def fonttype():
    assert "font-family:'Noto Sans',serif" in draw("--fonttype", "Noto Sans,serif").text


def fontsize():
    assert "font-size:20px" in draw("--fontsize", "20").text and len([f for f in draw("--fontsize", "400").list if f.label]) < len([f for f in draw().list if f.label])


def fontwidth():
    assert draw()["lib::b"].label == "lib::b" and draw("--fontwidth", "1.6")["lib::b"].label == "lib…b"


def truncate_text_left():
    name = b"beginning_of_a_very_long_name_that_ends_in_the_end"
    data = name + b" 1\nx 9\n"
    assert draw(data=data)[name.decode()].label.startswith("beginning") and draw("--truncate-text-left", data=data)[name.decode()].label.endswith("the_end")


def encoding():
    assert "caf\u00e9" in draw("--encoding", "ISO-8859-1", data=b"caf\xe9 1\n").names


def nameattr():
    write("attributes", "idle\ttitle=Told & said\thref=http://example.invalid/?a&b\ttarget=_top\tid=the-idle\tclass=quiet\tg_extra=data-g=\"1\"\ta_extra=data-a=\"2\"\n")
    line, = [f.line for f in draw("--nameattr", "attributes").list if "Told" in f.line]
    for part in ("<title>Told &amp; said</title>", 'href="http://example.invalid/?a&amp;b"', 'target="_top"', 'id="the-idle"', 'class="quiet"', 'data-g="1"', 'data-a="2"'):
        assert part in line, part
    assert line.index("<a ") < line.index("<rect") < line.index("</a>")


def no_javascript():
    with_, without = call("flame", "-o", "-", "-", data=STACKS)[0], draw().text
    assert b"<script" in with_ and "<script" not in without


def no_comm():
    assert {"web"} < script().names and not {"web", "db"} & script("--no-comm").names


def each_thread():
    data = "".join(f"w-{i} 10/{i + 11} 1.{i}: 1 cycles: \n\t1 work (/x)\n\n" for i in range(3)).encode()
    assert "w-*" in draw("-q", data=data).names and draw("-q", data=data)["w-*"].width == 3
    assert {"w-0", "w-1", "w-2"} < draw("-q", "--each-thread", data=data).names
    # As Python calls threads: the number is not at the end, and the kernel cuts what follows it.
    data = "".join(f"Thread-{i + 9} (handle)"[:15] + f" 10/{i + 11} 1.{i}: 1 cycles: \n\t1 work (/x)\n\n" for i in range(3)).encode()
    assert draw("-q", data=data)["Thread-*"].width == 3


def show_pid():
    assert {"web-10", "db-20"} < script("--show-pid").names


def show_tid():
    assert {"web-10/10", "web-10/11"} < script("--show-tid").names


def event():
    for option in ("--event", "-e"):
        assert {"fault"} < script(option, "page-faults").names and "serve" not in script(option, "page-faults").names
    assert {"fault", "serve"} < script("--event", "all").names


def comm():
    assert "serve" not in script("--comm", "db").names and "serve" in script("--comm", "db", "--comm", "web").names


def pid():
    for option in ("--pid", "-p"):
        assert script(option, "20")["all"].width == 400


def tid():
    for option in ("--tid", "-t"):
        assert script(option, "11,20")["all"].width == 600


def cpu():
    assert script("--cpu", "1")["all"].width == 200


def time():
    assert script("--time", "1.5,2.5")["all"].width == 200 and script("--time", "1.5,")["all"].width == 600


def off_cpu():
    """Waits are blue, every one of them, and say so."""
    picture = recording("off-cpu", "--off-cpu")
    assert {"wait_disk", "wait_pipe", "wait_sleep"} & picture.names and ">Off-CPU Time<" in picture.text
    frames = [f for f in picture.list if f.name != "all"]
    assert len(frames) > 5 and all(is_blue(f) for f in frames), [f.name for f in frames if not is_blue(f)]
    assert not is_blue(recording("off-cpu")["main"])
    assert " ns, " in picture["wait_disk"].title and recording("off-cpu", "--off-cpu", "-c", "red")["wait_disk"].colour[0] >= 200


def on_cpu():
    assert recording("off-cpu", "--on-cpu").text == recording("off-cpu").text != recording("off-cpu", "--off-cpu").text


def off_cpu_diff():
    """What is compared is waiting, in its unit; its colours are those of a comparison."""
    data, lookup = fixtures.unpacked("off-cpu", "perf.data"), fixtures.lookup_options("off-cpu")
    picture = Picture(call("diff", "-q", "--off-cpu", *lookup, data, data, "-o", "-")[0].decode())
    assert ">Differential Off-CPU Time<" in picture.text and " ns, " in picture["wait_disk"].title and picture["wait_disk"].colour == (250, 250, 250)
    table = call("diff", "-q", "--off-cpu", *lookup, "--table", data, data)[0].decode()
    assert re.search(r" m?s before, [0-9.]+ m?s after, ×1\.00: time in all\n$", table), table
    assert ">Differential Wall Time<" in call("diff", "-q", "--wall", *lookup, data, data, "-o", "-")[0].decode()


def show_state():
    assert {"[on-cpu]"} < recording("off-cpu", "--wall", "--show-state").names


def wall():
    waits, both = recording("off-cpu", "--off-cpu")["all"].width, recording("off-cpu", "--wall")["all"].width
    runs = recording("off-cpu")["all"].width
    assert both == waits + runs


def min_():
    whole, long = recording("off-cpu", "--off-cpu"), recording("off-cpu", "--off-cpu", "--min", "30ms")
    assert "wait_disk" in long.names and "wait_pipe" in whole.names and "wait_pipe" not in long.names


def max_():
    short = recording("off-cpu", "--off-cpu", "--max", "30ms")
    assert "wait_pipe" in short.names and "wait_disk" not in short.names


def srcline():
    assert any(re.fullmatch(r"\w+:plain\.c:\d+", name) for name in recording("c", "--srcline").names if name)


def marks(*wanted):
    return {line.group(1) for option in wanted for line in re.finditer(r'fg:mark="(.)"', script(option).text)}


def mark_kernel():
    assert marks("--mark-kernel") == {"k"}


def mark_jit():
    assert marks("--mark-jit") == {"j"}


def mark_inline():
    assert marks("--mark-inline") == {"i"}


def mark_all():
    assert marks("--mark-all") == {"k", "j", "i"} and not re.search("fg:mark", script().text)


def addrs():
    assert "[libx.so &lt;900&gt;]" in script("--addrs").names and "[libx.so]" in script().names


def skip_after():
    assert script("--skip-after", "serve").names >= {"serve", "do_sys"} and "main" not in script("--skip-after", "serve", "--skip-after", "rec").names


def with_():
    assert draw("--with", "idle").names >= {"main", "idle"} and not draw("--with", "idle").names & {"work", "tiny", "lib::a"}


def without():
    assert draw("--without", "idle")["all"].width == 70 and "idle" not in draw("--without", "idle").names


def keep_unknown():
    assert "[unknown]" in script("--keep-unknown").names and "[unknown]" not in script().names


def weight():
    assert script("--weight", "samples")["all"].width == 3 and script("--weight", "period")["all"].width == 700


def fold_recursion():
    assert [f.name for f in script().list].count("rec") == 2 and [f.name for f in script("--fold-recursion").list].count("rec") == 1


def max_depth():
    assert draw("--max-depth", "2").names == {"all", "main", "work", "idle", "tiny", "lib::a", "lib::b"} and draw("--max-depth", "2")["work"].width == 60


def symfs():
    empty = os.path.join(WORK, "empty")
    os.makedirs(empty, exist_ok=True)
    with_, without = recording("c"), recording("c", "--symfs", empty, symbols=False)
    assert "main" in with_.names and "main" not in without.names


def kallsyms():
    symbols = ["--symfs", fixtures.SYMFS]
    known = recording("kernel-only").names
    table = write("nothing", "ffffffff81000000 T only_this\n")
    assert "only_this" not in known and "only_this" in recording("kernel-only", *symbols, "--kallsyms", table, symbols=False).names


def vmlinux():
    data = open(fixtures.unpacked("kernel-only", "perf.data"), "rb").read()
    at = data.index(b"[kernel.kallsyms]\0", len(data) // 2)  # in the header's list of build ids, behind 20 bytes of it and its size
    with open(os.path.join(WORK, "kernel.s"), "w", encoding="ascii") as out:
        out.write(".globl _text, all_of_it\n_text:\n.type all_of_it,@function\nall_of_it: .skip 0x2000000\n.size all_of_it,.-all_of_it\n")
    subprocess.run(["as", "kernel.s", "-o", "kernel.o"], cwd=WORK, check=True)
    names = []
    for build_id in (data[at - 24:at - 4], bytes(20)):
        subprocess.run(["ld", "-Ttext=0xffffffff81000000", "-e", "0", "-z", "max-page-size=4096", "--build-id=0x" + build_id.hex(), "kernel.o", "-o", "vmlinux"], cwd=WORK, check=True)
        names.append(recording("kernel-only", "--vmlinux", os.path.join(WORK, "vmlinux")).names)
    assert "all_of_it" in names[0] and "all_of_it" not in names[1]


def debug_dir():
    """The C library's local functions are in its debug file alone."""
    bare, library = os.path.join(WORK, "bare"), "/usr/lib/x86_64-linux-gnu/libc.so.6"
    os.makedirs(bare + os.path.dirname(library), exist_ok=True)
    shutil.copy(fixtures.SYMFS + library, bare + library)
    folders = bare + ":" + fixtures.SYMFS + "/usr/lib/debug/"
    without, with_ = (recording("c", "--symfs", bare, *more, symbols=False).names for more in ([], ["--debug-dir", folders]))
    assert "__libc_start_call_main" not in without and "__libc_start_call_main" in with_


def no_demangle():
    assert any(name and name.startswith("_Z") for name in recording("cpp", "--no-demangle").names) and not any(name and name.startswith("_Z") for name in recording("cpp").names)


def no_inline():
    assert len(recording("c", "--no-inline").list) < len(recording("c").list)


def comm_first():
    table = call("report", "--csv", "-", data=STACKS)[0], call("report", "--csv", "--comm-first", "-", data=STACKS)[0]
    assert b'"main"' in table[0] and b'"main"' not in table[1]
    bare, whole = draw("--comm-first", "--no-comm"), draw()
    assert bare["all"].y - bare["work"].y == whole["all"].y - whole["main"].y


def no_modules():
    assert "app`main" in draw(data=VTUNE).names and "main" in draw("--no-modules", data=VTUNE).names


def keep_offsets():
    assert "app`main" in draw("--from", "dtrace", data=DTRACE).names and "app`main+0x1f" in draw("--from", "dtrace", "--keep-offsets", data=DTRACE).names


def ghc():
    got = {column: draw("--from", "ghcprof", "--ghc", column, data=GHC)["Main.work"].width for column in ("time", "ticks", "bytes")}
    assert got == {"time": 600, "ticks": 60, "bytes": 700}, got


def output():
    for option in ("--output", "-o"):
        assert call("flame", "-q", "-", option, "named.svg", data=STACKS)[0] == b"" and os.path.getsize(os.path.join(WORK, "named.svg")) > 1000
        os.unlink(os.path.join(WORK, "named.svg"))
    assert call("flame", "-", data=STACKS)[0] == b"flamegraph.svg\n"


def jobs():
    for option in ("--jobs", "-j"):
        assert call("flame", option, "0x", "-", status=2, data=STACKS)[1] and draw(option, "3").text == draw(option, "1").text


def from_():
    assert "a" in draw("--from", "recursive", data=b"a;b 1\n").names and call("flame", "--from", "gdb", "-", data=STACKS, status=1)


def strict():
    file = perffile.PerfFile(fixtures.read("c", "perf.data"))
    cut = file.data[:file.records[-3][0] + 12]  # inside a record
    call("flame", "-o", "cut.svg", "-", data=cut)
    os.unlink(os.path.join(WORK, "cut.svg"))
    call("flame", "--strict", "-o", "cut.svg", "-", data=cut, status=1)
    assert not os.path.exists(os.path.join(WORK, "cut.svg"))


def compat():
    data = b"x 1/1 1.0: 1 cycles: \n\t1 a->b (/x (deleted))\n\n"
    assert draw("-q", data=data).names != draw("-q", "--compat=inferno", data=data).names


def quiet():
    bad = STACKS + b"bad line\n"
    for option in ("--quiet", "-q"):
        assert call("flame", option, "-o", "-", "-", data=bad)[1] == ""
    assert "bad line" in call("flame", "-o", "-", "-", data=bad)[1]


def by():
    names = script("--by", "pid,comm").names
    assert {"10", "20", "web", "db"} <= names and "web" not in script("--by", "tid").names
    assert "/bin/web" in script("--by", "object").names and "serve" not in script("--by", "object").names


def label():
    assert script("--label", "comm=d*")["all"].width == 400
    assert script("--label", "comm=d*", "--label", "comm=web")["all"].width == 700


def set_label():
    assert "shop" in script("--set-label", "service=shop", "--by", "service").names and "shop" not in script("--set-label", "service=shop").names


def value():
    assert script("--value", "samples")["all"].width == 3 and script("--value", "page-faults")["all"].width == 800


def focus():
    assert script("--focus", "^ser.e$")["all"].width == 100 and script("--focus", "^(serve|rec)$")["all"].width == 300


def ignore():
    assert script("--ignore", "^ser.e$")["all"].width == 600


def hide():
    picture = script("--hide", "^rec$")
    assert "rec" not in picture.names and "jitted" in picture.names and picture["all"].width == 700


def root():
    picture = script("--root", "^serve$")
    assert "main" not in picture.names and picture["serve"].width == 100


def kernel_only():
    assert "serve" not in script("--kernel-only").names and "do_sys" in script("--kernel-only").names


def user_only():
    assert "serve" in script("--user-only").names and "do_sys" not in script("--user-only").names


def strip_templates():
    assert "f" in {name[:1] for name in draw("--strip-templates", data=b"main;f<int> 3\n").names} and "f<int>" not in draw("--strip-templates", data=b"main;f<int> 3\n").names


def strip_arguments():
    assert "f(int)" not in draw("--strip-arguments", data=b"main;f(int) 3\n").names and "f(int)" in draw(data=b"main;f(int) 3\n").names


def verbose():
    for option in ("--verbose", "-v"):
        assert len(call("flame", option, "-o", os.devnull, fixtures.unpacked("c", "perf.data"))[1]) > len(call("flame", "-o", os.devnull, fixtures.unpacked("c", "perf.data"))[1])


def no_sandbox():
    """tests/sandbox shows what it turns off; the picture is the same."""
    assert draw("--no-sandbox").text == draw().text
    assert "sandbox" in call("flame", "-v", "-o", os.devnull, "-", data=STACKS)[1] and "sandbox" not in call("flame", "-v", "--no-sandbox", "-o", os.devnull, "-", data=STACKS)[1]


def spare():
    """Peers' names for what wick does anyway are taken."""
    for option in ("--deterministic", "--truncate-text-right", "--pretty-xml", "--no-sort"):
        assert draw(option).text == draw().text


CASES = {"hash": hash_, "min": min_, "max": max_, "from": from_, "with": with_}
CASES.update({function.__name__.replace("_", "-"): function for function in (
    html, categories, flamechart, base, title, subtitle, notes, inverted, reverse, minwidth, total, factor, countname, nametype, rootname, shape, negate, colors, random,
    colordiffusion, cp, palette_file, bgcolors, search_color, uicolor, stroke_color, width, height, fonttype, fontsize, fontwidth, truncate_text_left, encoding, nameattr,
    no_javascript, no_comm, each_thread, show_pid, show_tid, show_state, event, comm, pid, tid, cpu, time, off_cpu, on_cpu, off_cpu_diff, wall, srcline, mark_kernel, mark_jit, mark_inline,
    mark_all, addrs, skip_after, without, keep_unknown, weight, fold_recursion, max_depth, symfs, kallsyms, vmlinux, debug_dir, no_demangle, no_inline, comm_first, no_modules, keep_offsets, ghc,
    output, jobs, strict, compat, quiet, verbose, no_sandbox, spare, by, label, set_label, value, focus, ignore, hide, root, kernel_only, user_only, strip_templates, strip_arguments)})


def run_all(report):
    fixtures.unpack()
    named = set(re.findall(r"^  (?:-\w, |    )--([\w-]+)", call("flame", "--help=all")[0].decode(), re.MULTILINE))
    untested = named - set(CASES) - LIVE
    report("options/all", f"no case for {', '.join(sorted(untested))}" if untested or len(named) < 60 else None)
    for name, case in CASES.items():
        why = None
        try:
            case()
        except (AssertionError, KeyError, ValueError) as error:
            line = error.__traceback__.tb_next or error.__traceback__
            why = f"line {line.tb_lineno}: {type(error).__name__} {error}"
        report("options/" + name, why)
