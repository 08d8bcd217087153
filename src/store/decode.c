/*
 * Convert rows to a tree. They are untrusted: an engine's rows may be a stranger's. Frames that continue a location
 * are joined to it again; labels that the query does not distinguish are dropped, and the tree adds up what becomes
 * equal.
 *
 * One address may have been named in two ways, if one machine had debug information and another had none. A tree
 * resolves a location once, so the first way, by content, becomes the location, and others become functions with a
 * name.
 */
#include <stdlib.h>

#include "object/object.h"
#include "store/internal.h"

struct known_event {
    struct event event;
    uint64_t order;
    struct text name, unit;
    uint32_t id; /* in the tree */
};

struct made_location {
    uint32_t first, count; /* frames, in frames_of_paths */
    uint32_t location;
};

struct decoder {
    struct answer *answer;
    const struct store_query *query;
    struct tree *tree;
    struct error *error;
    VECTOR(struct known_event) events;
    uint32_t *event_of_set; /* + 1 */
    uint32_t *series;       /* by the answer's series */
    struct index location_index;
    VECTOR(struct made_location) made;
};

static bool wrong(struct decoder *d, const char *what) {
    return error_set(d->error, ERROR_INPUT, "%s: %s is invalid", d->answer->where, what);
}

struct text answer_text(struct answer *answer, struct text text) {
    return text.length ? arena_copy(&answer->arena, text) : TEXT("");
}

void answer_release(struct answer *answer) {
    arena_release(&answer->arena);
    vector_release(&answer->frames);
    vector_release(&answer->frames_of_paths);
    vector_release(&answer->paths);
    vector_release(&answer->sets);
    vector_release(&answer->pairs);
    vector_release(&answer->series);
    vector_release(&answer->cells);
}

/* ---- events ---- */

static uint64_t pair_number(const struct pair_row *pairs, size_t count, const char *key,
                            uint64_t otherwise) {
    uint64_t value;
    return text_to_u64(pair_value(pairs, count, key), &value) ? value : otherwise;
}

static bool event_of_pairs(struct decoder *d, const struct pair_row *pairs, size_t count,
                           struct known_event *event) {
    uint64_t kind = pair_number(pairs, count, "__kind", 0),
             time = pair_number(pairs, count, "__times", 0);
    if (kind >= EVENT_BEFORE || time > TIME_WAITED)
        return wrong(d, "an event");
    *event = (struct known_event){.name = pair_value(pairs, count, "event"),
                                  .unit = pair_value(pairs, count, "__unit"),
                                  .order = pair_number(pairs, count, "__order", 0)};
    event->event.kind = (enum event_kind)kind;
    event->event.time = (enum event_time)time;
    event->event.chains = pair_number(pairs, count, "__chains", 0) != 0;
    return true;
}

static bool event_equal(const struct known_event *a, const struct known_event *b) {
    return text_equal(a->name, b->name) && text_equal(a->unit, b->unit) &&
           a->event.kind == b->event.kind && a->event.time == b->event.time &&
           a->event.chains == b->event.chains;
}

static bool note_event(struct decoder *d, uint32_t set) {
    enum { EVENTS_MOST = 4096 };
    const struct set_row *row = &d->answer->sets.items[set];
    struct known_event event;
    if (!event_of_pairs(d, answer_pairs(d->answer, row), row->count, &event))
        return false;
    size_t i = 0;
    while (i < d->events.count && !event_equal(&d->events.items[i], &event))
        i++;
    if (i == EVENTS_MOST)
        return wrong(d, "the number of events");
    if (i == d->events.count)
        vector_push(&d->events, event);
    struct known_event *known = &d->events.items[i];
    known->order = event.order < known->order ? event.order : known->order;
    d->event_of_set[set] = (uint32_t)i + 1;
    return true;
}

static int event_order(const void *a, const void *b, void *context) {
    const struct known_event *events = context, *x = &events[*(const uint32_t *)a],
                             *y = &events[*(const uint32_t *)b];
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    int order = text_compare(x->name, y->name);
    order = order ? order : text_compare(x->unit, y->unit);
    order = order ? order : (int)x->event.time - (int)y->event.time;
    order = order ? order : (int)x->event.kind - (int)y->event.kind;
    return order ? order : (int)x->event.chains - (int)y->event.chains;
}

static bool decode_events(struct decoder *d) {
    d->event_of_set = memory_zero(d->answer->sets.count + 1, sizeof *d->event_of_set);
    for (size_t i = 0; i < d->answer->series.count; i++) {
        uint32_t set = d->answer->series.items[i].set;
        if (!d->event_of_set[set] && !note_event(d, set))
            return false;
    }
    uint32_t *order = memory_zero(d->events.count + 1, sizeof *order);
    for (uint32_t i = 0; i < d->events.count; i++)
        order[i] = i;
    qsort_r(order, d->events.count, sizeof *order, event_order, d->events.items);
    for (uint32_t i = 0; i < d->events.count; i++) {
        struct known_event *event = &d->events.items[order[i]];
        event->id = tree_add_event(d->tree, event->name, event->unit, event->event.kind);
        d->tree->events.items[event->id].chains = event->event.chains;
        d->tree->events.items[event->id].time = event->event.time;
    }
    free(order);
    return true;
}

/* ---- series ---- */

static uint32_t find_thread(struct decoder *d, const struct pair_row *pairs, size_t count) {
    bool tids = query_keeps(d->query, TEXT("tid")), pids = query_keeps(d->query, TEXT("pid"));
    if (!pair_value(pairs, count, "__thread").length || (!tids && !pids))
        return 0;
    uint64_t pid = pair_number(pairs, count, "pid", UINT32_MAX),
             tid = pair_number(pairs, count, "tid", UINT32_MAX);
    struct thread thread = {.pid = pids ? (int32_t)pid : -1, .tid = tids ? (int32_t)tid : -1};
    thread.start = tids ? pair_number(pairs, count, "__start", 0) : 0;
    thread.end = tids ? pair_number(pairs, count, "__end", UINT64_MAX) : UINT64_MAX;
    thread.unnamed = !tids || pair_number(pairs, count, "__thread", 0);
    uint64_t hash = hash_mix((uint64_t)(uint32_t)thread.pid << 32 | (uint32_t)thread.tid,
                             hash_mix(thread.start, thread.end) + thread.unnamed);
    uint32_t id;
    for (struct probe p = index_probe(&d->tree->thread_index, hash);
         (id = index_next(&d->tree->thread_index, &p));) {
        const struct thread *other = &d->tree->threads.items[id];
        if (other->pid == thread.pid && other->tid == thread.tid && other->start == thread.start &&
            other->end == thread.end && other->unnamed == thread.unnamed)
            return id;
    }
    id = tree_add_thread(d->tree, &thread);
    index_add(&d->tree->thread_index, hash, id);
    return id;
}

static uint8_t state_of(struct text name) {
    for (unsigned i = STATE_ON; i <= STATE_PREEMPTED; i++)
        if (text_equal(state_name((uint8_t)i), name))
            return (uint8_t)i;
    return STATE_ON;
}

static uint8_t ending_of(struct text name) {
    for (unsigned i = 0; i <= ENDING_UNKNOWN; i++)
        if (text_equal(ending_texts[i], name))
            return (uint8_t)i;
    return ENDING_COMPLETE;
}

/* Return the tree's name of a stored key; empty if it is not a label of the set. */
static struct text shown_key(struct text key) {
    struct text escaped = TEXT("__label");
    if (text_starts(key, TEXT("__label__")))
        return text_from(key, escaped.length);
    return text_starts(key, TEXT("__")) || label_is_fixed(key) ? TEXT("") : key;
}

typedef VECTOR(struct label_pair) pair_list;

static void keep_label(struct decoder *d, pair_list *list, struct text key, struct text value) {
    if (!key.length || !query_keeps(d->query, key))
        return;
    struct strings *strings = d->tree->strings;
    struct label_pair pair = {strings_add(strings, key), strings_add(strings, value)};
    vector_push(list, pair);
}

static uint32_t decode_labels(struct decoder *d, const struct series_row *row,
                              const struct pair_row *pairs, size_t count) {
    pair_list list = {0};
    for (size_t i = 0; i < count; i++)
        keep_label(d, &list, shown_key(pairs[i].key), pairs[i].value);
    if (row->service.length)
        keep_label(d, &list, TEXT("service"), row->service);
    if (row->version.length)
        keep_label(d, &list, TEXT("version"), row->version);
    if (row->host.length)
        keep_label(d, &list, TEXT("host"), row->host);
    if (d->query->step > 0 && row->time >= 0) {
        struct buffer number = {0};
        buffer_add_u64(&number, (uint64_t)row->time);
        struct strings *strings = d->tree->strings;
        vector_push(&list, ((struct label_pair){strings_add(strings, TEXT("time")),
                                                strings_add(strings, buffer_text(&number))}));
        buffer_release(&number);
    }
    uint32_t labels = tree_add_labels(d->tree, list.items, list.count);
    vector_release(&list);
    return labels;
}

static void decode_series(struct decoder *d) {
    d->series = memory_zero(d->answer->series.count + 1, sizeof *d->series);
    d->tree->recorded = d->answer->series.count != 0;
    for (size_t i = 0; i < d->answer->series.count; i++) {
        const struct series_row *row = &d->answer->series.items[i];
        const struct set_row *set = &d->answer->sets.items[row->set];
        const struct pair_row *pairs = answer_pairs(d->answer, set);
        struct series series = {.event = d->events.items[d->event_of_set[row->set] - 1].id};
        series.thread = find_thread(d, pairs, set->count);
        const struct pair_row *comm = pair_find(pairs, set->count, "comm");
        if (comm && query_keeps(d->query, TEXT("comm")))
            series.comm = strings_add(d->tree->strings, comm->value);
        if (query_keeps(d->query, TEXT("state")) || set_is_of_times(pairs, set->count))
            series.state = state_of(pair_value(pairs, set->count, "state"));
        if (query_keeps(d->query, TEXT("ending")))
            series.ending = ending_of(pair_value(pairs, set->count, "ending"));
        series.labels = decode_labels(d, row, pairs, set->count);
        d->tree->recorded &= pair_value(pairs, set->count, "__recorded").length != 0;
        d->series[i] = tree_add_series(d->tree, &series);
    }
}

/* ---- locations ---- */

static uint32_t text_string(struct decoder *d, struct text text) {
    return text.length ? strings_add(d->tree->strings, text) : 0;
}

static uint32_t name_string(struct decoder *d, const struct frame_row *frame) {
    return frame->flags & FRAME_NAMED ? strings_add(d->tree->strings, frame->name) : 0;
}

static bool decode_object(struct decoder *d, const struct frame_row *frame, uint32_t *object) {
    *object = 0;
    if (!frame->object_kind)
        return true;
    if (frame->object_kind > OBJECT_NAME + 1 || frame->build_id.length > BUILD_ID_MAX)
        return wrong(d, "an object");
    struct object_identity identity = {.path = frame->object,
                                       .kind = frame->object_kind - 1,
                                       .pid = frame->object_pid,
                                       .start = frame->object_start,
                                       .size = frame->object_size};
    identity.build_id.size = (uint8_t)frame->build_id.length;
    memcpy(identity.build_id.bytes, frame->build_id.data, frame->build_id.length);
    if (!d->tree->objects)
        d->tree->objects = objects_new(&(struct objects_options){0});
    *object = objects_add(d->tree->objects, &identity);
    return true;
}

static bool begin_location(struct decoder *d, const struct frame_row *frame,
                           struct location *location) {
    uint32_t mode = (frame->flags & FRAME_MODE) >> FRAME_MODE_SHIFT;
    if (mode > MODE_GUEST_KERNEL || frame->flags & ~(uint32_t)FRAME_FLAGS)
        return wrong(d, "a frame");
    *location = (struct location){.address = frame->address,
                                  .raw = frame->raw,
                                  .mode = (uint8_t)mode,
                                  .call = (frame->flags & FRAME_CALL) != 0,
                                  .kinds = frame->flags & FRAME_KINDS,
                                  .unwound = (frame->flags & FRAME_UNWOUND) != 0};
    return decode_object(d, frame, &location->object);
}

static void set_function(struct decoder *d, struct location *location,
                         const struct frame_row *frame) {
    struct function function = {.name = name_string(d, frame),
                                .file = text_string(d, frame->file),
                                .line = frame->first_line,
                                .module = text_string(d, frame->module),
                                .language = text_string(d, frame->language)};
    if (!function.name)
        function.name = strings_add(d->tree->strings, TEXT(""));
    location->function = tree_add_function(d->tree, &function);
    location->line = frame->line;
}

static void add_frame(struct decoder *d, const struct frame_row *row) {
    struct frame frame = {.name = name_string(d, row),
                          .file = text_string(d, row->file),
                          .line = row->line,
                          .column = row->column,
                          .offset = row->offset,
                          .inlined = (row->flags & FRAME_INLINED) != 0,
                          .language = text_string(d, row->language)};
    vector_push(&d->tree->frames, frame);
}

static const struct frame_row *frame_at(const struct decoder *d, uint32_t place) {
    return &d->answer->frames.items[d->answer->frames_of_paths.items[place]];
}

static bool make_location(struct decoder *d, uint32_t first, uint32_t count, uint32_t *id) {
    const struct frame_row *frame = frame_at(d, first);
    struct location location;
    if (!begin_location(d, frame, &location))
        return false;
    if (frame->flags & FRAME_FUNCTION) {
        set_function(d, &location, frame);
        *id = tree_add_location(d->tree, &location);
        return true;
    }
    size_t before = d->tree->locations.count;
    *id = tree_add_location(d->tree, &location);
    if (*id < before) { /* the address also had other code: a number distinguishes them */
        location.line = (uint32_t)d->made.count + 1;
        *id = tree_add_location(d->tree, &location);
    }
    if (frame->flags & FRAME_NONE)
        return true;
    d->tree->locations.items[*id].first_frame = (uint32_t)d->tree->frames.count;
    d->tree->locations.items[*id].frame_count = count;
    for (uint32_t i = 0; i < count; i++)
        add_frame(d, frame_at(d, first + i));
    return true;
}

/* Return the location of these frames, each sequence once. */
static bool find_location(struct decoder *d, uint32_t first, uint32_t count, uint32_t *id) {
    const uint32_t *frames = d->answer->frames_of_paths.items;
    uint64_t hash = hash_bytes(frames + first, count * sizeof *frames);
    uint32_t number;
    for (struct probe p = index_probe(&d->location_index, hash);
         (number = index_next(&d->location_index, &p));) {
        const struct made_location *made = &d->made.items[number - 1];
        if (made->count == count &&
            memcmp(frames + made->first, frames + first, count * sizeof *frames) == 0) {
            *id = made->location;
            return true;
        }
    }
    if (!make_location(d, first, count, id))
        return false;
    vector_push(&d->made, ((struct made_location){first, count, *id}));
    index_add(&d->location_index, hash, (uint32_t)d->made.count);
    return true;
}

/* ---- stacks ---- */

/* Return how many frames from `at` on belong to one location. */
static uint32_t frames_of_location(const struct decoder *d, uint32_t at, uint32_t end) {
    uint32_t count = 1;
    while (at + count < end && frame_at(d, at + count)->flags & FRAME_CONTINUES)
        count++;
    return count;
}

static bool decode_path(struct decoder *d, const struct answer_path *path, uint32_t *node) {
    uint32_t end = path->first + path->count, location = 0;
    *node = 0;
    for (uint32_t at = path->first; at < end;) {
        uint32_t count = frames_of_location(d, at, end);
        if (frame_at(d, at)->flags & FRAME_CONTINUES)
            return wrong(d, "a stack");
        if (!find_location(d, at, count, &location))
            return false;
        *node = tree_add_node(d->tree, *node, location);
        at += count;
    }
    return !budget_exceeded(&d->answer->budget) ||
           budget_error(&d->answer->budget, d->answer->where, d->error);
}

/* Sort by the ids of frames, so that locations' numbers do not depend on the engine. */
static int path_order(const void *a, const void *b, void *context) {
    const struct decoder *d = context;
    const struct answer_path *x = &d->answer->paths.items[*(const uint32_t *)a],
                             *y = &d->answer->paths.items[*(const uint32_t *)b];
    uint32_t least = x->count < y->count ? x->count : y->count;
    for (uint32_t i = 0; i < least; i++) {
        int order = memcmp(&frame_at(d, x->first + i)->id, &frame_at(d, y->first + i)->id,
                           sizeof(struct store_hash));
        if (order)
            return order;
    }
    return (x->count > y->count) - (x->count < y->count);
}

static bool decode_cells(struct decoder *d) {
    size_t count = d->answer->paths.count;
    uint32_t *nodes = memory_zero(count + 1, sizeof *nodes),
             *order = memory_zero(count + 1, sizeof *order);
    bool fine = true;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, path_order, d);
    for (size_t i = 0; i < count && fine; i++)
        fine = decode_path(d, &d->answer->paths.items[order[i]], &nodes[order[i]]);
    for (size_t i = 0; i < d->answer->cells.count && fine; i++) {
        const struct answer_cell *cell = &d->answer->cells.items[i];
        tree_count(d->tree, nodes[cell->path], d->series[cell->series], cell->samples, cell->value);
    }
    free(nodes);
    free(order);
    return fine;
}

bool answer_to_tree(struct answer *answer, const struct store_query *query, struct tree *tree,
                    struct error *error) {
    struct decoder d = {.answer = answer, .query = query, .tree = tree, .error = error};
    tree_set_budget(tree, &answer->budget);
    bool fine = decode_events(&d);
    if (fine) {
        decode_series(&d);
        fine = decode_cells(&d);
    }
    tree_set_budget(tree, NULL);
    index_release(&tree->thread_index); /* not hashed like in tree_find_thread() */
    vector_release(&d.events);
    vector_release(&d.made);
    index_release(&d.location_index);
    free(d.event_of_set);
    free(d.series);
    return fine &&
           (!budget_exceeded(&answer->budget) ||
            budget_error(&answer->budget, answer->where, error)) &&
           tree_check(tree, error);
}
