/*
 * The outline: what was counted on each stack, track by track, in an order of content.
 */
#include "export/outline.h"

#include <stdlib.h>

static void find_entries(struct outline *o) {
    for (size_t i = 1; i < o->tree->cells.count; i++) {
        const struct cell *cell = &o->tree->cells.items[i];
        uint32_t track = o->series_tracks[cell->series];
        uint32_t node = placed_find(o->stacks, cell->series, cell->node);
        if (track != NO_TRACK && node != STACK_DROPPED)
            vector_push(&o->entries,
                        ((struct entry){track, node, o->tree->series.items[cell->series].state,
                                        cell->samples, cell->weight}));
    }
}

static int order_entries(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    if (x->track != y->track)
        return x->track < y->track ? -1 : 1;
    if (x->state != y->state)
        return x->state < y->state ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* What several tree nodes of one place counted becomes one. */
static bool merge_entries(struct outline *o) {
    size_t kept = 0;
    bool fine = true;
    if (o->entries.count)
        qsort(o->entries.items, o->entries.count, sizeof *o->entries.items, order_entries);
    for (size_t i = 0; i < o->entries.count; i++) {
        const struct entry *entry = &o->entries.items[i];
        struct entry *last = kept ? &o->entries.items[kept - 1] : NULL;
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
        const struct entry *entry = &o->entries.items[i];
        struct track *track = &o->tracks.items[entry->track];
        if (!track->entry_count++)
            track->first_entry = i;
        track->waits |= entry->state != STATE_ON;
        fine &= checked_add(track->samples, entry->samples, &track->samples) &&
                checked_add(track->weight, entry_weight(o, entry), &track->weight);
    }
    return fine;
}

static bool outline_fill(struct outline *o, struct error *error) {
    tracks_find(o);
    find_entries(o);
    if (!merge_entries(o) || !sum_tracks(o))
        return error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    if (!o->entries.count)
        return error_set(error, ERROR_INPUT, "there is nothing to export");
    steps_find(o);
    return true;
}

struct outline *outline_new(const struct tree *tree, const struct naming *naming,
                            const struct export_options *options, enum detail detail,
                            struct error *error) {
    if (!tree_check(tree, error))
        return NULL;
    struct outline *o = memory_zero(1, sizeof *o);
    o->tree = tree;
    o->naming = naming;
    o->options = options;
    o->detail = detail;
    o->stacks = placed_new(tree, naming, options->shape, detail, error);
    if (o->stacks && outline_fill(o, error))
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
    free(o->samples);
    free(o->series_tracks);
    arena_release(&o->arena);
    free(o);
}
