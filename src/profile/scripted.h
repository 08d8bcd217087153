/*
 * Private to this room: the recording's stacks of interpreters (docs/carrier.md), which are merged with native ones.
 */
#ifndef WICK_PROFILE_SCRIPTED_H
#define WICK_PROFILE_SCRIPTED_H

#include "profile/chain.h"

/* A frame and its caller; [0] is none. */
struct scripted_frame {
    uint32_t caller;
    uint32_t function; /* in the tree; 0: only marks where the interpreter was entered */
    uint32_t line;     /* << 4 | FRAME_… of interpreter/layout.h */
    uint32_t language; /* string */
    uint64_t address;  /* of the frame in memory */
};

struct scripted_stack {
    uint64_t time;
    uint32_t tid;
    uint32_t leaf : 30;
    uint32_t is_whole : 1;
    uint32_t is_deep : 1; /* there were more frames, towards the root */
};

struct scripted {
    VECTOR(struct scripted_frame) frames;
    VECTOR(struct scripted_stack) stacks; /* by tid, then time */
    VECTOR(uint32_t) functions;           /* by the recording's numbers: the tree's */
    VECTOR(uint32_t) languages;           /* the same: strings */
    uint32_t lock_wait; /* the function shown for waits for Python's global lock; 0: none */
    uint64_t unpaired;  /* number of damaged stacks */
};

/* Read all of them and add their functions to the tree; return NULL if there are none. */
struct scripted *scripted_read(const struct carried *carried, struct tree *tree);
void scripted_free(struct scripted *all);
/* Return the stack that was taken with a sample; NULL if none was. */
const struct scripted_stack *scripted_find(const struct scripted *all, int32_t tid, uint64_t time);

/* merge.c: whether a function that is inlined into another one only passes a call on. */
bool scripted_is_plumbing(struct text name);

#endif
