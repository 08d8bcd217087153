/*
 * Private to the room: the memory that wick shares with its plugin inside QEMU.
 *
 * wick creates it, QEMU inherits the descriptor, and the plugin counts into it. So the counts survive however QEMU ends, by exit, fault or
 * kill. The file is large and sparse: only touched pages cost memory.
 */
#ifndef WICK_TRACE_QEMU_SHARED_H
#define WICK_TRACE_QEMU_SHARED_H

#include "trace/trace.h"

#define SHARED_MAGIC 0x31554d45516b6377ull
#define SHARED_THREADS 4096
#define SHARED_OBJECTS 1024
#define SHARED_NODES (1u << 27)
#define SHARED_PATH 1000

/* One for each of QEMU's cpus, which are the guest's threads; written only by that cpu. What each block touches is in one cache line. */
struct shared_thread {
    uint64_t count; /* instructions executed */
    uint64_t
        expected; /* `count` after the block `before`; if equal, nothing was executed in between */
    const void *before; /* private to the plugin: the last block it was called for */
    uint64_t weight;    /* if it is not instructions; else unused */
    uint64_t expected_weight;
    uint64_t
        flushed; /* weight or instructions that are already in the trie. The rest belongs to `node` */
    uint32_t node;
    uint32_t unused;
    uint64_t until; /* private to the plugin: the count at which its turn ends */
    uint64_t unmatched;
    uint64_t unmatched_pc;
    uint64_t dropped;
} __attribute__((aligned(128)));

/* A file that code was executed from, and the bias of its addresses. */
struct shared_object {
    uint64_t start, end; /* of the mapping */
    uint64_t bias;
    char path[SHARED_PATH];
};

struct shared {
    uint64_t magic;
    uint64_t budget;
    uint32_t weight;     /* enum trace_weight */
    int32_t wick;        /* its process: if it is gone, counts are not read */
    uint32_t node_count; /* the trie's */
    uint32_t started;    /* something was executed */
    uint32_t object_count;
    uint64_t spent;          /* instructions of all threads; kept only with a budget */
    uint32_t over_budget;    /* the budget was exceeded */
    uint32_t unknown_target; /* the plugin can't tell calls from jumps on this machine */
    uint32_t thread_count;   /* numbers that were used */
    uint32_t uncounted;      /* threads whose numbers were too large */
    uint32_t parallel;       /* threads run side by side */
    uint32_t is_free;        /* threads run in parallel, because no order was found */
    uint64_t unordered;      /* waits that the host ended, not the threads' order */
    struct shared_thread threads[SHARED_THREADS];
    struct shared_object objects[SHARED_OBJECTS];
    struct trie_node nodes[];
};

#define SHARED_SIZE (sizeof(struct shared) + (size_t)SHARED_NODES * sizeof(struct trie_node))

/* Return a thread's weight, in either unit. */
static inline uint64_t shared_weight(const struct shared *shared,
                                     const struct shared_thread *thread) {
    return shared->weight == WEIGHT_INSTRUCTIONS ? thread->count : thread->weight;
}

#endif
