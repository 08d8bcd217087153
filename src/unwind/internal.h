/*
 * What the files of this room share: one frame's registers, the memory they point into, and what an architecture has to say.
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
    uint8_t word; /* 4 or 8 */
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
    uint8_t handler; /* and of what says where the handler is when __builtin_eh_return leaves */
    /* Takes pc, sp and the rest over from perf's numbering. False: one that is needed is missing. */
    bool (*load)(struct state *state, uint64_t mask, const uint8_t *values);
    /* The caller without any rule, by frame pointer. `is_running`: the frame was interrupted, by the sample or a signal, so
       registers are as it left them; then, of the caller. False: there is no way on. */
    bool (*fallback)(struct state *state, bool *is_running);
    /* Whether `pc` is the code that returns from a signal handler, for files without rules for it; or NULL. `is_call`: it is a
       return address. */
    bool (*is_trampoline)(struct state *state, bool is_call);
    /* The rule of the sample's own function led to no code: whether the caller is found where a push that the rules don't know of would have
       it; or NULL. */
    bool (*mend)(struct state *state);
    /* From such a frame to the interrupted one. */
    bool (*leave_signal)(struct state *state);
    /* The rules of what signal handlers return to lead to the interrupted function's caller: the signal's frame goes first. */
    bool rules_skip_interrupted;
    /* libunwind takes the minus one of the interrupted address, not of the trampoline's. */
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

/* A word of the slice; the common case. */
static inline bool memory_stack_word(const struct memory *memory, uint64_t address,
                                     uint64_t *value) {
    uint64_t into = address - memory->base;
    if (into >= memory->size || memory->size - into < memory->word)
        return false;
    *value = memory->word == 8 ? load_u64(memory->stack + into) : load_u32(memory->stack + into);
    return true;
}
/* The same, or from a mapped file. Remembers what it missed. */
bool memory_word(struct memory *memory, uint64_t address, uint64_t *value);
/* `size` bytes, 1 to 8, zero-extended. */
bool memory_bytes(struct memory *memory, uint64_t address, unsigned size, uint64_t *value);

/* The value of a DWARF expression, in bounded time. False: malformed, or it needs what is not there. */
bool expression_value(struct state *state, const struct cfi_op *ops, size_t count, uint64_t cfa,
                      uint64_t *value);

/* Finds values by perf's register numbers. */
bool perf_register(uint64_t mask, const uint8_t *values, unsigned number, uint64_t *value);

#endif
