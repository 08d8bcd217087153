/*
 * Convert a tree to rows. Everything is identified by the hash of its content, so that items that are equal in two
 * trees, or twice in one, become one row. Costs a hash for each frame and node that was counted, and a sort of the
 * cells.
 */
#include <stdlib.h>

#include "object/object.h"
#include "store/internal.h"

struct encoder {
    struct encoded *out;
    const struct tree *tree;
    const struct store_batch *batch;
    struct buffer scratch;
    uint32_t *stacks;        /* by the tree's node: its row + 1 */
    VECTOR(uint32_t) frames; /* rows of the locations that were used, one after the other … */
    uint32_t *first_frames, *frame_counts; /* … by location; a count of 0: not used yet */
    struct {
        uint32_t series;
        int64_t time;
    } * series; /* by the tree's series; series + 1 */
};

static struct text string(const struct encoder *e, uint32_t id) {
    return strings_get(e->tree->strings, id);
}

/* ---- frames ---- */

static uint32_t add_frame(struct encoder *e, struct frame_row *frame) {
    struct encoded *out = e->out;
    frame_row_hash(frame, &e->scratch);
    uint32_t id;
    for (struct probe p = index_probe(&out->frame_index, store_hash_slot(&frame->id));
         (id = index_next(&out->frame_index, &p));)
        if (store_hash_equal(&out->frames.items[id - 1].id, &frame->id))
            return id - 1;
    vector_push(&out->frames, *frame);
    index_add(&out->frame_index, store_hash_slot(&frame->id), (uint32_t)out->frames.count);
    return (uint32_t)out->frames.count - 1;
}

/* Set what all frames of a location share. */
static struct frame_row frame_of_location(const struct encoder *e,
                                          const struct location *location) {
    struct frame_row frame = {.address = location->address, .raw = location->raw};
    frame.flags = location->kinds | (uint32_t)location->mode << FRAME_MODE_SHIFT |
                  (location->call ? FRAME_CALL : 0) | (location->unwound ? FRAME_UNWOUND : 0);
    if (location->object) {
        const struct object_identity *object = objects_get(e->tree->objects, location->object);
        frame.object = object->path;
        frame.build_id = (struct text){(const char *)object->build_id.bytes, object->build_id.size};
        frame.object_kind = object->kind + 1;
        frame.object_pid = object->pid;
        frame.object_start = object->start;
        frame.object_size = object->size;
    }
    return frame;
}

static void set_name(struct encoder *e, struct frame_row *frame, uint32_t name) {
    frame->name = string(e, name);
    frame->flags |= name ? FRAME_NAMED : 0;
}

static uint32_t add_function(struct encoder *e, const struct location *location) {
    const struct function *function = &e->tree->functions.items[location->function];
    struct frame_row frame = frame_of_location(e, location);
    set_name(e, &frame, function->name);
    frame.flags |= FRAME_FUNCTION;
    frame.file = string(e, function->file);
    frame.line = location->line;
    frame.first_line = function->line;
    frame.module = string(e, function->module);
    frame.language = string(e, function->language);
    return add_frame(e, &frame);
}

static uint32_t add_code(struct encoder *e, const struct location *location, uint32_t number) {
    const struct frame *from = &e->tree->frames.items[location->first_frame + number];
    struct frame_row frame = frame_of_location(e, location);
    set_name(e, &frame, from->name);
    frame.flags |= (from->inlined ? FRAME_INLINED : 0) | (number ? FRAME_CONTINUES : 0);
    frame.file = string(e, from->file);
    frame.line = from->line;
    frame.column = from->column;
    frame.offset = from->offset;
    frame.language = string(e, from->language);
    return add_frame(e, &frame);
}

static uint32_t add_none(struct encoder *e, const struct location *location) {
    struct frame_row frame = frame_of_location(e, location);
    frame.flags |= FRAME_NONE;
    return add_frame(e, &frame);
}

static void encode_location(struct encoder *e, uint32_t id) {
    const struct location *location = &e->tree->locations.items[id];
    if (e->frame_counts[id])
        return;
    e->first_frames[id] = (uint32_t)e->frames.count;
    uint32_t count = location_frame_count(location);
    e->frame_counts[id] = count ? count : 1;
    for (uint32_t i = 0; i < e->frame_counts[id]; i++) {
        uint32_t frame = location->function ? add_function(e, location)
                         : count            ? add_code(e, location, i)
                                            : add_none(e, location);
        vector_push(&e->frames, frame);
    }
}

/* ---- stacks ---- */

static uint32_t add_stack(struct encoder *e, uint32_t parent, uint32_t frame) {
    struct encoded *out = e->out;
    struct store_hash both[2] = {out->stacks.items[parent].id, out->frames.items[frame].id};
    struct stack_row stack = {.parent = parent, .frame = frame};
    stack.id = store_hash_of((struct text){(const char *)both, sizeof both});
    uint32_t id;
    for (struct probe p = index_probe(&out->stack_index, store_hash_slot(&stack.id));
         (id = index_next(&out->stack_index, &p));)
        if (store_hash_equal(&out->stacks.items[id].id, &stack.id))
            return id;
    id = (uint32_t)out->stacks.count;
    vector_push(&out->stacks, stack);
    index_add(&out->stack_index, store_hash_slot(&stack.id), id);
    return id;
}

static uint32_t stack_of_node(struct encoder *e, uint32_t node) {
    VECTOR(uint32_t) path = {0};
    uint32_t at = node;
    for (; at && !e->stacks[at]; at = e->tree->nodes.items[at].parent)
        vector_push(&path, at);
    uint32_t stack = at ? e->stacks[at] - 1 : 0;
    while (path.count) {
        at = path.items[--path.count];
        uint32_t location = e->tree->nodes.items[at].location;
        encode_location(e, location);
        for (uint32_t i = 0; i < e->frame_counts[location]; i++)
            stack = add_stack(e, stack, e->frames.items[e->first_frames[location] + i]);
        e->stacks[at] = stack + 1;
    }
    vector_release(&path);
    return stack;
}

/* ---- labels ---- */

static void add_pair(struct encoder *e, const char *key, struct text value) {
    vector_push(&e->out->pairs, ((struct pair_row){text_of(key), value}));
}

static void add_number(struct encoder *e, const char *key, uint64_t value) {
    char text[24];
    struct buffer number = {text, 0, sizeof text};
    buffer_add_u64(&number, value);
    add_pair(e, key, arena_copy(&e->out->arena, buffer_text(&number)));
}

static void add_event(struct encoder *e, uint32_t id) {
    const struct event *event = tree_event(e->tree, id);
    add_pair(e, "event", string(e, event->name));
    add_pair(e, "__unit", string(e, event->unit));
    add_number(e, "__order", id);
    if (event->kind)
        add_number(e, "__kind", event->kind);
    if (event->chains)
        add_number(e, "__chains", 1);
    if (event->time)
        add_number(e, "__times", event->time);
}

static void add_thread(struct encoder *e, const struct thread *thread) {
    if (!thread)
        return;
    if (thread->pid >= 0)
        add_number(e, "pid", (uint32_t)thread->pid);
    if (thread->tid >= 0)
        add_number(e, "tid", (uint32_t)thread->tid);
    if (thread->start)
        add_number(e, "__start", thread->start);
    if (thread->end != UINT64_MAX)
        add_number(e, "__end", thread->end);
    add_number(e, "__thread", thread->unnamed);
}

/* A label of the tree that begins like our own keys is renamed. */
static struct text stored_key(struct encoder *e, struct text key) {
    if (!text_starts(key, TEXT("__")))
        return key;
    e->scratch.count = 0;
    buffer_add(&e->scratch, TEXT("__label"));
    buffer_add(&e->scratch, key);
    return arena_copy(&e->out->arena, buffer_text(&e->scratch));
}

static int pair_order(const void *a, const void *b) {
    return text_compare(((const struct pair_row *)a)->key, ((const struct pair_row *)b)->key);
}

static uint32_t add_set(struct encoder *e, uint32_t first) {
    struct encoded *out = e->out;
    struct set_row set = {.first = first, .count = (uint32_t)out->pairs.count - first};
    if (set.count)
        qsort(out->pairs.items + first, set.count, sizeof *out->pairs.items, pair_order);
    set_row_hash(&set, out->pairs.items, &e->scratch);
    uint32_t id;
    for (struct probe p = index_probe(&out->set_index, store_hash_slot(&set.id));
         (id = index_next(&out->set_index, &p));)
        if (store_hash_equal(&out->sets.items[id - 1].id, &set.id)) {
            out->pairs.count = first;
            return id - 1;
        }
    vector_push(&out->sets, set);
    index_add(&out->set_index, store_hash_slot(&set.id), (uint32_t)out->sets.count);
    return (uint32_t)out->sets.count - 1;
}

/* ---- series ---- */

static struct text value_type(struct encoder *e, uint32_t event) {
    struct text name = string(e, tree_event(e->tree, event)->name),
                unit = string(e, tree_event(e->tree, event)->unit);
    bool counts = text_is(unit, "samples");
    struct text kind = counts ? TEXT("samples") : value_name(name, unit);
    e->scratch.count = 0;
    buffer_add(&e->scratch, kind);
    buffer_add_char(&e->scratch, '/');
    buffer_add(&e->scratch, value_unit(unit));
    return arena_copy(&e->out->arena, buffer_text(&e->scratch));
}

static bool series_row_equal(const struct series_row *a, const struct series_row *b) {
    return a->set == b->set && text_equal(a->service, b->service) &&
           text_equal(a->version, b->version) && text_equal(a->host, b->host) &&
           text_equal(a->type, b->type);
}

static uint32_t add_series(struct encoder *e, const struct series_row *series) {
    struct encoded *out = e->out;
    uint64_t hash = hash_mix(hash_bytes(series->service.data, series->service.length),
                             hash_bytes(series->version.data, series->version.length));
    hash = hash_mix(hash ^ hash_bytes(series->host.data, series->host.length), series->set);
    uint32_t id;
    for (struct probe p = index_probe(&out->series_index, hash);
         (id = index_next(&out->series_index, &p));)
        if (series_row_equal(&out->series.items[id - 1], series))
            return id - 1;
    vector_push(&out->series, *series);
    index_add(&out->series_index, hash, (uint32_t)out->series.count);
    return (uint32_t)out->series.count - 1;
}

/* Set a label that is a column, or the window's start; return false if it is neither. */
static bool take_column(struct series_row *row, int64_t *time, struct text key, struct text value) {
    uint64_t seconds;
    if (text_is(key, "service"))
        row->service = value;
    else if (text_is(key, "version"))
        row->version = value;
    else if (text_is(key, "host"))
        row->host = value;
    else if (text_is(key, "time") && text_to_u64(value, &seconds) && seconds <= UINT32_MAX)
        *time = (int64_t)seconds;
    else
        return false;
    return true;
}

static void encode_series(struct encoder *e, uint32_t id) {
    const struct series *series = &e->tree->series.items[id];
    struct series_row row = {e->batch->service, e->batch->version, e->batch->host};
    int64_t time = (int64_t)(e->batch->time_ns / 1000000000);
    uint32_t first = (uint32_t)e->out->pairs.count;
    size_t count;
    const struct label_pair *pairs = tree_labels(e->tree, series->labels, &count);
    add_event(e, series->event);
    add_thread(e, tree_thread(e->tree, series->thread));
    if (series->comm)
        add_pair(e, "comm", string(e, series->comm));
    if (series->state != STATE_ON)
        add_pair(e, "state", state_name(series->state));
    if (series->ending != ENDING_COMPLETE)
        add_pair(e, "ending", ending_texts[series->ending]);
    if (e->tree->recorded)
        add_number(e, "__recorded", 1);
    for (size_t i = 0; i < count; i++) {
        struct text key = string(e, pairs[i].key), value = string(e, pairs[i].value);
        if (!take_column(&row, &time, key, value))
            vector_push(&e->out->pairs, ((struct pair_row){stored_key(e, key), value}));
    }
    row.set = add_set(e, first);
    row.type = value_type(e, series->event);
    e->series[id].series = add_series(e, &row) + 1;
    e->series[id].time = time;
}

/* ---- cells ---- */

static int sample_order(const void *a, const void *b) {
    const struct sample_row *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Add up duplicates. Engines have signed numbers. */
static bool merge_samples(struct encoded *out, struct error *error) {
    size_t kept = 0;
    if (out->samples.count)
        qsort(out->samples.items, out->samples.count, sizeof *out->samples.items, sample_order);
    for (size_t i = 0; i < out->samples.count; i++) {
        struct sample_row *sample = &out->samples.items[i],
                          *last = kept ? &out->samples.items[kept - 1] : NULL;
        if (last && sample_order(last, sample) == 0) {
            last->samples = saturating_add(last->samples, sample->samples);
            last->value = saturating_add(last->value, sample->value);
        } else {
            out->samples.items[kept++] = *sample;
            last = &out->samples.items[kept - 1];
        }
        if (last->samples > INT64_MAX || last->value > INT64_MAX)
            return error_set(error, ERROR_INPUT,
                             "a weight is more than 2^63, which a store can't hold");
    }
    out->samples.count = kept;
    return true;
}

static bool encode_cells(struct encoder *e, struct error *error) {
    const struct tree *tree = e->tree;
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        if (tree_event(tree, tree->series.items[cell->series].event)->kind == EVENT_BEFORE)
            return error_set(error, ERROR_INPUT, "a comparison of profiles can't be stored");
        if (!e->series[cell->series].series)
            encode_series(e, cell->series);
        struct sample_row row = {.series = e->series[cell->series].series - 1,
                                 .time = e->series[cell->series].time,
                                 .stack = stack_of_node(e, cell->node),
                                 .samples = cell->samples,
                                 .value = cell->weight};
        e->out->stacks.items[row.stack].is_leaf = true;
        vector_push(&e->out->samples, row);
    }
    return merge_samples(e->out, error);
}

bool encode_tree(struct encoded *encoded, const struct tree *tree, const struct store_batch *batch,
                 struct error *error) {
    struct encoder e = {.out = encoded, .tree = tree, .batch = batch};
    *encoded = (struct encoded){.notes = &tree->notes};
    if (!tree_check(tree, error))
        return false;
    if (batch->time_ns / 1000000000 > UINT32_MAX)
        return error_set(error, ERROR_INPUT, "the batch's time is after 2106");
    vector_push(&encoded->stacks, ((struct stack_row){0}));
    e.stacks = memory_zero(tree->nodes.count, sizeof *e.stacks);
    e.first_frames = memory_zero(tree->locations.count, sizeof *e.first_frames);
    e.frame_counts = memory_zero(tree->locations.count, sizeof *e.frame_counts);
    e.series = memory_zero(tree->series.count, sizeof *e.series);
    bool fine = encode_cells(&e, error);
    buffer_release(&e.scratch);
    vector_release(&e.frames);
    free(e.stacks);
    free(e.first_frames);
    free(e.frame_counts);
    free(e.series);
    return fine;
}

void encoded_release(struct encoded *encoded) {
    arena_release(&encoded->arena);
    vector_release(&encoded->frames);
    vector_release(&encoded->stacks);
    vector_release(&encoded->sets);
    vector_release(&encoded->pairs);
    vector_release(&encoded->series);
    vector_release(&encoded->samples);
    index_release(&encoded->frame_index);
    index_release(&encoded->stack_index);
    index_release(&encoded->set_index);
    index_release(&encoded->series_index);
}
