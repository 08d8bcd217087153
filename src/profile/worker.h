/*
 * Private to the room: one worker of pass 2. unwound.c makes chains of stacks that were copied, chain.c makes nodes
 * of chains, pass2.c counts.
 */
#ifndef WICK_PROFILE_WORKER_H
#define WICK_PROFILE_WORKER_H

#include "profile/reading.h"
#include "unwind/unwind.h"

enum { LOCATION_CACHE = 1 << 15, COMPAT_DEPTH = 127, BATCH = 16 };

/* Our own marker, in chains that chain_unwind() made and nowhere else: a user address follows that is no return address. */
#define CHAIN_UNWOUND (CONTEXT_MARKERS_FROM + 0x123)

/* One entry of a chain: an address, and what is known of it from its place. */
struct entry {
    uint64_t ip;
    uint8_t mode;
    uint8_t call; /* a return address */
    uint8_t unwound;
};

/* A way from the root: its addresses stand for themselves by a hash of 64 bits. */
struct prefix {
    uint64_t hash;
    uint32_t node;
};

struct cached_location {
    uint64_t ip;
    uint64_t epochs;
    uint16_t what;  /* mode, call and unwound bit + 1; 0: empty */
    uint16_t start; /* whether a stack may end there: 0: not asked, 1: no, 2: yes */
    uint32_t location;
};

/* What was counted on one chain under one series. Two to a cache line. */
struct counted {
    uint64_t hash; /* 0: an empty slot */
    uint32_t node;
    uint32_t series; /* with the chain's ending */
    uint64_t samples;
    uint64_t weight;
};

/* A sample whose place in the table has been asked for, but not yet looked at. */
struct pending {
    struct perfdata_sample sample;
    struct space_at at;
    struct key key;
    uint64_t hash;
    uint64_t weight;
    uint32_t series; /* without it */
    uint8_t ending;  /* ENDING_UNKNOWN: the chain will tell */
};

struct worker {
    struct reading *reading;
    struct tree *tree;
    struct space_cursor cursor;
    struct cached_location *cache;
    struct counted *table; /* open addressing, at most half full */
    size_t table_size;
    size_t table_used;
    struct pending pending[BATCH];
    unsigned pending_count;
    VECTOR(struct entry) entries; /* of the chain at hand, leaf first */
    VECTOR(uint64_t) hashes;       /* of the entries, from the root: see chain.c */
    struct index prefix_index;     /* ways from the root that were gone before, and where they end */
    VECTOR(struct prefix) prefixes; /* [0] is none */
    struct buffer joined;      /* a chain with its deferred or unwound part */
    bool is_unwound;           /* it has CHAIN_UNWOUND in it */
    bool is_lbr;
    struct unwinder *unwinder; /* NULL until a sample needs it */
    struct buffer comm;
    struct series last_series;
    uint32_t last_series_id;
    uint64_t filtered;
    uint64_t guests;
};

/* The node of a sample's chain, new or not. */
uint32_t chain_node(struct worker *w, const struct perfdata_sample *sample,
                    const struct space_at *at);
/* Whether the chain goes on in a record of its own. chain_join() then makes it whole, in w->joined, until the next call. */
bool chain_is_deferred(const struct perfdata_sample *sample);
void chain_join(struct worker *w, struct perfdata_sample *sample);
/* Whether the sample carries what unwinding needs. chain_unwind() then makes its chain, in w->joined, until the next call; it returns
   the ending. */
bool chain_is_unwindable(const struct worker *w, const struct perfdata_sample *sample);
uint8_t chain_unwind(struct worker *w, struct perfdata_sample *sample, const struct space_at *at);
/* Call stacks kept by the processor, and leaf callers known by their link register; both leave the chain in w->joined. */
bool chain_is_lbr(const struct worker *w, const struct perfdata_sample *sample);
void chain_from_lbr(struct worker *w, struct perfdata_sample *sample);
bool chain_has_link_register(const struct worker *w, const struct perfdata_sample *sample);
void chain_add_leaf_caller(struct worker *w, struct perfdata_sample *sample,
                           const struct space_at *at);
/* The ending of the recorded chain that chain_node() was last called for. */
uint8_t chain_ending(struct worker *w, const struct space_at *at);
struct cached_location *location_cached(struct worker *w, const struct space_at *at,
                                        const struct entry *entry);

#endif
