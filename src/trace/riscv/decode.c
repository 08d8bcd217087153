/*
 * Decode RV64GC and RV32IMAC. One function for each major opcode; compressed instructions are decoded as their full forms, so only their
 * length is visible after the decoder.
 */
#include "trace/riscv/riscv.h"

#define REJECT ((struct instruction){.op = RISCV_illegal})

static inline uint32_t field(uint32_t bits, unsigned low, unsigned width) {
    return (bits >> low) & ((1u << width) - 1);
}

static inline int32_t sign_extend(uint32_t value, unsigned width) {
    return (int32_t)(value << (32 - width)) >> (32 - width);
}

static int32_t imm_i(uint32_t bits) {
    return (int32_t)bits >> 20;
}

static int32_t imm_s(uint32_t bits) {
    return ((int32_t)bits >> 25) * 32 + (int32_t)field(bits, 7, 5);
}

static int32_t imm_b(uint32_t bits) {
    return sign_extend(field(bits, 31, 1) << 12 | field(bits, 7, 1) << 11 |
                           field(bits, 25, 6) << 5 | field(bits, 8, 4) << 1,
                       13);
}

static int32_t imm_j(uint32_t bits) {
    return sign_extend(field(bits, 31, 1) << 20 | field(bits, 12, 8) << 12 |
                           field(bits, 20, 1) << 11 | field(bits, 21, 10) << 1,
                       21);
}

/* ---- four bytes --------------------------------------------------------------------------- */

static struct instruction with_op(uint32_t bits, unsigned op, int32_t imm) {
    return (struct instruction){.op = (uint16_t)op,
                                .rd = (uint8_t)field(bits, 7, 5),
                                .rs1 = (uint8_t)field(bits, 15, 5),
                                .rs2 = (uint8_t)field(bits, 20, 5),
                                .rs3 = (uint8_t)field(bits, 27, 5),
                                .rounding = (uint8_t)field(bits, 12, 3),
                                .imm = imm};
}

static struct instruction decode_load(uint32_t bits, unsigned xlen) {
    static const uint16_t ops[8] = {RISCV_lb,  RISCV_lh,  RISCV_lw,  RISCV_ld,
                                    RISCV_lbu, RISCV_lhu, RISCV_lwu, RISCV_illegal};
    unsigned kind = field(bits, 12, 3);
    if (xlen == 32 && (kind == 3 || kind == 6))
        return REJECT;
    return with_op(bits, ops[kind], imm_i(bits));
}

static struct instruction decode_store(uint32_t bits, unsigned xlen) {
    unsigned kind = field(bits, 12, 3);
    if (kind > (xlen == 64 ? 3 : 2))
        return REJECT;
    return with_op(bits, RISCV_sb + kind, imm_s(bits));
}

static struct instruction decode_branch(uint32_t bits) {
    static const uint16_t ops[8] = {RISCV_beq, RISCV_bne, 0,          0,
                                    RISCV_blt, RISCV_bge, RISCV_bltu, RISCV_bgeu};
    return with_op(bits, ops[field(bits, 12, 3)], imm_b(bits));
}

/* Shifts by a constant: six bits in 64-bit mode, five in 32-bit mode and for words. */
static struct instruction decode_shift(uint32_t bits, unsigned width, unsigned left, unsigned right,
                                       unsigned arithmetic) {
    unsigned upper = bits >> (20 + width), mark = 0x400u >> width;
    int32_t amount = (int32_t)field(bits, 20, width);
    if (field(bits, 12, 3) == 1)
        return upper ? REJECT : with_op(bits, left, amount);
    if (upper == mark)
        return with_op(bits, arithmetic, amount);
    return upper ? REJECT : with_op(bits, right, amount);
}

static struct instruction decode_op_imm(uint32_t bits, unsigned xlen) {
    static const uint16_t ops[8] = {RISCV_addi, 0, RISCV_slti, RISCV_sltiu,
                                    RISCV_xori, 0, RISCV_ori,  RISCV_andi};
    unsigned kind = field(bits, 12, 3);
    if (kind == 1 || kind == 5)
        return decode_shift(bits, xlen == 64 ? 6 : 5, RISCV_slli, RISCV_srli, RISCV_srai);
    return with_op(bits, ops[kind], imm_i(bits));
}

static struct instruction decode_op_imm_word(uint32_t bits) {
    unsigned kind = field(bits, 12, 3);
    if (kind == 0)
        return with_op(bits, RISCV_addiw, imm_i(bits));
    if (kind == 1 || kind == 5)
        return decode_shift(bits, 5, RISCV_slliw, RISCV_srliw, RISCV_sraiw);
    return REJECT;
}

static struct instruction decode_op(uint32_t bits) {
    static const uint16_t plain[8] = {RISCV_add, RISCV_sll, RISCV_slt, RISCV_sltu,
                                      RISCV_xor, RISCV_srl, RISCV_or,  RISCV_and};
    unsigned kind = field(bits, 12, 3);
    switch (bits >> 25) {
    case 0:
        return with_op(bits, plain[kind], 0);
    case 1:
        return with_op(bits, RISCV_mul + kind, 0);
    case 0x20:
        return kind == 0   ? with_op(bits, RISCV_sub, 0)
               : kind == 5 ? with_op(bits, RISCV_sra, 0)
                           : REJECT;
    }
    return REJECT;
}

static struct instruction decode_op_word(uint32_t bits) {
    static const uint16_t plain[8] = {RISCV_addw, RISCV_sllw, 0, 0, 0, RISCV_srlw, 0, 0};
    static const uint16_t times[8] = {RISCV_mulw, 0,           0,          0,
                                      RISCV_divw, RISCV_divuw, RISCV_remw, RISCV_remuw};
    unsigned kind = field(bits, 12, 3);
    switch (bits >> 25) {
    case 0:
        return with_op(bits, plain[kind], 0);
    case 1:
        return with_op(bits, times[kind], 0);
    case 0x20:
        return kind == 0   ? with_op(bits, RISCV_subw, 0)
               : kind == 5 ? with_op(bits, RISCV_sraw, 0)
                           : REJECT;
    }
    return REJECT;
}

static struct instruction decode_system(uint32_t bits) {
    unsigned kind = field(bits, 12, 3);
    if (kind == 0)
        return bits == 0x73       ? with_op(bits, RISCV_ecall, 0)
               : bits == 0x100073 ? with_op(bits, RISCV_ebreak, 0)
                                  : REJECT;
    if (kind == 4)
        return REJECT;
    struct instruction i = with_op(bits, RISCV_csrrw + (kind & 3) - 1, (int32_t)(bits >> 20));
    i.rs2 = kind > 4;
    return i;
}

static struct instruction decode_amo(uint32_t bits, unsigned xlen) {
    static const uint8_t order[32] = {[2] = 1, [3] = 2,  [1] = 3,  [0] = 4,   [4] = 5,  [12] = 6,
                                      [8] = 7, [16] = 8, [20] = 9, [24] = 10, [28] = 11};
    unsigned kind = order[bits >> 27], width = field(bits, 12, 3);
    if (!kind || (width != 2 && (width != 3 || xlen == 32)) || (kind == 1 && field(bits, 20, 5)))
        return REJECT;
    return with_op(bits, (width == 2 ? RISCV_lr_w : RISCV_lr_d) + kind - 1, 0);
}

/* ---- floats ------------------------------------------------------------------------------- */

static struct instruction rounded(uint32_t bits, unsigned op) {
    unsigned rounding = field(bits, 12, 3);
    return rounding == 5 || rounding == 6 ? REJECT : with_op(bits, op, 0);
}

static struct instruction decode_float_memory(uint32_t bits, bool is_store) {
    unsigned kind = field(bits, 12, 3);
    if (kind != 2 && kind != 3)
        return REJECT;
    return is_store ? with_op(bits, kind == 2 ? RISCV_fsw : RISCV_fsd, imm_s(bits))
                    : with_op(bits, kind == 2 ? RISCV_flw : RISCV_fld, imm_i(bits));
}

static struct instruction decode_fused(uint32_t bits) {
    unsigned format = field(bits, 25, 2);
    if (format > 1)
        return REJECT;
    return rounded(bits, (format ? RISCV_fmadd_d : RISCV_fmadd_s) + field(bits, 2, 2));
}

/* Conversions between integers and floats: rs2 selects the integer type. */
static struct instruction decode_convert(uint32_t bits, unsigned first) {
    unsigned kind = field(bits, 20, 5);
    return kind > 3 ? REJECT : rounded(bits, first + kind);
}

static struct instruction by_kind(uint32_t bits, unsigned first, unsigned count) {
    unsigned kind = field(bits, 12, 3);
    return kind < count ? with_op(bits, first + kind, 0) : REJECT;
}

static struct instruction decode_compare(uint32_t bits, bool is_double) {
    static const uint16_t ops[2][3] = {{RISCV_fle_s, RISCV_flt_s, RISCV_feq_s},
                                       {RISCV_fle_d, RISCV_flt_d, RISCV_feq_d}};
    unsigned kind = field(bits, 12, 3);
    return kind < 3 ? with_op(bits, ops[is_double][kind], 0) : REJECT;
}

static struct instruction decode_move_or_class(uint32_t bits, bool is_double) {
    unsigned kind = field(bits, 12, 3);
    if (field(bits, 20, 5) || kind > 1)
        return REJECT;
    if (kind == 1)
        return with_op(bits, is_double ? RISCV_fclass_d : RISCV_fclass_s, 0);
    return with_op(bits, is_double ? RISCV_fmv_x_d : RISCV_fmv_x_w, 0);
}

static struct instruction decode_float(uint32_t bits) {
    bool d = field(bits, 25, 1);
    if (field(bits, 26, 1))
        return REJECT; /* half and quad */
    unsigned rs2 = field(bits, 20, 5);
    switch (bits >> 27) {
    case 0:
    case 1:
    case 2:
    case 3:
        return rounded(bits, (d ? RISCV_fadd_d : RISCV_fadd_s) + (bits >> 27));
    case 4:
        return by_kind(bits, d ? RISCV_fsgnj_d : RISCV_fsgnj_s, 3);
    case 5:
        return by_kind(bits, d ? RISCV_fmin_d : RISCV_fmin_s, 2);
    case 8:
        return rs2 != !d ? REJECT : rounded(bits, d ? RISCV_fcvt_d_s : RISCV_fcvt_s_d);
    case 11:
        return rs2 ? REJECT : rounded(bits, d ? RISCV_fsqrt_d : RISCV_fsqrt_s);
    case 20:
        return decode_compare(bits, d);
    case 24:
        return decode_convert(bits, d ? RISCV_fcvt_w_d : RISCV_fcvt_w_s);
    case 26:
        return decode_convert(bits, d ? RISCV_fcvt_d_w : RISCV_fcvt_s_w);
    case 28:
        return decode_move_or_class(bits, d);
    case 30:
        return rs2 || field(bits, 12, 3) ? REJECT
                                         : with_op(bits, d ? RISCV_fmv_d_x : RISCV_fmv_w_x, 0);
    }
    return REJECT;
}

static struct instruction decode_long(uint32_t bits, unsigned xlen) {
    bool is64 = xlen == 64;
    switch (field(bits, 2, 5)) {
    case 0x00:
        return decode_load(bits, xlen);
    case 0x01:
        return is64 ? decode_float_memory(bits, false) : REJECT;
    case 0x03: /* fence, and fence.i, which need nothing: stores handle it */
        return field(bits, 12, 3) < 2 ? with_op(bits, RISCV_fence, 0) : REJECT;
    case 0x04:
        return decode_op_imm(bits, xlen);
    case 0x05:
        return with_op(bits, RISCV_auipc, (int32_t)(bits & 0xfffff000));
    case 0x06:
        return is64 ? decode_op_imm_word(bits) : REJECT;
    case 0x08:
        return decode_store(bits, xlen);
    case 0x09:
        return is64 ? decode_float_memory(bits, true) : REJECT;
    case 0x0b:
        return decode_amo(bits, xlen);
    case 0x0c:
        return decode_op(bits);
    case 0x0d:
        return with_op(bits, RISCV_lui, (int32_t)(bits & 0xfffff000));
    case 0x0e:
        return is64 ? decode_op_word(bits) : REJECT;
    case 0x10:
    case 0x11:
    case 0x12:
    case 0x13:
        return is64 ? decode_fused(bits) : REJECT;
    case 0x14:
        return is64 ? decode_float(bits) : REJECT;
    case 0x18:
        return decode_branch(bits);
    case 0x19:
        return field(bits, 12, 3) ? REJECT : with_op(bits, RISCV_jalr, imm_i(bits));
    case 0x1b:
        return with_op(bits, RISCV_jal, imm_j(bits));
    case 0x1c:
        return decode_system(bits);
    }
    return REJECT;
}

/* ---- two bytes ---------------------------------------------------------------------------- */

static struct instruction short_op(unsigned op, unsigned rd, unsigned rs1, unsigned rs2,
                                   int32_t imm) {
    return (struct instruction){.op = (uint16_t)op,
                                .rd = (uint8_t)rd,
                                .rs1 = (uint8_t)rs1,
                                .rs2 = (uint8_t)rs2,
                                .imm = imm};
}

/* Registers x8 … x15, which three bits can name. */
static unsigned low_register(uint32_t bits, unsigned low) {
    return 8 + field(bits, low, 3);
}

static uint32_t offset_word(uint32_t b) {
    return field(b, 6, 1) << 2 | field(b, 10, 3) << 3 | field(b, 5, 1) << 6;
}

static uint32_t offset_double(uint32_t b) {
    return field(b, 10, 3) << 3 | field(b, 5, 2) << 6;
}

static int32_t imm6(uint32_t b) {
    return sign_extend(field(b, 12, 1) << 5 | field(b, 2, 5), 6);
}

static struct instruction decode_short0(uint32_t b, unsigned xlen) {
    unsigned low = low_register(b, 2), base = low_register(b, 7);
    bool is64 = xlen == 64;
    switch (b >> 13) {
    case 0: {
        uint32_t imm =
            field(b, 11, 2) << 4 | field(b, 7, 4) << 6 | field(b, 6, 1) << 2 | field(b, 5, 1) << 3;
        return imm ? short_op(RISCV_addi, low, 2, 0, (int32_t)imm) : REJECT;
    }
    case 1:
        return is64 ? short_op(RISCV_fld, low, base, 0, (int32_t)offset_double(b)) : REJECT;
    case 2:
        return short_op(RISCV_lw, low, base, 0, (int32_t)offset_word(b));
    case 3:
        return is64 ? short_op(RISCV_ld, low, base, 0, (int32_t)offset_double(b)) : REJECT;
    case 5:
        return is64 ? short_op(RISCV_fsd, 0, base, low, (int32_t)offset_double(b)) : REJECT;
    case 6:
        return short_op(RISCV_sw, 0, base, low, (int32_t)offset_word(b));
    case 7:
        return is64 ? short_op(RISCV_sd, 0, base, low, (int32_t)offset_double(b)) : REJECT;
    }
    return REJECT;
}

static int32_t short_jump(uint32_t b) {
    return sign_extend(field(b, 12, 1) << 11 | field(b, 11, 1) << 4 | field(b, 9, 2) << 8 |
                           field(b, 8, 1) << 10 | field(b, 7, 1) << 6 | field(b, 6, 1) << 7 |
                           field(b, 3, 3) << 1 | field(b, 2, 1) << 5,
                       12);
}

static int32_t short_branch(uint32_t b) {
    return sign_extend(field(b, 12, 1) << 8 | field(b, 10, 2) << 3 | field(b, 5, 2) << 6 |
                           field(b, 3, 2) << 1 | field(b, 2, 1) << 5,
                       9);
}

static struct instruction decode_short_arithmetic(uint32_t b, unsigned xlen) {
    static const uint16_t plain[8] = {RISCV_sub,  RISCV_xor,  RISCV_or, RISCV_and,
                                      RISCV_subw, RISCV_addw, 0,        0};
    unsigned rd = low_register(b, 7), kind = field(b, 10, 2);
    uint32_t amount = field(b, 12, 1) << 5 | field(b, 2, 5);
    if (kind < 2) {
        if (xlen == 32 && amount > 31)
            return REJECT;
        return short_op(kind ? RISCV_srai : RISCV_srli, rd, rd, 0, (int32_t)amount);
    }
    if (kind == 2)
        return short_op(RISCV_andi, rd, rd, 0, imm6(b));
    unsigned which = field(b, 12, 1) << 2 | field(b, 5, 2);
    if (!plain[which] || (which > 3 && xlen == 32))
        return REJECT;
    return short_op(plain[which], rd, rd, low_register(b, 2), 0);
}

static struct instruction decode_short_lui(uint32_t b) {
    unsigned rd = field(b, 7, 5);
    if (rd == 2) { /* c.addi16sp */
        int32_t imm = sign_extend(field(b, 12, 1) << 9 | field(b, 6, 1) << 4 | field(b, 5, 1) << 6 |
                                      field(b, 3, 2) << 7 | field(b, 2, 1) << 5,
                                  10);
        return imm ? short_op(RISCV_addi, 2, 2, 0, imm) : REJECT;
    }
    return imm6(b) ? short_op(RISCV_lui, rd, 0, 0, imm6(b) * 4096) : REJECT;
}

static struct instruction decode_short1(uint32_t b, unsigned xlen) {
    unsigned rd = field(b, 7, 5);
    switch (b >> 13) {
    case 0:
        return short_op(RISCV_addi, rd, rd, 0, imm6(b));
    case 1:
        if (xlen == 32)
            return short_op(RISCV_jal, 1, 0, 0, short_jump(b));
        return rd ? short_op(RISCV_addiw, rd, rd, 0, imm6(b)) : REJECT;
    case 2:
        return short_op(RISCV_addi, rd, 0, 0, imm6(b));
    case 3:
        return decode_short_lui(b);
    case 4:
        return decode_short_arithmetic(b, xlen);
    case 5:
        return short_op(RISCV_jal, 0, 0, 0, short_jump(b));
    case 6:
        return short_op(RISCV_beq, 0, low_register(b, 7), 0, short_branch(b));
    }
    return short_op(RISCV_bne, 0, low_register(b, 7), 0, short_branch(b));
}

static struct instruction decode_short_move(uint32_t b) {
    unsigned rd = field(b, 7, 5), rs2 = field(b, 2, 5);
    if (!field(b, 12, 1)) {
        if (rs2)
            return short_op(RISCV_add, rd, 0, rs2, 0);
        return rd ? short_op(RISCV_jalr, 0, rd, 0, 0) : REJECT;
    }
    if (rs2)
        return short_op(RISCV_add, rd, rd, rs2, 0);
    return rd ? short_op(RISCV_jalr, 1, rd, 0, 0) : short_op(RISCV_ebreak, 0, 0, 0, 0);
}

static struct instruction decode_short2(uint32_t b, unsigned xlen) {
    unsigned rd = field(b, 7, 5), rs2 = field(b, 2, 5);
    bool is64 = xlen == 64;
    int32_t load_double =
        (int32_t)(field(b, 12, 1) << 5 | field(b, 5, 2) << 3 | field(b, 2, 3) << 6);
    int32_t load_word = (int32_t)(field(b, 12, 1) << 5 | field(b, 4, 3) << 2 | field(b, 2, 2) << 6);
    int32_t store_double = (int32_t)(field(b, 10, 3) << 3 | field(b, 7, 3) << 6);
    int32_t store_word = (int32_t)(field(b, 9, 4) << 2 | field(b, 7, 2) << 6);
    uint32_t amount = field(b, 12, 1) << 5 | field(b, 2, 5);
    switch (b >> 13) {
    case 0:
        return is64 || amount < 32 ? short_op(RISCV_slli, rd, rd, 0, (int32_t)amount) : REJECT;
    case 1:
        return is64 ? short_op(RISCV_fld, rd, 2, 0, load_double) : REJECT;
    case 2:
        return rd ? short_op(RISCV_lw, rd, 2, 0, load_word) : REJECT;
    case 3:
        return is64 && rd ? short_op(RISCV_ld, rd, 2, 0, load_double) : REJECT;
    case 4:
        return decode_short_move(b);
    case 5:
        return is64 ? short_op(RISCV_fsd, 0, 2, rs2, store_double) : REJECT;
    case 6:
        return short_op(RISCV_sw, 0, 2, rs2, store_word);
    }
    return is64 ? short_op(RISCV_sd, 0, 2, rs2, store_double) : REJECT;
}

struct instruction riscv_decode(uint32_t bits, unsigned xlen) {
    struct instruction i;
    if (!riscv_is_short((uint16_t)bits)) {
        i = decode_long(bits, xlen);
        i.length = 4;
        return i;
    }
    bits &= 0xffff;
    i = (bits & 3) == 0   ? decode_short0(bits, xlen)
        : (bits & 3) == 1 ? decode_short1(bits, xlen)
                          : decode_short2(bits, xlen);
    i.length = 2;
    return i;
}

/* ---- control flow and memory accesses ------------------------------------------------------ */

static bool is_link(unsigned reg) {
    return reg == 1 || reg == 5;
}

enum control riscv_control(const struct instruction *i) {
    if (i->op >= RISCV_beq && i->op <= RISCV_bgeu)
        return CONTROL_BRANCH;
    if (i->op == RISCV_jal)
        return is_link(i->rd) ? CONTROL_CALL : CONTROL_JUMP;
    if (i->op == RISCV_ecall || i->op == RISCV_ebreak)
        return CONTROL_SYSTEM;
    if (i->op != RISCV_jalr)
        return CONTROL_NONE;
    if (is_link(i->rd))
        return is_link(i->rs1) && i->rs1 != i->rd ? CONTROL_SWAP : CONTROL_CALL;
    return is_link(i->rs1) ? CONTROL_RETURN : CONTROL_JUMP;
}

void riscv_access(const struct instruction *i, unsigned *loaded, unsigned *stored) {
    static const uint8_t sizes[RISCV_COUNT] = {
        [RISCV_lb] = 1,  [RISCV_lh] = 2,  [RISCV_lw] = 4,  [RISCV_ld] = 8,  [RISCV_lbu] = 1,
        [RISCV_lhu] = 2, [RISCV_lwu] = 4, [RISCV_sb] = 1,  [RISCV_sh] = 2,  [RISCV_sw] = 4,
        [RISCV_sd] = 8,  [RISCV_flw] = 4, [RISCV_fld] = 8, [RISCV_fsw] = 4, [RISCV_fsd] = 8,
    };
    *loaded = *stored = 0;
    if (i->op >= RISCV_lr_w && i->op <= RISCV_amomaxu_d) {
        unsigned size = i->op < RISCV_lr_d ? 4 : 8;
        *loaded = i->op == RISCV_sc_w || i->op == RISCV_sc_d ? 0 : size;
        *stored = i->op == RISCV_lr_w || i->op == RISCV_lr_d ? 0 : size;
    } else if ((i->op >= RISCV_sb && i->op <= RISCV_sd) || i->op == RISCV_fsw || i->op == RISCV_fsd)
        *stored = sizes[i->op];
    else
        *loaded = sizes[i->op];
}
