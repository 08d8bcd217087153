/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * What the BPF program of allocations (heap.bpf.c) and its loader (heap_bpf.c) have in common. Nothing is included: the one side has the kernel's types, the
 * other the C library's.
 */
#ifndef WICK_RECORD_HEAP_BPF_H
#define WICK_RECORD_HEAP_BPF_H

enum {
    CATCH_STACK = 16384,
    CATCH_REGISTERS = 13,     /* at most: 8 of x86-64, 13 of aarch64; in the order of heap/ring.h */
    CATCH_RING = 16 << 20,    /* bytes: about a thousand allocations */
    CATCH_FREES = 1 << 20,    /* bytes: twenty thousand frees */
    CATCH_LIVE = 1 << 17,     /* recorded blocks that are alive at once */
    CATCH_UNTHROWN = 1 << 30, /* operator new of more is let pass: it may throw */
};

/* How a function of an allocator is called: where its size is, and what it returns. */
enum catch_kind {
    CATCH_MALLOC,
    CATCH_CALLOC,
    CATCH_REALLOC,
    CATCH_REALLOCARRAY,
    CATCH_POSIX_MEMALIGN,
    CATCH_ALIGNED, /* the size is the second argument */
    CATCH_NEW,     /* as malloc, but it may throw */
    CATCH_FREE,
    CATCH_KINDS
};
/* In the cookie, beside the kind: it may call another one, so its end has to be seen even if it is not taken. */
enum { CATCH_MAY_NEST = 0x100 };

enum caught_kind { CAUGHT_ALLOC = 1, CAUGHT_FREE = 3 }; /* as enum heap_kind */

struct caught_free {
    unsigned int kind, cpu, pid, tid;
    unsigned long long time, address;
};

struct caught {
    struct caught_free head;
    unsigned long long bytes, mean;
    unsigned long long registers[CATCH_REGISTERS];
    unsigned long long stack_size;
    unsigned char stack[CATCH_STACK];
};

/* The program's variables, which both sides read and write. */
struct catch_variables {
    unsigned long long mean;  /* 0: nothing is taken */
    unsigned long long calls; /* that were watched */
    unsigned long long lost, lost_frees;
};

#endif
