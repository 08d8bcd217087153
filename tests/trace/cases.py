"""Small assembly programs and the stacks they must give: name → (text, options, folded or None, status, what is said)."""

END = "\n li a7, 93\n li a0, 0\n ecall\n"


def functions(**bodies):
    text = ".text\n"
    for name, body in bodies.items():
        text += f".globl {name}\n.type {name}, @function\n{name}:\n {body}\n.size {name}, .-{name}\n"
    return text


# Ten loads and eight stores, of which two are both, and two branches.
ACCESSES = """lb a2, 0(a1); lhu a2, 0(a1); lw a2, 0(a1); ld a2, 0(a1); c.lw a2, 0(a1); sb a2, 0(a1); sh a2, 0(a1); c.sw a2, 0(a1); sd a2, 0(a1)
   lr.w a2, (a1); sc.w a3, a2, (a1); amoadd.w a3, a2, (a1); fld fa0, 0(a1); flw fa1, 0(a1); fsw fa1, 0(a1); amoswap.w a3, a2, (a1)
   bnez a1, 1f; nop
1: beqz a1, 1b; ret"""


def accesses(weight, count):
    text = functions(_start="la a1, x; call f" + END, f=ACCESSES) + ".data\n.balign 16\nx: .zero 32\n"
    return text, ["--weight", weight], f"_start;f {count}\n", 0, ""


CASES = {
    "weight-accesses-by-hand": accesses("accesses", 10 + 8),
    "weight-branches-by-hand": accesses("branches", 2),
    "weight-loaded-by-hand": accesses("loaded", 1 + 2 + 4 + 8 + 4 + 4 + 4 + 8 + 4 + 4),
    "weight-stored-by-hand": accesses("stored", 1 + 2 + 4 + 8 + 4 + 4 + 4 + 4),

    "call-and-return": (functions(_start="call f; call f" + END, f="nop; ret"), [], "_start 7\n_start;f 4\n", 0, ""),
    "tail-call-replaces": (functions(_start="call f" + END, f="nop; tail g", g="nop; ret"), [],
                           "_start 5\n_start;f 3\n_start;g 2\n", 0, ""),
    "mutual-tail-calls": (functions(_start="li a1, 5; call f" + END, f="addi a1, a1, -1; beqz a1, 1f; tail g; 1: ret",
                                    g="addi a1, a1, -1; beqz a1, 1f; tail f; 1: ret"), [],
                          "_start 6\n_start;f 11\n_start;g 8\n", 0, ""),
    "tail-call-at-root-nests": (functions(_start="nop; tail f", f="nop" + END), [], "_start 3\n_start;f 4\n", 0, ""),
    "loops-keep-the-stack": (functions(_start="call f" + END, f="li a1, 3; 1: addi a1, a1, -1; bnez a1, 1b; j 2f; nop; 2: ret"), [],
                             "_start 5\n_start;f 9\n", 0, ""),
    "self-tail-recursion": (functions(_start="li a1, 3; call f" + END, f="addi a1, a1, -1; beqz a1, 1f; j f; 1: ret"), [],
                            "_start 6\n_start;f 9\n", 0, ""),
    "recursion-nests": (functions(_start="li a1, 2; call f" + END, f="addi a1, a1, -1; beqz a1, 1f; mv s1, ra; call f; mv ra, s1; 1: ret"),
                        [], "_start 6\n_start;f 7\n_start;f;f 3\n", 0, ""),
    "indirect-call": (functions(_start="la t1, f; jalr t1" + END, f="nop; ret"), [], "_start 6\n_start;f 2\n", 0, ""),
    "jump-table": (functions(_start="call f" + END, f="la t1, 1f; jr t1; nop; 1: ret"), [], "_start 5\n_start;f 4\n", 0, ""),
    "alternate-link-register": (functions(_start="call f" + END, f="jal t0, g; ret", g="nop; jr t0"), [],
                                "_start 5\n_start;f 2\n_start;f;g 2\n", 0, ""),
    "compressed-calls": (functions(_start="la t1, f; c.jalr t1; la t2, f; c.jalr t2" + END, f="jal t0, g; c.jr ra", g="nop; c.jr t0"), [],
                         "_start 9\n_start;f 4\n_start;f;g 4\n", 0, ""),
    "compressed-call-narrow": (functions(_start="c.jal f" + END, f="la t1, g; c.jr t1", g="nop; c.jr ra"), ["-m32"],
                               "_start 4\n_start;f 3\n_start;g 2\n", 0, ""),
    "label-inside-is-no-function": (functions(_start="call f" + END, f="j inside; nop; .globl inside; inside: nop; ret"), [],
                                    "_start 5\n_start;f 3\n", 0, ""),
    "zero-size-symbols": (".text\n.globl _start\n_start: call f" + END + "f: nop; j g\ng: nop; ret\n", [],
                          "_start 5\n_start;f 2\n_start;g 2\n", 0, ""),
    "return-at-root": (functions(_start="la ra, 1f; nop; ret; 1: nop" + END), [], "_start 8\n", 0, ""),
    "two-frames-at-once": (functions(_start="call f" + END, f="mv s1, ra; call g; nop; ret", g="mv ra, s1; ret"), [],
                           "_start 5\n_start;f 3\n_start;f;g 2\n", 0, ""),
    "narrow": (functions(_start="call f" + END, f="nop; ret"), ["-m32"], "_start 5\n_start;f 2\n", 0, ""),
    "ecall-frames": (functions(_start="nop" + END), ["--ecall-frames"], "_start 3\n_start;ecall:exit 1\n", 0, ""),
    "unknown-code-is-an-address": (functions(_start="call 1f" + END) + "1: nop; nop; ret\n", [], "_start 5\n_start;0xN 3\n", 0, ""),
    "jump-to-unknown-code-is-no-tail-call": (functions(_start="call f" + END, f="nop; j 1f") + "1: nop; ret\n", [],
                                             "_start 5\n_start;f 4\n", 0, ""),
    "jump-from-unknown-code-is-no-tail-call": (functions(_start="call 1f" + END, g="nop; ret") + "1: nop; j g\n", [],
                                               "_start 5\n_start;0xN 4\n", 0, ""),
    "nested-function-has-its-own-range": (functions(_start="call f" + END) + """.type f, @function
.type g, @function
f: nop
   j g
g: nop
   j 1f
.size g, .-g
1: nop
   ret
.size f, .-f
""", [], "_start 5\n_start;f 4\n_start;g 2\n", 0, ""),
    "jump-within-around-a-nested-function": (functions(_start="call f" + END) + """.type f, @function
.type g, @function
f: nop
   j 1f
g: nop
   ret
.size g, .-g
1: nop
   ret
.size f, .-f
""", [], "_start 5\n_start;f 4\n", 0, ""),
    "cold-part-is-its-function": (functions(_start="call f" + END) + """.type f, @function
.type f.cold, @function
f: nop
   j f.cold
1: ret
.size f, .-f
f.cold: nop
   j 1b
.size f.cold, .-f.cold
""", [], "_start 5\n_start;f 5\n", 0, ""),
    "longjmp-by-a-jump": (functions(_start="la s2, 1f; mv s3, sp; call f; nop; 1: nop" + END, f="addi sp, sp, -16; mv s1, ra; call g; nop; ret",
                                    g="mv sp, s3; jr s2"), [], "_start 9\n_start;f 4\n_start;f;g 2\n", 0, ""),
    "return-to-nowhere-is-said": (functions(_start="call f" + END, f="nop; la ra, 1f; ret", g="nop; 1: nop" + END), [],
                                  "_start 2\n_start;f 4\n_start;g 4\n", 0, r"1 return matched no call.*at pc 0x[0-9a-f]+"),
    "raw-is-addresses": (functions(_start="call f" + END, f="nop; ret"), ["--raw"], "0xN 5\n0xN;0xN 2\n", 0, ""),
    "missing-instruction": (functions(_start="call f" + END, f="nop; lui t1, 0x700; jr t1"), [],
                            "[partial];_start 2\n[partial];_start;f 3\n", 1,
                            r"jump to 0x700000, which is not executable, pc 0x700000"),
    "prover-print": (functions(_start="la a0, m; li a1, 4; li a7, 1; ecall; li a0, 0; li a7, 93; ecall") + ".data\nm: .ascii \"said\"\n",
                     ["--abi", "prover", "--ecall-frames"], "_start 6\n_start;ecall:halt 1\n_start;ecall:print 1\n", 0, "said"),
    # faults: the counted part is there, the status is 1
    "fault-load": (functions(_start="call f" + END, f="nop; li a1, 16; ld a0, 0(a1); ret"), [], "[partial];_start 2\n[partial];_start;f 2\n", 1,
                   r"load of 8 bytes at 0x10, which is not readable, pc 0x[0-9a-f]+ \(f\+0x[0-9a-f]+\)"),
    "fault-store": (functions(_start="la a1, _start; sw a1, 0(a1)" + END), [], None, 1, "store of 4 bytes at .*not writable"),
    "fault-high": (functions(_start="li a1, -8; ld a0, 0(a1)" + END), [], None, 1, "at 0xfffffffffffffff8"),
    "fault-misaligned": (functions(_start="addi a1, sp, 1; lw a0, 0(a1)" + END), [], None, 1, "misaligned load of 4 bytes"),
    "misaligned-allowed": (functions(_start="addi a1, sp, -9; sd a1, 0(a1); ld a2, 0(a1); bne a1, a2, 1f" + END + "1: ebreak"),
                           ["--misaligned", "allow"], None, 0, ""),
    "fault-misaligned-atomic": (functions(_start="addi a1, sp, 2; amoadd.w a0, a0, (a1)" + END), ["--misaligned", "allow"], None, 1,
                                "misaligned"),
    "fault-illegal": (functions(_start="nop; .word 0xffffffff"), [], "[partial];_start 1\n", 1, "illegal instruction"),
    "fault-zero": (functions(_start="nop; .half 0"), [], "[partial];_start 1\n", 1, "illegal instruction"),
    "fault-break": (functions(_start="ebreak"), [], None, 1, "breakpoint"),
    "fault-jump-into-data": (functions(_start="la t1, x; jr t1") + ".data\nx: .word 0x13\n", [], None, 1, "jump to .*not executable"),
    "fault-jump-away": (functions(_start="li t1, -2; jr t1"), [], None, 1, "jump to 0xfffffffffffffffe"),
    "fault-unknown-call": (functions(_start="li a7, 4000; ecall"), [], None, 1, "unknown system call 4000"),
    "fault-deep-stack": (functions(_start="addi sp, sp, -2048; sd ra, 0(sp); call _start"), ["--stack-size", "1048576"], None, 1,
                         "store of 8 bytes"),
    # a program that writes its own code
    "overwrites-itself": (functions(_start=""".option norvc; li s2, 3; la s1, patch; lw a2, 0(s1); lw a3, other; li s3, 0
1: fence.i
   .balign 4
patch: addi s3, s3, 1
   sw a3, 0(s1); addi s2, s2, -1; bnez s2, 1b
   li a1, 21; bne s3, a1, 2f""" + END + "2: ebreak\n .balign 4\nother: addi s3, s3, 10"), ["-N"], None, 0, ""),
    "overwrites-what-follows": (functions(_start=""".option norvc; la s1, patch; lw a3, other; li a4, 0; sw a3, 0(s1)
   .balign 4
patch: addi a4, a4, 1
   li a1, 7; bne a4, a1, 2f""" + END + "2: ebreak\n .balign 4\nother: addi a4, a4, 7"), ["-N"], None, 0, ""),
    # the prover's convention
    "prover": (functions(_start="""li s1, 0xff000000; lwu s2, 0(s1); mv a2, s2; addi a1, s1, 4; li a0, 1; li a7, 64; ecall
   addi a0, s2, 1; li a7, 93; ecall"""), ["--abi", "prover", "--private-input", "WORK/input"], None, 7, "secret"),
    "prover-panic": (functions(_start="la a0, m; li a1, 4; li a7, 2; ecall") + ".data\nm: .ascii \"oops\"\n", ["--abi", "prover"], None, 1,
                     "guest panic: oops"),
    "prover-unknown": (functions(_start="li a7, 77; ecall"), ["--abi", "prover"], None, 1, "unknown system call 77"),
}
