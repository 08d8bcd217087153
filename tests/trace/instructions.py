"""Assembly programs that execute every instruction of RV64GC (or RV32IMAC) on awkward operands and write all results to
standard output, so that two machines can be compared byte by byte."""

INTEGERS = [0, 1, 2, 3, 31, 63, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
            0x7fffffffffffffff, 0x8000000000000000, 0xffffffffffffffff, 0xfffffffffffffffe, 0x123456789abcdef0]
DOUBLES = [0, 1 << 63, 0x3ff0000000000000, 0xbff8000000000000, 0x7ff0000000000000, 0xfff0000000000000,
           0x7ff8000000000000, 0x7ff0000000000001, 1, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
           0x3ca0000000000001, 0x3ff0000000000001, 0x41dfffffffe00000, 0xc1e0000000200000, 0x43e0000000000000,
           0x4004000000000000, 0xbfe0000000000000, 0x36a0000000000001, 0x380fffffffffffff, 0x47efffffefffffff]
SINGLES = [0, 1 << 31, 0x3f800000, 0xbfc00000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 1, 0x007fffff,
           0x00800000, 0x7f7fffff, 0x33800001, 0x3f800001, 0x4effffff, 0xcf000001, 0x5f000000, 0x40200000]
ROUNDINGS = ["rne", "rtz", "rdn", "rup", "rmm"]

REGISTER = "add sub sll slt sltu xor srl sra or and mul mulh mulhsu mulhu div divu rem remu".split()
REGISTER64 = "addw subw sllw srlw sraw mulw divw divuw remw remuw".split()
IMMEDIATE = [f"{op} a0, a1, {n}" for op in "addi slti sltiu xori ori andi".split() for n in (-2048, -1, 0, 1, 2047)]
SHIFT = [f"{op} a0, a1, {n}" for op in "slli srli srai".split() for n in (0, 1, 31)]
SHIFT64 = [f"{op} a0, a1, {n}" for op in "slli srli srai".split() for n in (32, 63)] + \
          [f"{op} a0, a1, {n}" for op in "slliw srliw sraiw".split() for n in (0, 1, 31)] + \
          [f"addiw a0, a1, {n}" for n in (-2048, -1, 0, 2047)]
SHORT = ["c.li a0, -5", "c.mv a0, a1", "c.nop", "c.lui a0, 0xfffe1", "c.addi a1, 9", "c.slli a1, 3", "c.srli a1, 2",
         "c.srai a1, 1", "c.andi a1, 0x15", "c.add a1, a2", "c.sub a1, a2", "c.xor a1, a2", "c.or a1, a2", "c.and a1, a2",
         "lui a0, 0x80000", "lui a0, 0x12345", "auipc a0, 0", "fence", "fence.i"]
SHORT64 = ["c.addiw a1, 7", "c.addw a1, a2", "c.subw a1, a2", "c.slli a1, 40", "c.srli a1, 33", "c.srai a1, 50"]
AMO = "swap add xor and or min max minu maxu".split()


def head(bits):
    data = "dword" if bits == 64 else "word"
    word, size = ("d", 8) if bits == 64 else ("w", 4)
    values = ", ".join(hex(v if bits == 64 else v & 0xffffffff) for v in INTEGERS)
    return f"""
.macro keep register
    s{word} \\register, 0(s0)
    addi s0, s0, {size}
.endm
.macro keep_flags
    csrr t0, fcsr
    keep t0
.endm
.macro both line:vararg
    la s1, integers
    li s3, {len(INTEGERS)}
1:  la s2, integers
    li s4, {len(INTEGERS)}
2:  l{word} a1, 0(s1)
    l{word} a2, 0(s2)
    li a0, 99
    \\line
    keep a0
    keep a1
    addi s2, s2, {size}
    addi s4, s4, -1
    bnez s4, 2b
    addi s1, s1, {size}
    addi s3, s3, -1
    bnez s3, 1b
.endm
.macro one line:vararg
    la s1, integers
    li s3, {len(INTEGERS)}
1:  l{word} a1, 0(s1)
    li a0, 99
    li a2, 0x1357
    \\line
    keep a0
    keep a1
    addi s1, s1, {size}
    addi s3, s3, -1
    bnez s3, 1b
.endm
.data
.balign 16
integers: .{data} {values}
spare: .zero 256
.text
.globl _start
_start:
.option norelax
    la s0, results
"""


def tail(bits):
    return """
    la a1, results
    sub a2, s0, a1
    li a0, 1
    li a7, 64
    ecall
    li a0, 0
    li a7, 93
    ecall
.bss
.balign 16
results: .zero 16000000
"""


def memory(bits):
    word = "d" if bits == 64 else "w"
    loads = ["lb", "lbu", "lh", "lhu", "lw"] + (["lwu", "ld"] if bits == 64 else [])
    stores = ["sb", "sh", "sw"] + (["sd"] if bits == 64 else [])
    text = ""
    for store in stores:
        text += f"    la t3, spare+64\n    one {store} a1, 16(t3); l{word} a0, 16(t3)\n"
    for load in loads:
        text += f"    la t3, spare+64\n    one s{word} a1, -16(t3); {load} a0, -16(t3)\n"
    text += "    la s5, spare\n    mv a3, s5\n"
    text += "    one c.sw a1, 8(a3); c.lw a0, 8(a3)\n"
    text += "    mv s6, sp; la sp, spare\n    one c.swsp a1, 12(sp); c.lwsp a0, 12(sp); c.addi4spn a2, sp, 16; sub a1, a2, sp\n"
    text += "    c.addi16sp sp, 32; la t4, spare; sub t4, sp, t4; keep t4; mv sp, s6\n"
    if bits == 64:
        text += "    la a3, spare\n    one c.sd a1, 8(a3); c.ld a0, 8(a3)\n"
        text += "    mv s6, sp; la sp, spare\n    one c.sdsp a1, 16(sp); c.ldsp a0, 16(sp)\n    mv sp, s6\n"
    return text


def control():
    text = ""
    for op in "beq bne blt bge bltu bgeu".split():
        text += f"    both li a0, 1; {op} a1, a2, 3f; li a0, 2; 3:\n"
    text += "    one c.beqz a1, 3f; li a0, 5; 3: c.mv a1, a0\n"
    for op in ("c.beqz", "c.bnez"):
        text += f"    one c.mv a4, a1; {op} a4, 3f; li a0, 5; 3:\n"
    text += """    jal a0, 3f
3:  la a1, 3b; sub a0, a0, a1; keep a0
    la t1, 3f; jalr a0, 1(t1); keep zero
3:  la a1, 3b; sub a0, a0, a1; keep a0
    c.j 3f; keep s0
3:  la t1, 3f; c.jalr t1; keep s0
3:  la t1, 3f; c.jr t1; keep s0
3:
"""
    return text


def atomics(bits):
    text = "    la t3, spare\n"
    for suffix in (["w", "d"] if bits == 64 else ["w"]):
        store = "s" + suffix
        load = "l" + suffix
        for op in AMO:
            text += f"    both {store} a1, 0(t3); amo{op}.{suffix} a0, a2, (t3); {load} a1, 0(t3)\n"
        text += f"    both {store} a1, 0(t3); lr.{suffix} a0, (t3); sc.{suffix}.aqrl a1, a2, (t3); add a0, a0, a1; {load} a1, 0(t3)\n"
        text += f"    both sc.{suffix} a0, a2, (t3)\n"
    return text


def integer(bits):
    lines = [f"    both {op} a0, a1, a2\n" for op in REGISTER + (REGISTER64 if bits == 64 else [])]
    lines += [f"    one {line}\n" for line in IMMEDIATE + SHIFT + (SHIFT64 if bits == 64 else [])]
    lines += ["    one " + (line + "; la a1, _start; sub a0, a0, a1" if "auipc" in line else line) + "\n"
              for line in SHORT + (SHORT64 if bits == 64 else [])]
    if bits == 32:
        lines.append("    c.jal 3f\n3:  la a1, 3b; sub a0, ra, a1; keep a0\n")
    return "".join(lines)


def program(bits):
    return head(bits) + integer(bits) + memory(bits) + control() + atomics(bits) + tail(bits)


# ---- floats ----

def loop2(body, table, count, size, load):
    return f"""
    la s1, {table}
    li s3, {count}
1:  la s2, {table}
    li s4, {count}
2:  {load} fa1, 0(s1)
    {load} fa2, 0(s2)
    {load} fa3, {size}(s1)
    csrwi fcsr, 0
    {body}
    keep_flags
    addi s2, s2, {size}
    addi s4, s4, -1
    bnez s4, 2b
    addi s1, s1, {size}
    addi s3, s3, -1
    bnez s3, 1b
"""


def floats():
    text = head(64)
    for suffix, table, count, size, load in (("d", "doubles", len(DOUBLES), 8, "fld"), ("s", "singles", len(SINGLES), 4, "flw")):
        def two(body):
            return loop2(body, table, count, size, load)
        keep = "fmv.x.d a0, fa0; keep a0"
        for rounding in ROUNDINGS:
            for op in ("fadd", "fsub", "fmul", "fdiv"):
                text += two(f"{op}.{suffix} fa0, fa1, fa2, {rounding}; {keep}")
            for op in ("fmadd", "fmsub", "fnmsub", "fnmadd"):
                text += two(f"{op}.{suffix} fa0, fa1, fa2, fa3, {rounding}; {keep}")
            text += two(f"fsqrt.{suffix} fa0, fa1, {rounding}; {keep}")
            for to in ("w", "wu", "l", "lu"):
                text += two(f"fcvt.{to}.{suffix} a0, fa1, {rounding}; keep a0")
        for op in ("fsgnj", "fsgnjn", "fsgnjx", "fmin", "fmax"):
            text += two(f"{op}.{suffix} fa0, fa1, fa2; {keep}")
        for op in ("feq", "flt", "fle"):
            text += two(f"{op}.{suffix} a0, fa1, fa2; keep a0")
        text += two(f"fclass.{suffix} a0, fa1; keep a0")
        text += two(f"fs{'d' if suffix == 'd' else 'w'} fa1, 0(s0); keep zero")
        for of in ("w", "wu", "l", "lu"):
            for rounding in ROUNDINGS:
                if suffix == "d" and of in ("w", "wu"):
                    text += f"    one csrwi fcsr, 0; fcvt.d.{of} fa0, a1; csrr a1, fcsr; fmv.x.d a0, fa0\n"
                else:
                    text += f"    one csrwi fcsr, 0; fcvt.{suffix}.{of} fa0, a1, {rounding}; csrr a1, fcsr; fmv.x.d a0, fa0\n"
    for rounding in ROUNDINGS:
        text += loop2(f"fcvt.s.d fa0, fa1, {rounding}; fmv.x.d a0, fa0; keep a0", "doubles", len(DOUBLES), 8, "fld")
    text += loop2("fcvt.d.s fa0, fa1; fmv.x.d a0, fa0; keep a0", "singles", len(SINGLES), 4, "flw")
    # not boxed: a single read from a double's bits is NaN; moves do not care
    text += loop2("fadd.s fa0, fa1, fa2; fmv.x.d a0, fa0; keep a0; fmv.x.w a0, fa1; keep a0; fsgnj.s fa0, fa1, fa2; "
                  "fmv.x.d a0, fa0; keep a0", "doubles", len(DOUBLES), 8, "fld")
    for mode in range(5):
        text += loop2(f"fsrmi {mode}; fadd.d fa0, fa1, fa2; fdiv.s fa4, fa1, fa2; fmv.x.d a0, fa0; keep a0; frrm a0; keep a0; "
                      "frflags a0; keep a0; fsflags zero; li a0, 0x1f; csrrc a0, fflags, a0; keep a0; csrrsi a0, fflags, 3; keep a0; csrrci a0, fcsr, 1; keep a0",
                      "doubles", len(DOUBLES), 8, "fld")
    text += "    one fmv.d.x fa0, a1; fmv.x.d a0, fa0; fmv.w.x fa0, a1; fmv.x.d a1, fa0\n"
    text += "    la a3, doubles; c.fld fa0, 8(a3); la a4, spare; c.fsd fa0, 8(a4); ld a0, 8(a4); keep a0\n"
    text += "    mv s6, sp; la sp, spare; c.fsdsp fa0, 16(sp); c.fldsp fa1, 16(sp); mv sp, s6; fmv.x.d a0, fa1; keep a0\n"
    text += tail(64)
    text += ".data\n.balign 16\ndoubles: .dword " + ", ".join(map(hex, DOUBLES)) + ", 0x4010000000000000\n"
    text += "singles: .word " + ", ".join(map(hex, SINGLES)) + ", 0x40800000\n"
    return text
