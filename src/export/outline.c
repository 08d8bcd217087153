/*
 * The outline: the counts of each stack, track by track, sorted by content.
 */
#include "export/outline.h"

#include <stdlib.h>

/* ---- labels ---- */

/* Compare by content: keys, then values, pair by pair. */
static int order_labels(const void *a, const void *b, void *of) {
    const struct tree *tree = of;
    size_t x_count, y_count;
    const struct label_pair *x = tree_labels(tree, *(const uint32_t *)a, &x_count);
    const struct label_pair *y = tree_labels(tree, *(const uint32_t *)b, &y_count);
    for (size_t i = 0; i < x_count && i < y_count; i++) {
        int order = text_compare(strings_get(tree->strings, x[i].key),
                                 strings_get(tree->strings, y[i].key));
        order = order ? order
                      : text_compare(strings_get(tree->strings, x[i].value),
                                     strings_get(tree->strings, y[i].value));
        if (order)
            return order;
    }
    return (x_count > y_count) - (x_count < y_count);
}

/* Number the sets by content. Return each set's number; free() it. NULL if there are none, or they don't matter. */
static uint32_t *rank_labels(struct outline *o, bool wanted) {
    size_t count = o->tree->label_sets.count;
    if (!wanted || count < 2)
        return NULL;
    uint32_t *ranks = memory_zero(count, sizeof *ranks);
    o->label_sets = memory_zero(count, sizeof *o->label_sets);
    for (uint32_t i = 1; i < count; i++)
        o->label_sets[i] = i;
    qsort_r(o->label_sets + 1, count - 1, sizeof *o->label_sets, order_labels,
            (void *)(uintptr_t)o->tree);
    for (uint32_t i = 1; i < count; i++)
        ranks[o->label_sets[i]] = i;
    return ranks;
}

/* ---- entries ---- */

static void find_entries(struct outline *o, const uint32_t *ranks) {
    for (size_t i = 1; i < o->tree->cells.count; i++) {
        const struct cell *cell = &o->tree->cells.items[i];
        const struct series *series = &o->tree->series.items[cell->series];
        uint32_t track = o->series_tracks[cell->series];
        uint32_t node = placed_find(o->stacks, cell->series, cell->node);
        if (track != NO_TRACK && node != STACK_DROPPED)
            vector_push(&o->entries, ((struct track_entry){track, node, series->state,
                                                           ranks ? ranks[series->labels] : 0,
                                                           cell->samples, cell->weight}));
    }
}

static int order_entries(const void *a, const void *b) {
    const struct track_entry *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    if (x->labels != y->labels)
        return x->labels < y->labels ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Merge the counts of several tree nodes of one place. */
static bool merge_entries(struct outline *o) {
    size_t kept = 0;
    bool fine = true;
    if (o->entries.count)
        qsort(o->entries.items, o->entries.count, sizeof *o->entries.items, order_entries);
    for (size_t i = 0; i < o->entries.count; i++) {
        const struct track_entry *entry = &o->entries.items[i];
        struct track_entry *last = kept ? &o->entries.items[kept - 1] : NULL;
        if (last && order_entries(last, entry) == 0) {
            fine &= checked_add(last->samples, entry->samples, &last->samples) &&
                    checked_add(last->weight, entry->weight, &last->weight);
        } else {
            o->entries.items[kept++] = *entry;
        }
    }
    o->entries.count = kept;
    return fine;
}

static bool sum_tracks(struct outline *o) {
    bool fine = true;
    for (size_t i = 0; i < o->entries.count; i++) {
        const struct track_entry *entry = &o->entries.items[i];
        struct track *track = &o->tracks.items[entry->track];
        if (!track->entry_count++)
            track->first_entry = i;
        track->waits |= entry->state != STATE_ON;
        fine &= checked_add(track->samples, entry->samples, &track->samples) &&
                checked_add(track->weight, entry_weight(o, entry), &track->weight);
    }
    return fine;
}

static bool outline_fill(struct outline *o, bool labels, struct error *error) {
    tracks_find(o);
    uint32_t *ranks = rank_labels(o, labels);
    find_entries(o, ranks);
    free(ranks);
    if (!merge_entries(o) || !sum_tracks(o))
        return error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    if (!o->entries.count)
        return stack_rules_fail(o->options->shape->rules, "there is nothing to export", error);
    steps_find(o);
    return true;
}

struct outline *outline_new(const struct tree *tree, const struct naming *naming,
                            const struct export_options *options,
                            const struct export_format *format, struct error *error) {
    if (!tree_check(tree, error))
        return NULL;
    struct outline *o = memory_zero(1, sizeof *o);
    o->tree = tree;
    o->naming = naming;
    o->options = options;
    o->detail = format->detail;
    o->stacks = placed_new(tree, naming, options->shape, format->detail, error);
    if (o->stacks && outline_fill(o, format->has_labels, error))
        return o;
    outline_free(o);
    return NULL;
}

void outline_free(struct outline *o) {
    if (!o)
        return;
    placed_free((struct placed *)o->stacks);
    vector_release(&o->measures);
    vector_release(&o->tracks);
    vector_release(&o->entries);
    vector_release(&o->left);
    free(o->label_sets);
    free(o->samples);
    free(o->series_tracks);
    arena_release(&o->arena);
    free(o);
}
