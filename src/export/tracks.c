/*
 * Measures and tracks: what was counted, and for which thread. Series that differ in nothing that a format shows
 * (lives of one thread, how stacks end) are one track; so are, under --wall, a thread's time on and off the CPU.
 */
#include "export/outline.h"

#include <stdlib.h>

struct track_key {
    uint32_t series;
    struct text event, unit, comm;
    int32_t pid, tid;
};

static int order_measure(const struct track_key *a, const struct track_key *b) {
    int order = text_compare(a->event, b->event);
    return order ? order : text_compare(a->unit, b->unit);
}

static int order_track(const void *a, const void *b) {
    const struct track_key *x = a, *y = b;
    int order = order_measure(x, y);
    if (!order)
        order = (x->pid > y->pid) - (x->pid < y->pid);
    if (!order)
        order = (x->tid > y->tid) - (x->tid < y->tid);
    return order ? order : text_compare(x->comm, y->comm);
}

/* The displayed name: ":TID" if none was recorded. */
static struct text comm_of(struct outline *o, const struct series *series) {
    struct buffer comm = {0};
    if (series->comm || series->thread)
        tree_add_comm(o->tree, series, &comm);
    struct text kept = arena_copy(&o->arena, buffer_text(&comm));
    buffer_release(&comm);
    return kept;
}

static struct track_key key_of_series(struct outline *o, uint32_t id) {
    const struct tree *tree = o->tree;
    const struct series *series = &tree->series.items[id];
    const struct event *event = tree_event(tree, series->event);
    const struct thread *thread = series->thread ? &tree->threads.items[series->thread] : NULL;
    struct text name = strings_get(tree->strings, event->name);
    return (struct track_key){.series = id,
                              .event = o->options->measure ? text_of(o->options->measure) : name,
                              .unit = strings_get(tree->strings, event->unit),
                              .comm = comm_of(o, series),
                              .pid = thread ? thread->pid : -1,
                              .tid = thread ? thread->tid : -1};
}

static struct text track_name(struct outline *o, uint32_t series) {
    struct buffer name = {0};
    thread_name(o->tree, &o->tree->series.items[series], true, &name);
    if (!name.count)
        buffer_add(&name, text_of(o->options->title));
    struct text kept = arena_copy(&o->arena, buffer_text(&name));
    buffer_release(&name);
    return kept;
}

static void push_track(struct outline *o, const struct track_key *key, bool new_measure) {
    if (new_measure)
        vector_push(&o->measures, ((struct measure){key->event, key->unit}));
    vector_push(&o->tracks, ((struct track){.measure = (uint32_t)o->measures.count - 1,
                                            .pid = key->pid,
                                            .tid = key->tid,
                                            .comm = key->comm,
                                            .name = track_name(o, key->series)}));
}

static void find_twins(struct outline *o) {
    struct index index = {0};
    for (uint32_t i = 0; i < o->tracks.count; i++) {
        struct track *track = &o->tracks.items[i];
        uint64_t hash = hash_mix((uint32_t)track->pid, (uint32_t)track->tid);
        uint32_t id;
        for (struct probe p = index_probe(&index, hash); (id = index_next(&index, &p));)
            track->twin |= o->tracks.items[id - 1].pid == track->pid &&
                           o->tracks.items[id - 1].tid == track->tid;
        if (!track->twin)
            index_add(&index, hash, i + 1);
    }
    index_release(&index);
}

void tracks_find(struct outline *o) {
    size_t count = o->tree->series.count;
    VECTOR(struct track_key) keys = {0};
    bool *used = memory_zero(count, sizeof *used);
    for (size_t i = 1; i < o->tree->cells.count; i++) {
        const struct cell *cell = &o->tree->cells.items[i];
        used[cell->series] |= placed_find(o->stacks, cell->series, cell->node) != STACK_DROPPED;
    }
    for (uint32_t i = 1; i < count; i++)
        if (used[i] && !o->naming->series.items[i].skip)
            vector_push(&keys, key_of_series(o, i));
    if (keys.count)
        qsort(keys.items, keys.count, sizeof *keys.items, order_track);
    o->series_tracks = memory_resize(NULL, count, sizeof *o->series_tracks);
    memset(o->series_tracks, 0xff, count * sizeof *o->series_tracks);
    for (size_t i = 0; i < keys.count; i++) {
        const struct track_key *key = &keys.items[i];
        if (i == 0 || order_track(key - 1, key) != 0)
            push_track(o, key, i == 0 || order_measure(key - 1, key) != 0);
        o->series_tracks[key->series] = (uint32_t)o->tracks.count - 1;
    }
    find_twins(o);
    free(used);
    vector_release(&keys);
}

static bool is_before_leader(const struct track *track, const struct track *other) {
    if (track->measure != other->measure)
        return track->measure < other->measure;
    if (track->pid != other->pid)
        return track->pid < other->pid;
    return track->tid < other->pid;
}

/* Return the first track of that measure and process that is not before its leader's: tracks are sorted by all of
   these. */
static const struct track *find_leader(const struct outline *o, const struct track *track) {
    size_t low = search_first(middle, 0, o->tracks.count - 1,
                              is_before_leader(&o->tracks.items[middle], track));
    return &o->tracks.items[low];
}

struct text track_process(const struct outline *o, uint32_t number) {
    const struct track *track = &o->tracks.items[number], *leader = find_leader(o, track);
    bool found = leader->measure == track->measure && leader->pid == track->pid &&
                 leader->tid == track->pid && leader->comm.length;
    return found ? leader->comm : track->name;
}

uint32_t outline_heaviest(const struct outline *o) {
    uint32_t most = 0;
    for (uint32_t i = 1; i < o->tracks.count; i++)
        if (o->tracks.items[i].weight > o->tracks.items[most].weight)
            most = i;
    return most;
}

const char *measure_unit(const struct outline *o, uint32_t measure) {
    struct text unit = value_unit(o->measures.items[measure].unit);
    return text_equal(unit, TEXT("count")) ? NULL : unit.data;
}

const char *weight_unit(const struct outline *o, uint32_t measure) {
    return o->options->shape->by_samples ? NULL : measure_unit(o, measure);
}

bool measure_is_time(const struct outline *o, uint32_t measure) {
    const char *unit = weight_unit(o, measure);
    return unit && strcmp(unit, "nanoseconds") == 0;
}
