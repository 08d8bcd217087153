/* maps: persistent sets of mappings that do not overlap. Private to this room. */
#ifndef WICK_SPACE_MAPS_H
#define WICK_SPACE_MAPS_H

#include "space/space.h"

/* A node, shared by any number of trees and immutable. 0 is the empty tree. */
struct maps_node {
    uint32_t mapping;
    uint32_t left;
    uint32_t right;
    uint8_t height;
    bool executable; /* this mapping, or any below */
};

/* Where the nodes of all trees live. Zero-initialised is ready to use. */
struct maps {
    VECTOR(struct maps_node) nodes;
    VECTOR(struct mapping) mappings;
};
void maps_release(struct maps *maps);

/* Add a mapping, or remove [start, end). Return the root of the changed tree; set *executable if the executable
   mappings differ. `start` < `end`. */
uint32_t maps_put(struct maps *maps, uint32_t root, const struct mapping *mapping,
                  bool *executable);
uint32_t maps_cut(struct maps *maps, uint32_t root, uint64_t start, uint64_t end, bool *executable);

/* Copy a tree from `from` to `to`, with object ids translated by `object`. Costs one visit of each mapping. */
uint32_t maps_copy(struct maps *to, const struct maps *from, uint32_t root,
                   uint32_t (*object)(void *context, uint32_t object), void *context);

const struct mapping *maps_find(const struct maps *maps, uint32_t root, uint64_t address);
/* Return the first mapping, by address, that ends after `address`, or NULL. */
const struct mapping *maps_find_from(const struct maps *maps, uint32_t root, uint64_t address);
void maps_each(const struct maps *maps, uint32_t root, void (*each)(void *, const struct mapping *),
               void *context);

#endif
