/*
 * Classify instructions: RISC-V with wick's own decoder, others with capstone. Done once for each translated block, so its cost does not
 * matter.
 */
#include "trace/classify.h"

#include <stdlib.h>

#include "object/capstone.h"

struct classifier {
    unsigned xlen; /* 0: capstone's */
#ifdef HAVE_CAPSTONE
    struct capstone library;
    csh handle;
    cs_insn *instruction;
    bool is_arm;
#endif
};

static struct classified classify_riscv(unsigned xlen, const uint8_t *bytes, size_t size,
                                        uint64_t pc) {
    uint32_t bits = 0;
    memcpy(&bits, bytes, size < 4 ? size : 4);
    struct instruction i = riscv_decode(bits, xlen);
    struct classified c = {riscv_control(&i), NO_ADDRESS, 0, 0, i.length};
    riscv_access(&i, &c.loaded, &c.stored);
    if (i.op == RISCV_jal || c.control == CONTROL_BRANCH)
        c.target = pc + (uint64_t)(int64_t)i.imm;
    return c;
}

#ifdef HAVE_CAPSTONE
static bool in_group(const struct classifier *c, const cs_insn *i, unsigned group) {
    return c->library.insn_group(c->handle, i, group);
}

static enum control control_x86(const struct classifier *c, const cs_insn *i) {
    if (in_group(c, i, CS_GRP_CALL))
        return CONTROL_CALL;
    if (in_group(c, i, CS_GRP_RET))
        return CONTROL_RETURN;
    if (i->id == X86_INS_JMP)
        return CONTROL_JUMP;
    if (in_group(c, i, CS_GRP_JUMP))
        return CONTROL_BRANCH;
    if (i->id == X86_INS_SYSCALL || in_group(c, i, CS_GRP_INT))
        return CONTROL_SYSTEM;
    return CONTROL_NONE;
}

static enum control control_arm(const struct classifier *c, const cs_insn *i) {
    switch (i->id) {
    case ARM64_INS_BL:
    case ARM64_INS_BLR:
        return CONTROL_CALL;
    case ARM64_INS_RET:
        return CONTROL_RETURN;
    case ARM64_INS_BR:
        return CONTROL_JUMP;
    case ARM64_INS_B:
        return i->detail->arm64.cc == ARM64_CC_INVALID || i->detail->arm64.cc >= ARM64_CC_AL
                   ? CONTROL_JUMP
                   : CONTROL_BRANCH;
    case ARM64_INS_CBZ:
    case ARM64_INS_CBNZ:
    case ARM64_INS_TBZ:
    case ARM64_INS_TBNZ:
        return CONTROL_BRANCH;
    case ARM64_INS_SVC:
        return CONTROL_SYSTEM;
    }
    return CONTROL_NONE;
}

/* Pointer-authenticated branches, which capstone 4 does not know: BRAA … BLRAAZ, RETAA, RETAB. */
static enum control control_arm_authenticated(uint32_t bits) {
    if ((bits & 0xfffffbff) == 0xd65f0bff)
        return CONTROL_RETURN;
    if ((bits & 0xfefff800) == 0xd61f0800)
        return CONTROL_JUMP;
    if ((bits & 0xfefff800) == 0xd63f0800)
        return CONTROL_CALL;
    return CONTROL_NONE;
}

static uint64_t direct_target(const struct classifier *c, const cs_insn *i) {
    if (c->is_arm) {
        const cs_arm64 *arm = &i->detail->arm64;
        const cs_arm64_op *last = arm->op_count ? &arm->operands[arm->op_count - 1] : NULL;
        return last && last->type == ARM64_OP_IMM ? (uint64_t)last->imm : NO_ADDRESS;
    }
    const cs_x86 *x86 = &i->detail->x86;
    return x86->op_count == 1 && x86->operands[0].type == X86_OP_IMM
               ? (uint64_t)x86->operands[0].imm
               : NO_ADDRESS;
}

static struct classified classify_capstone(struct classifier *c, const uint8_t *bytes, size_t size,
                                           uint64_t pc) {
    struct classified result = {CONTROL_NONE, NO_ADDRESS, UINT32_MAX, UINT32_MAX, (uint32_t)size};
    const uint8_t *at = bytes;
    uint64_t address = pc;
    if (!c->library.disasm_iter(c->handle, &at, &size, &address, c->instruction)) {
        if (c->is_arm && size >= 4)
            result.control = control_arm_authenticated(load_u32(bytes));
        return result;
    }
    result.size = c->instruction->size;
    result.control = c->is_arm ? control_arm(c, c->instruction) : control_x86(c, c->instruction);
    if (result.control == CONTROL_CALL || result.control == CONTROL_JUMP ||
        result.control == CONTROL_BRANCH)
        result.target = direct_target(c, c->instruction);
    return result;
}

static bool capstone_open(struct classifier *c, const char *machine) {
    c->is_arm = strcmp(machine, "aarch64") == 0;
    if (!c->is_arm && strcmp(machine, "x86_64") != 0)
        return false;
    if (!capstone_load(&c->library) ||
        c->library.open(c->is_arm ? CS_ARCH_ARM64 : CS_ARCH_X86,
                        c->is_arm ? CS_MODE_ARM : CS_MODE_64, &c->handle) != CS_ERR_OK)
        return false;
    c->library.option(c->handle, CS_OPT_DETAIL, CS_OPT_ON);
    c->instruction = c->library.malloc(c->handle);
    return true;
}
#endif

struct classifier *classifier_new(const char *machine) {
    struct classifier *c = memory_zero(1, sizeof *c);
    c->xlen = strcmp(machine, "riscv64") == 0 ? 64 : strcmp(machine, "riscv32") == 0 ? 32 : 0;
#ifdef HAVE_CAPSTONE
    if (c->xlen || capstone_open(c, machine))
        return c;
#else
    if (c->xlen)
        return c;
#endif
    free(c);
    return NULL;
}

static bool goes_and_comes_back(enum control control) {
    return control == CONTROL_CALL || control == CONTROL_SWAP || control == CONTROL_SYSTEM;
}

static bool follows_call_riscv(unsigned xlen, const uint8_t *before) {
    return goes_and_comes_back(classify_riscv(xlen, before + 4, 4, 0).control) ||
           goes_and_comes_back(classify_riscv(xlen, before + 6, 2, 0).control);
}

#ifdef HAVE_CAPSTONE
/* BL, BLR with and without authentication, SVC. */
static bool follows_call_arm(uint32_t bits) {
    return (bits & 0xfc000000) == 0x94000000 || (bits & 0xfefff000) == 0xd63f0000 ||
           (bits & 0xffe0001f) == 0xd4000001;
}

/* E8 and four bytes, FF /2 of any length, 0F 05, CD. Prefixes come before those and don't matter. */
static bool follows_call_x86(const uint8_t *before) {
    bool found = before[3] == 0xe8 || before[6] == 0xcd || (before[6] == 0x0f && before[7] == 0x05);
    for (unsigned i = 1; i < 7; i++)
        found |= before[i] == 0xff && (before[i + 1] >> 3 & 7) == 2;
    return found;
}
#endif

bool classify_follows_call(const struct classifier *c, const uint8_t before[8]) {
#ifdef HAVE_CAPSTONE
    if (!c->xlen)
        return c->is_arm ? follows_call_arm(load_u32(before + 4)) : follows_call_x86(before);
#endif
    return follows_call_riscv(c->xlen, before);
}

struct classified classify(struct classifier *c, const uint8_t *bytes, size_t size, uint64_t pc) {
#ifdef HAVE_CAPSTONE
    if (!c->xlen)
        return classify_capstone(c, bytes, size, pc);
#endif
    return classify_riscv(c->xlen, bytes, size, pc);
}
