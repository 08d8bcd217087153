/*
 * Private to this room: one worker of pass 2. It decodes samples, completes chains that the recording has only in parts (unwound.c), and counts
 * equal stacks; build.c makes nodes of them.
 */
#ifndef WICK_PROFILE_WORKER_H
#define WICK_PROFILE_WORKER_H

#include "profile/chain.h"
#include "profile/memories.h"
#include "unwind/unwind.h"

enum { BATCH = 16 };

/* What a stack's node and ending depend on besides its chain. */
enum {
    STACK_TYPED = 1, /* the chain consists of chain_frames, not of words in the file */
    STACK_LBR = 2,
    STACK_ALONE = 4,    /* no chain was recorded: the address is the sample's own */
    STACK_NO_USER = 8,  /* the event records no user part of chains */
    STACK_NO_SPACE = 16 /* nothing is mapped in the process: a kernel thread has no user part */
};

/* A recorded or completed chain of one series, and its counts: one cache line. */
struct counted_stack {
    uint64_t hash;     /* of everything that its node and ending depend on, so not the series */
    const void *chain; /* words in the file, or chain_frames in the worker's arena */
    uint64_t epochs;
    uint64_t samples;
    uint64_t weight;
    uint32_t check;  /* 32 more bits of the chain's hash */
    uint32_t series; /* in the worker's tree; its ending is unknown there */
    union {
        uint32_t user; /* roots of the spaces, until it is built */
        uint32_t node; /* afterwards: in its builder's tree */
    };
    union {
        uint32_t kernel;
        uint32_t ends; /* its last two frames: a number in its builder's list */
    };
    uint16_t chain_count; /* words or frames: a record has at most 64 KB */
    uint16_t worker;
    uint16_t builder; /* number of the builder whose tree it goes into */
    uint8_t mode : 4; /* PERF_RECORD_MISC_… */
    /* The unwinder's; ENDING_UNKNOWN for recorded chains: see ending_of_stack(). */
    uint8_t ending : 3;
    uint8_t is_deep : 1; /* once built: as long as the kernel allows */
    uint8_t flags;       /* STACK_… */
};
static_assert(sizeof(struct counted_stack) == 64, "one cache line");

static inline size_t stack_bytes(const struct counted_stack *stack) {
    return stack->chain_count *
           (stack->flags & STACK_TYPED ? sizeof(struct chain_frame) : sizeof(uint64_t));
}

/*
 * Whether two stacks have the same nodes and ending. Chains are compared by 96 bits of a hash that is keyed with a secret, not byte by byte:
 * the other chain is on some page of the file that is in no cache, and fetching it for every sample made reading 8 % slower. Among sixteen
 * million distinct chains two have the same bits in one of 10^14 recordings.
 */
static inline bool stack_is_twin(const struct counted_stack *a, const struct counted_stack *b) {
    return a->hash == b->hash && a->check == b->check && a->epochs == b->epochs &&
           a->chain_count == b->chain_count && a->mode == b->mode && a->ending == b->ending &&
           a->flags == b->flags;
}

/* A sample whose index slot has been prefetched, but not looked at yet. */
struct pending {
    struct counted_stack stack;
    struct key key;
    uint64_t weight;
    uint32_t samples;
    uint32_t cpu;
    uint32_t candidate; /* the index's entry for its hash */
};

/* What notes tell of samples that count in the same views. */
struct worker_counts {
    struct unwinder *unwinder; /* which counts too; NULL until a sample needs it */
    uint64_t filtered;
    uint64_t guests;
    uint64_t unmatched;   /* user chains that were never recorded */
    uint64_t interrupted; /* stacks that end at a signal handler on a stack of its own */
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
    struct arena arena;                /* holds STACK_TYPED chains */
    struct pending pending[BATCH + 1]; /* some samples count twice */
    unsigned pending_count;
    struct chain_frames frames;      /* the current chain, if it is STACK_TYPED */
    VECTOR(uint64_t) stack_pointers; /* of its last frames, those that were unwound */
    struct merger *merger;           /* NULL until the first stack of an interpreter */
    uint16_t number;
    uint8_t views;               /* of the current sample: see tree/tree.h, times_view() */
    struct unwind_blocks blocks; /* of the current sample */
    struct buffer comm;
    struct known_series last_series[2];              /* of samples as measured; of all others */
    struct worker_counts counts[VIEWS_OF_TIMES + 1]; /* by the samples' views */
    APART;
};

/* ---- unwound.c ---- */

/* Complete the sample's chain if the recording has it only in parts. Return flags: with STACK_TYPED the chain is in w->frames until the next
   call; else it is the sample's. Set *ending to the unwinder's, or to ENDING_UNKNOWN. */
uint8_t chain_complete(struct worker *w, struct perfdata_sample *sample, const struct space_at *at,
                       uint8_t *ending);

/* Decode the recorded chain into w->frames. */
void chain_decode(struct worker *w, const struct perfdata_sample *sample);

/* ---- merge.c ---- */

/* Merge the interpreter's stack at the sample with the chain that chain_complete() left. Return flags, as that does. */
uint8_t chain_merge(struct worker *w, const struct perfdata_sample *sample,
                    const struct space_at *at, uint8_t flags, uint8_t *ending);
void merger_free(struct merger *merger);

/* ---- builders.c ---- */

/* Make as many builders as threads, up to a limit. */
struct building *building_begin(struct reading *reading, unsigned threads);
/* Return the number of the builder of a stack. */
uint16_t building_share(const struct building *building, const struct counted_stack *stack);
/* Begin to read the files with the code of a stack that waits to be built. */
void building_prefetch(const struct building *building, const struct counted_stack *stack);
/* Build the stacks of all workers. */
void building_add_waiting(struct building *building, struct worker *workers, unsigned count);
/* Add everything built, and all the workers' counts, to the profile's tree. */
void building_end(struct building *building, const struct worker *workers, unsigned count);

#endif
