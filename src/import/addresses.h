/*
 * Private to the room: profiles that are stacks of addresses with the process's maps as text behind them. Addresses are resolved from the files of
 * this machine or --symfs, in a tree of their own, which is then added to the others'.
 */
#ifndef WICK_IMPORT_ADDRESSES_H
#define WICK_IMPORT_ADDRESSES_H

#include "import/reader.h"

struct address_mapping {
    uint64_t start, end, offset;
    struct text path;
    uint32_t object; /* 0: none yet */
};

struct addresses {
    const struct import_options *options;
    struct tree *tree; /* in which they are resolved */
    struct objects *objects;
    VECTOR(struct address_mapping) mappings;
    VECTOR(uint32_t) stack; /* locations, leaf first */
};

void addresses_init(struct addresses *addresses, const struct import_options *options);
/* Lines that are no mappings are passed over. `text` must live as long as the addresses. */
void addresses_read_maps(struct addresses *addresses, struct text text);
/* Push the next caller, or the leaf; is_return: execution goes on there, the call is before it. */
void addresses_push(struct addresses *addresses, uint64_t address, bool is_return);
/* The node of what was pushed. */
uint32_t addresses_node(struct addresses *addresses);
/* Resolve what was counted and add it to `tree`, unless that is NULL; frees the rest. */
void addresses_finish(struct addresses *addresses, struct tree *tree);

/* The next word, up to a space; spaces before it are passed over. */
struct text text_take_word(struct text *line);

#endif
