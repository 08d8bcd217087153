/*
 * Write a call graph that was read as Callgrind's text again: the same self costs by line, and the same calls.
 *
 * Self costs and calls are put in one list, sorted by content and written. Costs a sort by function name.
 */
#include "export/callgrind_names.h"
#include "export/formats.h"

#include <stdlib.h>

/* Texts are interned strings. */
struct graph_function {
    struct text object, file, name;
};

/* A self cost, or a call. */
struct item {
    struct graph_function function;
    struct text file; /* file of the code */
    uint32_t line;
    bool is_call;
    struct graph_function callee;
    uint32_t callee_line;
    uint32_t event;
    uint64_t count, weight;
};

struct graph_writer {
    const struct tree *tree;
    const struct naming *naming;
    struct out *out;
    struct callgrind_text t;
    VECTOR(struct item) items;
    uint64_t *costs; /* of one line, by event; [0] is the number of calls */
    uint64_t *totals;
    bool overflow;
};

/* ---- items ---- */

static struct graph_function function_of(const struct graph_writer *w, uint32_t location,
                                         struct text *file, uint32_t *line) {
    const struct tree *tree = w->tree;
    const struct location *at = &tree->locations.items[location];
    const struct naming_entry *named = &w->naming->locations.items[location];
    const struct function *function = &tree->functions.items[at->function];
    uint32_t own = at->raw ? tree->functions.items[at->raw].file : function->file;
    struct label label = named->count ? w->naming->labels.items[named->first] : (struct label){0};
    struct text object = strings_get(w->naming->strings, label.object);
    *file = strings_get(tree->strings, function->file);
    *line = at->line;
    return (struct graph_function){at->object ? object : TEXT(""), strings_get(tree->strings, own),
                                   label.name ? strings_get(w->naming->strings, label.name)
                                              : strings_get(tree->strings, function->name)};
}

static void add_items(struct graph_writer *w) {
    const struct tree *tree = w->tree;
    struct text unused;
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        struct item item = {.event = tree->series.items[cell->series].event,
                            .weight = cell->weight};
        item.function =
            function_of(w, tree->nodes.items[cell->node].location, &item.file, &item.line);
        if (!w->naming->series.items[cell->series].skip)
            vector_push(&w->items, item);
    }
    for (size_t i = 0; i < tree->calls.count; i++) {
        const struct call *call = &tree->calls.items[i];
        struct item item = {.is_call = true,
                            .event = tree->series.items[call->series].event,
                            .count = call->count,
                            .weight = call->weight};
        item.function = function_of(w, call->caller, &item.file, &item.line);
        item.callee = function_of(w, call->callee, &unused, &item.callee_line);
        if (!w->naming->series.items[call->series].skip)
            vector_push(&w->items, item);
    }
}

static int order_functions(const struct graph_function *a, const struct graph_function *b) {
    int order = text_compare(a->object, b->object);
    order = order ? order : text_compare(a->file, b->file);
    return order ? order : text_compare(a->name, b->name);
}

/* Return true if both belong to one line of the text: everything but the event and its numbers is equal. */
static int order_lines(const struct item *x, const struct item *y) {
    int order = order_functions(&x->function, &y->function);
    order = order ? order : text_compare(x->file, y->file);
    order = order ? order : (x->line > y->line) - (x->line < y->line);
    order = order ? order : x->is_call - y->is_call;
    if (order || !x->is_call)
        return order;
    order = order_functions(&x->callee, &y->callee);
    return order ? order : (x->callee_line > y->callee_line) - (x->callee_line < y->callee_line);
}

static int order_items(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    int order = order_lines(x, y);
    return order ? order : (x->event > y->event) - (x->event < y->event);
}

/* ---- text ---- */

static void add(struct graph_writer *w, uint64_t *sum, uint64_t weight) {
    w->overflow |= __builtin_add_overflow(*sum, weight, sum);
}

/* The number of calls is repeated for each event: count that of the first one. */
static size_t sum_line(struct graph_writer *w, size_t at) {
    const struct item *first = &w->items.items[at];
    memset(w->costs, 0, w->tree->events.count * sizeof *w->costs);
    for (; at < w->items.count; at++) {
        const struct item *item = &w->items.items[at];
        if (order_lines(item, first))
            break;
        add(w, &w->costs[item->event], item->weight);
        if (item->is_call && item->event == first->event)
            add(w, &w->costs[0], item->count);
        if (!item->is_call)
            add(w, &w->totals[item->event], item->weight);
    }
    return at;
}

static void add_costs(struct graph_writer *w, const uint64_t *costs) {
    for (size_t i = 1; i < w->tree->events.count; i++)
        buffer_printf(&w->t.text, " %llu", (unsigned long long)costs[i]);
    buffer_add_char(&w->t.text, '\n');
}

static void write_line(struct graph_writer *w, const struct item *item) {
    const struct graph_function *callee = &item->callee;
    if (item->is_call) {
        callgrind_add_names(&w->t, callee->object, callee->file, callee->name, true);
        buffer_printf(&w->t.text, "calls=%llu %u\n", (unsigned long long)w->costs[0],
                      item->callee_line);
    }
    buffer_add_u64(&w->t.text, item->line);
    add_costs(w, w->costs);
}

static void write_items(struct graph_writer *w) {
    const struct item *last = NULL;
    for (size_t at = 0; at < w->items.count;) {
        const struct item *item = &w->items.items[at];
        const struct graph_function *function = &item->function;
        bool begins = !last || order_functions(&last->function, function);
        struct text before = begins ? function->file : last->file;
        if (begins) {
            buffer_add_char(&w->t.text, '\n');
            callgrind_add_names(&w->t, function->object, function->file, function->name, false);
        }
        if (!text_equal(before, item->file))
            callgrind_add_file(&w->t, text_equal(item->file, function->file) ? "fe" : "fi",
                               item->file);
        at = sum_line(w, at);
        write_line(w, item);
        last = item;
        buffer_flush(&w->t.text, w->out);
    }
}

bool callgrind_write_graph(struct out *out, const struct tree *tree, const struct naming *naming,
                           const struct export_options *options, struct error *error) {
    struct graph_writer w = {.tree = tree, .naming = naming, .out = out};
    w.costs = memory_zero(tree->events.count, sizeof *w.costs);
    w.totals = memory_zero(tree->events.count, sizeof *w.totals);
    callgrind_text_init(&w.t);
    add_items(&w);
    if (w.items.count)
        qsort(w.items.items, w.items.count, sizeof *w.items.items, order_items);
    callgrind_add_head(&w.t, options);
    for (uint32_t i = 1; i < tree->events.count; i++) {
        buffer_add_char(&w.t.text, ' ');
        callgrind_add_event(&w.t, strings_get(tree->strings, tree_event(tree, i)->name));
    }
    buffer_add_char(&w.t.text, '\n');
    write_items(&w);
    buffer_add(&w.t.text, TEXT("\ntotals:"));
    add_costs(&w, w.totals);
    out_text(out, buffer_text(&w.t.text));
    bool fine = w.items.count || error_set(error, ERROR_INPUT, "there is nothing to export");
    fine = fine &&
           (!w.overflow || error_set(error, ERROR_INPUT, "the weights add up to more than 2^64"));
    callgrind_text_release(&w.t);
    vector_release(&w.items);
    free(w.costs);
    free(w.totals);
    return fine;
}
