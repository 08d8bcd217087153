/*
 * Flames of a call graph (tree.h, is_graph): functions side by side, not on top of each other, with totals from the graph's calls.
 *
 * A function's total is its self cost plus the cost of its calls. Calls of itself are already included. For functions that call each other in a
 * cycle, the graph does not say how much is counted twice: a total is at most the cost of all calls into the cycle from outside, which is exact
 * if they all enter at one function. Functions with the same name are one, as everywhere in wick.
 */
#include "stacks/flame.h"

#include <stdlib.h>

struct graph {
    const struct tree *tree;
    const struct naming *naming;
    struct flame *flame;
    VECTOR(struct graph_call) calls;
    bool overflow;
};

/* The labels of a series, which are drawn at the root, then the location's. A location without labels is nowhere: 0. */
static uint32_t node_of(struct graph *g, uint32_t series, uint32_t location) {
    const struct naming *naming = g->naming;
    const struct naming_entry *roots = &naming->series.items[series];
    const struct naming_entry *frames = &naming->locations.items[location];
    uint32_t node = 0;
    for (uint32_t i = 0; frames->count && i < roots->count; i++)
        node = flame_child(g->flame, node, &naming->labels.items[roots->first + i]);
    for (uint32_t i = 0; i < frames->count; i++)
        node = flame_child(g->flame, node, &naming->labels.items[frames->first + i]);
    return node;
}

static bool is_called(const struct graph *g, uint32_t location, uint32_t name) {
    const struct naming_entry *frames = &g->naming->locations.items[location];
    return frames->count && g->naming->labels.items[frames->first].name == name;
}

static void add(struct graph *g, uint64_t *sum, uint64_t weight) {
    g->overflow |= __builtin_add_overflow(*sum, weight, sum);
}

static void add_self(struct graph *g) {
    for (size_t i = 1; i < g->tree->cells.count; i++) {
        const struct cell *cell = &g->tree->cells.items[i];
        if (g->naming->series.items[cell->series].skip)
            continue;
        uint32_t node = node_of(g, cell->series, g->tree->nodes.items[cell->node].location);
        g->flame->nodes.items[node].counted = 1;
        add(g, &g->flame->nodes.items[node].self, cell->weight);
    }
}

/* Functions that do nothing but call others have no cell. */
static void find_calls(struct graph *g) {
    for (size_t i = 0; i < g->tree->calls.count; i++) {
        const struct call *call = &g->tree->calls.items[i];
        if (g->naming->series.items[call->series].skip)
            continue;
        struct graph_call found = {node_of(g, call->series, call->caller),
                                   node_of(g, call->series, call->callee), call->weight};
        if (found.from != found.to && found.from && found.to)
            vector_push(&g->calls, found);
    }
}

/* What each node calls, and at most what its group may cost; 0: it is alone in it, or nothing outside calls it. */
static void sum_calls(struct graph *g, uint64_t *called, uint64_t *most) {
    size_t nodes = g->flame->nodes.count;
    uint32_t *groups = graph_groups(g->calls.items, g->calls.count, nodes);
    uint64_t *entered = memory_zero(nodes + 1, sizeof *entered);
    bool *is_cycle = memory_zero(nodes + 1, sizeof *is_cycle);
    for (size_t i = 0; i < g->calls.count; i++) {
        const struct graph_call *call = &g->calls.items[i];
        add(g, &called[call->from], call->weight);
        if (groups[call->from] == groups[call->to])
            is_cycle[groups[call->to]] = true;
        else
            entered[groups[call->to]] = saturating_add(entered[groups[call->to]], call->weight);
    }
    for (size_t i = 1; i < nodes; i++)
        most[i] = is_cycle[groups[i]] ? entered[groups[i]] : 0;
    free(is_cycle);
    free(entered);
    free(groups);
}

static void set_totals(struct graph *g, const uint64_t *called, const uint64_t *most) {
    for (size_t i = 1; i < g->flame->nodes.count; i++) {
        struct flame_node *node = &g->flame->nodes.items[i];
        uint64_t whole = g->flame->nodes.items[node->parent].total;
        whole = most[i] > node->self && most[i] < whole ? most[i] : whole;
        if (!node->first_child)
            node->total = called[i] < whole - node->self ? node->self + called[i] : whole;
    }
}

struct flame *flame_of_graph(const struct tree *tree, const struct naming *naming, bool totals,
                             struct error *error) {
    struct graph g = {.tree = tree, .naming = naming, .flame = flame_of_naming(naming)};
    add_self(&g);
    find_calls(&g);
    uint64_t *called = memory_zero(g.flame->nodes.count, sizeof *called);
    uint64_t *most = memory_zero(g.flame->nodes.count, sizeof *most);
    if (totals)
        sum_calls(&g, called, most);
    g.flame->unit = strings_add(g.flame->strings, flame_unit(tree, &(struct flame_options){0}));
    g.flame->is_graph = true;
    bool fine =
        !g.overflow || error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    fine = fine && tree_check(tree, error) && flame_finish(g.flame, error);
    if (fine) {
        set_totals(&g, called, most);
        flame_drop_empty(g.flame, false);
        flame_order(g.flame);
    }
    free(called);
    free(most);
    vector_release(&g.calls);
    if (fine)
        return g.flame;
    flame_free(g.flame);
    return NULL;
}

struct flame *flame_around_graph(const struct tree *tree, const struct naming *naming,
                                 const struct flame *flame, struct text function, bool callers,
                                 uint64_t *self, struct error *error) {
    struct graph g = {.tree = tree, .naming = naming, .flame = flame_of_naming(naming)};
    uint32_t name = strings_find(flame->strings, function), root = 0;
    uint64_t whole = 0, told = 0;
    *self = 0;
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        if (!name || node->name != name || node->kinds & KIND_ROOT)
            continue;
        root = flame_child(g.flame, 0, &(struct label){name, node->object, node->kinds});
        add(&g, self, node->self);
        add(&g, &whole, node->total);
    }
    for (size_t i = 0; root && i < tree->calls.count; i++) {
        const struct call *call = &tree->calls.items[i];
        uint32_t from = callers ? call->callee : call->caller;
        uint32_t to = callers ? call->caller : call->callee;
        const struct naming_entry *frames = &naming->locations.items[to];
        if (naming->series.items[call->series].skip || !frames->count ||
            !is_called(&g, from, name) || is_called(&g, to, name))
            continue;
        uint32_t node = flame_child(g.flame, root, &naming->labels.items[frames->first]);
        g.flame->nodes.items[node].counted = 1;
        add(&g, &g.flame->nodes.items[node].self, call->weight);
        add(&g, &told, call->weight);
    }
    if (root) /* what no caller accounts for, or what it does itself */
        g.flame->nodes.items[root].self = !callers ? *self : whole > told ? whole - told : 0;
    g.flame->unit = flame->unit;
    if ((!g.overflow || error_set(error, ERROR_INPUT, "the weights add up to more than 2^64")) &&
        flame_finish(g.flame, error))
        return g.flame;
    flame_free(g.flame);
    return NULL;
}
