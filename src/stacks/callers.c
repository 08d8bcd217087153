/*
 * Callers and callees of a function. Both start at its outermost frames, which include all recursive calls.
 */
#include "stacks/flame.h"

#include <stdlib.h>

struct around {
    const struct flame *from;
    struct flame *to;
    uint32_t
        *at; /* of callees, by node of `from`: its node in `to`; 0: it is not inside the function */
};

static uint32_t around_child(struct around *a, uint32_t parent, uint32_t node) {
    const struct flame_node *from = &a->from->nodes.items[node];
    struct label label = {from->name, from->object, from->kinds};
    return flame_child(a->to, parent, &label);
}

static void add_callees(struct around *a, uint32_t node) {
    a->at[node] = around_child(a, a->at[a->from->nodes.items[node].parent], node);
    flame_node_add(&a->to->nodes.items[a->at[node]], &a->from->nodes.items[node]);
}

/* What all of the stack above it weighs ends at its outermost caller. */
static void add_callers(struct around *a, uint32_t node) {
    const struct flame_node *nodes = a->from->nodes.items;
    struct flame_node all = {.counted = nodes[node].counted,
                             .self = nodes[node].total,
                             .self_before = nodes[node].total_before};
    uint32_t at = 0;
    a->at[node] = 1;
    for (uint32_t caller = node; caller; caller = nodes[caller].parent)
        at = around_child(a, at, caller);
    flame_node_add(&a->to->nodes.items[at], &all);
}

struct flame *flame_around(const struct flame *flame, struct text function, bool callers,
                           uint64_t *self, struct error *error) {
    struct around a = {.from = flame, .to = flame_of_strings(strings_share(flame->strings))};
    uint32_t name = strings_find(flame->strings, function);
    a.at = memory_zero(flame->nodes.count, sizeof *a.at);
    a.to->is_diff = flame->is_diff;
    a.to->unit = flame->unit;
    *self = 0;
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        bool is_it = name && node->name == name && !(node->kinds & KIND_ROOT);
        bool is_inside = a.at[node->parent];
        *self += is_it ? node->self : 0;
        if (callers && is_inside)
            a.at[i] = 1;
        else if (callers && is_it)
            add_callers(&a, i);
        else if (!callers && (is_it || is_inside))
            add_callees(&a, i);
    }
    free(a.at);
    if (flame_finish(a.to, error))
        return a.to;
    flame_free(a.to);
    return NULL;
}
