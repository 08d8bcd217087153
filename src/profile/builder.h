/*
 * Private to the room: who makes nodes of stacks. Each builder has a tree and takes stacks that no other takes; builders.c joins what
 * they built.
 */
#ifndef WICK_PROFILE_BUILDER_H
#define WICK_PROFILE_BUILDER_H

#include "profile/worker.h"

enum { BUILD_GROUP = 8, BUILD_BATCH = 64 };

/* The way from the root to one of a stack's frames: two hashes that have nothing in common but that. */
struct way {
    uint64_t hash;  /* with the epoch; never 0 */
    uint32_t check; /* of the addresses alone */
};

/* A stack's frames, leaf first, and their ways from the root: ways[i] stands for the i + 1 frames next to the root. */
struct path {
    const struct chain_frame *frames;
    size_t count;
    struct chain_frames decoded; /* of recorded chains: where they are */
    VECTOR(struct way) ways;
};

/* What a hash may stand for. Who finds one looks whether it is meant. */
struct memo {
    uint64_t hash; /* 0: an empty slot */
    uint32_t id;   /* the node at the end of a way from the root, or a worker's stack */
    uint32_t of;   /* the way's check, or the stack's worker */
};

/* Open addressing, at most three quarters full. */
struct memos {
    struct memo *slots;
    size_t size;
    size_t used;
};

/* The locations of a chain's last frame, next to the root, and of the one before it, which tell how it ends; 0: there is none. */
struct chain_ends {
    uint32_t last, before;
};

struct builder {
    struct building *all;
    struct tree *tree;
    struct cached_location *cache;
    size_t cache_size;
    struct memos ways;   /* to all nodes but leaves */
    struct memos stacks; /* that were built before, under whatever series */
    struct path paths[BUILD_GROUP];
    uint64_t main_epochs;           /* nodes of these are not looked for in the tree */
    unsigned main_changes;          /* how often others took their place … */
    size_t main_nodes;              /* … and what was made of them since */
    VECTOR(struct chain_ends) ends; /* few, as few functions begin a thread; [0] is of no frames */
    struct index ends_index;
    uint8_t *starts;       /* by location: enum start, of those that a stack ends in */
    uint32_t nodes_before; /* what its nodes' numbers grow by when it is joined */
    APART;
};

/* What all builders share. */
struct building {
    struct reading *reading;
    const struct worker *workers; /* whose stacks the memos name */
    struct builder *builders;
    unsigned count;
    bool prefetches; /* others than the builder read objects ahead */
};

void builder_init(struct builder *builder, struct building *all, struct tree *tree);
/* Makes room for that many. */
void builder_expect(struct builder *builder, size_t stacks);
void builder_release(struct builder *builder);
/* Find or make the nodes of at most BUILD_BATCH stacks. */
void builder_add(struct builder *builder, struct counted_stack *const *stacks, size_t count);

#endif
