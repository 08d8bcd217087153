/*
 * Allocations and mappings; private to blocks.c and mappings.c.
 */
#ifndef WICK_PROFILE_BLOCK_H
#define WICK_PROFILE_BLOCK_H

#include "profile/blocks.h"

struct block {
    uint64_t address;
    uint64_t time;
    uint64_t end; /* when it was freed or its process ended; UINT64_MAX: neither was seen */
    uint64_t
        offset; /* of the sample with its stack; during pass 1, for HEAP_AGAIN: the stack's number */
    uint64_t weight;
    uint32_t count; /* number of allocations that it stands for */
    int32_t pid;
    int32_t tid;  /* of mappings */
    float chance; /* probability that it was recorded */
    uint8_t role;
    bool freed;
    bool moved; /* by mremap() */
};

struct numbered {
    uint64_t number, offset;
};

/* A process executes another program, or ends. */
struct program_end {
    uint64_t time;
    int32_t pid;
};

struct blocks {
    struct reading *reading;
    bool wanted[BLOCKS_VALUES];
    uint32_t events[BLOCKS_VALUES]; /* in the tree */
    bool every;                     /* all allocations were recorded */
    VECTOR(struct block) list;
    VECTOR(struct block) maps; /* mappings and unmappings */
    VECTOR(struct numbered) stacks;
    VECTOR(struct program_end) endings;
    VECTOR(int32_t) children; /* processes forked during the recording */
    VECTOR(struct valued) valued;
    uint32_t (*labelled)[HEAP_LIFETIMES +
                         1]; /* by label set: the set with each lifetime; NULL: not requested */
    size_t label_sets;
};

/* Return when the process first executed another program or ended, at `time` or later; else UINT64_MAX. The endings must be sorted. */
uint64_t blocks_ending_after(const struct blocks *blocks, int32_t pid, uint64_t time);

/* Make blocks of the mappings: one for each part that was unmapped at a different time. Only the longest-lived part of a mapping counts as an
   allocation. */
void blocks_pair_mappings(struct blocks *blocks);

#endif
