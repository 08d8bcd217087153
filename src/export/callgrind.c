/*
 * Callgrind's text, for KCachegrind, QCachegrind and callgrind_annotate: self cost by line, and the cost of each
 * call.
 *
 * It is a graph, so stacks are lost. Readers compute a function's total as its self cost plus that of its calls, and
 * a stack must count once for each function in it, however often that recurs. So a stack counts for the call of the
 * function's last occurrence in it. Nodes give the cost of each call; a node whose function is open above subtracts
 * its cost from the outer occurrence's call. Then sums are those of wick report, and a function never calls itself.
 *
 * callgrind_annotate instead takes the sum of the calls to a function as its total. To make that right for functions
 * where stacks begin, too, one function "(all)" calls all stacks; for mutually recursive functions it remains too
 * high.
 */
#include "export/callgrind_names.h"
#include "export/formats.h"

#include <stdlib.h>

struct placed_call {
    uint32_t caller; /* place */
    uint32_t callee; /* function */
    uint32_t node;   /* one of the nodes it was made of */
};

struct callgrind {
    const struct outline *outline;
    struct out *out;
    struct callgrind_text t;
    size_t columns;    /* measures, then samples */
    uint64_t *self;    /* by place */
    uint64_t *through; /* by node */
    VECTOR(struct placed_call) calls;
    uint32_t *function_places; /* by function: its first place */
};

/* ---- costs ---- */

static bool add_columns(const struct callgrind *c, uint64_t *to, const uint64_t *from) {
    bool fine = true;
    for (size_t i = 0; i < c->columns; i++)
        fine &= checked_add(to[i], from[i], &to[i]);
    return fine;
}

static bool sum_self(struct callgrind *c) {
    const struct outline *o = c->outline;
    bool fine = true;
    for (size_t i = 0; i < o->entries.count; i++) {
        const struct track_entry *entry = &o->entries.items[i];
        uint64_t *node = &c->through[entry->node * c->columns];
        uint64_t *place = &c->self[o->stacks->nodes.items[entry->node].place * c->columns];
        uint32_t measure = o->tracks.items[entry->track].measure;
        uint64_t weight = entry_weight(o, entry);
        size_t samples = c->columns - 1;
        fine &= checked_add(node[measure], weight, &node[measure]) &&
                checked_add(node[samples], entry->samples, &node[samples]) &&
                checked_add(place[measure], weight, &place[measure]);
    }
    for (size_t i = o->stacks->nodes.count; i-- > 1 && fine;)
        fine = add_columns(c, &c->through[o->stacks->nodes.items[i].parent * c->columns],
                           &c->through[i * c->columns]);
    return fine;
}

/* Costs must stay whole until everything below was visited: what is subtracted is kept separately. */
static void take_recursion(struct callgrind *c) {
    const struct outline *o = c->outline;
    uint32_t *open =
        memory_zero(o->stacks->function_count + 1, sizeof *open); /* the innermost node */
    uint32_t *outer =
        memory_zero(o->stacks->nodes.count, sizeof *outer); /* by node: the one before it */
    uint64_t *taken = memory_zero(o->stacks->nodes.count * c->columns, sizeof *taken);
    VECTOR(uint32_t) path = {0}; /* by depth - 1 */
    for (uint32_t i = 1; i < o->stacks->nodes.count; i++) {
        const struct placed_node *node = &o->stacks->nodes.items[i];
        assert(node->depth);
        while (path.count >= node->depth) {
            uint32_t left = path.items[--path.count];
            open[o->stacks->places.items[o->stacks->nodes.items[left].place].function] =
                outer[left];
        }
        vector_push(&path, i);
        uint32_t function = o->stacks->places.items[node->place].function;
        outer[i] = open[function];
        open[function] = i;
        if (outer[i]) {
            uint32_t call = path.items[o->stacks->nodes.items[outer[i]].depth];
            add_columns(c, &taken[call * c->columns], &c->through[i * c->columns]);
        }
    }
    for (size_t i = 0; i < o->stacks->nodes.count * c->columns; i++)
        c->through[i] -= taken[i];
    vector_release(&path);
    free(open);
    free(outer);
    free(taken);
}

static int order_calls(const void *a, const void *b) {
    const struct placed_call *x = a, *y = b;
    if (x->caller != y->caller)
        return x->caller < y->caller ? -1 : 1;
    if (x->callee != y->callee)
        return x->callee < y->callee ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static bool costs_something(const struct callgrind *c, const uint64_t *costs) {
    for (size_t i = 0; i < c->columns; i++)
        if (costs[i])
            return true;
    return false;
}

static void find_calls(struct callgrind *c) {
    const struct outline *o = c->outline;
    for (uint32_t i = 1; i < o->stacks->nodes.count; i++) {
        const struct placed_node *node = &o->stacks->nodes.items[i];
        if (costs_something(c, &c->through[i * c->columns])) /* the root's place is 0 */
            vector_push(&c->calls,
                        ((struct placed_call){o->stacks->nodes.items[node->parent].place,
                                              o->stacks->places.items[node->place].function, i}));
    }
    if (c->calls.count)
        qsort(c->calls.items, c->calls.count, sizeof *c->calls.items, order_calls);
}

/* ---- text ---- */

static void add_function(struct callgrind *c, uint32_t function, bool called) {
    const struct place *place = &c->outline->stacks->places.items[c->function_places[function]];
    callgrind_add_names(&c->t, place->path, place->file, place->name, called);
}

static void add_costs(struct callgrind *c, uint32_t place, const uint64_t *costs) {
    buffer_add_u64(&c->t.text, c->outline->stacks->places.items[place].line);
    for (size_t i = 0; i + 1 < c->columns; i++) {
        buffer_add_char(&c->t.text, ' ');
        buffer_add_u64(&c->t.text, costs[i]);
    }
    buffer_add_char(&c->t.text, '\n');
}

/* Write all calls of one function from one line, starting at `at`; return where the next ones begin. */
static size_t add_call(struct callgrind *c, size_t at, uint64_t *costs) {
    const struct placed_call *first = &c->calls.items[at];
    memset(costs, 0, c->columns * sizeof *costs);
    for (; at < c->calls.count && c->calls.items[at].caller == first->caller &&
           c->calls.items[at].callee == first->callee;
         at++)
        add_columns(c, costs, &c->through[c->calls.items[at].node * c->columns]);
    add_function(c, first->callee, true);
    buffer_printf(&c->t.text, "calls=%llu %u\n", (unsigned long long)costs[c->columns - 1],
                  c->outline->stacks->places.items[c->function_places[first->callee]].line);
    add_costs(c, first->caller, costs);
    return at;
}

/* Places of one function are adjacent, sorted by line; so are calls, by caller. */
static void write_functions(struct callgrind *c) {
    const struct outline *o = c->outline;
    uint64_t *costs = memory_zero(c->columns, sizeof *costs);
    size_t call = 0;
    buffer_add_char(&c->t.text, '\n');
    callgrind_add_names(&c->t, TEXT(""), TEXT(""), TEXT("(all)"), false);
    while (call < c->calls.count && c->calls.items[call].caller == 0)
        call = add_call(c, call, costs);
    for (uint32_t i = 1; i < o->stacks->places.count; i++) {
        uint32_t function = o->stacks->places.items[i].function;
        if (i == c->function_places[function]) {
            buffer_add_char(&c->t.text, '\n');
            add_function(c, function, false);
        }
        if (costs_something(c, &c->self[i * c->columns]))
            add_costs(c, i, &c->self[i * c->columns]);
        while (call < c->calls.count && c->calls.items[call].caller == i)
            call = add_call(c, call, costs);
        buffer_flush(&c->t.text, c->out);
    }
    free(costs);
}

static void add_totals(struct callgrind *c, const char *key) {
    buffer_printf(&c->t.text, "%s:", key);
    for (size_t i = 0; i + 1 < c->columns; i++)
        buffer_printf(&c->t.text, " %llu", (unsigned long long)c->through[i]); /* of the root */
    buffer_add_char(&c->t.text, '\n');
}

static void write_head(struct callgrind *c) {
    const struct outline *o = c->outline;
    bool by_samples = o->options->shape->by_samples;
    callgrind_add_head(&c->t, o->options);
    for (size_t i = 0; i < o->measures.count; i++) {
        buffer_add_char(&c->t.text, ' ');
        if (by_samples && o->measures.count > 1)
            buffer_printf(&c->t.text, "%zu_", i + 1);
        callgrind_add_event(&c->t, by_samples ? TEXT("samples") : o->measures.items[i].name);
    }
    buffer_add_char(&c->t.text, '\n');
    add_totals(c, "summary");
}

static void callgrind_init(struct callgrind *c) {
    const struct outline *o = c->outline;
    c->columns = o->measures.count + 1;
    c->self = memory_zero(o->stacks->places.count * c->columns, sizeof *c->self);
    c->through = memory_zero(o->stacks->nodes.count * c->columns, sizeof *c->through);
    c->function_places = memory_zero(o->stacks->function_count + 1, sizeof *c->function_places);
    callgrind_text_init(&c->t);
    for (uint32_t i = 1; i < o->stacks->places.count; i++)
        if (!c->function_places[o->stacks->places.items[i].function])
            c->function_places[o->stacks->places.items[i].function] = i;
}

static void callgrind_release(struct callgrind *c) {
    callgrind_text_release(&c->t);
    vector_release(&c->calls);
    free(c->self);
    free(c->through);
    free(c->function_places);
}

bool callgrind_write(struct out *out, const struct outline *o, struct error *error) {
    struct callgrind c = {.outline = o, .out = out};
    callgrind_init(&c);
    bool fine = sum_self(&c);
    if (fine) {
        take_recursion(&c);
        find_calls(&c);
        write_head(&c);
        write_functions(&c);
        buffer_add_char(&c.t.text, '\n');
        add_totals(&c, "totals");
        out_text(out, buffer_text(&c.t.text));
    } else {
        error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    }
    callgrind_release(&c);
    return fine;
}
