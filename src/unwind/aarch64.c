/*
 * aarch64. Return addresses may be signed: the unwinder strips the signature by finding the code that is meant.
 */
#include "unwind/internal.h"

#include <elf.h>

/* perf's and DWARF's numbers agree: x0–x30, sp. perf's pc is 32. */
enum { FP = 29, LR = 30, SP = 31, PERF_PC = 32 };

static bool load(struct state *state, uint64_t mask, const uint8_t *values) {
    uint64_t value;
    state->present = 0;
    for (unsigned reg = 0; reg <= SP; reg++)
        if (perf_register(mask, values, reg, &value))
            set_register(state, reg, value);
    return perf_register(mask, values, PERF_PC, &state->pc) && has_register(state, SP);
}

/* The frame record at x29: the caller's x29, then the return address. */
static bool step_by_frame_record(struct state *state, uint64_t fp) {
    uint64_t sp = has_register(state, SP) ? state->value[SP] : 0, pc, caller_fp;
    if (fp == 0 || fp + 16 <= sp || !memory_word(&state->memory, fp + 8, &pc))
        return false;
    if (!memory_word(&state->memory, fp, &caller_fp))
        caller_fp = 0;
    state->present = 0;
    set_register(state, FP, caller_fp);
    set_register(state, SP, fp + 16);
    state->pc = pc;
    return true;
}

/* A function that was running when the sample was taken may not have made its frame record yet, or never: then the link register is
   the caller, and the stack is as the caller left it. elfutils moves sp to the record there, which loses callers that
   are described by rules relative to sp (the vdso, which has no rules, called from libc, which has). */
static bool fallback(struct state *state, bool *is_running) {
    uint64_t fp = has_register(state, FP) ? state->value[FP] : 0, saved;
    bool was_running = *is_running;
    *is_running = false;
    if (!was_running)
        return step_by_frame_record(state, fp);
    uint64_t pc = has_register(state, LR) ? state->value[LR] : 0;
    if (pc == 0)
        return false;
    if (fp && memory_stack_word(&state->memory, fp + 8, &saved) && saved == pc)
        return step_by_frame_record(state, fp);
    state->present &= ~(1ull << LR);
    state->pc = pc;
    return true;
}

/* mov x8, #139 (rt_sigreturn); svc #0: the vdso's, which has no rules in many kernels. */
static bool is_trampoline(struct state *state, bool is_call) {
    uint64_t code, missed = state->memory.missed;
    if (memory_bytes(&state->memory, state->pc, 8, &code))
        return code == 0xd4000001d2801168ull;
    state->memory.missed = missed;
    return false;
}

/* At sp: siginfo (128 bytes), then the ucontext, whose registers begin 184 bytes in. */
static bool leave_signal(struct state *state) {
    uint64_t registers = state->value[SP] + 128 + 184, value;
    uint64_t present = 0, values[REGISTERS_MAX];
    for (unsigned reg = 0; reg <= SP; reg++)
        if (memory_word(&state->memory, registers + 8 * reg, &value)) {
            values[reg] = value;
            present |= 1ull << reg;
        }
    if (!(present >> SP & 1) || !memory_word(&state->memory, registers + 8 * PERF_PC, &value))
        return false;
    memcpy(state->value, values, sizeof values);
    state->present = present;
    state->pc = value;
    return true;
}

const struct machine machine_aarch64 = {.elf = EM_AARCH64,
                                        .word = 8,
                                        .stack = SP,
                                        .pc = NO_REGISTER,
                                        .handler = 5,
                                        .load = load,
                                        .fallback = fallback,
                                        .is_trampoline = is_trampoline,
                                        .leave_signal = leave_signal,
                                        .interpreter = {.sender = 8,
                                                        .method = 24,
                                                        .locals = 64,
                                                        .bytecode = 72,
                                                        .frame_pointer = FP,
                                                        .bytecode_register = 22},
                                        .rules_skip_interrupted = true,
                                        .perf_lowers_interrupted = true,
                                        .signed_pointers = true};
