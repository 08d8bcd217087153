/*
 * Private to the room: one worker of pass 2. It decodes samples, makes whole the chains that the recording left in parts (unwound.c), and
 * counts what is alike; build.c makes nodes of what it met.
 */
#ifndef WICK_PROFILE_WORKER_H
#define WICK_PROFILE_WORKER_H

#include "profile/chain.h"
#include "unwind/unwind.h"

enum { BATCH = 16 };

/* What the node and ending of a stack depend on beside its chain. */
enum {
    STACK_TYPED = 1, /* the chain is frames of our own making, not words of the file */
    STACK_LBR = 2,
    STACK_ALONE = 4,    /* no chain was recorded: the address is the sample's own */
    STACK_NO_USER = 8,  /* the event records no user part of chains */
    STACK_NO_SPACE = 16 /* nothing is mapped in the process: a kernel thread has no user part */
};

/* A chain as recorded, or made, under one series, and what was counted on it: one cache line. */
struct counted_stack {
    uint64_t hash;     /* of all that its node and ending depend on: the series is not in it */
    const void *chain; /* words in the file, or chain_frames in the worker's arena */
    uint64_t epochs;
    uint64_t samples;
    uint64_t weight;
    uint32_t check;  /* 32 more bits of the chain's hash */
    uint32_t series; /* in the worker's tree; its ending is unknown there */
    union {
        uint32_t user; /* roots of the spaces, until it is built */
        uint32_t node; /* from then on: in its builder's tree */
    };
    union {
        uint32_t kernel;
        uint32_t ends; /* its last two frames, by number: in its builder's list */
    };
    uint16_t chain_count; /* words or frames: a record has at most 64 KB */
    uint16_t worker;
    uint16_t builder; /* by number: whose tree it goes into */
    uint8_t mode : 4; /* PERF_RECORD_MISC_… */
    /* As the unwinder has it; of recorded chains ENDING_UNKNOWN, and ending_of_stack() tells. */
    uint8_t ending : 3;
    uint8_t is_deep : 1; /* once it is built: as long as the kernel makes them */
    uint8_t flags;       /* STACK_… */
};
static_assert(sizeof(struct counted_stack) == 64, "one cache line");

static inline size_t stack_bytes(const struct counted_stack *stack) {
    return stack->chain_count *
           (stack->flags & STACK_TYPED ? sizeof(struct chain_frame) : sizeof(uint64_t));
}

/*
 * Whether two stacks have the same nodes and ending. Their chains are not compared byte by byte, but by 96 bits of a hash that is keyed with a
 * secret: the other chain is some page of the file that no cache has, and fetching it for every sample made reading 8 % slower.
 * Among sixteen million distinct chains two that differ have the same bits in one of 10^14 recordings.
 */
static inline bool stack_is_twin(const struct counted_stack *a, const struct counted_stack *b) {
    return a->hash == b->hash && a->check == b->check && a->epochs == b->epochs &&
           a->chain_count == b->chain_count && a->mode == b->mode && a->ending == b->ending &&
           a->flags == b->flags;
}

/* A sample whose place among the stacks has been asked for, but not yet looked at. */
struct pending {
    struct counted_stack stack;
    struct key key;
    uint64_t weight;
    uint32_t samples;
    uint32_t cpu;
    uint32_t candidate; /* what the index knows under its hash */
};

struct known_series {
    struct series series;
    uint32_t id; /* 0: not known yet */
};

struct worker {
    struct reading *reading;
    struct tree
        *tree; /* a part: series, threads, notes, and samples whose node is a stack's number */
    struct space_cursor cursor;
    struct labels_cursor labels;
    VECTOR(struct counted_stack) stacks; /* [0] is none */
    struct index index;                  /* of the stacks */
    struct building *building;
    struct builder *builder;           /* NULL: the stacks are built when all pieces are read */
    struct arena arena;                /* chains of our own making */
    struct pending pending[BATCH + 1]; /* some samples count twice */
    unsigned pending_count;
    struct chain_frames frames;      /* the chain at hand, if it is of our own making */
    VECTOR(uint64_t) stack_pointers; /* of its last frames, as many as were unwound */
    struct merger *merger;           /* NULL until a stack of an interpreter is met */
    uint16_t number;
    struct unwinder *unwinder; /* NULL until a sample needs it */
    struct unwinder *unnoted;  /* the same, for samples that no note is to count */
    bool is_unnoted;
    struct buffer comm;
    struct known_series last_series[2]; /* of samples as measured; of all others */
    uint64_t filtered;
    uint64_t guests;
    APART;
};

/* ---- unwound.c ---- */

/* Complete the sample's chain where the recording has it in parts. Returns flags: with STACK_TYPED it is in w->frames, until the next call;
   else it is the sample's. *ending is the unwinder's, or ENDING_UNKNOWN. */
uint8_t chain_complete(struct worker *w, struct perfdata_sample *sample, const struct space_at *at,
                       uint8_t *ending);

/* Put the recorded chain into w->frames, as it is. */
void chain_decode(struct worker *w, const struct perfdata_sample *sample);

/* ---- merge.c ---- */

/* Merge what an interpreter ran at the sample with the chain, as chain_complete() left it. Returns flags, as that does. */
uint8_t chain_merge(struct worker *w, const struct perfdata_sample *sample,
                    const struct space_at *at, uint8_t flags, uint8_t *ending);
void merger_free(struct merger *merger);

/* ---- builders.c ---- */

/* As many builders as threads, up to a limit. */
struct building *building_begin(struct reading *reading, unsigned threads);
/* The number of the builder whose stack it is. */
uint16_t building_share(const struct building *building, const struct counted_stack *stack);
/* Begins to read the files that a stack, which waits to be built, has its code in. */
void building_prefetch(const struct building *building, const struct counted_stack *stack);
/* Builds the stacks of all workers. */
void building_add_waiting(struct building *building, struct worker *workers, unsigned count);
/* Adds what was built, and all that the workers counted, to the profile's tree. */
void building_end(struct building *building, const struct worker *workers, unsigned count);

#endif
