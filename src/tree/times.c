/*
 * Views of a tree that count only time on the CPU, off it, or both.
 *
 * A recording that has both is read once; its views share nodes, locations and names, and have cells and samples of their own. A view keeps the
 * numbers of series but not those of events, because its list of events and its unit must come only from its own events.
 */
#include "tree/tree.h"

#include <stdlib.h>

#include "tree/samples.h"

const struct note_kind note_only_waits = {
    "only-waits", "the recording contains only waits: shown in nanoseconds, as with --off-cpu"};

const struct note_kind *note_of_natural(enum times times) {
    static const struct note_kind kinds[] = {
        [TIMES_WAITING] = {"natural-time", "off-CPU time is shown, because that was recorded; "
                                           "--on-cpu shows CPU time, --wall both"},
        [TIMES_BOTH] = {"natural-time", "wall time is shown, because that was recorded; --on-cpu "
                                        "shows CPU time, --off-cpu waits"}};
    return &kinds[times];
}

bool tree_knows(const struct tree *tree, enum times times) {
    for (size_t i = 1; i < tree->series.count; i++)
        if (series_is_of(tree, &tree->series.items[i], times))
            return true;
    return false;
}

uint8_t series_views(const struct tree *tree, const struct series *series) {
    uint8_t views = 0;
    for (enum times times = TIMES_RUNNING; times <= TIMES_BOTH; times++)
        views |= series_is_of(tree, series, times) ? times_view(times) : 0;
    return views;
}

void tree_choose_notes(struct tree *tree, bool all) {
    bool waits_alone = !tree_knows(tree, tree->shown) && tree_knows(tree, TIMES_WAITING);
    notes_choose(&tree->notes, times_view(waits_alone ? TIMES_WAITING : tree->shown),
                 all ? times_view(TIMES_BOTH) : 0);
}

/* The tree's own events and series, without the events that are not in `events`. */
static void view_add_series(struct tree *view, const struct tree *tree, const bool *events) {
    uint32_t *ids = memory_zero(tree->events.count, sizeof *ids);
    vector_push(&view->events, tree->events.items[0]);
    for (uint32_t i = 1; i < tree->events.count; i++)
        if (events[i]) {
            ids[i] = (uint32_t)view->events.count;
            vector_push(&view->events, tree->events.items[i]);
        }
    vector_reserve(&view->series, tree->series.count);
    for (size_t i = 0; i < tree->series.count; i++) {
        struct series series = tree->series.items[i];
        series.event = ids[series.event];
        vector_push(&view->series, series);
    }
    free(ids);
}

static struct tree *view_new(const struct tree *tree, const bool *events, const bool *series) {
    struct tree *view = memory_alloc(sizeof *view);
    *view = *tree;
    memset(&view->events, 0, sizeof view->events);
    memset(&view->series, 0, sizeof view->series);
    memset(&view->cells, 0, sizeof view->cells);
    memset(&view->samples, 0, sizeof view->samples);
    memset(&view->series_index, 0, sizeof view->series_index);
    memset(&view->cell_index, 0, sizeof view->cell_index);
    view->samples_descriptor = -1;
    view_add_series(view, tree, events);
    for (size_t i = 0; i < tree->cells.count; i++)
        if (i == 0 || series[tree->cells.items[i].series])
            vector_push(&view->cells, tree->cells.items[i]);
    for (size_t i = 0; i < tree->samples.count; i++)
        if (series[tree->samples.items[i].series])
            tree_keep_sample(view, &tree->samples.items[i]);
    return view;
}

struct tree *tree_view_new(const struct tree *tree, enum times times) {
    bool *events = memory_zero(tree->events.count, sizeof *events);
    bool *series = memory_zero(tree->series.count, sizeof *series);
    for (size_t i = 1; i < tree->events.count; i++)
        events[i] = event_is_of(&tree->events.items[i], times);
    for (size_t i = 1; i < tree->series.count; i++)
        series[i] = series_is_of(tree, &tree->series.items[i], times);
    struct tree *view = view_new(tree, events, series);
    free(events);
    free(series);
    return view;
}

void tree_view_free(struct tree *view) {
    if (!view)
        return;
    vector_release(&view->events);
    vector_release(&view->series);
    vector_release(&view->cells);
    samples_release(view);
    free(view);
}

/* Make the tree what its view is, and free the view. */
static void become(struct tree *tree, struct tree *view) {
    struct tree old = *tree;
    *tree = *view;
    *view = old; /* what it shares is the tree's now */
    index_release(&view->series_index);
    index_release(&view->cell_index);
    tree_view_free(view);
}

void tree_keep_times(struct tree *tree, enum times times) {
    become(tree, tree_view_new(tree, times));
}

void tree_drop_aside(struct tree *tree) {
    bool *events = memory_zero(tree->events.count, sizeof *events);
    bool *series = memory_zero(tree->series.count, sizeof *series);
    for (size_t i = 1; i < tree->events.count; i++)
        events[i] = tree->events.items[i].time != TIME_ASIDE;
    for (size_t i = 1; i < tree->series.count; i++)
        series[i] = tree->series.items[i].event && events[tree->series.items[i].event];
    become(tree, view_new(tree, events, series));
    free(events);
    free(series);
}
