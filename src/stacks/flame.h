/* Private to this room: shared by the files that make flames. */
#ifndef WICK_STACKS_FLAME_H
#define WICK_STACKS_FLAME_H

#include "stacks/stacks.h"

/* Return the names of locations, by location, for series whose entry has this `alternate`. */
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

/* What flame_transform() is to do. */
struct transform_options {
    const struct flame_options *shape; /* rules, fold_recursion and max_depth */
    const uint32_t *
        names; /* by node name: the string for patterns and for recursion folding; NULL: names are strings themselves */
    const uint8_t *ends; /* by node: whether stacks end there */
    bool is_chart;       /* nothing is merged */
};
/* Return a new flame, without weights and links, of what the rules keep. Set moved[i] to where stacks that ended at node i end now, or to
   STACK_DROPPED. Return NULL if a pattern exceeds its limits. Costs three passes over the nodes, and a match for each pattern and distinct name. */
struct flame *flame_transform(const struct flame *from, const struct transform_options *options,
                              uint32_t *moved, struct error *error);
/* The same with the weights. Frees FROM in any case. */
struct flame *flame_chosen(struct flame *from, const struct flame_options *shape, bool is_chart,
                           struct error *error);

/* Names one stack after another, for views that follow samples or merge from the leaf. Nothing is reused between stacks. */
struct path {
    const struct tree *tree;
    const struct naming *naming;
    const struct flame_options *shape;
    VECTOR(uint32_t)
    labels; /* of the current stack, in drawing order: outermost first unless reversed */
    VECTOR(uint32_t) nodes; /* its tree nodes, leaf first */
};
/* Set the labels of a stack. Return false if it has no frame and keep_empty is not set. */
bool path_find(struct path *path, uint32_t series, uint32_t node);
void path_release(struct path *path);

/* ---- call graphs ---- */

/* One function calls another; numbers are nodes of a flame. */
struct graph_call {
    uint32_t from, to;
    uint64_t weight;
};
/* Return for each node the number of its group, from 1. Nodes that call each other in a cycle are in one group. free() the array. */
uint32_t *graph_groups(const struct graph_call *calls, size_t count, size_t nodes);

#endif
