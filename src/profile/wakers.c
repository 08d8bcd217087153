/*
 * What is added to the tree when all samples are in it: time that no sample stands for, and who ended each wait.
 *
 * A waker's stack is upside down, as everybody draws it: behind the place where its target slept stands what woke it, then what called
 * that, up to the waker's root and comm. Read from the waiting side, the answer comes first.
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
    struct location location = {.name = strings_add(tree->strings, name), .kinds = kinds};
    return tree_add_node(tree, node, tree_add_location(tree, &location));
}

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
        tree_count(tree, node, tree_add_series(tree, &series), !on, untold->weight);
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
    size_t low = 0, high = tree->samples.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree->samples.items[order[middle]].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
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
        if (tree->threads.items[series->thread].tid == 0) /* nobody's: it came to an idle CPU */
            buffer_add(&comm, TEXT("[interrupt]"));
        else
            tree_add_comm(tree, series, &comm);
        node = frame_named(tree, node, buffer_text(&comm), KIND_WAKER);
    }
    buffer_release(&comm);
    return node;
}

/* Samples without an entry among the costs are none that were asked for; those of wakers weigh nothing. */
void waits_add_wakers(struct waits *w) {
    struct reading *reading = w->reading;
    struct tree *tree = reading->profile->tree;
    size_t count = tree->samples.count, kept = 0;
    uint32_t *order = memory_alloc((count + 1) * sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, count, sizeof *order, offset_order, tree->samples.items);
    tree->cells.count = 1; /* counted anew, on their longer paths */
    index_release(&tree->cell_index);
    for (size_t i = 0; i < count; i++) {
        struct sample *sample = &tree->samples.items[i];
        const struct cost *cost = cost_find(reading, sample->offset);
        sample->file = cost->state == STATE_UNTOLD; /* a waker: see below */
        if (sample->file)
            continue;
        if (cost->waker)
            sample->round = add_waker(tree, sample->node, sample_at(tree, order, cost->waker - 1));
        else
            sample->round = sample->node;
        tree_count(tree, sample->round, sample->series, 1, sample->weight);
    }
    for (size_t i = 0; i < count; i++) {
        if (tree->samples.items[i].file)
            continue;
        tree->samples.items[kept] = tree->samples.items[i];
        tree->samples.items[kept].node = tree->samples.items[i].round;
        tree->samples.items[kept++].round = 0;
    }
    tree->samples.count = reading->options->keep_samples ? kept : 0;
    tree->keep_samples = reading->options->keep_samples;
    free(order);
}
