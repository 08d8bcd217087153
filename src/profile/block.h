/*
 * Allocations and mappings as blocks.c and mappings.c keep them; private to both.
 */
#ifndef WICK_PROFILE_BLOCK_H
#define WICK_PROFILE_BLOCK_H

#include "profile/blocks.h"

struct block {
    uint64_t address;
    uint64_t time;
    uint64_t end; /* when it was freed, or its process had ended; UINT64_MAX: neither was seen */
    uint64_t
        offset; /* of the sample with its stack; while pass 1 runs, of HEAP_AGAIN: the stack's number */
    uint64_t weight;
    uint32_t count; /* of allocations that it stands for */
    int32_t pid;
    int32_t tid;  /* of mappings */
    float chance; /* with which it was recorded */
    uint8_t role;
    bool freed;
    bool moved; /* a mapping, by mremap() */
};

struct numbered {
    uint64_t number, offset;
};

/* A process begins another program, or ends. */
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
    VECTOR(struct block) maps; /* mappings, and what unmaps them */
    VECTOR(struct numbered) stacks;
    VECTOR(struct program_end) endings;
    VECTOR(int32_t) children; /* forked while it was recorded */
    VECTOR(struct valued) valued;
    uint32_t (*labelled)[HEAP_LIFETIMES +
                         1]; /* by set of labels: with each lifetime; NULL: not asked for */
    size_t label_sets;
};

/* When the process of a block began another program or ended, or UINT64_MAX. The endings are sorted. */
uint64_t blocks_ending_after(const struct blocks *blocks, int32_t pid, uint64_t time);

/* Make blocks of the mappings: one for each part that was unmapped at another time. Only one of a mapping's parts counts as an allocation, that which lives longest. */
void blocks_pair_mappings(struct blocks *blocks);

#endif
