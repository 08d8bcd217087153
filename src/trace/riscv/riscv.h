/*
 * Private to the room: RISC-V, from bytes to operations.
 *
 * riscv_decode() turns two or four bytes into a `struct instruction`; a compressed instruction is decoded as its full form. The interpreter
 * translates straight runs of them into blocks of `struct op`, each with the address of the function that implements it.
 */
#ifndef WICK_TRACE_RISCV_H
#define WICK_TRACE_RISCV_H

#include "base/base.h"

/* clang-format off */
#define RISCV_BASE(X)                                                                                  \
    X(lui) X(auipc) X(jal) X(jalr) X(beq) X(bne) X(blt) X(bge) X(bltu) X(bgeu)                          \
    X(lb) X(lh) X(lw) X(ld) X(lbu) X(lhu) X(lwu) X(sb) X(sh) X(sw) X(sd)                                \
    X(addi) X(slti) X(sltiu) X(xori) X(ori) X(andi) X(slli) X(srli) X(srai)                             \
    X(add) X(sub) X(sll) X(slt) X(sltu) X(xor) X(srl) X(sra) X(or) X(and)                               \
    X(addiw) X(slliw) X(srliw) X(sraiw) X(addw) X(subw) X(sllw) X(srlw) X(sraw)                         \
    X(fence) X(ecall) X(ebreak) X(csrrw) X(csrrs) X(csrrc)                                              \
    X(mul) X(mulh) X(mulhsu) X(mulhu) X(div) X(divu) X(rem) X(remu)                                     \
    X(mulw) X(divw) X(divuw) X(remw) X(remuw)
#define RISCV_ATOMIC(X)                                                                                \
    X(lr_w) X(sc_w) X(amoswap_w) X(amoadd_w) X(amoxor_w) X(amoand_w) X(amoor_w) X(amomin_w)             \
    X(amomax_w) X(amominu_w) X(amomaxu_w)                                                               \
    X(lr_d) X(sc_d) X(amoswap_d) X(amoadd_d) X(amoxor_d) X(amoand_d) X(amoor_d) X(amomin_d)             \
    X(amomax_d) X(amominu_d) X(amomaxu_d)
#define RISCV_FLOAT(X)                                                                                 \
    X(flw) X(fld) X(fsw) X(fsd)                                                                         \
    X(fmadd_s) X(fmsub_s) X(fnmsub_s) X(fnmadd_s) X(fmadd_d) X(fmsub_d) X(fnmsub_d) X(fnmadd_d)         \
    X(fadd_s) X(fsub_s) X(fmul_s) X(fdiv_s) X(fsqrt_s) X(fadd_d) X(fsub_d) X(fmul_d) X(fdiv_d)          \
    X(fsqrt_d) X(fsgnj_s) X(fsgnjn_s) X(fsgnjx_s) X(fsgnj_d) X(fsgnjn_d) X(fsgnjx_d)                    \
    X(fmin_s) X(fmax_s) X(fmin_d) X(fmax_d) X(fcvt_s_d) X(fcvt_d_s)                                     \
    X(feq_s) X(flt_s) X(fle_s) X(feq_d) X(flt_d) X(fle_d) X(fclass_s) X(fclass_d)                       \
    X(fcvt_w_s) X(fcvt_wu_s) X(fcvt_l_s) X(fcvt_lu_s) X(fcvt_w_d) X(fcvt_wu_d) X(fcvt_l_d) X(fcvt_lu_d) \
    X(fcvt_s_w) X(fcvt_s_wu) X(fcvt_s_l) X(fcvt_s_lu) X(fcvt_d_w) X(fcvt_d_wu) X(fcvt_d_l) X(fcvt_d_lu) \
    X(fmv_x_w) X(fmv_x_d) X(fmv_w_x) X(fmv_d_x)
/* clang-format on */
#define RISCV_ALL(X) RISCV_BASE(X) RISCV_ATOMIC(X) RISCV_FLOAT(X)

enum riscv_op {
    RISCV_illegal,
#define X(name) RISCV_##name,
    RISCV_ALL(X)
#undef X
        RISCV_COUNT,
};

struct instruction {
    uint16_t op;
    uint8_t length; /* in bytes: 2 or 4, also if illegal */
    uint8_t rd, rs1, rs2, rs3;
    uint8_t rounding; /* 0 … 4, 7: as fcsr says */
    int32_t
        imm; /* jumps and branches: relative to this instruction; csr: its number; `rs2` is 1 if rs1 is a constant */
};

/* Decode an instruction. `bits` are its four bytes, or two of them if it is compressed. `xlen` is 32 or 64; floats only with 64. */
struct instruction riscv_decode(uint32_t bits, unsigned xlen);
static inline bool riscv_is_short(uint16_t bits) {
    return (bits & 3) != 3;
}

/* What an instruction does to control flow, by the calling convention. */
enum control {
    CONTROL_NONE,
    CONTROL_BRANCH,
    CONTROL_JUMP,
    CONTROL_CALL,
    CONTROL_RETURN,
    CONTROL_SWAP,
    CONTROL_SYSTEM
};
enum control riscv_control(const struct instruction *instruction);
/* Get how many bytes it loads and stores. */
void riscv_access(const struct instruction *instruction, unsigned *loaded, unsigned *stored);

#endif
