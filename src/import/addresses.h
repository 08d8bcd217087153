/*
 * Private to the room: profiles of address stacks, followed by the process's maps as text. Addresses are resolved
 * from the files of this machine or --symfs, in a separate tree, which is then added to the caller's.
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
    struct tree *tree; /* the tree in which they are resolved */
    struct objects *objects;
    VECTOR(struct address_mapping) mappings;
    VECTOR(uint32_t) stack; /* locations, leaf first */
};

void addresses_init(struct addresses *addresses, const struct import_options *options);
/* Parse mappings and skip all other lines. `text` must outlive the addresses. */
void addresses_read_maps(struct addresses *addresses, struct text text);
/* Return true if the line is the heading of the maps. */
bool addresses_begin_maps(struct text line);
/* Read the maps in a profile that is text. */
void addresses_find_maps(struct addresses *addresses, struct text content);
/* Push the leaf, or the next caller. is_return: it is a return address, and the call is before it. */
void addresses_push(struct addresses *addresses, uint64_t address, bool is_return);
/* Parse the comments after a stack in which Go names its frames; these replace the pushed addresses. Skip other
   comments. */
void addresses_read_comments(struct addresses *addresses, struct lines *lines);
/* Return the node of the pushed stack. */
uint32_t addresses_node(struct addresses *addresses);
/* Resolve what was counted and add it to `tree`, unless that is NULL; free the rest. */
void addresses_finish(struct addresses *addresses, struct tree *tree);

/* Push "0x401136 0x40114c", leaf first, and skip words that are not addresses. `leaf_runs`: the first is not a return
   address. */
void addresses_push_list(struct addresses *addresses, struct text list, bool leaf_runs);
/* Scale up a value that was sampled every `rate` bytes. */
void heap_scale(double rate, uint64_t *objects, uint64_t *bytes);

/* Skip spaces and take the next word, up to a space. */
struct text text_take_word(struct text *line);

#endif
