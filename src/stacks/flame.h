/* Private to the room: what the makers of flames share. */
#ifndef WICK_STACKS_FLAME_H
#define WICK_STACKS_FLAME_H

#include "stacks/stacks.h"

/* Return what locations are called, by location, in series whose entry says ALTERNATE. */
static inline const struct naming_entry *naming_entries(const struct naming *naming,
                                                        bool alternate) {
    return alternate ? naming->alternates.items : naming->locations.items;
}

/* Return an empty flame that takes over a reference to STRINGS. */
struct flame *flame_of_strings(struct strings *strings);
/* Add a child of PARENT without looking for an equal one. flame_child() does not find it afterwards. */
uint32_t flame_append(struct flame *flame, uint32_t parent, const struct label *label);
/* Add what was counted on OTHER itself. */
void flame_node_add(struct flame_node *node, const struct flame_node *other);
/* Add another flame of the same strings. Nodes below a new node are new and are not looked for; if OTHER is the last, they are not
   indexed either. */
void flame_join(struct flame *flame, const struct flame *other, bool is_last);
/* Compute totals and depth from the nodes' own weights; false if they pass 2^64. */
bool flame_total(struct flame *flame, struct error *error);
/* Drop nodes below which nothing was counted: roots (comms) whose every stack was left out. Totals must be known. */
void flame_drop_empty(struct flame *flame, bool keep_zero);
/* Link children in order of ranks[name], all less than RANK_COUNT; NULL: in order of their numbers. */
void flame_link(struct flame *flame, const uint32_t *ranks, size_t rank_count);

/* chart.c: the stacks of kept samples in order of time, neither added up nor linked. */
struct flame *chart_of_samples(const struct tree *tree, const struct naming *naming,
                               const struct flame_options *shape, struct error *error);

/* What flame_transform() does it by. */
struct transform_options {
    const struct flame_options *shape; /* rules, fold_recursion and max_depth */
    const uint32_t *
        names; /* by what nodes are called: the string to match, which is also how recursion is seen; NULL: they are strings */
    const uint8_t *ends; /* by node: stacks end there */
    bool is_chart;       /* nothing is merged */
};
/* Return a new flame, neither weighed nor linked, of what the rules leave. moved[i]: where stacks now end that ended at node i, or
   STACK_DROPPED. NULL: a pattern met its limits. Costs three passes over the nodes, and a match a pattern and distinct name. */
struct flame *flame_transform(const struct flame *from, const struct transform_options *options,
                              uint32_t *moved, struct error *error);
/* The same with the weights. Frees FROM in any case. */
struct flame *flame_chosen(struct flame *from, const struct flame_options *shape, bool is_chart,
                           struct error *error);

/* One stack after another, for views that follow samples or merge from the leaf: nothing is remembered between them. */
struct path {
    const struct tree *tree;
    const struct naming *naming;
    const struct flame_options *shape;
    VECTOR(uint32_t)
    labels; /* of the stack at hand, in the order of drawing: outermost first unless reversed */
    VECTOR(uint32_t) nodes; /* its tree nodes, leaf first */
};
/* Fill in the labels of a stack. False: it has no frame, and keep_empty was not asked for. */
bool path_find(struct path *path, uint32_t series, uint32_t node);
void path_release(struct path *path);

/* ---- call graphs ---- */

/* One function calls another; numbers are nodes of a flame. */
struct graph_call {
    uint32_t from, to;
    uint64_t weight;
};
/* By node: the number of its group, 1 for the first. Nodes that call each other in turn are in one. free() it. */
uint32_t *graph_groups(const struct graph_call *calls, size_t count, size_t nodes);

#endif
