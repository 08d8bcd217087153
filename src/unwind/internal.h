/*
 * Private to this room: one frame's registers, the memory they point into, and what depends on the architecture.
 */
#ifndef WICK_UNWIND_INTERNAL_H
#define WICK_UNWIND_INTERNAL_H

#include "unwind/unwind.h"

/* By DWARF number. aarch64 has the most: x0–x30 and sp. */
#define REGISTERS_MAX 32
#define NO_REGISTER 255

struct memory {
    const uint8_t *stack;
    uint64_t base; /* the address of stack[0] */
    uint64_t size;
    uint8_t word;                      /* 4 or 8 */
    const struct unwind_block *blocks; /* more of the stack, or of another; by address */
    size_t block_count;
    const struct spaces *spaces;
    uint32_t user;
    struct objects *objects;
    uint64_t missed; /* the last address that could not be read */
};

/* One frame. */
struct state {
    uint64_t value[REGISTERS_MAX];
    uint64_t present; /* bit r: value[r] is known */
    uint64_t pc;
    struct memory memory;
};

struct machine {
    uint16_t elf; /* EM_… */
    uint8_t word;
    uint8_t stack;   /* DWARF number of the stack pointer */
    uint8_t pc;      /* and of the program counter, which expressions may use; or NO_REGISTER */
    uint8_t handler; /* and of the register with the handler's address at __builtin_eh_return */
    /* Load pc, sp and the other registers, by perf's numbers. Return false if a required one is missing. */
    bool (*load)(struct state *state, uint64_t mask, const uint8_t *values);
    /* Find the caller by frame pointer, without a rule. `is_running`: the frame was interrupted, by the sample or a signal, so its registers
       are its own; on return, the same for the caller. Return false if there is no way on. */
    bool (*fallback)(struct state *state, bool *is_running);
    /* Whether `pc` is the code that returns from a signal handler, for files without rules for it; or NULL. `is_call`: `pc` is a return
       address. */
    bool (*is_trampoline)(struct state *state, bool is_call);
    /* If the rule of the innermost function did not lead to code: find the caller where it is after a push that the rules miss. Return
       whether it was found; or NULL. */
    bool (*mend)(struct state *state);
    /* Step from the innermost frame, whose function has no rules, to its caller. Return false if that is not certain; or NULL. */
    bool (*leave_bare)(struct state *state);
    /* Whether the return address `pc` was put on a new stack by makecontext(), so that there is no caller; or NULL. */
    bool (*is_first)(struct state *state);
    /* Step from the signal trampoline to the interrupted frame. */
    bool (*leave_signal)(struct state *state);
    /* The trampoline's rules lead to the interrupted function's caller, so leave_signal() is tried first. */
    bool rules_skip_interrupted;
    /* libunwind subtracts one from the interrupted address, not from the trampoline's. */
    bool perf_lowers_interrupted;
    struct unwind_interpreter interpreter;
    bool signed_pointers; /* return addresses may carry a signature in their upper bits */
};

extern const struct machine machine_x86_64, machine_i386, machine_aarch64;

static inline bool has_register(const struct state *state, unsigned reg) {
    return reg < REGISTERS_MAX && (state->present >> reg & 1);
}
static inline void set_register(struct state *state, unsigned reg, uint64_t value) {
    state->value[reg] = value;
    state->present |= 1ull << reg;
}

/* Read `size` bytes, 1 to 8, from the blocks, zero-extended. */
bool memory_block_bytes(const struct memory *memory, uint64_t address, unsigned size,
                        uint64_t *value);
/* Read a word from the copy of the stack, which is the common case, or from the blocks. */
static inline bool memory_stack_word(const struct memory *memory, uint64_t address,
                                     uint64_t *value) {
    uint64_t into = address - memory->base;
    if (into >= memory->size || memory->size - into < memory->word)
        return memory->block_count && memory_block_bytes(memory, address, memory->word, value);
    *value = memory->word == 8 ? load_u64(memory->stack + into) : load_u32(memory->stack + into);
    return true;
}
/* The same, or from a mapped file. On failure set memory->missed. */
bool memory_word(struct memory *memory, uint64_t address, uint64_t *value);
/* The same for `size` bytes, 1 to 8, zero-extended. */
bool memory_bytes(struct memory *memory, uint64_t address, unsigned size, uint64_t *value);

/* Evaluate a DWARF expression, in bounded time. Return false if it is malformed or needs a value that is not available. */
bool expression_value(struct state *state, const struct cfi_op *ops, size_t count, uint64_t cfa,
                      uint64_t *value);

/* Find a register's value by perf's number. */
bool perf_register(uint64_t mask, const uint8_t *values, unsigned number, uint64_t *value);

/* starts.c: whether Go runs this function on the thread's own stack, while the goroutine that called it has another. */
bool unwind_is_switch(struct text name);

#endif
