/*
 * Sums for the rows of a table. Self is the weight of stacks that end in a frame. Total is the weight of stacks that contain its key, each counted
 * once however often the key recurs: the walk down the flame counts how often each key is open above, and adds a node's total only for the first.
 */
#include "stacks/stacks.h"

#include <stdlib.h>

struct summing {
    const struct flame_node *nodes;
    const uint32_t *keys;
    struct key_sum *sums;
    uint32_t *open; /* by key */
};

static void summing_enter(struct summing *s, uint32_t at) {
    uint32_t key = s->keys[at];
    if (key == NO_KEY)
        return;
    const struct flame_node *node = &s->nodes[at];
    struct key_sum *to = &s->sums[key];
    to->self += node->self;
    to->self_before += node->self_before;
    if (s->open[key]++ == 0) {
        to->total += node->total;
        to->total_before += node->total_before;
    }
}

static void summing_leave(struct summing *s, uint32_t at) {
    if (s->keys[at] != NO_KEY)
        s->open[s->keys[at]]--;
}

/* Depth first by the links, no stack: the depth is the input's. */
void flame_sum(const struct flame *flame, const uint32_t *keys, size_t key_count,
               struct key_sum *sums) {
    const struct flame_node *nodes = flame->nodes.items;
    struct summing s = {nodes, keys, sums, memory_zero(key_count + 1, sizeof *s.open)};
    summing_enter(&s, 0);
    for (uint32_t at = nodes[0].first_child; at;) {
        summing_enter(&s, at);
        if (nodes[at].first_child) {
            at = nodes[at].first_child;
            continue;
        }
        summing_leave(&s, at);
        while (at && !nodes[at].next) {
            at = nodes[at].parent;
            summing_leave(&s, at);
        }
        at = nodes[at].next;
    }
    free(s.open);
}
