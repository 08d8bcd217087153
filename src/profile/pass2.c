/*
 * Pass 2: samples to trees.
 *
 * A worker takes pieces of the file and counts into a tree of its own. A sample first asks for (series, epoch, hash of its
 * chain as recorded) in a table that holds the counts themselves: a chain seen before costs one cache miss. The counts go into
 * the tree's cells at the end. A new chain costs, from where it leaves the chain before it (neighbours share most of their
 * callers), a look into a direct-mapped cache of (epoch, address) → location and one probe of the node index for each
 * frame.
 *
 * The hash stands for the chain: two different ones of one series would have to agree in 64 bits.
 */
#include "profile/reading.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { LOCATION_CACHE = 1 << 14, COMPAT_DEPTH = 127, TABLE_FIRST = 1 << 12 };

static const struct note_kind note_unmatched = {
    "deferred-missing",
    "# samples wait for a user call chain that never came; they are counted without it"};
static const struct note_kind note_filtered = {"filtered", "# samples did not pass the filters"};

/* One entry of a chain: an address, and what is known of it from its place. */
struct entry {
    uint64_t ip;
    uint8_t mode;
    uint8_t call;
};

/* What was counted on one chain under one series. Two to a cache line. */
struct counted {
    uint64_t hash; /* 0: an empty slot */
    uint32_t node;
    uint32_t series;
    uint64_t samples;
    uint64_t weight;
};

struct cached_location {
    uint64_t ip;
    uint64_t epochs;
    uint32_t what; /* mode and call bit + 1; 0: empty */
    uint32_t location;
};

struct worker {
    struct reading *reading;
    struct tree *tree;
    struct space_cursor cursor;
    struct cached_location *cache;
    struct counted *table; /* open addressing, at most half full */
    size_t table_size;
    size_t table_used;
    VECTOR(struct entry) entries; /* of the chain at hand, leaf first */
    VECTOR(struct entry)
    previous; /* of the new chain before it, root first, with the nodes on its way */
    VECTOR(uint32_t) previous_nodes;
    uint64_t previous_epochs;
    struct buffer joined; /* a chain with its deferred part */
    struct buffer comm;
    struct series last_series;
    uint32_t last_series_id;
};

struct pass {
    struct reading *reading;
    struct worker *workers;
    atomic_bool failed;
    atomic_uint_fast64_t done;
    struct error *errors; /* one for each piece: the first in the file is reported */
};

/* ---- locations ---- */

static uint32_t root_of(const struct space_at *at, unsigned mode) {
    return mode == MODE_KERNEL ? at->kernel : mode == MODE_USER ? at->user : 0;
}

/* What holds the address. Data mappings don't belong to an epoch, and no code runs in them: only perf looks there. */
static const struct mapping *mapping_of(const struct worker *w, const struct space_at *at,
                                        unsigned mode, uint64_t address) {
    const struct mapping *mapping =
        space_find(w->reading->profile->spaces, root_of(at, mode), address);
    return mapping && (mapping->executable || w->reading->options->compat_perf) ? mapping : NULL;
}

/* A return address belongs to the call before it, also when it is the first byte of another mapping; perf doesn't mind. */
static uint32_t location_find(struct worker *w, const struct space_at *at,
                              const struct entry *entry) {
    const struct profile_options *options = w->reading->options;
    bool back = entry->call && !options->compat_perf && entry->ip > 0;
    const struct mapping *mapping = mapping_of(w, at, entry->mode, entry->ip - back);
    struct location location = {
        .address = mapping ? entry->ip - mapping->start + mapping->offset : entry->ip,
        .raw = options->raw_addresses ? entry->ip : 0,
        .object = mapping ? mapping->object : 0,
        .mode = entry->mode,
        .call = back,
    };
    return tree_add_location(w->tree, &location);
}

static uint32_t location_cached(struct worker *w, const struct space_at *at,
                                const struct entry *entry) {
    uint32_t what = (uint32_t)entry->mode << 1 | entry->call;
    uint64_t slot = hash_mix(entry->ip ^ at->epochs << 8, what) >> 32 & (LOCATION_CACHE - 1);
    struct cached_location *cached = &w->cache[slot];
    if (cached->ip != entry->ip || cached->epochs != at->epochs || cached->what != what + 1)
        *cached =
            (struct cached_location){entry->ip, at->epochs, what + 1, location_find(w, at, entry)};
    return cached->location;
}

/* ---- chains ---- */

static unsigned mode_of_misc(unsigned mode) {
    switch (mode) {
    case PERF_RECORD_MISC_KERNEL:
        return MODE_KERNEL;
    case PERF_RECORD_MISC_HYPERVISOR:
        return MODE_HYPERVISOR;
    case PERF_RECORD_MISC_GUEST_KERNEL:
        return MODE_GUEST_KERNEL;
    case PERF_RECORD_MISC_GUEST_USER:
        return MODE_GUEST_USER;
    default:
        return MODE_USER;
    }
}

/* -1: a marker that perf 6.1 does not know, which makes it forget the whole chain. */
static int mode_of_marker(uint64_t marker) {
    switch (marker) {
    case PERF_CONTEXT_HV:
        return MODE_HYPERVISOR;
    case PERF_CONTEXT_KERNEL:
        return MODE_KERNEL;
    case PERF_CONTEXT_USER:
        return MODE_USER;
    case PERF_CONTEXT_GUEST_KERNEL:
        return MODE_GUEST_KERNEL;
    case PERF_CONTEXT_GUEST_USER:
        return MODE_GUEST_USER;
    default:
        return -1;
    }
}

/* Every address but the first after a marker is a return address. */
static void entries_of_chain(struct worker *w, const struct perfdata_sample *sample,
                             const uint8_t *chain, uint64_t count) {
    bool compat = w->reading->options->compat_perf;
    unsigned mode = mode_of_misc(sample->mode);
    bool call = false;
    w->entries.count = 0;
    for (uint64_t i = 0; i < count && !(compat && w->entries.count == COMPAT_DEPTH); i++) {
        uint64_t ip = load_u64(chain + 8 * i);
        if (ip >= CONTEXT_MARKERS_FROM) {
            int marked = mode_of_marker(ip);
            if (marked < 0 && compat) {
                w->entries.count = 0;
                return;
            }
            mode = marked < 0 ? mode : (unsigned)marked;
            call = false;
        } else {
            vector_push(&w->entries,
                        ((struct entry){.ip = ip, .mode = (uint8_t)mode, .call = call}));
            call = true;
        }
    }
}

static bool entry_equal(const struct entry *a, const struct entry *b) {
    return a->ip == b->ip && a->mode == b->mode && a->call == b->call;
}

/* The entries at hand become a path; how much of it is the last path's is found first. */
static uint32_t node_of_entries(struct worker *w, const struct space_at *at) {
    size_t count = w->entries.count, shared = 0;
    if (w->previous_epochs == at->epochs)
        while (shared < count && shared < w->previous.count &&
               entry_equal(&w->entries.items[count - 1 - shared], &w->previous.items[shared]))
            shared++;
    uint32_t node = shared ? w->previous_nodes.items[shared - 1] : 0;
    w->previous.count = w->previous_nodes.count = shared;
    w->previous_epochs = at->epochs;
    for (size_t i = count - shared; i-- > 0;) {
        const struct entry *entry = &w->entries.items[i];
        node = tree_add_node(w->tree, node, location_cached(w, at, entry));
        vector_push(&w->previous, *entry);
        vector_push(&w->previous_nodes, node);
    }
    return node;
}

/* The record of the deferred chain that a sample waits for. */
static const struct deferred *deferred_find(const struct reading *reading, int32_t tid,
                                            uint64_t cookie) {
    size_t low = 0, high = reading->deferred.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct deferred *d = &reading->deferred.items[middle];
        if (d->tid < tid || (d->tid == tid && d->cookie < cookie))
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < reading->deferred.count && reading->deferred.items[low].tid == tid &&
                 reading->deferred.items[low].cookie == cookie;
    return found ? &reading->deferred.items[low] : NULL;
}

/* A chain that ends in [USER_DEFERRED, cookie] goes on with the one that came later, or stops there. */
static void chain_join(struct worker *w, struct perfdata_sample *sample) {
    uint64_t count = sample->chain_count;
    if (count < 2 || load_u64(sample->chain + 8 * (count - 2)) != CONTEXT_USER_DEFERRED)
        return;
    struct perfdata *data = w->reading->profile->data;
    const struct deferred *found =
        deferred_find(w->reading, sample->tid, load_u64(sample->chain + 8 * (count - 1)));
    sample->chain_count = count - 2;
    struct perfdata_record record;
    struct perfdata_deferred late;
    uint64_t offset = found ? found->offset : 0;
    if (!found || !perfdata_next(data, &offset, &record, NULL) ||
        !perfdata_deferred(data, &record, &late, NULL)) {
        notes_add(&w->tree->notes, &note_unmatched, 1, 0, NULL);
        return;
    }
    w->joined.count = 0;
    uint64_t marker = PERF_CONTEXT_USER;
    buffer_add(&w->joined, (struct text){(const char *)sample->chain, 8 * sample->chain_count});
    buffer_add(&w->joined, (struct text){(const char *)&marker, 8});
    buffer_add(&w->joined, (struct text){(const char *)late.chain, 8 * late.chain_count});
    sample->chain = (const uint8_t *)w->joined.items;
    sample->chain_count = w->joined.count / 8;
}

/* Of everything that the node depends on, and the series; never 0. */
static uint64_t chain_hash(const struct perfdata_sample *sample, const struct space_at *at, uint32_t series) {
    uint64_t hash = sample->chain ? hash_bytes(sample->chain, 8 * sample->chain_count) : sample->ip;
    return hash_mix(hash ^ at->epochs, (uint64_t)series << 32 | sample->chain_count << 8 | sample->mode) | 1;
}

static void entries_of_sample(struct worker *w, const struct perfdata_sample *sample) {
    uint8_t ip[8];
    memcpy(ip, &sample->ip, sizeof ip);
    if (sample->chain)
        entries_of_chain(w, sample, sample->chain, sample->chain_count);
    else
        entries_of_chain(w, sample, ip, 1);
}

static void table_grow(struct worker *w) {
    struct counted *old = w->table;
    size_t old_size = w->table_size;
    w->table_size = old_size ? old_size * 2 : TABLE_FIRST;
    w->table = memory_zero(w->table_size, sizeof *w->table);
    for (size_t i = 0; i < old_size; i++) {
        size_t slot = old[i].hash >> 8 & (w->table_size - 1);
        while (old[i].hash && w->table[slot].hash)
            slot = (slot + 1) & (w->table_size - 1);
        if (old[i].hash)
            w->table[slot] = old[i];
    }
    free(old);
}

/* The entry of (hash, series), or the empty one where it belongs. */
static struct counted *table_find(struct worker *w, uint64_t hash, uint32_t series) {
    size_t slot = hash >> 8 & (w->table_size - 1);
    while (w->table[slot].hash && (w->table[slot].hash != hash || w->table[slot].series != series))
        slot = (slot + 1) & (w->table_size - 1);
    return &w->table[slot];
}

/* The chain as it was counted before, or as it now is. */
static struct counted *counted_of_sample(struct worker *w, struct perfdata_sample *sample,
                                         const struct space_at *at, uint32_t series) {
    chain_join(w, sample);
    uint64_t hash = chain_hash(sample, at, series);
    struct counted *counted = table_find(w, hash, series);
    if (counted->hash)
        return counted;
    if (w->table_used >= w->table_size / 2) {
        table_grow(w);
        counted = table_find(w, hash, series);
    }
    w->table_used++;
    entries_of_sample(w, sample);
    *counted = (struct counted){.hash = hash, .series = series, .node = node_of_entries(w, at)};
    return counted;
}

/* ---- samples ---- */

static uint64_t weight_of(const struct reading *reading, const struct perfdata_sample *sample) {
    const struct perfdata_event *event = &reading->profile->data->events.items[sample->event];
    bool is_frequency = event->flags >> 10 & 1;
    if (event->sample_type & PERF_SAMPLE_PERIOD)
        return sample->period;
    if (reading->options->compat_inferno || is_frequency || !event->sample_period)
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

static void count_sample(struct worker *w, struct perfdata_sample *sample, uint64_t offset) {
    struct key key = reading_key(w->reading, offset, sample->time);
    struct space_at at;
    spaces_at(w->reading->profile->spaces, &w->cursor, sample->pid, sample->tid, &key, &at);
    uint32_t series = series_of(w, sample, &at);
    if (!passes(w, sample, series)) {
        notes_add(&w->tree->notes, &note_filtered, 1, 0, NULL);
        return;
    }
    uint64_t weight = weight_of(w->reading, sample);
    struct counted *counted = counted_of_sample(w, sample, &at, series);
    counted->samples++;
    w->tree->overflow |= __builtin_add_overflow(counted->weight, weight, &counted->weight);
    if (w->tree->keep_samples) {
        struct sample kept = {.time = key.time,
                              .offset = offset,
                              .weight = weight,
                              .node = counted->node,
                              .series = series,
                              .round = key.round,
                              .cpu = sample->cpu};
        tree_keep_sample(w->tree, &kept);
    }
}

static bool count_piece(struct worker *w, const struct piece *piece, struct error *error) {
    struct perfdata *data = w->reading->profile->data;
    struct perfdata_record record;
    uint64_t offset = piece->start;
    error->kind = ERROR_NONE;
    while (offset < piece->end && !interrupted && perfdata_next(data, &offset, &record, error)) {
        struct perfdata_sample sample;
        uint32_t event;
        uint64_t time;
        if (record.type != PERF_RECORD_SAMPLE)
            continue;
        if (!perfdata_sample_key(data, &record, &event, &time, error))
            return false;
        if (!w->reading->events.items[event].wanted)
            continue;
        if (!perfdata_sample(data, &record, &sample, error))
            return false;
        count_sample(w, &sample, record.offset);
    }
    return error->kind == ERROR_NONE;
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
    w->cache = memory_zero(LOCATION_CACHE, sizeof *w->cache);
    table_grow(w);
}

static void worker_count_all(struct worker *w) {
    for (size_t i = 0; i < w->table_size; i++) {
        const struct counted *counted = &w->table[i];
        if (counted->hash)
            tree_count(w->tree, counted->node, counted->series, counted->samples, counted->weight);
    }
}

static void worker_release(struct worker *w) {
    free(w->cache);
    free(w->table);
    vector_release(&w->entries);
    vector_release(&w->previous);
    vector_release(&w->previous_nodes);
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
