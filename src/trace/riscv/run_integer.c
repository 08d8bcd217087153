/*
 * The integer instructions, one function each. Registers of the 32-bit machine are kept sign-extended, so that comparisons, logic and all
 * word forms of the 64-bit machine work for it, too; only address computations differ.
 */
#include "trace/riscv/handlers.h"

#define SIGNED(v) ((int64_t)(v))

#define VALUE(name, expression) RESULT(name, RD, expression)

VALUE(li, IMM)
VALUE(li_unsigned, (uint32_t)op->imm)
VALUE(mv, RS1)
VALUE(lui, IMM)
VALUE(addi, RS1 + IMM)
VALUE(slti, SIGNED(RS1) < op->imm)
VALUE(sltiu, RS1 < IMM)
VALUE(xori, RS1 ^ IMM)
VALUE(ori, RS1 | IMM)
VALUE(andi, RS1 &IMM)
VALUE(slli, RS1 << op->imm)
VALUE(srli, RS1 >> op->imm)
VALUE(srai, (uint64_t)(SIGNED(RS1) >> op->imm))
VALUE(add, RS1 + RS2)
VALUE(sub, RS1 - RS2)
VALUE(sll, RS1 << (RS2 & 63))
VALUE(slt, SIGNED(RS1) < SIGNED(RS2))
VALUE(sltu, RS1 < RS2)
VALUE(xor, RS1 ^ RS2)
VALUE(srl, RS1 >> (RS2 & 63))
VALUE(sra, (uint64_t)(SIGNED(RS1) >> (RS2 & 63)))
VALUE(or, RS1 | RS2)
VALUE(and, RS1 &RS2)
VALUE(addiw, WORD(RS1 + IMM))
VALUE(slliw, WORD((uint32_t)RS1 << op->imm))
VALUE(srliw, WORD((uint32_t)RS1 >> op->imm))
VALUE(sraiw, WORD((int32_t)RS1 >> op->imm))
VALUE(addw, WORD(RS1 + RS2))
VALUE(subw, WORD(RS1 - RS2))
VALUE(sllw, WORD((uint32_t)RS1 << (RS2 & 31)))
VALUE(srlw, WORD((uint32_t)RS1 >> (RS2 & 31)))
VALUE(sraw, WORD((int32_t)RS1 >> (RS2 & 31)))

HANDLER(li_wide) {
    memcpy(&RD, op + 1, sizeof RD);
    GO(op + 2);
}

HANDLER(nop) {
    NEXT;
}
HANDLER(fence) {
    NEXT;
}

HANDLER(weigh) {
    m->weighed += (uint32_t)op->imm;
    NEXT;
}

/* ---- multiplication and division ---------------------------------------------------------- */

VALUE(mul, RS1 *RS2)
VALUE(mulh, (uint64_t)((__int128)SIGNED(RS1) * SIGNED(RS2) >> 64))
VALUE(mulhsu, (uint64_t)((__int128)SIGNED(RS1) * (__int128)RS2 >> 64))
VALUE(mulhu, (uint64_t)((unsigned __int128)RS1 *RS2 >> 64))
VALUE(mulw, WORD(RS1 *RS2))
VALUE(mulh_narrow, WORD(SIGNED(RS1) * SIGNED(RS2) >> 32))
VALUE(mulhsu_narrow, WORD(SIGNED(RS1) * (int64_t)(uint32_t)RS2 >> 32))
VALUE(mulhu_narrow, WORD((uint64_t)(uint32_t)RS1 *(uint32_t)RS2 >> 32))

static inline int64_t divide(int64_t a, int64_t b) {
    return b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t modulo(int64_t a, int64_t b) {
    return b == 0 ? a : b == -1 ? 0 : a % b;
}

VALUE(div, (uint64_t)divide(SIGNED(RS1), SIGNED(RS2)))
VALUE(divu, RS2 ? RS1 / RS2 : UINT64_MAX)
VALUE(rem, (uint64_t)modulo(SIGNED(RS1), SIGNED(RS2)))
VALUE(remu, RS2 ? RS1 % RS2 : RS1)
VALUE(divw, WORD(divide((int32_t)RS1, (int32_t)RS2)))
VALUE(divuw, WORD((uint32_t)RS2 ? (uint32_t)RS1 / (uint32_t)RS2 : UINT32_MAX))
VALUE(remw, WORD(modulo((int32_t)RS1, (int32_t)RS2)))
VALUE(remuw, WORD((uint32_t)RS2 ? (uint32_t)RS1 % (uint32_t)RS2 : (uint32_t)RS1))

/* ---- loads and stores --------------------------------------------------------------------- */

static SLOW const struct op *load_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                       int64_t left, uint64_t address, int size) {
    unsigned width = (unsigned)(size < 0 ? -size : size);
    if (!machine_load_slow(m, address, width))
        return machine_fault(m, op, m->fault, address, left);
    uint64_t value = m->loaded;
    if (size < 0) /* negative: sign-extended */
        value = (uint64_t)((int64_t)(value << (64 - 8 * width)) >> (64 - 8 * width));
    RD = value;
    NEXT;
}

static SLOW const struct op *store_slow(struct machine *m, const struct op *op, uint8_t *memory,
                                        int64_t left, uint64_t address, unsigned size) {
    int done = machine_store_slow(m, address, size, RS2);
    return machine_stored(m, op, memory, left, address, done);
}

#define LOAD(name, type, sign, address_)                                                           \
    HANDLER(name) {                                                                                \
        uint64_t address = address_(RS1 + IMM);                                                    \
        if (!machine_may(memory, address, sizeof(type), PAGE_READ))                                \
            return load_slow(m, op, memory, left, address, sign(int) sizeof(type));                \
        type value;                                                                                \
        memcpy(&value, memory + address, sizeof value);                                            \
        RD = (uint64_t)(int64_t)value;                                                             \
        NEXT;                                                                                      \
    }
#define STORE(name, type, address_)                                                                \
    HANDLER(name) {                                                                                \
        uint64_t address = address_(RS1 + IMM);                                                    \
        if (!machine_may(memory, address, sizeof(type), PAGE_STORE))                               \
            return store_slow(m, op, memory, left, address, sizeof(type));                         \
        type value = (type)RS2;                                                                    \
        memcpy(memory + address, &value, sizeof value);                                            \
        NEXT;                                                                                      \
    }

LOAD(lb, int8_t, -, (uint64_t))
LOAD(lh, int16_t, -, (uint64_t))
LOAD(lw, int32_t, -, (uint64_t))
LOAD(ld, uint64_t, +, (uint64_t))
LOAD(lbu, uint8_t, +, (uint64_t))
LOAD(lhu, uint16_t, +, (uint64_t))
LOAD(lwu, uint32_t, +, (uint64_t))
STORE(sb, uint8_t, (uint64_t))
STORE(sh, uint16_t, (uint64_t))
STORE(sw, uint32_t, (uint64_t))
STORE(sd, uint64_t, (uint64_t))
LOAD(lb_narrow, int8_t, -, (uint32_t))
LOAD(lh_narrow, int16_t, -, (uint32_t))
LOAD(lw_narrow, int32_t, -, (uint32_t))
LOAD(lbu_narrow, uint8_t, +, (uint32_t))
LOAD(lhu_narrow, uint16_t, +, (uint32_t))
STORE(sb_narrow, uint8_t, (uint32_t))
STORE(sh_narrow, uint16_t, (uint32_t))
STORE(sw_narrow, uint32_t, (uint32_t))
