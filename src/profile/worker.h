/*
 * Private to the room: one worker of pass 2. chain.c turns recorded chains into nodes, pass2.c counts.
 */
#ifndef WICK_PROFILE_WORKER_H
#define WICK_PROFILE_WORKER_H

#include "profile/reading.h"

enum { LOCATION_CACHE = 1 << 14, COMPAT_DEPTH = 127, BATCH = 16 };

/* One entry of a chain: an address, and what is known of it from its place. */
struct entry {
    uint64_t ip;
    uint8_t mode;
    uint8_t call; /* a return address */
};

struct cached_location {
    uint64_t ip;
    uint64_t epochs;
    uint32_t what; /* mode and call bit + 1; 0: empty */
    uint32_t location;
};

/* What was counted on one chain under one series. Two to a cache line. */
struct counted {
    uint64_t hash; /* 0: an empty slot */
    uint32_t node;
    uint32_t series;
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
    uint32_t series;
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
    VECTOR(struct entry) entries;  /* of the chain at hand, leaf first */
    VECTOR(struct entry) previous; /* of the new chain before it, root first, with the nodes on its way */
    VECTOR(uint32_t) previous_nodes;
    uint64_t previous_epochs;
    struct buffer joined; /* a chain with its deferred part */
    struct buffer comm;
    struct series last_series;
    uint32_t last_series_id;
    uint64_t filtered;
};

/* The node of a sample's chain, new or not. */
uint32_t chain_node(struct worker *w, const struct perfdata_sample *sample, const struct space_at *at);
/* Whether the chain goes on in a record of its own. chain_join() then makes it whole, in w->joined, until the next call. */
bool chain_is_deferred(const struct perfdata_sample *sample);
void chain_join(struct worker *w, struct perfdata_sample *sample);

#endif
