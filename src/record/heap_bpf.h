/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Shared by the BPF program for allocations (heap.bpf.c) and its loader (heap_bpf.c). This header includes nothing, because one side uses the
 * kernel's types and the other the C library's.
 */
#ifndef WICK_RECORD_HEAP_BPF_H
#define WICK_RECORD_HEAP_BPF_H

enum {
    CATCH_STACK = 16384,
    CATCH_REGISTERS = 13,     /* at most: 8 of x86-64, 13 of aarch64; in the order of heap/ring.h */
    CATCH_RING = 16 << 20,    /* bytes: about a thousand allocations */
    CATCH_FREES = 1 << 20,    /* bytes: twenty thousand frees */
    CATCH_LIVE = 1 << 17,     /* recorded blocks that are alive at once */
    CATCH_UNTHROWN = 1 << 30, /* larger calls of operator new are skipped, because they may throw */
};

/* The signature of an allocator's function: where its size is, and what it returns. */
enum catch_kind {
    CATCH_MALLOC,
    CATCH_CALLOC,
    CATCH_REALLOC,
    CATCH_REALLOCARRAY,
    CATCH_POSIX_MEMALIGN,
    CATCH_ALIGNED, /* the size is the second argument */
    CATCH_NEW,     /* as malloc, but it may throw */
    CATCH_FREE,
    /* mappings */
    CATCH_MMAP,
    CATCH_MUNMAP,
    CATCH_MREMAP,
    CATCH_SBRK,
    CATCH_BRK,
};
/*
 * The cookie of a probe: the kind, a flag, and for mappings how many pages the code of the probe's file extends before and after the page of
 * the probe. A call from within that code is the C library's own, wherever it is loaded.
 */
enum {
    CATCH_MAY_NEST =
        0x100, /* it may call another one, so its return must be seen even if it is not sampled */
    CATCH_BEFORE_SHIFT = 16,
    CATCH_AFTER_SHIFT = 40,
    CATCH_PAGES = (1 << 24) - 1,
    CATCH_PAGE = 4096,
};

/* As enum heap_kind. */
enum caught_kind {
    CAUGHT_ALLOC = 1,
    CAUGHT_FREE = 3,
    CAUGHT_MAP = 4,
    CAUGHT_REMAP = 6,
    CAUGHT_UNMAP = 8
};

struct caught_free {
    unsigned int kind, cpu, pid, tid;
    unsigned long long time, address;
};

struct caught_unmap {
    struct caught_free head;
    unsigned long long bytes;
};

struct caught {
    struct caught_free head;
    unsigned long long bytes, mean;
    unsigned long long registers[CATCH_REGISTERS];
    unsigned long long stack_size;
    unsigned char stack[CATCH_STACK];
};

/* The program's variables, read and written by both sides. */
struct catch_variables {
    unsigned long long mean;  /* 0: nothing is taken */
    unsigned long long calls; /* that were watched */
    unsigned long long lost, lost_frees;
    unsigned long long page; /* bytes */
};

#endif
