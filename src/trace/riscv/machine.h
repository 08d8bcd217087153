/*
 * Private to the room: the RISC-V machine that the built-in engine runs.
 *
 * Guest addresses are 32 bits wide: one reservation of 4 GiB holds them all, with a byte of rights for each page before it,
 * so an access is checked with one mask and one load. Code is translated block by block into `struct op`s; each op ends by
 * calling the next one (the compiler makes that a jump), so there is no loop and no switch. A block's instructions are taken off
 * `left` when it is entered; whatever ends early gives the rest back. Blocks are found by a table that has
 * an entry for each place an instruction may begin, and linked to each other once they are.
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
    PAGE_STORE = 2, /* stores need no second look: writable, and no code was translated from it */
    PAGE_EXECUTE = 4,
    PAGE_WRITE = 8, /* the guest may write */
    PAGE_MAPPED = 16,
};

/* ---- memory ------------------------------------------------------------------------------- */

struct guest_memory {
    uint8_t *base;               /* address 0; the rights are in front of it */
    uint8_t *rights;             /* by page */
    uint8_t *code;               /* a bit for each 64 bytes that were translated */
    VECTOR(uint32_t) code_pages; /* that have such bits */
    uint64_t mapped_pages;
    uint64_t max_pages;
};
bool memory_open(struct guest_memory *memory, struct error *error);
void memory_close(struct guest_memory *memory);
/* Whole pages; what was there is gone. False if it does not fit into the address space or the limit. */
bool memory_map(struct guest_memory *memory, uint64_t address, uint64_t size, unsigned rights);
void memory_unmap(struct guest_memory *memory, uint64_t address, uint64_t size);
bool memory_protect(struct guest_memory *memory, uint64_t address, uint64_t size, unsigned rights);
bool memory_is_free(const struct guest_memory *memory, uint64_t address, uint64_t size);
/* The lowest or highest run of free pages in [low, high); 0 if there is none. */
uint64_t memory_find(const struct guest_memory *memory, uint64_t size, uint64_t low, uint64_t high);
/* Where the guest's [address, +size) is, if it has these rights throughout, else NULL. */
uint8_t *memory_at(const struct guest_memory *memory, uint64_t address, uint64_t size,
                   unsigned rights);
/* Whether translated code lies in the range. */
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
    uint8_t rd, rs1, rs2, rs3; /* rd of x0 is 32, which nobody reads */
    int32_t imm;
};

struct block {
    uint32_t pc;
    uint32_t count; /* instructions */
    uint64_t unused;
    struct op ops[];
};

/* Behind an op that ends a block. Addresses always, blocks once they are known. */
struct links {
    struct block *taken;
    struct block *next;
    uint32_t taken_pc; /* of an indirect jump: where its function begins */
    uint32_t next_pc;
    uint32_t pc;
    uint32_t reach; /* of an indirect jump: how far from there the stack stays as it is */
};

/* Of each op: where it comes from, and how many instructions of its block are not done before it. */
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
    FAULT_SYSCALL, /* what it was is in fault_text */
};

struct machine {
    uint64_t x[33];
    uint64_t f[32];
    struct flow flow;
    uint64_t limit;   /* `left` was this when it was 0 instructions */
    uint64_t counted; /* of the weight, already in the trie */
    uint64_t weighed; /* the weight, unless that is instructions */
    bool weighs;      /* it is not */
    bool counts;      /* stacks are followed at all */
    bool misaligned;  /* is allowed */
    uint8_t frm;
    struct float_context floats; /* its flags are fflags */
    uint64_t loaded;
    uint8_t xlen;
    uint64_t reservation; /* of the last lr, or NO_ADDRESS */
    uint32_t *map;        /* pc / 2 → slot of its block, 0: not translated */
    struct op *slots;     /* all blocks */
    struct op_site *sites;
    uint32_t slot_count, slot_max;
    struct guest_memory memory;

    /* Set by what left the blocks. */
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
/* Runs until `limit` instructions in all were executed, exactly, or something else than that happened (not LEAVE_LINK, _CSR or
   _FLUSH, which are dealt with inside). m->pc is where to go on. */
void machine_run(struct machine *m, uint64_t limit);
uint64_t machine_executed(const struct machine *m);

/* ---- translation (translate.c) ------------------------------------------------------------ */

/* The block at pc, of at most `max` instructions (those are never found again if max is small). NULL: no room, flush. */
struct block *machine_translate(struct machine *m, uint32_t pc, uint32_t max);
void machine_flush(struct machine *m);
uint64_t machine_weight_of(const struct machine *m, const struct instruction *instruction);
/* The instruction at pc; false if it can't be fetched. */
bool machine_fetch(const struct machine *m, uint64_t pc, struct instruction *instruction);

#define HANDLER(name)                                                                              \
    const struct op *do_##name(struct machine *m, const struct op *op, uint8_t *memory,            \
                               int64_t left)
#define X(name) HANDLER(name);
RISCV_ALL(X)
#undef X
/* 32-bit forms where the 64-bit machine's word forms do not serve. */
#define MACHINE_NARROW(X) X(lb) X(lh) X(lw) X(lbu) X(lhu) X(sb) X(sh) X(sw)
#define X(name) HANDLER(name##_narrow);
MACHINE_NARROW(X)
#undef X
/* The lr to the last amo in the order of RISCV_ATOMIC's words. */
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
HANDLER(tail);  /* tail call of links.taken_pc, then go */
HANDLER(call_plain);
HANDLER(call);
HANDLER(jalr_plain);
HANDLER(jalr_call);
HANDLER(jalr_return);
HANDLER(jalr_jump);
HANDLER(jalr_swap);
HANDLER(illegal);
HANDLER(fetch_fault);
HANDLER(stop); /* leaves with LEAVE_BUDGET at links.taken_pc */

/* ---- for handlers ------------------------------------------------------------------------- */

/* gcc makes calls at the end jumps when told to (the pragma in run_*.c). In other builds each op returns the next to machine_run's loop. */
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
/* Kept out of the handlers, so that those need no frame of their own. */
#define SLOW __attribute__((noinline, cold))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

const struct op *machine_leave(struct machine *m, enum leave why, uint64_t pc, int64_t left);
/* At `op`, which has not been done. */
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

/* Aligned, below 4 GiB, and the page has the right. */
static inline bool machine_may(const uint8_t *memory, uint64_t address, unsigned size,
                               unsigned right) {
    return LIKELY(!(address & (0xffffffff00000000ull | (size - 1)))) &&
           LIKELY(memory[(int64_t)(address / PAGE_SIZE) - (int64_t)PAGE_COUNT] & right);
}

/*
 * What is not plain. Results are left in m (loaded, fault, floats) and never in locals whose address is taken: a handler that had such
 * locals could not end in a jump, and the stack would grow with each instruction.
 */
bool machine_load_slow(struct machine *m, uint64_t address, unsigned size);
/* 0: fault; 1: done; 2: done, and translated code was overwritten. */
int machine_store_slow(struct machine *m, uint64_t address, unsigned size, uint64_t value);

#endif
