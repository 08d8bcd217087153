/*
 * Pass 2: make stacks of samples, and add the stacks to the tree.
 *
 * A worker takes pieces of the file. It looks up each sample's (series, epoch, hash of the recorded chain) in an index of the stacks that it has
 * seen. A known stack costs two cache misses, and the misses of sixteen samples overlap. A new stack is only remembered, by the position of its
 * chain in the file; build.c makes nodes of it when all pieces are read.
 *
 * A sample with registers and a copy of the stack is unwound first, and the result is looked up like a recorded chain.
 *
 * A wide hash, keyed with a secret, stands for the chain: see stack_is_twin().
 */
#include "profile/blocks.h"
#include "profile/builder.h"
#include "profile/waits.h"

#include <stdatomic.h>
#include <stdlib.h>

static const struct note_kind note_filtered = {"filtered", "# sample{|s} did not pass the filters"};
static const struct note_kind note_guests = {
    "guests", "# sample{|s} of guests {was|were} dropped, as perf does"};
static const struct note_kind note_unmatched = {
    "deferred-missing", "# sample{ has|s have} a user call chain that was never recorded; {it "
                        "is|they are} counted without it"};

struct pass {
    struct reading *reading;
    struct worker *workers;
    atomic_bool failed;
    atomic_uint_fast64_t done;
    struct error *errors; /* one for each piece: the first in the file is reported */
};

/* ---- samples ---- */

uint64_t reading_weight(const struct reading *reading, const struct perfdata_sample *sample) {
    if (reading->options->quirks.period_as_printed)
        return reading->events.items[sample->event].inferno_reads_period ? sample->period : 1;
    const struct perfdata_event *event = &reading->profile->data->events.items[sample->event];
    bool is_frequency = event->flags >> ATTRIBUTE_FREQUENCY & 1;
    if (event->sample_type & PERF_SAMPLE_PERIOD)
        return sample->period;
    if (is_frequency || !event->sample_period)
        return 1;
    return event->sample_period;
}

static uint32_t labels_of(struct worker *w, const struct perfdata_sample *sample) {
    return labels_at(&w->reading->labels, &w->labels, sample->pid, sample->time);
}

static uint32_t labelled_series(struct worker *w, const struct perfdata_sample *sample,
                                const struct space_at *at, uint32_t event, uint8_t state,
                                uint32_t labels) {
    struct known_series *known =
        &w->last_series[event == w->reading->events.items[sample->event].id];
    const struct series *last = &known->series;
    uint32_t thread = at->thread != UINT32_MAX
                          ? at->thread + 1
                          : tree_find_thread(w->tree, sample->pid, sample->tid);
    uint32_t comm = at->comm ? at->comm : sample->tid == 0 ? w->reading->swapper : 0;
    if (!known->id || last->event != event || last->thread != thread || last->comm != comm ||
        last->state != state || last->labels != labels) {
        known->series = (struct series){.event = event,
                                        .thread = thread,
                                        .comm = comm,
                                        .labels = labels,
                                        .state = state,
                                        .ending = ENDING_UNKNOWN};
        known->id = tree_add_series(w->tree, &known->series);
    }
    return known->id;
}

static uint32_t series_of(struct worker *w, const struct perfdata_sample *sample,
                          const struct space_at *at, uint32_t event, uint8_t state) {
    return labelled_series(w, sample, at, event, state, labels_of(w, sample));
}

static bool passes(struct worker *w, const struct perfdata_sample *sample, uint32_t series) {
    const struct filter *filter = &w->reading->filter;
    if (!filter_is_set(filter))
        return true;
    w->comm.count = 0;
    if (filter->comm_count)
        tree_add_comm(w->tree, &w->tree->series.items[series], &w->comm);
    return filter_sample(filter, sample->pid, sample->tid, buffer_text(&w->comm), sample->cpu,
                         sample->time);
}

/* Never 0. */
static void stack_set_hash(struct counted_stack *stack) {
    struct hash_wide hash = hash_wide(stack->chain, stack_bytes(stack));
    unsigned rest = (unsigned)stack->ending << 16 | stack->flags << 8 | stack->mode;
    stack->hash = hash_mix(hash.low ^ stack->epochs, rest) | 1;
    stack->check = (uint32_t)hash.high;
}

static uint64_t index_hash(const struct counted_stack *stack) {
    return hash_mix(stack->hash, stack->series);
}

static bool stack_same(const struct counted_stack *a, const struct counted_stack *b) {
    return a->series == b->series && stack_is_twin(a, b);
}

static uint32_t stack_find(const struct worker *w, const struct counted_stack *stack) {
    uint32_t id;
    for (struct probe p = index_probe(&w->index, index_hash(stack));
         (id = index_next(&w->index, &p));)
        if (stack_same(&w->stacks.items[id], stack))
            break;
    return id;
}

/* Add a new stack. A chain that is not in the file is copied. */
static uint32_t stack_add(struct worker *w, const struct pending *p) {
    enum { ALL_PREFETCHED = 64, SOME_PREFETCHED = 256 };
    uint32_t id = (uint32_t)w->stacks.count;
    struct counted_stack stack = p->stack;
    stack.worker = w->number;
    if (stack.flags & STACK_TYPED)
        stack.chain = arena_copy(&w->arena, (struct text){stack.chain, stack_bytes(&stack)}).data;
    stack.builder = building_share(w->building, &stack);
    if (!w->builder && (id < ALL_PREFETCHED || id % SOME_PREFETCHED == 0))
        building_prefetch(w->building, &stack);
    vector_push(&w->stacks, stack);
    index_add(&w->index, index_hash(&stack), id);
    return id;
}

static void keep_sample(struct worker *w, const struct pending *p, uint32_t stack) {
    struct sample kept = {.time = p->key.time,
                          .offset = p->key.offset,
                          .weight = p->weight,
                          .node = stack,
                          .series = p->stack.series,
                          .round = p->key.round,
                          .cpu = p->cpu};
    tree_keep_sample(w->tree, &kept);
}

/* The batch's new ones, while their chains are at hand. */
static void build_from(struct worker *w, size_t first) {
    struct counted_stack *stacks[BATCH + 1];
    size_t count = w->stacks.count - first;
    for (size_t i = 0; i < count; i++)
        stacks[i] = &w->stacks.items[first + i];
    builder_add(w->builder, stacks, count);
}

static void count_pending(struct worker *w) {
    size_t known = w->stacks.count;
    for (unsigned i = 0; i < w->pending_count; i++) {
        struct probe probe = index_probe(&w->index, index_hash(&w->pending[i].stack));
        w->pending[i].candidate = index_next(&w->index, &probe);
        __builtin_prefetch(&w->stacks.items[w->pending[i].candidate], 1);
    }
    for (unsigned i = 0; i < w->pending_count; i++) {
        const struct pending *p = &w->pending[i];
        uint32_t id = p->candidate;
        if (!stack_same(&w->stacks.items[id], &p->stack) && !(id = stack_find(w, &p->stack)))
            id = stack_add(w, p);
        struct counted_stack *stack = &w->stacks.items[id];
        stack->samples += p->samples;
        w->tree->overflow |= __builtin_add_overflow(stack->weight, p->weight, &stack->weight);
        if (w->tree->keep_samples)
            keep_sample(w, p, id);
    }
    if (w->builder)
        build_from(w, known);
    w->pending_count = 0;
}

/* perf does not know a guest's programs unless it is told, and prints none of its samples. */
static bool is_left_out(const struct worker *w, const struct perfdata_sample *sample) {
    return w->reading->options->quirks.guests_are_dropped &&
           (sample->mode == PERF_RECORD_MISC_GUEST_KERNEL ||
            sample->mode == PERF_RECORD_MISC_GUEST_USER);
}

static bool excludes_user_chains(const struct reading *reading,
                                 const struct perfdata_sample *sample) {
    const struct perfdata_event *event = &reading->profile->data->events.items[sample->event];
    return event->flags >> ATTRIBUTE_EXCLUDE_CALLCHAIN_USER & 1;
}

/* No record is long enough for more. */
static uint16_t chain_count(uint64_t count) {
    return count < UINT16_MAX ? (uint16_t)count : UINT16_MAX;
}

/* The views that a sample counts in, if several times are read at once: see profile_options.each. */
static uint8_t views_of(const struct reading *reading, const struct event_seen *seen,
                        const struct cost *cost) {
    uint8_t views = seen->measured ? times_view(TIMES_RUNNING) : 0;
    if (cost)
        views |= times_view(TIMES_BOTH);
    if (cost && cost->state != STATE_ON)
        views |= times_view(TIMES_WAITING);
    return reading->each ? views : 0;
}

/* The next one is filled in. */
static void pend(struct worker *w) {
    const struct pending *p = &w->pending[w->pending_count++];
    if (w->index.slots)
        __builtin_prefetch(&w->index.slots[index_probe(&w->index, index_hash(&p->stack)).slot]);
}

/* The same sample once more, or only, as it was measured. */
static void pend_measured(struct worker *w, const struct perfdata_sample *sample,
                          const struct space_at *at, const struct pending *p) {
    struct pending *measured = &w->pending[w->pending_count];
    *measured = *p;
    measured->weight = reading_weight(w->reading, sample);
    measured->stack.series =
        series_of(w, sample, at, w->reading->events.items[sample->event].measured, STATE_ON);
    pend(w);
}

/* A stack once for each value of the allocations that it made. */
static void pend_blocks(struct worker *w, const struct perfdata_sample *sample, uint64_t offset,
                        const struct space_at *at, const struct pending *p) {
    size_t count;
    const struct valued *valued = blocks_find(w->reading->blocks, offset, &count);
    const struct pending first = *p;
    uint32_t labels = labels_of(w, sample);
    for (size_t i = 0; i < count; i++) {
        struct pending *next = &w->pending[w->pending_count];
        *next = first;
        next->key.time = valued[i].time;
        next->weight = valued[i].weight;
        next->samples = valued[i].samples;
        next->stack.series =
            labelled_series(w, sample, at, valued[i].event, STATE_ON,
                            blocks_labels(w->reading->blocks, labels, valued[i].lifetime));
        pend(w);
        if (w->pending_count >= BATCH)
            count_pending(w);
    }
}

/* Placed and hashed; counted with the batch. A chain of our own making is gone with the next one, so it ends a batch. */
static void add_pending(struct worker *w, struct perfdata_sample *sample, uint64_t offset,
                        const struct cost *cost) {
    const struct event_seen *seen = &w->reading->events.items[sample->event];
    struct worker_counts *counts = &w->counts[w->views = views_of(w->reading, seen, cost)];
    if (is_left_out(w, sample)) {
        counts->guests++;
        return;
    }
    bool is_measured = seen->measured && waits_want(w->reading->waits, sample->time);
    struct pending *p = &w->pending[w->pending_count];
    struct space_at at;
    reading_key(w->reading, offset, sample->time, &p->key);
    spaces_at(w->reading->profile->spaces, &w->cursor, sample->pid, sample->tid, &p->key, &at);
    uint32_t series = series_of(w, sample, &at, seen->id, cost ? cost->state : STATE_ON);
    bool is_waker = cost && cost->state == STATE_UNTOLD;
    if (!is_waker && !passes(w, sample, series)) {
        counts->filtered++;
        return;
    }
    if (seen->measured &&
        !is_measured) { /* intervals are cut to --time, measured samples are not */
        w->counts[times_view(TIMES_RUNNING)].filtered++;
        w->views &= (uint8_t)~times_view(TIMES_RUNNING);
        if (!cost)
            return;
    }
    uint8_t ending, flags = chain_complete(w, sample, &at, &ending);
    if (w->reading->scripted)
        flags = chain_merge(w, sample, &at, flags, &ending);
    bool is_made = flags & STACK_TYPED;
    flags |= excludes_user_chains(w->reading, sample) ? STACK_NO_USER : 0;
    flags |= at.user ? 0 : STACK_NO_SPACE;
    p->samples = 1;
    p->weight = cost ? cost->weight : reading_weight(w->reading, sample);
    p->cpu = sample->cpu;
    p->stack = (struct counted_stack){
        .chain = is_made ? (const void *)w->frames.items : sample->chain,
        .chain_count = chain_count(is_made ? w->frames.count : sample->chain_count),
        .epochs = at.epochs,
        .user = at.user,
        .kernel = at.kernel,
        .series = series,
        .mode = sample->mode,
        .ending = ending,
        .flags = flags};
    stack_set_hash(&p->stack);
    if (w->reading->blocks)
        pend_blocks(w, sample, offset, &at, p);
    else if (cost || !seen->measured)
        pend(w);
    if (is_measured)
        pend_measured(w, sample, &at, p);
    if (is_made || w->pending_count >= BATCH)
        count_pending(w);
}

/* A sample of each counter that moved with it. */
static bool add_counted(struct worker *w, const struct perfdata_record *record,
                        struct error *error) {
    struct perfdata_sample sample;
    size_t count;
    const struct counted *counted = counters_find(w->reading, record->offset, &count);
    if (count && !perfdata_sample(w->reading->profile->data, record, &sample, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        struct perfdata_sample part = sample;
        part.event = counted[i].event;
        part.period = counted[i].moved;
        bool imitate = w->reading->options->quirks.period_as_printed;
        struct cost cost = {.weight = imitate ? reading_weight(w->reading, &part) : part.period,
                            .state = STATE_ON};
        if (w->reading->events.items[part.event].is_read)
            add_pending(w, &part, record->offset, &cost);
    }
    return true;
}

static bool read_piece(struct worker *w, const struct piece *piece, struct error *error) {
    struct perfdata *data = w->reading->profile->data;
    struct perfdata_record record;
    uint64_t offset = piece->start;
    while (offset < piece->end && !context_cancelled(data->context) &&
           perfdata_next(data, &offset, &record, error)) {
        struct perfdata_sample sample;
        uint32_t event;
        uint64_t time;
        if (record.type != PERF_RECORD_SAMPLE)
            continue;
        if (!perfdata_sample_key(data, &record, &event, &time, error))
            return false;
        if (event == PERFDATA_NO_EVENT)
            continue;
        if (counters_are_read(w->reading, event)) {
            if (!add_counted(w, &record, error))
                return false;
            continue;
        }
        if (!w->reading->events.items[event].is_read ||
            (w->reading->blocks && !blocks_have(w->reading->blocks, record.offset)))
            continue;
        const struct cost *cost = w->reading->waits ? cost_find(w->reading, record.offset) : NULL;
        if (w->reading->waits && !cost && !w->reading->events.items[event].measured)
            continue;
        if (!perfdata_sample(data, &record, &sample, error))
            return false;
        if (cost && w->reading->events.items[event].role == ROLE_WAIT)
            perfdata_unwrap_wait(data, &sample);
        add_pending(w, &sample, record.offset, cost);
    }
    return error->kind == ERROR_NONE;
}

static bool count_piece(struct worker *w, const struct piece *piece, struct error *error) {
    error->kind = ERROR_NONE;
    bool fine = read_piece(w, piece, error);
    count_pending(w);
    return fine;
}

/* Room for as many stacks as there may be: what is not touched takes no memory. In the worker's own thread, because clearing memory takes time. */
static void worker_make_tables(struct worker *w) {
    enum { STACKS_RESERVED = 1 << 20, INDEXED_AT_FIRST = 1 << 17 };
    uint64_t share = w->reading->profile->sample_count / w->building->count * 5 / 4 + BATCH;
    vector_reserve(&w->stacks, share < STACKS_RESERVED ? share : STACKS_RESERVED);
    vector_push(&w->stacks, ((struct counted_stack){0}));
    index_reserve(&w->index, share < 2 * INDEXED_AT_FIRST ? share / 2 : INDEXED_AT_FIRST);
}

static void pass_piece(void *context, unsigned number, size_t item) {
    struct pass *pass = context;
    if (atomic_load_explicit(&pass->failed, memory_order_relaxed) ||
        context_cancelled(pass->reading->options->context))
        return;
    const struct piece *piece = &pass->reading->pieces.items[item];
    struct worker *w = &pass->workers[number];
    if (!w->stacks.count)
        worker_make_tables(w);
    if (!count_piece(w, piece, &pass->errors[item]))
        atomic_store(&pass->failed, true);
    objects_read_ahead(pass->reading->profile->objects);
    uint64_t done = atomic_fetch_add(&pass->done, 1) + 1;
    context_progress(pass->reading->options->context, "counting", done,
                     pass->reading->pieces.count);
}

static void worker_init(struct worker *w, unsigned number, struct reading *reading,
                        struct building *building) {
    w->reading = reading;
    w->number = (uint16_t)number;
    w->tree = tree_new_part(reading->profile->tree);
    w->building = building;
    w->builder = building->count == 1 ? &building->builders[0] : NULL;
}

static void worker_add_counts(const struct worker_counts *counts, uint8_t views,
                              struct reading *reading) {
    struct notes notes = {0};
    if (counts->unwinder)
        unwinder_notes(counts->unwinder, &notes);
    if (counts->filtered)
        notes_add(&notes, &note_filtered, counts->filtered, 0, NULL);
    if (counts->guests)
        notes_add(&notes, &note_guests, counts->guests, 0, NULL);
    if (counts->unmatched)
        notes_add(&notes, &note_unmatched, counts->unmatched, 0, NULL);
    notes_merge_for(&reading->profile->tree->notes, &notes, views);
    notes_release(&notes);
    for (enum times times = TIMES_RUNNING; times <= TIMES_BOTH; times++)
        if (!views || views & times_view(times))
            reading->interrupted[times] += counts->interrupted;
}

static void worker_add_notes(struct worker *w, struct reading *reading) {
    struct tree *tree = reading->profile->tree;
    for (uint8_t views = 0; views <= VIEWS_OF_TIMES; views++)
        worker_add_counts(&w->counts[views], views, reading);
    notes_merge(&tree->notes, &w->tree->notes);
    tree->overflow |= w->tree->overflow;
}

static void worker_release(struct worker *w) {
    for (uint8_t views = 0; views <= VIEWS_OF_TIMES; views++)
        unwinder_free(w->counts[views].unwinder);
    tree_free(w->tree);
    vector_release(&w->stacks);
    index_release(&w->index);
    arena_release(&w->arena);
    vector_release(&w->frames);
    vector_release(&w->stack_pointers);
    merger_free(w->merger);
    buffer_release(&w->comm);
    vector_release(&w->blocks);
}

static const struct error *pass_error(const struct pass *pass) {
    for (size_t i = 0; i < pass->reading->pieces.count; i++)
        if (pass->errors[i].kind != ERROR_NONE)
            return &pass->errors[i];
    return NULL;
}

/* A single worker builds each stack as it finds it; several workers first read everything and then distribute the stacks. */
static void pass_build(struct pass *pass, struct building *building, unsigned threads) {
    for (unsigned i = 0; i < threads; i++)
        worker_init(&pass->workers[i], i, pass->reading, building);
    building->workers = pass->workers;
    parallel_run(threads, pass->reading->pieces.count, pass_piece, pass);
    if (threads > 1)
        building_add_waiting(building, pass->workers, threads);
    if (threads > 1 && !pass->reading->profile->tree->keep_samples)
        pass->reading->profile->paging = file_page_out(pass->reading->profile->data->file);
    building_end(building, pass->workers, threads);
}

bool reading_pass2(struct reading *reading, struct error *error) {
    size_t pieces = reading->pieces.count;
    unsigned threads = context_threads(reading->options->context);
    if (threads > pieces)
        threads = pieces ? (unsigned)pieces : 1;
    struct pass pass = {.reading = reading};
    pass.workers = memory_zero(threads, sizeof *pass.workers);
    pass.errors = memory_zero(pieces, sizeof *pass.errors);
    pass_build(&pass, building_begin(reading, threads), threads);
    const struct error *failed = pass_error(&pass);
    for (unsigned i = 0; i < threads; i++) {
        worker_add_notes(&pass.workers[i], reading);
        worker_release(&pass.workers[i]);
    }
    if (failed && error)
        *error = *failed;
    free(pass.errors);
    free(pass.workers);
    return !failed;
}
