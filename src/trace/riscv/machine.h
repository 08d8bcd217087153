/*
 * Private to the room: the RISC-V machine that the built-in engine runs.
 *
 * Guest addresses are 32 bits wide. One reservation of 4 GiB holds them all, preceded by a byte of rights for each page, so an access is
 * checked with one mask and one load. Code is translated block by block into `struct op`s; each op ends by calling the next one (which the
 * compiler turns into a jump), so there is no loop and no switch. Entering a block subtracts its instructions from `left`; leaving it early
 * adds the rest back. Blocks are found by a table with an entry for each possible instruction address, and then linked to each other.
 */
#ifndef WICK_TRACE_MACHINE_H
#define WICK_TRACE_MACHINE_H

#include "trace/riscv/riscv.h"
#include "trace/riscv/softfloat.h"
#include "trace/trace.h"

#define GUEST_SIZE (1ull << 32)
#define PAGE_SIZE 4096ull
#define PAGE_COUNT (GUEST_SIZE / PAGE_SIZE)

enum page_right {
    PAGE_READ = 1,
    PAGE_STORE = 2, /* stores need no further check: writable, and no code was translated from it */
    PAGE_EXECUTE = 4,
    PAGE_WRITE = 8, /* the guest may write */
    PAGE_MAPPED = 16,
};

/* ---- memory ------------------------------------------------------------------------------- */

struct guest_memory {
    uint8_t *base;               /* address 0; preceded by the rights */
    uint8_t *rights;             /* by page */
    uint8_t *code;               /* a bit for each 64 bytes that were translated */
    VECTOR(uint32_t) code_pages; /* that have such bits */
    uint64_t mapped_pages;
    uint64_t max_pages;
};
bool memory_open(struct guest_memory *memory, struct error *error);
void memory_close(struct guest_memory *memory);
/* Map whole pages, replacing what was there. Return false if they exceed the address space or the limit. */
bool memory_map(struct guest_memory *memory, uint64_t address, uint64_t size, unsigned rights);
void memory_unmap(struct guest_memory *memory, uint64_t address, uint64_t size);
bool memory_protect(struct guest_memory *memory, uint64_t address, uint64_t size, unsigned rights);
bool memory_is_free(const struct guest_memory *memory, uint64_t address, uint64_t size);
/* Return the lowest or highest run of free pages in [low, high), or 0 if there is none. */
uint64_t memory_find(const struct guest_memory *memory, uint64_t size, uint64_t low, uint64_t high);
/* Return where the guest's [address, +size) is, or NULL unless all of it has these rights. */
uint8_t *memory_at(const struct guest_memory *memory, uint64_t address, uint64_t size,
                   unsigned rights);
/* Whether the range contains translated code. */
bool memory_has_code(const struct guest_memory *memory, uint64_t address, uint64_t size);
void memory_mark_code(struct guest_memory *memory, uint64_t address, uint64_t size);
void memory_forget_code(struct guest_memory *memory);

/* ---- translated code ---------------------------------------------------------------------- */

struct machine;
struct op;
typedef const struct op *handler(struct machine *m, const struct op *op, uint8_t *memory,
                                 int64_t left);

struct op {
    handler *run;
    uint8_t rd, rs1, rs2, rs3; /* rd is 32 for x0; never read */
    int32_t imm;
};

struct block {
    uint32_t pc;
    uint32_t count; /* instructions */
    uint64_t unused;
    struct op ops[];
};

/* Follows an op that ends a block. Addresses are always set, blocks once they are known. */
struct links {
    struct block *taken;
    struct block *next;
    uint32_t taken_pc; /* of an indirect jump: the start of its function */
    uint32_t next_pc;
    uint32_t pc;
    uint32_t reach; /* of an indirect jump: how far from there the stack stays unchanged */
};

/* For each op: its address, and how many instructions of its block are not executed before it. */
struct op_site {
    uint32_t pc;
    uint32_t rest;
};

enum leave { LEAVE_BUDGET, LEAVE_LINK, LEAVE_ECALL, LEAVE_CSR, LEAVE_FAULT, LEAVE_FLUSH };
enum fault {
    FAULT_NONE,
    FAULT_LOAD,
    FAULT_STORE,
    FAULT_MISALIGNED,
    FAULT_FETCH,
    FAULT_ILLEGAL,
    FAULT_BREAK,
    FAULT_SYSCALL, /* described in fault_text */
};

struct machine {
    uint64_t x[33];
    uint64_t f[32];
    struct flow flow;
    uint64_t limit;   /* `left` before the first instruction */
    uint64_t counted; /* weight that is already in the trie */
    uint64_t weighed; /* the weight, unless it is instructions */
    bool weighs;      /* the weight is not instructions */
    bool counts;      /* follow stacks */
    bool misaligned;  /* is allowed */
    uint8_t frm;
    struct float_context floats; /* its flags are fflags */
    uint64_t loaded;
    uint8_t xlen;
    uint64_t reservation; /* of the last lr, or NO_ADDRESS */
    uint32_t *map;        /* pc / 2 → slot of its block; 0: not translated */
    struct op *slots;     /* all blocks */
    struct op_site *sites;
    uint32_t slot_count, slot_max;
    struct guest_memory memory;

    /* Set when the blocks are left. */
    enum leave leave;
    int64_t left;
    uint64_t pc; /* where to go on */
    struct block **link;
    const struct op *op;
    enum fault fault;
    uint64_t fault_pc, fault_address;
    char fault_text[160];
    uint64_t *reserved;
    size_t reserved_size;
    enum trace_weight weight;
};

bool machine_open(struct machine *m, unsigned xlen, struct error *error);
void machine_close(struct machine *m);
/* Run until exactly `limit` instructions in total were executed, or something else happened (except LEAVE_LINK, _CSR and _FLUSH, which are
   handled inside). m->pc is where to continue. */
void machine_run(struct machine *m, uint64_t limit);
uint64_t machine_executed(const struct machine *m);

/* ---- translation (translate.c) ------------------------------------------------------------ */

/* Translate the block at pc, of at most `max` instructions (with a small max it is not entered into the table). Return NULL if there is no
   room: flush. */
struct block *machine_translate(struct machine *m, uint32_t pc, uint32_t max);
void machine_flush(struct machine *m);
uint64_t machine_weight_of(const struct machine *m, const struct instruction *instruction);
/* Fetch and decode the instruction at pc; return false if it can't be fetched. */
bool machine_fetch(const struct machine *m, uint64_t pc, struct instruction *instruction);

#define HANDLER(name)                                                                              \
    const struct op *do_##name(struct machine *m, const struct op *op, uint8_t *memory,            \
                               int64_t left)
#define X(name) HANDLER(name);
RISCV_ALL(X)
#undef X
/* 32-bit forms where the word forms of the 64-bit machine can't be used. */
#define MACHINE_NARROW(X) X(lb) X(lh) X(lw) X(lbu) X(lhu) X(sb) X(sh) X(sw)
#define X(name) HANDLER(name##_narrow);
MACHINE_NARROW(X)
#undef X
/* From lr to the last amo, in the order of RISCV_ATOMIC's words. */
extern handler *const machine_atomic_narrow[11];
HANDLER(mulh_narrow);
HANDLER(mulhsu_narrow);
HANDLER(mulhu_narrow);
HANDLER(li); /* rd = imm, sign-extended */
HANDLER(li_unsigned);
HANDLER(li_wide); /* rd = the next slot */
HANDLER(mv);
HANDLER(nop);
HANDLER(weigh); /* m->weighed += imm */
HANDLER(go);    /* to links.taken */
HANDLER(tail);  /* tail call of links.taken_pc, then continue */
HANDLER(call_plain);
HANDLER(call);
HANDLER(jalr_plain);
HANDLER(jalr_call);
HANDLER(jalr_return);
HANDLER(jalr_jump);
HANDLER(jalr_swap);
HANDLER(illegal);
HANDLER(fetch_fault);
HANDLER(stop); /* leave with LEAVE_BUDGET at links.taken_pc */

/* ---- for handlers ------------------------------------------------------------------------- */

/* gcc turns tail calls into jumps if told to (the pragma in handlers.h). In other builds each op returns the next one to machine_run()'s
   loop. */
#if defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define MACHINE_THREADED 1
#define GO(target)                                                                                 \
    do {                                                                                           \
        const struct op *go_ = (target);                                                           \
        return go_->run(m, go_, memory, left);                                                     \
    } while (0)
#else
#define MACHINE_THREADED 0
#define GO(target)                                                                                 \
    do {                                                                                           \
        m->left = left;                                                                            \
        return (target);                                                                           \
    } while (0)
#endif
#define NEXT GO(op + 1)
/* Kept out of the handlers, so that those need no stack frame. */
#define SLOW __attribute__((noinline, cold))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

const struct op *machine_leave(struct machine *m, enum leave why, uint64_t pc, int64_t left);
/* Fault at `op`, which has not been executed. */
const struct op *machine_fault(struct machine *m, const struct op *op, enum fault fault,
                               uint64_t address, int64_t left);

#define ENTER(block_)                                                                              \
    do {                                                                                           \
        const struct block *enter_ = (block_);                                                     \
        left -= enter_->count;                                                                     \
        if (UNLIKELY(left < 0))                                                                    \
            return machine_leave(m, LEAVE_BUDGET, enter_->pc, left + enter_->count);               \
        GO(enter_->ops);                                                                           \
    } while (0)

/* Whether it is aligned, below 4 GiB, and the page has the right. */
static inline bool machine_may(const uint8_t *memory, uint64_t address, unsigned size,
                               unsigned right) {
    return LIKELY(!(address & (0xffffffff00000000ull | (size - 1)))) &&
           LIKELY(memory[(int64_t)(address / PAGE_SIZE) - (int64_t)PAGE_COUNT] & right);
}

/*
 * Accesses that are not plain. Results are left in m (loaded, fault, floats) and never in locals whose address is taken: a handler with such
 * locals could not end in a jump, and the stack would grow with each instruction.
 */
bool machine_load_slow(struct machine *m, uint64_t address, unsigned size);
/* Return 0 for a fault; 1 if done; 2 if done and translated code was overwritten. */
int machine_store_slow(struct machine *m, uint64_t address, unsigned size, uint64_t value);

#endif
