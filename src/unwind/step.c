/*
 * One step by rule; runs once for each frame of each sample. Nearly all rows are simple: the CFA is a register plus a number, and every saved
 * register is at an offset from it. Then registers are replaced in place, with one load each. Other rows (signal frames, PLT, realigned
 * stacks) need the old registers while the new ones are computed.
 *
 * gcc's epilogues leave rules for registers that are already popped. Such a slot is below the stack pointer, where nothing valid is stored, so
 * the register is taken as unchanged.
 */
#include "unwind/step.h"

static bool find_cfa(struct state *state, const struct cfi_row *row, uint64_t *cfa) {
    if (row->cfa_register == CFI_CFA_BY_EXPRESSION)
        return expression_value(state, row->ops + row->cfa_offset, row->cfa_ops, 0, cfa);
    *cfa = state->value[row->cfa_register] + (uint64_t)(int64_t)row->cfa_offset;
    return has_register(state, row->cfa_register);
}

/* A register that lies beyond the slice is unknown in the caller; only the return address is needed at once. */
static inline void load_saved(struct state *state, unsigned reg, uint64_t address) {
    if (memory_word(&state->memory, address, &state->value[reg]))
        state->present |= 1ull << reg;
    else
        state->present &= ~(1ull << reg);
}

static void apply_simple(struct state *state, const struct cfi_row *row, uint64_t cfa,
                         uint64_t sp) {
    for (uint32_t i = 0; i < row->rule_count; i++) {
        const struct cfi_rule *rule = &row->rules[i];
        uint64_t address = cfa + (uint64_t)(int64_t)rule->offset;
        if (address >= sp)
            load_saved(state, rule->reg, address);
    }
}

static void apply_rule(struct state *state, struct state *old, const struct cfi_row *row,
                       const struct cfi_rule *rule, uint64_t cfa, uint64_t sp) {
    uint64_t value, offset = (uint64_t)(int64_t)rule->offset, bit = 1ull << rule->reg;
    state->present &= ~bit;
    switch (rule->kind) {
    case CFI_AT_CFA:
        if (cfa + offset < sp && !row->signal_frame) {
            state->present |= old->present & bit;
            state->value[rule->reg] = old->value[rule->reg];
        } else {
            load_saved(state, rule->reg, cfa + offset);
        }
        break;
    case CFI_CFA_PLUS:
        set_register(state, rule->reg, cfa + offset);
        break;
    case CFI_IN_REGISTER:
        if (has_register(old, (unsigned)rule->offset))
            set_register(state, rule->reg, old->value[rule->offset]);
        break;
    case CFI_AT_EXPRESSION:
        if (expression_value(old, row->ops + rule->offset, rule->op_count, cfa, &value))
            load_saved(state, rule->reg, value);
        break;
    case CFI_EXPRESSION:
        if (expression_value(old, row->ops + rule->offset, rule->op_count, cfa, &value))
            set_register(state, rule->reg, value);
        break;
    }
}

static void apply_any(struct state *state, const struct cfi_row *row, uint64_t cfa, uint64_t sp) {
    struct state old = *state;
    old.present = state->present;
    for (uint32_t i = 0; i < row->rule_count; i++)
        apply_rule(state, &old, row, &row->rules[i], cfa, sp);
    if (old.memory.missed)
        state->memory.missed = old.memory.missed;
}

/* Where compiled Java calls C without a frame of a stub between them, HotSpot pushes 0 and the return address, for its own unwinder, and takes them off
   behind the call. */
static void skip_crumb(struct state *state, const struct machine *machine) {
    uint64_t sp = state->value[machine->stack], zero, back;
    if (memory_stack_word(&state->memory, sp, &zero) && zero == 0 &&
        memory_stack_word(&state->memory, sp + 8, &back) && back - state->pc <= 4)
        set_register(state, machine->stack, sp + 16);
}

/* HotSpot's stub that compiled methods call on entry if a method has changed pushes -1 before its frame; the return address is above it. */
static void skip_cookie(struct state *state, const struct machine *machine) {
    uint64_t sp = state->value[machine->stack];
    if (state->pc == UINT64_MAX && memory_stack_word(&state->memory, sp, &state->pc))
        set_register(state, machine->stack, sp + 8);
}

bool step_by_row(struct state *state, const struct machine *machine, const struct cfi_row *row,
                 bool is_running) {
    if (row->may_have_crumb)
        skip_crumb(state, machine);
    uint64_t sp = has_register(state, machine->stack) ? state->value[machine->stack] : 0, cfa;
    if (!row->simple && machine->pc != NO_REGISTER)
        set_register(state, machine->pc, state->pc);
    if (!find_cfa(state, row, &cfa))
        return false;
    if (machine->word == 4)
        cfa = (uint32_t)cfa;
    /* Every call takes stack, but for a leaf on machines with a link register. A signal may come from another stack. */
    if (!row->signal_frame && (cfa < sp || (cfa == sp && !is_running)))
        return false;
    unsigned return_register = row->return_register;
    if (row->simple) {
        state->present &= row->kept;
        apply_simple(state, row, cfa, sp);
        set_register(state, machine->stack, cfa);
    } else {
        uint64_t caller_sp = cfa;
        apply_any(state, row, cfa, sp);
        state->present &= row->kept;
        for (uint32_t i = 0; i < row->rule_count; i++)
            if (row->rules[i].reg == machine->stack)
                caller_sp = state->value[machine->stack];
        set_register(state, machine->stack, caller_sp);
    }
    state->pc = state->value[return_register];
    skip_cookie(state, machine);
    return has_register(state, return_register);
}
