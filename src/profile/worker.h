/*
 * Private to the room: one worker of pass 2. It decodes samples, makes whole the chains that the recording left in parts (unwound.c), and
 * counts what is alike; build.c makes nodes of what it met.
 */
#ifndef WICK_PROFILE_WORKER_H
#define WICK_PROFILE_WORKER_H

#include "profile/reading.h"
#include "unwind/unwind.h"

enum { BATCH = 16 };

/* Our own marker, in chains that chain_unwind() made and nowhere else: a user address follows that is no return address. */
#define CHAIN_UNWOUND (CONTEXT_MARKERS_FROM + 0x123)

/* A chain as recorded, or made, under one series, and what was counted on it: one cache line. */
struct stack {
    uint64_t hash;        /* of what its node and ending depend on: the series is not in it */
    const uint8_t *chain; /* in the file, or in the worker's arena */
    uint64_t epochs;
    uint64_t samples;
    uint64_t weight;
    union {
        uint32_t chain_count;
        uint32_t node; /* as soon as it has one: in its builder's tree */
    };
    uint32_t series; /* in the worker's tree; its ending is unknown there */
    uint32_t user;   /* roots of the spaces */
    uint32_t kernel;
    uint8_t mode;    /* PERF_RECORD_MISC_… */
    uint8_t ending;  /* ENDING_UNKNOWN: the chain will tell, when it is built */
    bool is_unwound; /* it has CHAIN_UNWOUND in it */
    bool is_lbr;
    bool is_alone;    /* no chain was recorded: the address is the sample's own */
    bool excludes_user; /* the event records no user part of chains */
    uint16_t builder;   /* by number: whose tree it goes into */
};

/* A sample whose place among the stacks has been asked for, but not yet looked at. */
struct pending {
    struct stack stack;
    struct key key;
    uint64_t weight;
    uint32_t cpu;
    uint32_t candidate; /* what the index knows under its hash */
    bool is_made;       /* the chain is in w->joined */
};

struct worker {
    struct reading *reading;
    struct tree *tree; /* a part: series, threads, notes, and samples whose node is a stack's number */
    struct space_cursor cursor;
    struct labels_cursor labels;
    VECTOR(struct stack) stacks; /* [0] is none */
    struct index index;          /* of the stacks */
    struct building *building;
    struct builder *builder; /* NULL: the stacks are built when all pieces are read */
    struct arena arena;      /* chains of our own making */
    struct pending pending[BATCH];
    unsigned pending_count;
    struct buffer joined; /* the chain at hand, if it is of our own making */
    bool is_unwound;      /* it has CHAIN_UNWOUND in it */
    bool is_lbr;
    struct unwinder *unwinder; /* NULL until a sample needs it */
    struct buffer comm;
    struct series last_series;
    uint32_t last_series_id;
    uint64_t filtered;
    uint64_t guests;
    APART;
};

/* ---- unwound.c: each leaves the chain in w->joined, until the next call ---- */

/* Whether the chain goes on in a record of its own, and then makes it whole. */
bool chain_is_deferred(const struct perfdata_sample *sample);
void chain_join(struct worker *w, struct perfdata_sample *sample);
/* Whether the sample carries what unwinding needs. chain_unwind() returns the ending. */
bool chain_is_unwindable(const struct worker *w, const struct perfdata_sample *sample);
uint8_t chain_unwind(struct worker *w, struct perfdata_sample *sample, const struct space_at *at);
/* Call stacks kept by the processor, and leaf callers known by their link register. */
bool chain_is_lbr(const struct worker *w, const struct perfdata_sample *sample);
void chain_from_lbr(struct worker *w, struct perfdata_sample *sample);
bool chain_has_link_register(const struct worker *w, const struct perfdata_sample *sample);
void chain_add_leaf_caller(struct worker *w, struct perfdata_sample *sample,
                           const struct space_at *at);

/* No chain was recorded, only an address. */
void chain_of_address(struct worker *w, struct perfdata_sample *sample);

/* ---- builders.c ---- */

/* As many builders as threads, up to a limit. */
struct building *building_begin(struct reading *reading, unsigned threads);
/* The number of the builder whose stack it is. */
uint16_t building_share(const struct building *building, const struct stack *stack);
/* Begins to read the files that a stack, which waits to be built, has its code in. */
void building_prefetch(const struct building *building, const struct stack *stack);
/* Builds the stacks of all workers. */
void building_add_waiting(struct building *building, struct worker *workers, unsigned count);
/* Adds what was built, and all that the workers counted, to the profile's tree. */
void building_end(struct building *building, const struct worker *workers, unsigned count);

#endif
