/*
 * Private to this room: builders make tree nodes of stacks. Each builder has a tree of its own, and each stack belongs to one builder;
 * builders.c joins the trees.
 */
#ifndef WICK_PROFILE_BUILDER_H
#define WICK_PROFILE_BUILDER_H

#include "profile/worker.h"

enum { BUILD_GROUP = 8, BUILD_BATCH = 64 };

/* The way from the root to one of a stack's frames: two hashes of its locations, and the location at its end. */
struct way {
    uint64_t hash; /* never 0 */
    uint32_t check;
    uint32_t location;
};

/* A stack's frames, leaf first, and their ways from the root: ways[i] covers the i + 1 frames next to the root. */
struct path {
    const struct chain_frame *frames;
    size_t count;
    struct chain_frames decoded; /* holds the frames of recorded chains */
    VECTOR(struct way) ways;
};

/* What a hash may stand for. The finder must check that it is the right one. */
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

/* The locations of a chain's last frame, next to the root, and of the one before it, which decide its ending; 0: there is none. */
struct chain_ends {
    uint32_t last, before;
};

struct builder {
    struct building *all;
    struct tree *tree;
    struct cached_location *cache;
    size_t cache_size;
    size_t cache_misses;         /* since it has this size */
    struct namesakes *namesakes; /* NULL: locations are distinguished by address */
    struct memos ways;           /* to all nodes but leaves */
    struct memos stacks;         /* built before, under any series */
    struct path paths[BUILD_GROUP];
    VECTOR(struct chain_ends) ends; /* few, since few functions begin a thread; [0] has no frames */
    struct index ends_index;
    uint8_t *starts;       /* by location: enum start, for those where a stack ends */
    uint32_t nodes_before; /* added to its nodes' numbers when it is joined */
    APART;
};

/* What all builders share. */
struct building {
    struct reading *reading;
    const struct worker *workers; /* the memos refer to their stacks */
    struct builder *builders;
    unsigned count;
    bool prefetches; /* other threads than the builder read objects ahead */
};

/* namesakes.c: merge locations with the same names, for trees in which only names matter. The builder's tree gets the first of them instead of
   the others. */
struct namesakes *namesakes_new(const struct reading *reading, struct tree *tree);
uint32_t namesakes_add(struct namesakes *namesakes, const struct location *location);
void namesakes_free(struct namesakes *namesakes);

void builder_init(struct builder *builder, struct building *all, struct tree *tree);
/* Make the tables for this many stacks, or, if they were not counted yet, for at most so many. Call it once, in the thread that builds: clearing
   memory takes time. */
void builder_make_tables(struct builder *builder, size_t stacks, bool are_counted);
void builder_release(struct builder *builder);
/* Find or make the nodes of at most BUILD_BATCH stacks. */
void builder_add(struct builder *builder, struct counted_stack *const *stacks, size_t count);

#endif
