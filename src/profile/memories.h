/*
 * Private to this room: parts of stacks that the recording has in addition to the copies in samples (docs/carrier.md).
 */
#ifndef WICK_PROFILE_MEMORIES_H
#define WICK_PROFILE_MEMORIES_H

#include "profile/reading.h"
#include "unwind/unwind.h"

struct memories;

/* Read all of them; return NULL if there are none. */
struct memories *memories_read(const struct carried *carried, struct notes *notes);
void memories_free(struct memories *all);

struct unwind_blocks { /* a VECTOR */
    struct unwind_block *items;
    size_t count, capacity;
};
/* Set `blocks` to the blocks that were taken with a sample, by address; there may be none. The stack pointer is the sample's. They live as long as
   `all`. Thread-safe. */
void memories_find(const struct memories *all, int32_t tid, uint64_t time, uint64_t stack_pointer,
                   struct unwind_blocks *blocks);

#endif
