/*
 * Pass 2: samples to trees.
 *
 * A worker takes pieces of the file and counts into a tree of its own. A sample asks for (series, epoch, hash of its chain as
 * recorded) in a table that holds the counts themselves: a chain seen before costs one cache miss, and these are waited for
 * sixteen at a time. The counts go into the tree's cells at the end. A new chain costs, for each frame that no
 * chain before it led to, a look into a direct-mapped cache of (epoch, address) → location and one probe of the
 * node index.
 *
 * A sample that carries registers and a slice of stack is unwound first, and what came out is then looked up like a recorded chain.
 *
 * The hash stands for the chain and its series: two different ones would have to agree in 64 bits.
 */
#include "profile/worker.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { TABLE_FIRST = 1 << 12 };

static const struct note_kind note_filtered = {"filtered", "# samples did not pass the filters"};
static const struct note_kind note_guests = {"guests",
                                             "# samples of guests were left out, as perf does"};

struct pass {
    struct reading *reading;
    struct worker *workers;
    atomic_bool failed;
    atomic_uint_fast64_t done;
    struct error *errors; /* one for each piece: the first in the file is reported */
};

/* ---- the table ---- */

static void table_grow(struct worker *w) {
    struct counted *old = w->table;
    size_t old_size = w->table_size;
    w->table_size = old_size ? old_size * 2 : TABLE_FIRST;
    w->table = memory_table(w->table_size, sizeof *w->table);
    for (size_t i = 0; i < old_size; i++) {
        size_t slot = old[i].hash >> 8 & (w->table_size - 1);
        while (old[i].hash && w->table[slot].hash)
            slot = (slot + 1) & (w->table_size - 1);
        if (old[i].hash)
            w->table[slot] = old[i];
    }
    free(old);
}

/* The entry of that hash, or the empty one where it belongs. */
static struct counted *table_find(struct worker *w, uint64_t hash) {
    size_t slot = hash >> 8 & (w->table_size - 1);
    while (w->table[slot].hash && w->table[slot].hash != hash)
        slot = (slot + 1) & (w->table_size - 1);
    return &w->table[slot];
}

/* ---- samples ---- */

static uint64_t weight_of(const struct reading *reading, const struct perfdata_sample *sample) {
    if (reading->options->compat_inferno)
        return reading->events.items[sample->event].inferno_reads_period ? sample->period : 1;
    const struct perfdata_event *event = &reading->profile->data->events.items[sample->event];
    bool is_frequency = event->flags >> 10 & 1;
    if (event->sample_type & PERF_SAMPLE_PERIOD)
        return sample->period;
    if (is_frequency || !event->sample_period)
        return 1;
    return event->sample_period;
}

static bool series_same(const struct series *a, const struct series *b) {
    return a->event == b->event && a->thread == b->thread && a->comm == b->comm &&
           a->cpu == b->cpu && a->ending == b->ending;
}

static uint32_t series_of(struct worker *w, const struct perfdata_sample *sample,
                          const struct space_at *at) {
    struct series series = {
        .event = w->reading->events.items[sample->event].id,
        .thread = at->thread != UINT32_MAX ? at->thread + 1
                                           : tree_find_thread(w->tree, sample->pid, sample->tid),
        .comm = at->comm           ? at->comm
                : sample->tid == 0 ? w->reading->swapper
                                   : 0,
        .cpu = w->reading->options->by_cpu ? sample->cpu + 1 : 0,
        .ending = ENDING_UNKNOWN,
    };
    if (!w->last_series_id || !series_same(&series, &w->last_series)) {
        w->last_series = series;
        w->last_series_id = tree_add_series(w->tree, &series);
    }
    return w->last_series_id;
}

static bool passes(struct worker *w, const struct perfdata_sample *sample, uint32_t series) {
    const struct filter *filter = &w->reading->options->filter;
    if (!filter_is_set(filter))
        return true;
    w->comm.count = 0;
    if (filter->comm_count)
        tree_add_comm(w->tree, &w->tree->series.items[series], &w->comm);
    return filter_sample(filter, sample->pid, sample->tid, buffer_text(&w->comm), sample->cpu,
                         sample->time);
}

/* Of everything that the node depends on, and the series; never 0. */
static uint64_t chain_hash(const struct perfdata_sample *sample, const struct space_at *at,
                           uint32_t series, uint8_t ending) {
    uint64_t hash = sample->chain ? hash_bytes(sample->chain, 8 * sample->chain_count) : sample->ip;
    return hash_mix(hash ^ at->epochs, (uint64_t)series << 32 | sample->chain_count << 8 |
                                           ending << 4 | sample->mode) |
           1;
}

static uint32_t series_with(struct worker *w, uint32_t series, uint8_t ending) {
    struct series with = w->tree->series.items[series];
    with.ending = ending;
    return tree_add_series(w->tree, &with);
}

static struct counted *counted_of(struct worker *w, const struct pending *p) {
    struct counted *counted = table_find(w, p->hash);
    if (counted->hash)
        return counted;
    if (w->table_used >= w->table_size / 2) {
        table_grow(w);
        counted = table_find(w, p->hash);
    }
    w->table_used++;
    uint32_t node = chain_node(w, &p->sample, &p->at);
    uint8_t ending = p->ending == ENDING_UNKNOWN ? chain_ending(w, &p->at) : p->ending;
    *counted = (struct counted){
        .hash = p->hash, .series = series_with(w, p->series, ending), .node = node};
    return counted;
}

static void count_pending(struct worker *w) {
    for (unsigned i = 0; i < w->pending_count; i++) {
        const struct pending *p = &w->pending[i];
        struct counted *counted = counted_of(w, p);
        counted->samples++;
        w->tree->overflow |= __builtin_add_overflow(counted->weight, p->weight, &counted->weight);
        if (!w->tree->keep_samples)
            continue;
        struct sample kept = {.time = p->key.time,
                              .offset = p->key.offset,
                              .weight = p->weight,
                              .node = counted->node,
                              .series = counted->series,
                              .round = p->key.round,
                              .cpu = p->sample.cpu};
        tree_keep_sample(w->tree, &kept);
    }
    w->pending_count = 0;
    w->is_unwound = w->is_lbr = false;
}

/* perf knows nothing of a guest's programs unless told, and prints none of its samples. */
static bool is_left_out(const struct worker *w, const struct perfdata_sample *sample) {
    return w->reading->options->compat_perf && (sample->mode == PERF_RECORD_MISC_GUEST_KERNEL ||
                                                sample->mode == PERF_RECORD_MISC_GUEST_USER);
}

/* Decoded, placed and hashed; counted with the batch. A chain of our own making is gone with the next one, so it is a batch
   of its own, or ends one. */
static void add_pending(struct worker *w, struct pending *p, uint64_t offset) {
    if (is_left_out(w, &p->sample)) {
        w->guests++;
        return;
    }
    p->key = reading_key(w->reading, offset, p->sample.time);
    spaces_at(w->reading->profile->spaces, &w->cursor, p->sample.pid, p->sample.tid, &p->key,
              &p->at);
    p->series = series_of(w, &p->sample, &p->at);
    if (!passes(w, &p->sample, p->series)) {
        w->filtered++;
        return;
    }
    bool made = true; /* the chain is ours */
    p->ending = ENDING_UNKNOWN;
    if (chain_is_unwindable(w, &p->sample))
        p->ending = chain_unwind(w, &p->sample, &p->at);
    else if (chain_is_deferred(&p->sample))
        chain_join(w, &p->sample);
    else if (chain_is_lbr(w, &p->sample))
        chain_from_lbr(w, &p->sample);
    else if (chain_has_link_register(w, &p->sample))
        chain_add_leaf_caller(w, &p->sample, &p->at);
    else
        made = false;
    p->weight = weight_of(w->reading, &p->sample);
    p->hash = chain_hash(&p->sample, &p->at, p->series, p->ending);
    __builtin_prefetch(&w->table[p->hash >> 8 & (w->table_size - 1)], 1);
    w->pending_count++;
    if (made || w->pending_count == BATCH)
        count_pending(w);
}

static bool read_piece(struct worker *w, const struct piece *piece, struct error *error) {
    struct perfdata *data = w->reading->profile->data;
    struct perfdata_record record;
    uint64_t offset = piece->start;
    while (offset < piece->end && !interrupted && perfdata_next(data, &offset, &record, error)) {
        struct pending *p = &w->pending[w->pending_count];
        uint32_t event;
        uint64_t time;
        if (record.type != PERF_RECORD_SAMPLE)
            continue;
        if (!perfdata_sample_key(data, &record, &event, &time, error))
            return false;
        if (event == PERFDATA_NO_EVENT || !w->reading->events.items[event].wanted)
            continue;
        if (!perfdata_sample(data, &record, &p->sample, error))
            return false;
        add_pending(w, p, record.offset);
    }
    return error->kind == ERROR_NONE;
}

static bool count_piece(struct worker *w, const struct piece *piece, struct error *error) {
    error->kind = ERROR_NONE;
    bool fine = read_piece(w, piece, error);
    count_pending(w);
    return fine;
}

static void pass_piece(void *context, unsigned number, size_t item) {
    struct pass *pass = context;
    if (atomic_load_explicit(&pass->failed, memory_order_relaxed) || interrupted)
        return;
    const struct piece *piece = &pass->reading->pieces.items[item];
    if (!count_piece(&pass->workers[number], piece, &pass->errors[item]))
        atomic_store(&pass->failed, true);
    uint64_t done = atomic_fetch_add(&pass->done, 1) + 1;
    progress("counting", done, pass->reading->pieces.count);
}

static void worker_init(struct worker *w, struct reading *reading) {
    w->reading = reading;
    w->tree = tree_new_part(reading->profile->tree);
    w->cache = memory_table(LOCATION_CACHE, sizeof *w->cache);
    table_grow(w);
}

static void worker_count_all(struct worker *w) {
    if (w->unwinder)
        unwinder_notes(w->unwinder, &w->tree->notes);
    if (w->filtered)
        notes_add(&w->tree->notes, &note_filtered, w->filtered, 0, NULL);
    if (w->guests)
        notes_add(&w->tree->notes, &note_guests, w->guests, 0, NULL);
    for (size_t i = 0; i < w->table_size; i++) {
        const struct counted *counted = &w->table[i];
        if (counted->hash)
            tree_count(w->tree, counted->node, counted->series, counted->samples, counted->weight);
    }
}

static void worker_release(struct worker *w) {
    unwinder_free(w->unwinder);
    free(w->cache);
    free(w->table);
    vector_release(&w->entries);
    vector_release(&w->hashes);
    vector_release(&w->prefixes);
    index_release(&w->prefix_index);
    buffer_release(&w->joined);
    buffer_release(&w->comm);
}

static const struct error *pass_error(const struct pass *pass) {
    for (size_t i = 0; i < pass->reading->pieces.count; i++)
        if (pass->errors[i].kind != ERROR_NONE)
            return &pass->errors[i];
    return NULL;
}

bool reading_pass2(struct reading *reading, struct error *error) {
    size_t pieces = reading->pieces.count;
    unsigned threads = reading->options->threads ? reading->options->threads : parallel_default();
    if (threads > pieces)
        threads = pieces ? (unsigned)pieces : 1;
    struct pass pass = {.reading = reading};
    pass.workers = memory_zero(threads, sizeof *pass.workers);
    pass.errors = memory_zero(pieces, sizeof *pass.errors);
    for (unsigned i = 0; i < threads; i++)
        worker_init(&pass.workers[i], reading);
    parallel_run(threads, pieces, pass_piece, &pass);
    for (unsigned i = 0; i < threads; i++) {
        worker_count_all(&pass.workers[i]);
        worker_release(&pass.workers[i]);
        tree_merge(reading->profile->tree, pass.workers[i].tree);
    }
    const struct error *failed = pass_error(&pass);
    if (failed && error)
        *error = *failed;
    free(pass.errors);
    free(pass.workers);
    return !failed;
}
