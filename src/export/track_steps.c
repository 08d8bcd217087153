/*
 * Tracks in order of time.
 *
 * The sum of kept samples is compared with the counts, stack by stack: time that no sample accounts for is still in
 * the tree, and must be in every total. Costs a binary search per sample.
 */
#include "export/outline.h"

#include <stdlib.h>

static uint32_t sample_track(const struct outline *o, const struct sample *sample) {
    uint32_t node = placed_find(o->stacks, sample->series, sample->node);
    return node == STACK_DROPPED ? NO_TRACK : o->series_tracks[sample->series];
}

/* Return the entry in which a kept sample was counted. */
static struct track_entry *entry_find(const struct outline *o, struct track_entry *entries,
                                      const struct track *track, uint32_t state, uint32_t node) {
    size_t end = track->first_entry + track->entry_count;
    size_t at = search_first(i, track->first_entry, end,
                             entries[i].state < state ||
                                 (entries[i].state == state && entries[i].node < node));
    bool there = at < end && entries[at].state == state && entries[at].node == node;
    return there ? &entries[at] : NULL;
}

/* Subtract a kept sample from the counts. */
static void entry_take(const struct outline *o, struct track_entry *entries,
                       const struct sample *sample, uint32_t track) {
    uint32_t node = placed_find(o->stacks, sample->series, sample->node);
    uint32_t state = o->tree->series.items[sample->series].state;
    struct track_entry *entry = entry_find(o, entries, &o->tracks.items[track], state, node);
    if (!entry)
        return;
    entry->samples -= entry->samples > 0;
    entry->weight -= sample->weight < entry->weight ? sample->weight : entry->weight;
}

/* Sort by track, otherwise keeping their order; those of no track come last. */
static void sort_samples(struct outline *o) {
    const struct tree *tree = o->tree;
    uint32_t none = (uint32_t)o->tracks.count;
    uint32_t *keys = memory_resize(NULL, tree->samples.count, sizeof *keys);
    size_t *ends = memory_zero(none + 1, sizeof *ends);
    for (size_t i = 0; i < tree->samples.count; i++) {
        uint32_t track = sample_track(o, &tree->samples.items[i]);
        keys[i] = track == NO_TRACK ? none : track;
    }
    o->samples = counting_sort(keys, tree->samples.count, none + 1, ends);
    for (size_t i = 0, start = 0; i < none; start = ends[i++]) {
        o->tracks.items[i].first_sample = start;
        o->tracks.items[i].sample_count = ends[i] - start;
    }
    free(ends);
    free(keys);
}

/* Return when the time that a sample covers began, if weights are nanoseconds: a wait begins at its sample, other
   time ends there. */
static uint64_t sample_start(const struct outline *o, const struct sample *sample, bool is_time) {
    bool wait = o->tree->series.items[sample->series].state != STATE_ON;
    if (wait || !is_time)
        return sample->time;
    return sample->time > sample->weight ? sample->time - sample->weight : 0;
}

static void find_times(struct outline *o) {
    bool any = false;
    for (size_t i = 0; i < o->tracks.count; i++) {
        struct track *track = &o->tracks.items[i];
        bool is_time = measure_is_time(o, track->measure);
        for (size_t k = 0; k < track->sample_count; k++) {
            const struct sample *sample =
                &o->tree->samples.items[o->samples[track->first_sample + k]];
            if (!sample_has_time(sample))
                continue;
            uint64_t start = sample_start(o, sample, is_time);
            o->first_time = any && o->first_time < start ? o->first_time : start;
            any = track->has_times = true;
            track->has_timed_waits |= o->tree->series.items[sample->series].state != STATE_ON;
        }
    }
}

void steps_find(struct outline *o) {
    const struct tree *tree = o->tree;
    sort_samples(o);
    find_times(o);
    struct track_entry *rest = memory_resize(NULL, o->entries.count, sizeof *rest);
    memcpy(rest, o->entries.items, o->entries.count * sizeof *rest);
    for (size_t i = 0; i < tree->samples.count; i++) {
        uint32_t track = sample_track(o, &tree->samples.items[i]);
        if (track != NO_TRACK)
            entry_take(o, rest, &tree->samples.items[i], track);
    }
    for (size_t i = 0; i < o->entries.count; i++) {
        struct track *track = &o->tracks.items[rest[i].track];
        if (!rest[i].samples && !rest[i].weight)
            continue;
        if (!track->left_count++)
            track->first_left = o->left.count;
        vector_push(&o->left, rest[i]);
    }
    free(rest);
}

/* ---- walking ---- */

static const struct sample *track_sample(const struct walk *walk) {
    const struct outline *o = walk->outline;
    return &o->tree->samples.items[o->samples[walk->track->first_sample + walk->next]];
}

struct walk walk_begin(const struct outline *o, uint32_t number) {
    const struct track *track = &o->tracks.items[number];
    struct walk walk = {.outline = o, .track = track};
    walk.in_time = track->has_times && measure_is_time(o, track->measure);
    if (walk.in_time && sample_has_time(track_sample(&walk)))
        walk.end = sample_start(o, track_sample(&walk), true) - o->first_time;
    return walk;
}

/* For a thread that is known to run or wait all the time, only waits have a start; what ran lies between them. */
static uint64_t place_in_time(const struct walk *walk, const struct step *step) {
    bool wait = step->state != STATE_ON;
    uint64_t start = step->time;
    if (!wait)
        start = walk->track->has_timed_waits || step->weight > start ? 0 : start - step->weight;
    uint64_t least_gap = wait ? 1 : step->weight / 2 + 1;
    return start >= saturating_add(walk->end, least_gap) ? start : walk->end;
}

static void step_of_sample(struct walk *walk, const struct sample *sample, struct step *step) {
    const struct outline *o = walk->outline;
    *step = (struct step){.start = walk->end,
                          .weight = o->options->shape->by_samples ? 1 : sample->weight,
                          .time = walk->time,
                          .node = placed_find(o->stacks, sample->series, sample->node),
                          .state = o->tree->series.items[sample->series].state};
    if (!sample_has_time(sample))
        return;
    uint64_t time = sample->time - o->first_time;
    step->time = walk->time = time > walk->time ? time : walk->time;
    if (walk->in_time)
        step->start = place_in_time(walk, step);
}

bool walk_next(struct walk *walk, struct step *step) {
    const struct outline *o = walk->outline;
    const struct track *track = walk->track;
    if (walk->next < track->sample_count) {
        step_of_sample(walk, track_sample(walk), step);
    } else if (walk->next - track->sample_count < track->left_count) {
        const struct track_entry *entry =
            &o->left.items[track->first_left + walk->next - track->sample_count];
        *step =
            (struct step){walk->end, entry_weight(o, entry), walk->time, entry->node, entry->state};
    } else {
        return false;
    }
    walk->next++;
    walk->end = saturating_add(step->start, step->weight);
    return true;
}

/* ---- stretches ---- */

struct stretches stretches_begin(const struct outline *o, uint32_t track) {
    struct stretches s = {.walk = walk_begin(o, track)};
    s.more = walk_next(&s.walk, &s.step);
    s.start = s.end = s.more ? s.step.start : 0;
    return s;
}

bool stretches_next(struct stretches *s, struct stretch *stretch) {
    if (!s->more)
        return false;
    if (s->step.start > s->end) {
        *stretch = (struct stretch){0, s->step.start - s->end};
        s->end = s->step.start;
        return true;
    }
    *stretch = (struct stretch){s->step.node, 0};
    while (s->more && s->step.node == stretch->node && s->step.start == s->end) {
        stretch->weight += s->step.weight;
        s->end = saturating_add(s->end, s->step.weight);
        s->more = walk_next(&s->walk, &s->step);
    }
    return true;
}
