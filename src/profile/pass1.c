/*
 * Pass 1: read every record header once.
 *
 * A sample costs a few loads here, for its event and time. Everything else is rare. Side records are remembered by key and offset, sorted, and
 * applied to the spaces in that order. The file is cut into pieces at a record every PIECE_SIZE bytes.
 *
 * perf writes its buffers one after the other in rounds, so records are out of order within a round, and a FINISHED_ROUND says that nothing older
 * than the end of the *previous* round will follow. Sorting by time therefore gives perf's own order, unless a record is older than what was
 * flushed before it. Those are counted, and `quirks.rounds_order` then sorts by (the round that delivered it, time, offset), exactly as perf does.
 */
#include <stdlib.h>

#include "profile/blocks.h"
#include "profile/memories.h"
#include "profile/scripted.h"
#include "profile/waits.h"

enum { PIECE_SIZE = 1 << 20, PROGRESS_STEP = 4 << 20, AHEAD = 2048 };

static const struct note_kind note_disordered = {
    "out-of-order", "# record{ was|s were} delivered out of order; sorted by time"};
static const struct note_kind note_lost = {
    "lost-samples",
    "# sample{ was|s were} lost while recording; a larger buffer (-m) or a lower frequency helps"};
static const struct note_kind note_strange = {
    "samples-of-no-event", "# sample{ has|s have} an id that no event in the file has; dropped"};

struct walk {
    struct reading *reading;
    VECTOR(struct key) sides; /* of the side records */
    uint64_t newest;          /* the latest time seen */
    uint64_t flushed;         /* what the last FINISHED_ROUND delivered, up to this time */
    uint64_t limit;           /* what the next one will */
};

/* The first round that ends after the record at `offset`. */
static size_t round_around(const struct reading *reading, uint64_t offset) {
    return first_from(reading->round_offsets.items, reading->round_offsets.count,
                      sizeof *reading->round_offsets.items, offset);
}

/* The first from there on that flushes up to the record's time; limits never go back. */
static uint32_t round_of(const struct reading *reading, uint64_t offset, uint64_t time) {
    size_t first = round_around(reading, offset), count = reading->round_limits.count;
    return (uint32_t)(first + first_from(reading->round_limits.items + first, count - first,
                                         sizeof *reading->round_limits.items, time));
}

/* The time up to which everything had been delivered when the record at `offset` was read. */
static uint64_t flushed_before(const struct reading *reading, uint64_t offset) {
    size_t round = round_around(reading, offset);
    return round ? reading->round_limits.items[round - 1] : 0;
}

void reading_key(const struct reading *reading, uint64_t offset, uint64_t time, struct key *key) {
    bool stands = time == 0 || time == UINT64_MAX;
    key->offset = offset;
    key->time = stands ? flushed_before(reading, offset) : time;
    key->round = reading->imitate_rounds ? round_of(reading, offset, key->time) : 0;
}

static void walk_time(struct walk *walk, uint64_t time) {
    if (time == 0 || time == UINT64_MAX)
        return;
    if (time < walk->flushed)
        walk->reading->disordered++;
    if (time > walk->newest)
        walk->newest = time;
}

static bool walk_round(struct walk *walk, uint64_t offset, struct error *error) {
    if (!perfdata_take(walk->reading->profile->data, 2 * sizeof offset, offset, error))
        return false;
    vector_push(&walk->reading->round_offsets, offset);
    vector_push(&walk->reading->round_limits, walk->limit);
    walk->flushed = walk->limit;
    walk->limit = walk->newest;
    return true;
}

/* See events_need_text(). Decodes the whole sample to find its thread, which is needed only to imitate inferno on samples without chains. */
static bool walk_nobody(struct walk *walk, const struct perfdata_record *record, uint32_t event,
                        struct error *error) {
    const struct perfdata *data = walk->reading->profile->data;
    uint64_t fields = data->events.items[event].sample_type;
    struct perfdata_sample sample;
    if (fields & PERF_SAMPLE_CALLCHAIN || !(fields & PERF_SAMPLE_TID))
        return true;
    if (!perfdata_sample(data, record, &sample, error))
        return false;
    walk->reading->events.items[event].nobody |= sample.tid < 0;
    return true;
}

static bool walk_sample(struct walk *walk, const struct perfdata_record *record,
                        struct error *error) {
    uint32_t event;
    uint64_t time;
    if (!perfdata_sample_key(walk->reading->profile->data, record, &event, &time, error))
        return false;
    if (event == PERFDATA_NO_EVENT) {
        notes_add(&walk->reading->profile->tree->notes, &note_strange, 1, record->offset,
                  "the first at byte %llu", (unsigned long long)record->offset);
        return true;
    }
    walk_time(walk, time);
    struct key key = {.time = time, .offset = record->offset};
    walk->reading->profile->sample_count++;
    if ((record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
        walk->reading->kernel_seen = true;
    if (walk->reading->options->quirks.lines_decide && !walk_nobody(walk, record, event, error))
        return false;
    if (counters_are_read(walk->reading, event))
        return counters_walk(walk->reading, record, &key, error);
    event_saw(&walk->reading->events.items[event], &key);
    if (walk->reading->blocks)
        return blocks_sample(walk->reading->blocks, record, event, error);
    return !walk->reading->waits || waits_sample(walk->reading->waits, record, event, time, error);
}

static bool walk_side(struct walk *walk, const struct perfdata_record *record,
                      struct error *error) {
    struct perfdata_trailer trailer;
    if (!perfdata_trailer(walk->reading->profile->data, record, &trailer, error))
        return false;
    struct key side = {.time = trailer.has_time ? trailer.time : 0, .offset = record->offset};
    walk_time(walk, side.time);
    if (!perfdata_take(walk->reading->profile->data, sizeof side, record->offset, error))
        return false;
    vector_push(&walk->sides, side);
    return true;
}

static bool walk_lost(struct walk *walk, const struct perfdata_record *record,
                      struct error *error) {
    uint64_t lost;
    if (!perfdata_lost(walk->reading->profile->data, record, &lost, error))
        return false;
    if (lost)
        notes_add(&walk->reading->profile->tree->notes, &note_lost, lost, 0, NULL);
    return true;
}

static bool walk_deferred(struct walk *walk, const struct perfdata_record *record,
                          struct error *error) {
    struct perfdata_trailer trailer;
    struct perfdata_deferred chain;
    if (!perfdata_trailer(walk->reading->profile->data, record, &trailer, error) ||
        !perfdata_deferred(walk->reading->profile->data, record, &chain, error))
        return false;
    if (!perfdata_take(walk->reading->profile->data, sizeof(struct deferred), record->offset,
                       error))
        return false;
    struct deferred deferred = {
        .tid = trailer.tid, .cookie = chain.cookie, .offset = record->offset};
    vector_push(&walk->reading->deferred, deferred);
    return true;
}

/* `perf inject -b` puts them among the records. Those of a stream were looked for before. */
static bool walk_build_id(struct walk *walk, const struct perfdata_record *record,
                          struct error *error) {
    struct perfdata *data = walk->reading->profile->data;
    struct perfdata_build_id build_id;
    if (data->is_stream)
        return perfdata_check(data, record, error);
    if (!perfdata_build_id(data, record, &build_id, error) ||
        !perfdata_take(data, sizeof build_id, record->offset, error))
        return false;
    vector_push(&data->build_ids, build_id);
    return true;
}

static bool walk_record(struct walk *walk, const struct perfdata_record *record,
                        struct error *error) {
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        return walk_sample(walk, record, error);
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_KSYMBOL:
    case PERF_RECORD_NAMESPACES:
        return walk_side(walk, record, error);
    case PERF_RECORD_COMM:
        return walk_side(walk, record, error) &&
               (!walk->reading->blocks || blocks_record(walk->reading->blocks, record, error));
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        return walk_side(walk, record, error) &&
               (!walk->reading->blocks || blocks_record(walk->reading->blocks, record, error)) &&
               (!walk->reading->waits || waits_record(walk->reading->waits, record, error));
    case PERF_RECORD_SWITCH:
    case PERF_RECORD_SWITCH_CPU_WIDE:
        return perfdata_check(walk->reading->profile->data, record, error) &&
               (!walk->reading->waits || waits_record(walk->reading->waits, record, error));
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        return walk_lost(walk, record, error);
    case RECORD_CALLCHAIN_DEFERRED:
        return walk_deferred(walk, record, error);
    case RECORD_HEADER_BUILD_ID:
        return walk_build_id(walk, record, error);
    case PERF_RECORD_BPF_EVENT:
        return carrier_add(walk->reading->profile->data, record, error) &&
               perfdata_check(walk->reading->profile->data, record, error);
    case RECORD_FINISHED_ROUND:
        return walk_round(walk, record->offset, error);
    default:
        return perfdata_check(walk->reading->profile->data, record, error);
    }
}

static bool walk_all(struct walk *walk, struct error *error) {
    struct perfdata *data = walk->reading->profile->data;
    enum { LINE = 64, LINES = 4 };
    uint64_t offset = data->data_start, piece_start = offset, reported = offset;
    struct perfdata_record record;
    error->kind = ERROR_NONE;
    while (!context_cancelled(data->context) && perfdata_next(data, &offset, &record, error)) {
        if (record.offset - piece_start >= PIECE_SIZE) {
            vector_push(&walk->reading->pieces, ((struct piece){piece_start, record.offset}));
            piece_start = record.offset;
        }
        /* Headers are too far apart for the processor to guess. */
        for (size_t line = 0; line < record.size && line < LINES * LINE; line += LINE)
            __builtin_prefetch(record.data + AHEAD + line);
        if (!walk_record(walk, &record, error))
            return false;
        if (offset - reported >= PROGRESS_STEP) {
            context_progress(data->context, "reading", offset - data->data_start,
                             data->data_end - data->data_start);
            reported = offset;
        }
    }
    if (error->kind != ERROR_NONE)
        return false;
    vector_push(&walk->reading->pieces, ((struct piece){piece_start, offset}));
    return true;
}

static int key_order(const void *a, const void *b) {
    return key_compare(a, b);
}

static int deferred_order(const void *a, const void *b) {
    const struct deferred *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->cookie != y->cookie)
        return x->cookie < y->cookie ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool walk_apply(struct walk *walk, struct error *error) {
    struct reading *reading = walk->reading;
    reading_index_build_ids(reading);
    if (!reading->options->quirks.carrier_is_unknown)
        reading->profile->carried = carried_new(reading->profile->data);
    carried_offer_parts(reading->profile->carried, reading->profile->objects);
    if (reading->is_ongoing)
        carried_offer_all(reading->profile->carried, reading->profile->objects);
    carried_labels(reading->profile->carried, reading->profile->tree, &reading->labels);
    reading->scripted = scripted_read(reading->profile->carried, reading->profile->tree);
    reading->memories = memories_read(reading->profile->carried, &reading->profile->tree->notes);
    carried_java(reading->profile->carried, reading);
    for (size_t i = 0; i < walk->sides.count; i++) {
        struct key *key = &walk->sides.items[i];
        reading_key(reading, key->offset, key->time, key);
    }
    if (walk->sides.count)
        qsort(walk->sides.items, walk->sides.count, sizeof *walk->sides.items, key_order);
    if (!reading->options->quirks.carrier_is_unknown &&
        !reading_find_jitdumps(reading, walk->sides.items, walk->sides.count, error))
        return false;
    made_sort(&reading->made);
    for (size_t i = 0; i < walk->sides.count; i++) {
        const struct key *key = &walk->sides.items[i];
        uint64_t offset = key->offset;
        struct perfdata_record record;
        labels_apply(&reading->labels, key->time);
        made_apply(reading, key->time);
        if (!perfdata_next(reading->profile->data, &offset, &record, error) ||
            !reading_apply(reading, &record, key, error))
            return false;
    }
    labels_apply(&reading->labels, UINT64_MAX);
    made_apply(reading, UINT64_MAX);
    spaces_seal(reading->profile->spaces);
    return true;
}

bool reading_pass1(struct reading *reading, struct error *error) {
    struct walk walk = {.reading = reading};
    for (size_t i = 0; i < reading->profile->data->events.count; i++)
        vector_push(&reading->events, ((struct event_seen){0}));
    struct paging *paging = context_threads(reading->options->context) == 1
                                ? NULL
                                : file_page_in(reading->profile->data->file);
    bool fine = waits_begin(reading, error) && walk_all(&walk, error);
    paging_end(paging);
    if (fine && reading->waits)
        waits_lasted(reading->waits, walk.newest);
    if (fine) {
        reading->imitate_rounds = reading->options->quirks.rounds_order && reading->disordered;
        if (reading->disordered && !reading->imitate_rounds)
            notes_add(&reading->profile->tree->notes, &note_disordered, reading->disordered, 0,
                      NULL);
        if (reading->deferred.count)
            qsort(reading->deferred.items, reading->deferred.count, sizeof *reading->deferred.items,
                  deferred_order);
        reading->newest = walk.newest;
        fine = walk_apply(&walk, error);
    }
    vector_release(&walk.sides);
    return fine;
}
