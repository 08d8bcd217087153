/*
 * From the guest's bytes to blocks of ops.
 *
 * A block is a straight run of instructions up to the first that may go elsewhere. Everything known in advance is computed here: constants,
 * targets, return addresses, and whether a jump leaves its function, in which case a stub between the two blocks makes the tail call. So
 * following the stack costs nothing where the stack does not change.
 */
#include "trace/riscv/machine.h"

#include <sys/mman.h>

#define BLOCK_MAX 64                                    /* instructions */
#define SLOTS_MAX(instructions) ((instructions)*3 + 20) /* room for li_wide, links, stubs */
#define LINK_SLOTS (sizeof(struct links) / sizeof(struct op))

static handler *const handlers[RISCV_COUNT] = {[RISCV_illegal] = do_illegal,
#define X(name) [RISCV_##name] = do_##name,
                                               RISCV_ALL(X)
#undef X
};

/* The 32-bit machine's: word forms where the 64-bit machine has them. */
static handler *const narrow[RISCV_COUNT] = {
#define X(name) [RISCV_##name] = do_##name##_narrow,
    MACHINE_NARROW(X)
#undef X
        [RISCV_addi] = do_addiw,
    [RISCV_slli] = do_slliw,
    [RISCV_srli] = do_srliw,
    [RISCV_srai] = do_sraiw,
    [RISCV_add] = do_addw,
    [RISCV_sub] = do_subw,
    [RISCV_sll] = do_sllw,
    [RISCV_srl] = do_srlw,
    [RISCV_sra] = do_sraw,
    [RISCV_mul] = do_mulw,
    [RISCV_div] = do_divw,
    [RISCV_divu] = do_divuw,
    [RISCV_rem] = do_remw,
    [RISCV_remu] = do_remuw,
    [RISCV_mulh] = do_mulh_narrow,
    [RISCV_mulhsu] = do_mulhsu_narrow,
    [RISCV_mulhu] = do_mulhu_narrow,
};

static handler *handler_of(const struct machine *m, unsigned op) {
    if (m->xlen == 32) {
        if (op >= RISCV_lr_w && op < RISCV_lr_d)
            return machine_atomic_narrow[op - RISCV_lr_w];
        if (narrow[op])
            return narrow[op];
    }
    return handlers[op];
}

bool machine_fetch(const struct machine *m, uint64_t pc, struct instruction *instruction) {
    const uint8_t *at = pc & 1 ? NULL : memory_at(&m->memory, pc, 2, PAGE_EXECUTE);
    if (!at)
        return false;
    uint32_t bits = load_u16(at);
    if (!riscv_is_short((uint16_t)bits)) {
        if (!memory_at(&m->memory, pc + 2, 2, PAGE_EXECUTE))
            return false;
        bits |= (uint32_t)load_u16(at + 2) << 16;
    }
    *instruction = riscv_decode(bits, m->xlen);
    return true;
}

/* ---- emitting ----------------------------------------------------------------------------- */

struct translation {
    struct machine *m;
    uint32_t pc;    /* of the current instruction */
    uint32_t index; /* its number in the block */
    uint64_t end;   /* after the last byte read */
};

static struct op *emit(struct translation *t, struct op op) {
    struct machine *m = t->m;
    m->sites[m->slot_count] = (struct op_site){t->pc, t->index};
    m->slots[m->slot_count] = op;
    return &m->slots[m->slot_count++];
}

static struct links *emit_end(struct translation *t, struct op op, uint32_t taken_pc,
                              uint32_t next_pc) {
    struct machine *m = t->m;
    emit(t, op);
    struct links *links = (struct links *)&m->slots[m->slot_count];
    *links = (struct links){NULL, NULL, taken_pc, next_pc, t->pc, 0};
    m->slot_count += LINK_SLOTS;
    return links;
}

static uint8_t target_register(uint8_t rd) {
    return rd ? rd : 32;
}

static void emit_constant(struct translation *t, uint8_t rd, uint64_t value) {
    struct op op = {do_li, target_register(rd), 0, 0, 0, (int32_t)value};
    if (value != (uint64_t)(int64_t)(int32_t)value)
        op.run = value == (uint32_t)value ? do_li_unsigned : do_li_wide;
    emit(t, op);
    if (op.run == do_li_wide) {
        struct op wide = {0};
        memcpy(&wide, &value, sizeof value);
        emit(t, wide);
    }
}

static bool writes_float(unsigned op) {
    return op == RISCV_flw || op == RISCV_fld || (op >= RISCV_fmadd_s && op <= RISCV_fcvt_d_s) ||
           (op >= RISCV_fcvt_s_w && op <= RISCV_fcvt_d_lu) || op == RISCV_fmv_w_x ||
           op == RISCV_fmv_d_x;
}

static void emit_plain(struct translation *t, const struct instruction *i) {
    struct op op = {
        handler_of(t->m, i->op), target_register(i->rd), i->rs1, i->rs2, i->rs3, i->imm};
    if (i->op >= RISCV_flw) {
        if (writes_float(i->op))
            op.rd = i->rd;
        if (i->op >= RISCV_fmadd_s)
            op.imm = i->rounding;
    } else if (i->op == RISCV_addi && !i->rs1)
        op.run = do_li;
    else if (i->op == RISCV_addi && !i->imm)
        op.run = i->rd ? do_mv : do_nop;
    else if (i->op == RISCV_add && !i->rs1)
        op.run = do_mv, op.rs1 = i->rs2;
    emit(t, op);
}

/* ---- ends of blocks ----------------------------------------------------------------------- */

/* Whether a jump from here to there replaces the frame. */
static bool is_tail_call(struct machine *m, uint32_t from, uint64_t to) {
    if (!m->counts)
        return false;
    uint32_t here = functions_find(m->flow.functions, from).function;
    uint32_t there = functions_find(m->flow.functions, to).function;
    return here && there && here != there;
}

/* Emit a block of no instructions that makes the tail call and continues. */
static struct block *emit_tail(struct translation *t, uint32_t to) {
    struct machine *m = t->m;
    struct block *block = (struct block *)&m->slots[m->slot_count];
    *block = (struct block){to, 0, 0};
    m->slot_count++;
    emit_end(t, (struct op){do_tail, 0, 0, 0, 0, 0}, to, to);
    return block;
}

static void end_branch(struct translation *t, const struct instruction *i, uint32_t next) {
    uint32_t target = t->pc + (uint32_t)i->imm;
    struct op op = {handlers[i->op], 0, i->rs1, i->rs2, 0, 0};
    struct links *links = emit_end(t, op, target, next);
    if (is_tail_call(t->m, t->pc, target))
        links->taken = emit_tail(t, target);
}

static void end_jump(struct translation *t, const struct instruction *i, uint32_t next) {
    uint32_t target = t->pc + (uint32_t)i->imm;
    bool calls = t->m->counts && riscv_control(i) == CONTROL_CALL;
    handler *run = calls ? do_call : i->rd ? do_call_plain : do_go;
    struct op op = {run, target_register(i->rd), 0, 0, t->m->xlen == 32, 0};
    struct links *links = emit_end(t, op, target, next);
    if (!calls && is_tail_call(t->m, t->pc, target))
        links->taken = emit_tail(t, target);
}

/* Jump tables stay in their function, and cost one comparison. From code without a symbol, no jump changes the stack. */
static void set_reach(struct machine *m, struct links *links) {
    struct function_range range = functions_find(m->flow.functions, links->pc);
    uint64_t size = range.end - range.start;
    bool whole = !range.function || size > UINT32_MAX || range.start > UINT32_MAX;
    links->taken_pc = whole ? 0 : (uint32_t)range.start;
    links->reach = !range.function ? UINT32_MAX : whole ? 0 : (uint32_t)size;
}

static void end_indirect(struct translation *t, const struct instruction *i, uint32_t next) {
    static handler *const by_control[] = {[CONTROL_JUMP] = do_jalr_jump,
                                          [CONTROL_CALL] = do_jalr_call,
                                          [CONTROL_RETURN] = do_jalr_return,
                                          [CONTROL_SWAP] = do_jalr_swap};
    handler *run = t->m->counts ? by_control[riscv_control(i)] : do_jalr_plain;
    struct op op = {run, target_register(i->rd), i->rs1, 0, t->m->xlen == 32, i->imm};
    struct links *links = emit_end(t, op, 0, next);
    if (run == do_jalr_jump)
        set_reach(t->m, links);
}

/* Return true if the instruction ended the block. */
static bool emit_instruction(struct translation *t, const struct instruction *i) {
    uint32_t next = t->pc + i->length;
    switch (i->op) {
    case RISCV_auipc: {
        uint64_t value = t->pc + (uint64_t)(int64_t)i->imm;
        emit_constant(t, i->rd, t->m->xlen == 32 ? (uint64_t)(int64_t)(int32_t)value : value);
        return false;
    }
    case RISCV_jal:
        end_jump(t, i, next);
        return true;
    case RISCV_jalr:
        end_indirect(t, i, next);
        return true;
    case RISCV_beq:
    case RISCV_bne:
    case RISCV_blt:
    case RISCV_bge:
    case RISCV_bltu:
    case RISCV_bgeu:
        end_branch(t, i, next);
        return true;
    case RISCV_illegal:
    case RISCV_ebreak:
    case RISCV_ecall:
    case RISCV_csrrw:
    case RISCV_csrrs:
    case RISCV_csrrc:
        emit_end(t, (struct op){handlers[i->op], 0, 0, 0, 0, 0}, next, next);
        return true;
    }
    emit_plain(t, i);
    return false;
}

/* ---- blocks ------------------------------------------------------------------------------- */

uint64_t machine_weight_of(const struct machine *m, const struct instruction *i) {
    unsigned loaded, stored;
    riscv_access(i, &loaded, &stored);
    return trace_weigh(m->weight, riscv_control(i) == CONTROL_BRANCH, loaded, stored);
}

/* Emit instructions until one ends the block; if none does, the block continues with the next. */
static void emit_run(struct translation *t, uint32_t max, bool whole) {
    struct instruction i;
    bool ended = false;
    uint64_t pc = t->pc;
    while (!ended && t->index < max && machine_fetch(t->m, pc, &i)) {
        t->pc = (uint32_t)pc;
        uint64_t weight = t->m->weighs ? machine_weight_of(t->m, &i) : 0;
        if (weight)
            emit(t, (struct op){do_weigh, 0, 0, 0, 0, (int32_t)weight});
        ended = emit_instruction(t, &i);
        t->index++;
        pc += i.length;
    }
    t->end = pc;
    if (ended)
        return;
    t->pc = (uint32_t)pc;
    if (!t->index)
        emit_end(t, (struct op){do_fetch_fault, 0, 0, 0, 0, 0}, t->pc, t->pc);
    else
        emit_end(t, (struct op){whole ? do_go : do_stop, 0, 0, 0, 0, 0}, t->pc, t->pc);
}

struct block *machine_translate(struct machine *m, uint32_t pc, uint32_t max) {
    bool whole = max >= BLOCK_MAX;
    if (whole)
        max = BLOCK_MAX;
    if (m->slot_max - m->slot_count < SLOTS_MAX(max))
        return NULL;
    uint32_t slot = m->slot_count++;
    struct block *block = (struct block *)&m->slots[slot];
    struct translation t = {m, pc, 0, pc};
    emit_run(&t, max, whole);
    *block = (struct block){pc, t.index, 0};
    for (uint32_t s = slot + 1; s < m->slot_count; s++)
        m->sites[s].rest = t.index - (m->sites[s].rest < t.index ? m->sites[s].rest : t.index);
    if (t.end > pc)
        memory_mark_code(&m->memory, pc, t.end - pc);
    if (whole)
        m->map[pc / 2] = slot;
    return block;
}

void machine_flush(struct machine *m) {
    memory_forget_code(&m->memory);
    madvise(m->map, GUEST_SIZE / 2 * sizeof *m->map, MADV_DONTNEED);
    m->slot_count = 1;
}
