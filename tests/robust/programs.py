"""Programs that nobody compiled: small files whose debug information or symbols stand for gigabytes, or for hours."""
import os
import re
import shutil
import subprocess

from runner import SANITIZED, report, skip, wrong_damaged

LENGTH = 1 << 16
TEXT = f"""
    .text
    .globl _start
    .type _start, @function
_start:
    .skip {LENGTH}, 0x90
    .size _start, . - _start
end:
"""
ABBREVIATIONS = """
    .section .debug_abbrev, "", @progbits
    .uleb128 1, 0x11, 1, 0x11, 1, 0x12, 7, 0, 0          # unit: low_pc, high_pc
    .uleb128 2, 0x2e, 1, 0x03, 8, 0x11, 1, 0x12, 7, 0, 0 # function: name, low_pc, high_pc
    .uleb128 3, 0x0b, 1, 0x01, 0x13, 0, 0                # block: sibling
    .uleb128 4, 0x0b, 0, 0, 0                            # block without anything
    .uleb128 5, 0x1d, 0, 0x55, 0x17, 0, 0                # inlined function: ranges
    .uleb128 0
"""


def debug_info(inside):
    return ABBREVIATIONS + f"""
    .section .debug_info, "", @progbits
info:
    .long info_end - info - 4
    .short 4
    .long .debug_abbrev
    .byte 8
    .uleb128 1
    .quad _start, end - _start
    .uleb128 2
    .asciz "f"
    .quad _start, end - _start
{inside}
    .uleb128 0, 0
info_end:
"""


def own_siblings(depth=40):
    """Blocks in blocks; each one's sibling is its own first child, so that each level is walked twice."""
    blocks = "".join(f"block{i}:\n    .uleb128 3\n    .long block{i + 1} - info\n" for i in range(depth))
    return debug_info(blocks + f"block{depth}:\n    .uleb128 4\n    .uleb128 {', '.join(['0'] * depth)}\n")


def shared_ranges(entries=20000, ranges=6000):
    """Inlined functions with one list of ranges for all of them."""
    return debug_info(f"    .rept {entries}\n    .uleb128 5\n    .long 0\n    .endr\n") + f"""
    .section .debug_ranges, "", @progbits
    .set at, 0
    .rept {ranges}
    .quad at, at + 1
    .set at, at + 2
    .endr
    .quad 0, 0
"""


def shared_name(symbols=300, length=10 << 20):
    """Function after function with one long name for all of them, or its end: written into the table of strings afterwards."""
    functions = "".join(f"    .globl n{i}\n    .type n{i}, @function\n    .set n{i}, _start + {16 * i}\n    .size n{i}, 16\n" for i in range(symbols))
    return functions, length


def go_table(functions=300, length=10 << 20):
    """The same in the table of functions that Go programs have."""
    pairs = "".join(f"    .long {16 * i}, described - functions + {8 * i}\n" for i in range(functions))
    described = "".join(f"    .long {16 * i}, {i}\n" for i in range(functions))
    return f"""
    .section .gopclntab, "a", @progbits
go:
    .long 0xfffffff1
    .byte 0, 0, 1, 8
    .quad {functions}, 0, _start, names - go, names - go, names - go, names - go, functions - go
functions:
{pairs}    .long {16 * functions}, 0
described:
{described}names:
    .skip {length}, 0x6e
"""


def hit_everywhere(maker, path, place):
    """One symbol with a long name, hit at every address: whoever looks at all of the name for each is not done in time."""
    address, offset = text_of(path)
    maker.mmap(7, address, LENGTH, path.encode(), offset)
    for at in range(LENGTH):
        maker.sample(7, [address + at])
    for command, *form in (("fold",), ("report", "--csv")):  # names in tables are shortened
        result = place.run(command, maker.file(), *form)
        whole = b"n" * (9 << 20) in (place.published() or b"")
        report(f"hostile/hit_everywhere/{command}", None if result.status == 0 and whole else f"status {result.status}: {result.err[:300]!r}")


def built(place, name, source):
    path = os.path.join(place.folder, name)
    with open(path + ".s", "w", encoding="ascii") as file:
        file.write(TEXT + source)
    subprocess.run(["as", "--64", path + ".s", "-o", path + ".o"], check=True)
    subprocess.run(["ld", path + ".o", "-o", path], check=True)
    return path


def text_of(path):
    """Address and offset of .text."""
    table = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    return [int(word, 16) for word in re.search(r"\.text +PROGBITS +(\w+) (\w+)", table).groups()]


def lengthen_names(path, length):
    """All symbols get names from one long string, each from another byte on."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    sections = int.from_bytes(data[40:48], "little")
    count = int.from_bytes(data[60:62], "little")
    headers = [sections + 64 * i for i in range(count)]
    field = lambda at, size=8: int.from_bytes(data[at:at + size], "little")
    symtab = next(at for at in headers if field(at + 4, 4) == 2)
    names = headers[field(symtab + 40, 4)]
    for number, at in enumerate(range(field(symtab + 24) + 24, field(symtab + 24) + field(symtab + 32), 24)):
        data[at:at + 4] = number.to_bytes(4, "little")
    data[names + 24:names + 32] = len(data).to_bytes(8, "little")
    data[names + 32:names + 40] = (length + 2).to_bytes(8, "little")
    with open(path, "wb") as file:
        file.write(bytes(data) + b"\0" + b"n" * length + b"\0")


def check(name, maker, path, place, expected, step=16):
    """Samples all over its code; what it says of them, and what is in the folded text."""
    address, offset = text_of(path)
    maker.mmap(7, address, LENGTH, path.encode(), offset)
    for at in range(8, 300 * step, step):
        maker.sample(7, [address + at])
    for command in ("fold", "flame"):
        result = place.run(command, maker.file())
        why = wrong_damaged(command, result, place) or (f"status {result.status}: {result.err[:300]!r}" if result.status else None)
        if not why and not re.search(expected, result.err):
            why = f"no note: {result.err[:300]!r}"
        report(f"hostile/{name}/{command}", why)


def run_all(make_maker, place):
    if not shutil.which("as") or not shutil.which("ld"):
        return skip("hostile/programs", "there is no assembler")
    check("own_siblings", make_maker(), built(place, "siblings", own_siblings()), place, rb"1 compiled unit needs more")
    check("shared_ranges", make_maker(), built(place, "ranges", shared_ranges()), place, rb"1 compiled unit needs more")
    functions, length = shared_name()
    path = built(place, "names", functions)
    lengthen_names(path, length)
    if not SANITIZED:
        check("shared_name", make_maker(), path, place, rb"names expand to more text")
        path = built(place, "go", go_table())
        subprocess.run(["strip", path], check=True)
        check("go_table", make_maker(), path, place, rb"names expand to more text")
        path = built(place, "one", "")
        lengthen_names(path, 10 << 20)
        hit_everywhere(make_maker(), path, place)
    return None
