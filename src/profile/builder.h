/*
 * Private to the room: who makes nodes of stacks. Each builder has a tree and takes stacks that no other takes; builders.c joins what
 * they built.
 */
#ifndef WICK_PROFILE_BUILDER_H
#define WICK_PROFILE_BUILDER_H

#include "profile/worker.h"

enum { BUILD_GROUP = 8, BUILD_BATCH = 64 };

/* One entry of a chain: an address, and what is known of it from its place. */
struct entry {
    uint64_t ip;
    uint32_t what; /* mode, call and unwound bit */
};

/* A chain's entries, leaf first, and their hashes from the root: hashes[i] stands for the i + 1 entries next to the root, and the
   epoch; never 0. */
struct path {
    VECTOR(struct entry) entries;
    VECTOR(uint64_t) hashes;
};

/* A hash of 64 bits stands for the addresses of a way from the root, or for a whole stack, which leads to a node. */
struct place {
    uint64_t hash; /* 0: an empty slot */
    uint32_t node;
    uint8_t ending; /* of whole stacks */
};

/* Open addressing, at most three quarters full. */
struct places {
    struct place *slots;
    size_t size;
    size_t used;
};

struct builder {
    struct building *all;
    struct tree *tree;
    struct cached_location *cache;
    struct places ways;   /* to all nodes but leaves */
    struct places stacks; /* that were built before, under whatever series */
    struct path paths[BUILD_GROUP];
    uint64_t main_epochs;  /* nodes of these are not looked for in the tree */
    unsigned main_changes; /* how often others took their place … */
    size_t main_nodes;     /* … and what was made of them since */
    uint32_t nodes_before; /* what its nodes' numbers grow by when it is joined */
    APART;
};

/* What all builders share. */
struct building {
    struct reading *reading;
    struct builder *builders;
    unsigned count;
    bool prefetches; /* others than the builder read objects ahead */
};

void builder_init(struct builder *builder, struct building *all, struct tree *tree);
/* Makes room for that many. */
void builder_expect(struct builder *builder, size_t stacks);
void builder_release(struct builder *builder);
/* Finds or makes the nodes of at most BUILD_BATCH stacks, and tells how they end. */
void builder_add(struct builder *builder, struct stack *const *stacks, size_t count);

#endif
