/*
 * unwind: registers and a slice of stack, as a sample carries them, to the addresses of the callers.
 *
 * For each frame: the rule for its address from .eh_frame, else .debug_frame (both through objects_cfi), else the architecture's
 * step by frame pointer, as elfutils does it. A caller is looked up one byte before its return address, except
 * where a signal interrupted it. Stack bytes are read in place; what lies outside the slice is read from the
 * mapped files' read-only segments or not at all.
 *
 * Each worker has an unwinder of its own: a direct-mapped cache from (epoch, address) to rule and mapping makes a frame cost a few tens of
 * nanoseconds; nothing is allocated for a sample.
 *
 * Every stack says how it ends. Complete: the rule says that there is no caller, or the return address is 0, or the function is where a
 * process or thread starts. Truncated: the slice, or the limit on depth, ran out. Broken: anything else. Addresses that cannot be
 * code are never reported as callers.
 */
#ifndef WICK_UNWIND_H
#define WICK_UNWIND_H

#include "object/object.h"
#include "space/space.h"

enum unwind_ending { UNWIND_COMPLETE, UNWIND_TRUNCATED, UNWIND_BROKEN };

enum unwind_arch { UNWIND_X86_64, UNWIND_AARCH64, UNWIND_OTHER };
/* Of perf's arch string; an empty one is taken for x86_64, as perf does. */
enum unwind_arch unwind_arch_of(struct text arch);

/* Where HotSpot's interpreter has what in its frames, from 9 on: so many bytes below what the frame pointer points at; and, by DWARF numbers, that
   register and the one in which the bytecode is while it runs. */
struct unwind_interpreter {
    uint8_t sender; /* where the caller's stack ends */
    uint8_t method;
    uint8_t locals;
    uint8_t bytecode;
    uint8_t frame_pointer;
    uint8_t bytecode_register;
};
/* NULL: of such a machine nothing is known. */
const struct unwind_interpreter *unwind_interpreter(enum unwind_arch arch);

struct unwind_options {
    enum unwind_arch arch;
    struct quirks quirks;
};

/* What a sample has to offer. All pointers stay the caller's. */
struct unwind_sample {
    uint64_t abi;             /* PERF_SAMPLE_REGS_ABI_… */
    uint64_t register_mask;   /* the event's regs_user */
    const uint8_t *registers; /* popcount(mask) unaligned u64s */
    const uint8_t *stack;     /* what was at the stack pointer */
    uint64_t stack_size;      /* bytes of it that are valid */
    /* Bytes that were asked for: more than the valid ones means that the stack ended there. */
    uint64_t stack_dumped;
    uint32_t user;  /* the space's root: where code is mapped */
    uint32_t epoch; /* the process's: the lower half of `epochs` */
    /* Frames of HotSpot's interpreter: where the address of a frame is that runs the method at `method`, of which `bytecode` or `other`
       may be the bytecode; 0: it is not known. NULL: there are none. */
    uint64_t (*interpreted)(const void *context, uint64_t method, uint64_t bytecode,
                            uint64_t other);
    const void *interpreted_context;
};

struct unwind_frame {
    uint64_t address; /* of the instruction, or the return address */
    const struct mapping
        *mapping;           /* of address - call; NULL: there is none, or it was not looked for */
    bool call;              /* a return address: what it belongs to is found one byte earlier */
    uint64_t stack_pointer; /* its local variables are from here to where its caller's begin */
};

struct unwind_stack {
    const struct unwind_frame *frames; /* innermost first; the unwinder's, until its next call */
    uint32_t count; /* 0: the sample's registers could not be used, and a note says so */
    enum unwind_ending ending;
};

struct unwinder;
struct unwinder *unwinder_new(struct objects *objects, const struct spaces *spaces,
                              const struct unwind_options *options);
void unwinder_free(struct unwinder *unwinder);
void unwinder_run(struct unwinder *unwinder, const struct unwind_sample *sample,
                  struct unwind_stack *stack);
/* The caller of a leaf at `pc`, for samples that carry the link register alone (`perf record -g` on aarch64): where the rules say that it is
   still there. perf takes it wherever it has nothing better, also when it is stale; quirks.stale_link_register does so. */
#define UNWIND_LINK_REGISTER_ONLY (1ull << 30)
bool unwinder_leaf_caller(struct unwinder *unwinder, const struct unwind_sample *sample,
                          uint64_t pc, struct unwind_frame *caller);
/* What could not be unwound and why, counted over all samples so far. */
void unwinder_notes(const struct unwinder *unwinder, struct notes *notes);

/* Whether a process or thread starts in the function of that name: _start, the clone family, Go's goexit, ret_from_fork, … */
bool unwind_is_start(struct text name);
/* The same for chains by frame pointer, which end a function or two earlier, as libc keeps no frame pointers there. */
bool unwind_is_first_by_frame_pointer(struct text name);

#endif
