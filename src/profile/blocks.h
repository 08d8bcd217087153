/*
 * Private to this room: compute from allocations and frees what each stack allocated, how much of it was alive at the end and at the peak, and how
 * much was short-lived.
 *
 * Pass 1 hands over the samples of heap-alloc, heap-again and heap-free, and the records of processes that execute another program or end. Sorted
 * by (process, address, time), each allocation comes before its free. The result is a list of (sample with the stack, value, weight) in file
 * order, in which pass 2 looks up its samples. docs/memory.md defines the values.
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
    BLOCKS_FREED, /* counted when they were freed, all others when they were allocated */
    BLOCKS_FREED_COUNT,
    BLOCKS_VALUES,
};

/* One value of the allocations that a sample stands for. */
struct valued {
    uint64_t offset; /* of the sample with the stack */
    uint64_t time;   /* of the (first) allocation */
    uint64_t weight;
    uint32_t samples;
    uint32_t event;   /* in the tree */
    uint8_t lifetime; /* HEAP_LIFETIMES: never freed; 0 unless requested */
};

struct blocks;

/* Set reading->blocks if this is a recording of allocations and is to be read as one. Call it before pass 1, when events have their roles. */
void blocks_begin(struct reading *reading);
/* For pass 1, only if reading->blocks is set. */
bool blocks_sample(struct blocks *blocks, const struct perfdata_record *record, uint32_t event,
                   struct error *error);
bool blocks_record(struct blocks *blocks, const struct perfdata_record *record,
                   struct error *error); /* COMM, FORK, EXIT */
/* For use after pass 1. */
bool blocks_choose_values(struct blocks *blocks, struct error *error);
void blocks_pair(struct blocks *blocks);
/* For pass 2: return the values of the sample at `offset`. */
const struct valued *blocks_find(const struct blocks *blocks, uint64_t offset, size_t *count);
/* Return the label set `labels`, with the lifetime added if that was requested. */
uint32_t blocks_labels(const struct blocks *blocks, uint32_t labels, uint8_t lifetime);
bool blocks_have(const struct blocks *blocks, uint64_t offset); /* any */
void blocks_free(struct blocks *blocks);

#endif
