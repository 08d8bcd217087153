"""What a terminal gets: tables as wide as it is, with bars and colours, and nothing raw out of a profile that means something to it."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from options import STACKS, WICK, WORK
import lacking

NAMES = [b"\x1b[31mred", b"\x1b]0;title\x07", b"\x9b2J", b"\xc2\x9b2J", b"bell\x07", b"back\x08\x08", b"\x7fdel", b"\x0e\x0f", b"cr\rover", "\u202egnirts\u202c".encode(),
         b"\xff\xfe", b"wide " + "\u65e5\u672c\u8a9e".encode(), b"long" * 200]
HOSTILE = b"".join(b"%s;%s;leaf %d\n" % (name, name, 10 + i) for i, name in enumerate(NAMES))
SCRIPT = b"".join(b"%s 1/%d [000] 1.000000: 10 cpu-clock: \n\t1 %s+0x1 (/lib/%s.so)\n\n" % (name.replace(b" ", b"_"), 20 + i, name, name)
                  for i, name in enumerate(NAMES[:8]))
EVENTS = [b"\x1b]0;title\x07", b"\xc2\x9b2J\xe2\x80\xae"]
OURS = re.compile(rb"\x1b\[(?:0|\d\d?)m")
PROGRESS = re.compile(rb"\r\x1b\[K(?:wick: [a-z]+ \d+(?: %)?)?")  # shown when a run takes long, as on a busy machine


def event_of(name):
    return b"prog 1/1 [000] 1.000000: 10 %s: \n\t1 leaf+0x1 (/bin/prog)\n\n" % name


def in_terminal(columns, *words, data=STACKS, **more):
    """Everything but progress that `wick words` sends to a terminal of that width."""
    path = os.path.join(WORK, "terminal.input")
    with open(path, "wb") as file:
        file.write(data)
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST  # LF stays LF
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    env = dict({key: value for key, value in os.environ.items() if key != "NO_COLOR"}, TERM="xterm-256color", **more)
    process = subprocess.Popen([WICK, *(path if word == "INPUT" else word for word in words)], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    got = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        got += piece
    os.close(ours)
    assert process.wait() == 0, got[-300:]
    return PROGRESS.sub(b"", got)


def check_quiet(*words, data, table=True):
    """No control character but line ends and our own colours; in a table nothing that turns the text around, either."""
    got = in_terminal(80, *words, data=data)
    got = OURS.sub(b"", got) if table else got
    turns = rb"|\xe2\x80[\xaa-\xae]" if table else b""
    bad = re.search(rb"[^\n]{0,20}(?:[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]" + turns + rb")[^\n]{0,20}", got)
    return f"{bad.group(0)!r} reached the terminal" if bad or len(got) < 100 else None


def check_table():
    for columns in (64, 80, 200):
        got = in_terminal(columns, "report", "--comm-first", "INPUT", data=STACKS + b"main;" + b"wide_name_" * 30 + b" 50\n")
        lines = [OURS.sub(b"", line).decode() for line in got.splitlines()]
        if max(map(len, lines)) > columns:
            return f"{max(map(len, lines))} columns in a terminal of {columns}"
        if not any("\u2588" in line for line in lines) or not OURS.search(got):
            return "there are no bars, or no colours"
        if columns < 200 and not any("\u2026" in line for line in lines):
            return "a name that does not fit is not cut"
    if OURS.search(in_terminal(80, "report", "INPUT", NO_COLOR="1")):
        return "colours in spite of NO_COLOR"
    done = subprocess.run([WICK, "report", "-"], input=STACKS, capture_output=True, check=True)
    return "colours where there is no terminal" if OURS.search(done.stdout) else None


def run_all(report):
    if lacking.terminal():
        print(f"skip terminal: {lacking.terminal()}", flush=True)
        return
    report("terminal/table", check_table())
    for by in ("function", "object", "category"):
        report(f"terminal/hostile {by}", check_quiet("report", "--by", by, "INPUT", data=HOSTILE))
    for by in ("function", "object", "thread", "process"):
        report(f"terminal/hostile script {by}", check_quiet("report", "--from", "perf", "--by", by, "INPUT", data=SCRIPT))
    for form in ("--table", "--csv", "--json", "--folded"):
        report(f"terminal/hostile diff {form}", check_quiet("diff", "INPUT", "INPUT", form, data=HOSTILE, table=form == "--table"))
    for words in (["fold"], ["report", "--csv"], ["report", "--json"]):
        report(f"terminal/hostile {' '.join(words)}", check_quiet(*words, "INPUT", data=HOSTILE, table=False))
    for words in (["fold", "-v", "-o", "/dev/null"], ["flame", "-o", "-"]):  # an event's name is a value's, and a unit
        for event in EVENTS:
            report(f"terminal/hostile event {event[:4]!r} {' '.join(words)}", check_quiet(*words, "--from", "perf", "INPUT", data=event_of(event)))
