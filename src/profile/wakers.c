/*
 * Additions to the tree after all samples: time that no sample stands for, and the waker of each wait.
 *
 * A waker's stack is appended leaf first, as is usual: after the function where the thread slept come the function that woke it, its callers, and
 * finally the waker's root and comm. So the function that ended the wait comes first.
 */
#include "profile/waits.h"

#include <stdlib.h>

/* ---- time without a stack ---- */

static bool passes(const struct reading *reading, const struct untold *untold,
                   const struct series *series) {
    struct buffer comm = {0};
    const struct filter *filter = &reading->filter;
    if (filter->comm_count)
        tree_add_comm(reading->profile->tree, series, &comm);
    bool fine = filter_sample(filter, untold->pid, untold->tid, buffer_text(&comm), UINT32_MAX,
                              untold->time);
    buffer_release(&comm);
    return fine;
}

static uint32_t frame_named(struct tree *tree, uint32_t node, struct text name, uint8_t kinds) {
    struct location location = {.function = tree_name_function(tree, name), .kinds = kinds};
    return tree_add_node(tree, node, tree_add_location(tree, &location));
}

/* Also in charts and timelines. What ran and was not sampled is drawn in one piece, at the end of its thread. */
void waits_add_untold(struct waits *w) {
    struct reading *reading = w->reading;
    struct tree *tree = reading->profile->tree;
    struct space_cursor cursor = {0};
    for (size_t i = 0; i < w->untold.count; i++) {
        const struct untold *untold = &w->untold.items[i];
        bool on = untold->state == STATE_ON;
        struct key key = {.time = untold->time};
        struct space_at at;
        spaces_at(reading->profile->spaces, &cursor, untold->pid, untold->tid, &key, &at);
        struct series series = {.event = reading->waiting,
                                .thread = at.thread != UINT32_MAX
                                              ? at.thread + 1
                                              : tree_find_thread(tree, untold->pid, untold->tid),
                                .comm = at.comm,
                                .state = untold->state};
        if (!passes(reading, untold, &series))
            continue;
        uint32_t node = frame_named(tree, 0, on ? TEXT("[not sampled]") : TEXT("[no stack]"), 0);
        uint32_t number = tree_add_series(tree, &series);
        tree_count(tree, node, number, !on, untold->weight);
        uint64_t begun = on ? untold->time - untold->weight : untold->time;
        struct sample sample = {
            .time = begun, .weight = untold->weight, .node = node, .series = number};
        sample.cpu = UINT32_MAX;
        tree_keep_sample(tree, &sample);
    }
}

/* ---- wakers ---- */

static int offset_order(const void *a, const void *b, void *context) {
    const struct sample *samples = context;
    uint64_t x = samples[*(const uint32_t *)a].offset, y = samples[*(const uint32_t *)b].offset;
    return (x > y) - (x < y);
}

static const struct sample *sample_at(const struct tree *tree, const uint32_t *order,
                                      uint64_t offset) {
    size_t low = search_first(middle, 0, tree->samples.count,
                              tree->samples.items[order[middle]].offset < offset);
    bool found = low < tree->samples.count && tree->samples.items[order[low]].offset == offset;
    return found ? &tree->samples.items[order[low]] : NULL;
}

/* From the leaf up, each under the one before. */
static uint32_t add_upside_down(struct tree *tree, uint32_t node, uint32_t waker) {
    for (; waker; waker = tree->nodes.items[waker].parent) {
        struct location location = tree->locations.items[tree->nodes.items[waker].location];
        location.kinds |= KIND_WAKER;
        node = tree_add_node(tree, node, tree_add_location(tree, &location));
    }
    return node;
}

static uint32_t add_waker(struct tree *tree, uint32_t node, const struct sample *waker) {
    struct buffer comm = {0};
    node = frame_named(tree, node, TEXT("--"), KIND_WAKER);
    if (waker) {
        const struct series *series = &tree->series.items[waker->series];
        node = add_upside_down(tree, node, waker->node);
        if (tree->threads.items[series->thread].tid == 0) /* an interrupt on an idle CPU */
            buffer_add(&comm, TEXT("[interrupt]"));
        else
            tree_add_comm(tree, series, &comm);
        node = frame_named(tree, node, buffer_text(&comm), KIND_WAKER);
    }
    buffer_release(&comm);
    return node;
}

/* Where the wait's longer path ends; UINT32_MAX: it is a waker's sample, which weighs nothing by itself. */
static uint32_t longer_path(const struct reading *reading, const uint32_t *order,
                            const struct sample *sample) {
    struct tree *tree = reading->profile->tree;
    if (!tree_event(tree, tree->series.items[sample->series].event)->time)
        return sample->node;
    const struct cost *cost = cost_find(reading, sample->offset);
    if (cost->state == STATE_UNTOLD)
        return UINT32_MAX;
    if (!cost->waker)
        return sample->node;
    return add_waker(tree, sample->node, sample_at(tree, order, cost->waker - 1));
}

/* Every sample except those as measured was requested, so it has a cost. All paths are found before any sample is changed, because they lead over
   the nodes of other samples. */
void waits_add_wakers(struct waits *w) {
    struct reading *reading = w->reading;
    struct tree *tree = reading->profile->tree;
    size_t count = tree->samples.count, kept = 0;
    uint32_t *order = memory_alloc((count + 1) * sizeof *order);
    uint32_t *nodes = memory_alloc((count + 1) * sizeof *nodes);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, count, sizeof *order, offset_order, tree->samples.items);
    tree->cells.count = 1; /* counted anew, on their longer paths */
    index_release(&tree->cell_index);
    for (size_t i = 0; i < count; i++) {
        const struct sample *sample = &tree->samples.items[i];
        nodes[i] = longer_path(reading, order, sample);
        if (nodes[i] != UINT32_MAX)
            tree_count(tree, nodes[i], sample->series, 1, sample->weight);
    }
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == UINT32_MAX)
            continue;
        tree->samples.items[kept] = tree->samples.items[i];
        tree->samples.items[kept++].node = nodes[i];
    }
    tree->samples.count = reading->options->keep_samples ? kept : 0;
    tree->keep_samples = reading->options->keep_samples;
    free(nodes);
    free(order);
}
