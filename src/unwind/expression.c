/*
 * DWARF expressions, as far as call frame information uses them: arithmetic, registers, memory, jumps. Numbers are 64 bits wide;
 * on 32-bit machines they are truncated when used as addresses. Jumps may loop, so steps are counted.
 */
#include "unwind/internal.h"

#include <dwarf.h>

#define STEPS_MAX 1000
#define DEPTH_MAX 64

struct machine_stack {
    uint64_t items[DEPTH_MAX];
    unsigned count;
};

static bool push(struct machine_stack *stack, uint64_t value) {
    if (stack->count == DEPTH_MAX)
        return false;
    stack->items[stack->count++] = value;
    return true;
}

static bool pop(struct machine_stack *stack, uint64_t *value) {
    if (stack->count == 0)
        return false;
    *value = stack->items[--stack->count];
    return true;
}

static bool push_register(struct machine_stack *stack, const struct state *state, uint64_t reg,
                          uint64_t offset) {
    return reg < REGISTERS_MAX && has_register(state, (unsigned)reg) &&
           push(stack, state->value[reg] + offset);
}

static bool pick(struct machine_stack *stack, uint64_t depth) {
    return depth < stack->count && push(stack, stack->items[stack->count - 1 - depth]);
}

/* dup, drop, over, swap, rot */
static bool shuffle(struct machine_stack *stack, uint8_t atom) {
    uint64_t *top = stack->items + stack->count - 1, kept;
    switch (atom) {
    case DW_OP_dup:
        return pick(stack, 0);
    case DW_OP_over:
        return pick(stack, 1);
    case DW_OP_drop:
        return pop(stack, &kept);
    case DW_OP_swap:
        if (stack->count < 2)
            return false;
        kept = top[0];
        top[0] = top[-1];
        top[-1] = kept;
        return true;
    default: /* rot */
        if (stack->count < 3)
            return false;
        kept = top[0];
        top[0] = top[-1];
        top[-1] = top[-2];
        top[-2] = kept;
        return true;
    }
}

static uint64_t shift(uint8_t atom, uint64_t a, uint64_t by) {
    if (by > 63)
        return atom == DW_OP_shra && (int64_t)a < 0 ? UINT64_MAX : 0;
    return atom == DW_OP_shl ? a << by : atom == DW_OP_shr ? a >> by : (uint64_t)((int64_t)a >> by);
}

static bool binary(struct machine_stack *stack, uint8_t atom) {
    uint64_t a, b;
    if (!pop(stack, &b) || !pop(stack, &a))
        return false;
    int64_t left = (int64_t)a, right = (int64_t)b;
    switch (atom) {
    case DW_OP_and:
        return push(stack, a & b);
    case DW_OP_or:
        return push(stack, a | b);
    case DW_OP_xor:
        return push(stack, a ^ b);
    case DW_OP_plus:
        return push(stack, a + b);
    case DW_OP_minus:
        return push(stack, a - b);
    case DW_OP_mul:
        return push(stack, a * b);
    case DW_OP_div:
        return right != 0 && push(stack, right == -1 ? 0 - a : (uint64_t)(left / right));
    case DW_OP_mod:
        return b != 0 && push(stack, a % b);
    case DW_OP_eq:
        return push(stack, left == right);
    case DW_OP_ne:
        return push(stack, left != right);
    case DW_OP_lt:
        return push(stack, left < right);
    case DW_OP_le:
        return push(stack, left <= right);
    case DW_OP_gt:
        return push(stack, left > right);
    case DW_OP_ge:
        return push(stack, left >= right);
    default:
        return push(stack, shift(atom, a, b));
    }
}

static bool unary(struct machine_stack *stack, const struct cfi_op *op) {
    uint64_t a;
    if (!pop(stack, &a))
        return false;
    switch (op->atom) {
    case DW_OP_abs:
        return push(stack, (int64_t)a < 0 ? 0 - a : a);
    case DW_OP_neg:
        return push(stack, 0 - a);
    case DW_OP_not:
        return push(stack, ~a);
    default:
        return push(stack, a + op->number);
    }
}

static bool dereference(struct machine_stack *stack, struct state *state, unsigned size) {
    uint64_t address, value;
    if (size == 0 || size > 8 || !pop(stack, &address))
        return false;
    if (state->memory.word == 4)
        address = (uint32_t)address;
    return memory_bytes(&state->memory, address, size, &value) && push(stack, value);
}

/* Everything but jumps. */
static bool operate(struct machine_stack *stack, struct state *state, const struct cfi_op *op,
                    uint64_t cfa) {
    if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
        return push(stack, op->atom - DW_OP_lit0);
    if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
        return push_register(stack, state, op->atom - DW_OP_breg0, op->number);
    switch (op->atom) {
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
        return push(stack, op->number);
    case DW_OP_bregx:
        return push_register(stack, state, op->number, op->number2);
    case DW_OP_call_frame_cfa:
        return push(stack, cfa);
    case DW_OP_deref:
        return dereference(stack, state, state->memory.word);
    case DW_OP_deref_size:
        return dereference(stack, state, op->number > 8 ? 0 : (unsigned)op->number);
    case DW_OP_pick:
        return pick(stack, op->number);
    case DW_OP_dup:
    case DW_OP_over:
    case DW_OP_drop:
    case DW_OP_swap:
    case DW_OP_rot:
        return shuffle(stack, op->atom);
    case DW_OP_abs:
    case DW_OP_neg:
    case DW_OP_not:
    case DW_OP_plus_uconst:
        return unary(stack, op);
    case DW_OP_and:
    case DW_OP_or:
    case DW_OP_xor:
    case DW_OP_plus:
    case DW_OP_minus:
    case DW_OP_mul:
    case DW_OP_div:
    case DW_OP_mod:
    case DW_OP_eq:
    case DW_OP_ne:
    case DW_OP_lt:
    case DW_OP_le:
    case DW_OP_gt:
    case DW_OP_ge:
    case DW_OP_shl:
    case DW_OP_shr:
    case DW_OP_shra:
        return binary(stack, op->atom);
    case DW_OP_nop:
        return true;
    default:
        return false;
    }
}

bool expression_value(struct state *state, const struct cfi_op *ops, size_t count, uint64_t cfa,
                      uint64_t *value) {
    struct machine_stack stack = {.count = 0};
    size_t at = 0;
    for (unsigned steps = 0; at < count; steps++) {
        const struct cfi_op *op = &ops[at++];
        uint64_t condition = 1;
        if (steps == STEPS_MAX)
            return false;
        if (op->atom == DW_OP_bra && !pop(&stack, &condition))
            return false;
        if (op->atom == DW_OP_skip || op->atom == DW_OP_bra) {
            if (condition && op->target > count)
                return false;
            at = condition ? op->target : at;
        } else if (!operate(&stack, state, op, cfa)) {
            return false;
        }
    }
    return pop(&stack, value);
}
