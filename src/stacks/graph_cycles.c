/*
 * Find nodes that call each other in a cycle: Tarjan's strongly connected components, without recursion. Costs a pass over nodes and calls.
 */
#include "stacks/flame.h"

#include <stdlib.h>

struct visit {
    uint32_t node, next; /* the next of its calls to follow */
};

struct cycles {
    uint32_t *firsts,
        *targets; /* of each node, its calls: targets[firsts[node] … firsts[node + 1]) */
    uint32_t *orders, *lows, *groups; /* by node; an order of 0: not visited */
    uint32_t order, group_count;
    VECTOR(uint32_t) open;
    VECTOR(struct visit) path;
};

/* Calls by where they are from, in one array. */
static void sort_calls(struct cycles *c, const struct graph_call *calls, size_t count,
                       size_t nodes) {
    c->firsts = memory_zero(nodes + 2, sizeof *c->firsts);
    c->targets = memory_zero(count + 1, sizeof *c->targets);
    for (size_t i = 0; i < count; i++)
        c->firsts[calls[i].from + 2]++;
    for (size_t i = 2; i < nodes + 2; i++)
        c->firsts[i] += c->firsts[i - 1];
    for (size_t i = 0; i < count; i++)
        c->targets[c->firsts[calls[i].from + 1]++] = calls[i].to;
}

static void enter(struct cycles *c, uint32_t node) {
    c->orders[node] = c->lows[node] = ++c->order;
    vector_push(&c->open, node);
    vector_push(&c->path, ((struct visit){node, c->firsts[node]}));
}

/* A node that reaches none before it closes a group. */
static void leave(struct cycles *c, uint32_t node) {
    if (c->lows[node] == c->orders[node]) {
        c->group_count++;
        for (uint32_t member = UINT32_MAX; member != node;) {
            member = c->open.items[--c->open.count];
            c->groups[member] = c->group_count;
        }
    }
    c->path.count--;
    if (c->path.count) {
        uint32_t caller = c->path.items[c->path.count - 1].node;
        c->lows[caller] = c->lows[node] < c->lows[caller] ? c->lows[node] : c->lows[caller];
    }
}

static void visit_all_from(struct cycles *c, uint32_t start) {
    enter(c, start);
    while (c->path.count) {
        struct visit *at = &c->path.items[c->path.count - 1];
        uint32_t node = at->node;
        if (at->next == c->firsts[node + 1]) {
            leave(c, node);
            continue;
        }
        uint32_t target = c->targets[at->next++];
        if (!c->orders[target])
            enter(c, target);
        else if (!c->groups[target] && c->orders[target] < c->lows[node])
            c->lows[node] = c->orders[target];
    }
}

uint32_t *graph_groups(const struct graph_call *calls, size_t count, size_t nodes) {
    struct cycles c = {.orders = memory_zero(nodes, sizeof *c.orders),
                       .lows = memory_zero(nodes, sizeof *c.lows),
                       .groups = memory_zero(nodes, sizeof *c.groups)};
    sort_calls(&c, calls, count, nodes);
    for (uint32_t i = 0; i < nodes; i++)
        if (!c.orders[i])
            visit_all_from(&c, i);
    free(c.firsts);
    free(c.targets);
    free(c.orders);
    free(c.lows);
    vector_release(&c.open);
    vector_release(&c.path);
    return c.groups;
}
