/*
 * unwind: find the callers of a sample from its registers and its copy of the stack.
 *
 * Each frame is unwound by the rule for its address from .eh_frame or .debug_frame (both through objects_cfi), or else by the
 * architecture's frame pointer, as elfutils does. A caller is looked up one byte before its return address, unless a signal interrupted
 * it. Stack bytes are read in place. Memory outside the copy is read from read-only segments of mapped files, or not at all.
 *
 * Each worker has an unwinder of its own. A direct-mapped cache from (epoch, address) to rule and mapping makes a frame cost a few tens of
 * nanoseconds; samples allocate nothing.
 *
 * Every stack has an ending. Complete: the rule says that there is no caller, the return address is 0, or a process or thread starts in
 * the function. Truncated: the copy of the stack or the depth limit ran out. Broken: anything else. An address that cannot be code is
 * never reported as a caller.
 */
#ifndef WICK_UNWIND_H
#define WICK_UNWIND_H

#include "object/object.h"
#include "space/space.h"

enum unwind_ending { UNWIND_COMPLETE, UNWIND_TRUNCATED, UNWIND_BROKEN };

enum unwind_arch { UNWIND_X86_64, UNWIND_AARCH64, UNWIND_OTHER };
/* Return the architecture of perf's arch string. An empty one means x86_64, as in perf. */
enum unwind_arch unwind_arch_of(struct text arch);

/* The frame layout of HotSpot's interpreter, from JDK 9 on. */
struct unwind_interpreter {
    /* Bytes below the address in the frame pointer: */
    uint8_t sender; /* the end of the caller's stack */
    uint8_t method;
    uint8_t locals;
    uint8_t bytecode;
    /* Registers, by DWARF number: */
    uint8_t frame_pointer;
    uint8_t bytecode_register; /* points at the current bytecode */
};
/* Return NULL if the layout on this architecture is unknown. */
const struct unwind_interpreter *unwind_interpreter(enum unwind_arch arch);

struct unwind_options {
    enum unwind_arch arch;
    struct quirks quirks;
};

/* A part of the stack beside the sample's copy. */
enum { UNWIND_BLOCK = 1024 };
struct unwind_block {
    uint64_t address;
    const uint8_t *bytes; /* UNWIND_BLOCK */
};

/* The parts of a sample that unwinding needs. The caller owns all pointers. */
struct unwind_sample {
    uint64_t abi;             /* PERF_SAMPLE_REGS_ABI_… */
    uint64_t register_mask;   /* the event's regs_user */
    const uint8_t *registers; /* popcount(mask) unaligned u64s */
    const uint8_t *stack;     /* the stack from the stack pointer on */
    uint64_t stack_size;      /* number of valid bytes */
    /* Number of bytes requested. If it is more than `stack_size`, the stack itself ended. */
    uint64_t stack_dumped;
    const struct unwind_block *blocks; /* by address; they do not overlap */
    size_t block_count;
    uint32_t user;  /* root of the address space */
    uint32_t epoch; /* of the process: the lower half of `epochs` */
    /* Return the address that stands for a frame of HotSpot's interpreter running the method at `method`; `bytecode` or `other` may be
       its current bytecode. Return 0 if it is unknown. NULL: the process has no such frames. */
    uint64_t (*interpreted)(const void *context, uint64_t method, uint64_t bytecode,
                            uint64_t other);
    const void *interpreted_context;
};

struct unwind_frame {
    uint64_t address;              /* the instruction, or the return address */
    const struct mapping *mapping; /* of address - call; NULL: none, or not looked up */
    bool call;                     /* a return address: its call is found one byte earlier */
    uint64_t stack_pointer;        /* the frame's variables end where the caller's begin */
};

struct unwind_stack {
    const struct unwind_frame *frames; /* innermost first; valid until the unwinder's next call */
    uint32_t count;                    /* 0: the registers are unusable, and a note says so */
    enum unwind_ending ending;
    bool
        is_interrupted; /* truncated: a signal handler ran on a stack of its own, and what it interrupted was not copied */
};

/* Return the stack pointer of a sample, or 0 if its registers lack it. */
uint64_t unwind_stack_pointer(enum unwind_arch arch, const struct unwind_sample *sample);

struct unwinder;
struct unwinder *unwinder_new(struct objects *objects, const struct spaces *spaces,
                              const struct unwind_options *options);
void unwinder_free(struct unwinder *unwinder);
void unwinder_run(struct unwinder *unwinder, const struct unwind_sample *sample,
                  struct unwind_stack *stack);
/* Find the caller of a leaf at `pc` for samples that have only the link register (`perf record -g` on aarch64). Return false unless the
   rules say that the register still holds the return address. perf uses it even if it is stale; so does quirks.stale_link_register. */
#define UNWIND_LINK_REGISTER_ONLY (1ull << 30)
bool unwinder_leaf_caller(struct unwinder *unwinder, const struct unwind_sample *sample,
                          uint64_t pc, struct unwind_frame *caller);
/* Note what could not be unwound and why, for all samples so far. */
void unwinder_notes(const struct unwinder *unwinder, struct notes *notes);

/* Whether a process or thread starts in the function of this name: _start, the clone family, Go's goexit, ret_from_fork, … */
bool unwind_is_start(struct text name);
/* The same for frame-pointer chains, which end a function or two earlier because libc keeps no frame pointers there. */
bool unwind_is_first_by_frame_pointer(struct text name);

#endif
