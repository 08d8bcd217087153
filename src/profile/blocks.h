/*
 * Private to the room: from allocations and frees to what each stack allocated, what of it was alive at the end and at the peak, and what lived shortly.
 *
 * Pass 1 hands over the samples of heap-alloc, heap-again and heap-free, and the records that say when a process begins another program or ends. Sorted by (process,
 * address, time) each allocation stands before its free. What comes out is a list of (sample with the stack, value, weight) in order of the file, in which
 * pass 2 finds its samples. docs/memory.md says what each value is.
 */
#ifndef WICK_PROFILE_BLOCKS_H
#define WICK_PROFILE_BLOCKS_H

#include "profile/reading.h"

enum block_value {
    BLOCKS_ALLOCATED,
    BLOCKS_ALLOCATIONS,
    BLOCKS_LIVE,
    BLOCKS_LIVE_COUNT,
    BLOCKS_PEAK,
    BLOCKS_PEAK_COUNT,
    BLOCKS_TEMPORARY,
    BLOCKS_TEMPORARY_COUNT,
    BLOCKS_FREED, /* when they were freed, all others when they were allocated */
    BLOCKS_FREED_COUNT,
    BLOCKS_VALUES,
};

/* One of the values of the allocations that a sample stands for. */
struct valued {
    uint64_t offset; /* of the sample with the stack */
    uint64_t time;   /* of the (first) allocation */
    uint64_t weight;
    uint32_t samples;
    uint32_t event;   /* in the tree */
    uint8_t lifetime; /* HEAP_LIFETIMES: never freed; 0 unless it is asked for */
};

struct blocks;

/* Before pass 1, when events have their roles: reading->blocks, if this is a recording of allocations that is to be read as one. */
void blocks_begin(struct reading *reading);
/* Pass 1, only if reading->blocks. */
bool blocks_sample(struct blocks *blocks, const struct perfdata_record *record, uint32_t event,
                   struct error *error);
bool blocks_record(struct blocks *blocks, const struct perfdata_record *record,
                   struct error *error); /* COMM, FORK, EXIT */
/* After pass 1. */
bool blocks_choose_values(struct blocks *blocks, struct error *error);
void blocks_pair(struct blocks *blocks);
/* Pass 2: those of the sample at `offset`. */
const struct valued *blocks_find(const struct blocks *blocks, uint64_t offset, size_t *count);
/* The set of labels `labels`, with the lifetime if that is asked for. */
uint32_t blocks_labels(const struct blocks *blocks, uint32_t labels, uint8_t lifetime);
bool blocks_have(const struct blocks *blocks, uint64_t offset); /* any */
void blocks_free(struct blocks *blocks);

#endif
