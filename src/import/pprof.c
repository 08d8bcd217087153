/*
 * pprof's profile.proto, as written by Go, Pyroscope, Parca, many heap profilers and `wick export --to pprof`, with
 * or without gzip.
 *
 * Fields may be in any order, so the message is scanned twice: first for what samples refer to (strings, functions,
 * mappings, locations), then for the samples. Values come in pairs, a count and an amount (`samples/count
 * cpu/nanoseconds`, `alloc_objects/count alloc_space/bytes`): each pair becomes one event, and the count alone is
 * another if --event names it. The event that pprof shows by default is counted unless --event names others. Labels
 * become labels of the series; those that wick itself writes (thread, pid, tid, state) become the thread and its
 * state again.
 *
 * protobuf-c would need a generated copy of every message in memory; scanning needs none, and bounds are checked in
 * one place (proto.h).
 */
#include "import/pprof.h"

#include <stdlib.h>

static const struct budget_limits frame_limits = {
    .steps = 1 << 20, .steps_per_byte = 16, .memory = UINT64_MAX};

/* ---- events ---- */

/* wick's own name of a unit. */
static struct text unit_of(struct text unit) {
    if (unit_nanoseconds(unit))
        return TEXT("ns");
    return text_equal(unit, TEXT("count")) || !unit.length ? TEXT("samples") : unit;
}

static bool is_count(const struct value_type *type) {
    return text_equal(type->unit, TEXT("count"));
}

static void pair_values(struct pprof *p) {
    for (uint32_t i = 0; i < p->types.count; i++) {
        struct counted counted = {.samples = is_count(&p->types.items[i]) ? i : UINT32_MAX,
                                  .weight = i};
        bool paired = is_count(&p->types.items[i]) && i + 1 < p->types.count &&
                      !is_count(&p->types.items[i + 1]);
        if (paired)
            counted.weight = ++i;
        counted.scale = unit_nanoseconds(p->types.items[counted.weight].unit);
        counted.scale += !counted.scale;
        vector_push(&p->counted, counted);
    }
}

/* pprof shows the type that the profile names, or else the last one. */
static size_t default_pair(const struct pprof *p) {
    for (size_t i = 0; i < p->counted.count && p->default_type.length; i++) {
        const struct counted *c = &p->counted.items[i];
        if (text_equal(p->types.items[c->weight].type, p->default_type) ||
            (c->samples != UINT32_MAX &&
             text_equal(p->types.items[c->samples].type, p->default_type)))
            return i;
    }
    return p->counted.count - 1;
}

/* A count that belongs to an amount is an event of its own if --event names it: `alloc_objects`, but not `all`. */
static void add_named_counts(struct pprof *p) {
    const struct filter *filter = &p->options->profile.filter;
    for (size_t i = 0, pairs = p->counted.count; i < pairs; i++) {
        uint32_t samples = p->counted.items[i].samples;
        if (samples == UINT32_MAX || samples == p->counted.items[i].weight)
            continue;
        for (size_t k = 0; k < filter->event_count; k++)
            if (text_equal(p->types.items[samples].type, text_of(filter->events[k]))) {
                vector_push(&p->counted,
                            ((struct counted){.samples = samples, .weight = samples, .scale = 1}));
                break;
            }
    }
}

/* Add the names of events that are not 0 everywhere. */
static void add_names(const struct pprof *p, struct buffer *names) {
    for (size_t i = 0; i < p->counted.count; i++)
        if (p->counted.items[i].has_any)
            buffer_printf(names, "%s%.*s", names->count ? ", " : "",
                          TEXT_ARGS(p->types.items[p->counted.items[i].weight].type));
}

static bool no_such_event(struct pprof *p, const char *name) {
    struct buffer names = {0};
    for (size_t i = 0; i < p->types.count; i++)
        buffer_printf(&names, "%s%.*s", names.count ? ", " : "", TEXT_ARGS(p->types.items[i].type));
    error_set(p->error, ERROR_USAGE, "--event %s: %s has no such event, only %.*s", name, p->path,
              TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
    return false;
}

static const struct note_kind note_all_zero = {
    "all-zero", "# profile{ has|s have} 0 in every sample of the value that is shown"};

/* A profile may have many values, and the default one may be 0 in all samples. */
static void note_if_zero(struct pprof *p) {
    struct buffer names = {0};
    bool is_zero = true;
    for (size_t i = 0; i < p->counted.count; i++)
        is_zero &= !p->counted.items[i].event || !p->counted.items[i].has_any;
    add_names(p, &names);
    if (is_zero && names.count)
        notes_add(&p->tree->notes, &note_all_zero, 1, 0, "%s: --event shows others: %.*s", p->path,
                  TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
}

static bool choose_events(struct pprof *p) {
    const struct filter *filter = &p->options->profile.filter;
    size_t shown = default_pair(p);
    add_named_counts(p);
    for (size_t i = 0; i < filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool found = false;
        for (size_t k = 0; k < p->counted.count; k++)
            found |= filter_event(&one, p->types.items[p->counted.items[k].weight].type);
        if (!found)
            return no_such_event(p, filter->events[i]);
    }
    for (size_t i = 0; i < p->counted.count; i++) {
        const struct value_type *type = &p->types.items[p->counted.items[i].weight];
        if (filter->event_count ? filter_event(filter, type->type) : i == shown)
            p->counted.items[i].event =
                event_named(p->tree, type->type, unit_of(type->unit), EVENT_OTHER);
    }
    return true;
}

/* ---- stacks ---- */

static bool push_location(struct pprof *p, uint64_t id, const void *at) {
    const struct known *known = pprof_find_location(p, id);
    if (!known)
        return error_at(p->error, p->path, (uint64_t)((const char *)at - p->content.data),
                        "a sample refers to location %llu, which does not exist",
                        (unsigned long long)id);
    struct placed_location *placed = &p->placed.items[known - p->locations.items.items];
    if (!placed->done) {
        placed->done = true;
        placed->location = pprof_place(p, known);
    }
    uint32_t inlined = p->tree->locations.items[placed->location].frame_count;
    if (!budget_take_steps(&p->frames, 1 + inlined, (uint64_t)((const char *)at - p->content.data)))
        return budget_error(&p->frames, p->path, p->error);
    vector_push(&p->path_now, placed->location);
    return true;
}

/* ---- labels ---- */

struct sample_labels {
    struct text thread;
    int32_t pid, tid;
    uint8_t state;
    uint32_t set;
};

static void add_label(struct pprof *p, struct sample_labels *labels, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    struct text key = TEXT(""), value = TEXT("");
    uint64_t number = 0;
    char digits[24];
    while (proto_next(&m, &field)) {
        if (field.number == LABEL_KEY)
            key = pprof_string(p, field.value);
        else if (field.number == LABEL_STRING)
            value = pprof_string(p, field.value);
        else if (field.number == LABEL_NUMBER)
            number = field.value;
    }
    bool is_number = !value.length && number <= INT32_MAX;
    if (text_equal(key, TEXT("thread"))) {
        labels->thread = value;
    } else if (text_equal(key, TEXT("pid")) && is_number) {
        labels->pid = (int32_t)number;
    } else if (text_equal(key, TEXT("tid")) && is_number) {
        labels->tid = (int32_t)number;
    } else if (text_equal(key, TEXT("state"))) {
        for (unsigned state = STATE_ON; state <= STATE_PREEMPTED; state++)
            if (text_equal(state_name((uint8_t)state), value))
                labels->state = (uint8_t)state;
    } else if (key.length && !label_is_fixed(key)) {
        struct buffer text = {digits, 0, sizeof digits};
        if (!value.length) {
            buffer_add_u64(&text, number);
            value = buffer_text(&text);
        }
        labels->set = tree_set_label(p->tree, labels->set, key, value);
    }
}

/* Find or make the series of a sample's labels, one for each pair of values. They are found by the bytes of the
   labels. */
static size_t series_of_labels(struct pprof *p) {
    struct text bytes = buffer_text(&p->label_now);
    uint64_t hash = hash_bytes(bytes.data, bytes.length);
    uint32_t at;
    for (struct probe probe = index_probe(&p->label_index, hash);
         (at = index_next(&p->label_index, &probe));)
        if (text_equal(p->labels.items[at - 1].bytes, bytes))
            return p->labels.items[at - 1].first;
    struct sample_labels labels = {.thread = TEXT(""), .pid = -1, .tid = -1};
    struct proto m = proto_begin(bytes);
    struct proto_field field;
    while (proto_next(&m, &field))
        if (field.number == SAMPLE_LABEL && field.wire == WIRE_TEXT)
            add_label(p, &labels, field.text);
    struct label_bytes known = {.bytes = arena_copy(&p->arena, bytes), .first = p->series.count};
    struct series series = {
        .thread = thread_numbered(p->tree, &p->threads, labels.pid, labels.tid),
        .comm = labels.thread.length ? strings_add(p->tree->strings, labels.thread) : 0,
        .labels = labels.set,
        .state = labels.state,
        .ending = ENDING_UNKNOWN};
    bool passes = filter_sample(&p->options->profile.filter, labels.pid, labels.tid, labels.thread,
                                UINT32_MAX, 0);
    for (size_t i = 0; i < p->counted.count; i++) {
        series.event = p->counted.items[i].event;
        vector_push(&p->series, series.event && passes ? tree_add_series(p->tree, &series) : 0);
    }
    vector_push(&p->labels, known);
    index_add(&p->label_index, hash, (uint32_t)p->labels.count);
    return known.first;
}

/* ---- samples ---- */

static uint32_t node_of_path(struct pprof *p) {
    uint32_t node = 0;
    for (size_t i = p->path_now.count; i-- > 0;)
        node = tree_add_node(p->tree, node, p->path_now.items[i]);
    return node;
}

static bool push_locations(struct pprof *p, struct proto_field *field, const void *at) {
    uint64_t value;
    bool fine = true, bad = false;
    while (fine && proto_repeated(field, &value, &bad))
        fine = push_location(p, value, at);
    return fine && (!bad || pprof_damaged(p, at));
}

/* Find or make the node of a stack that is one packed field. It is found by its bytes, without looking at its frames. */
static bool node_of_bytes(struct pprof *p, struct text bytes, const void *at, uint32_t *node) {
    struct proto_field field = {.wire = WIRE_TEXT, .text = bytes};
    uint64_t hash = hash_bytes(bytes.data, bytes.length);
    uint32_t id;
    for (struct probe probe = index_probe(&p->stack_index, hash);
         (id = index_next(&p->stack_index, &probe));)
        if (text_equal(p->stacks.items[id - 1].bytes, bytes)) {
            *node = p->stacks.items[id - 1].node;
            return true;
        }
    if (!push_locations(p, &field, at))
        return false;
    *node = node_of_path(p);
    vector_push(&p->stacks, ((struct stack_bytes){bytes, *node}));
    index_add(&p->stack_index, hash, (uint32_t)p->stacks.count);
    return budget_take_memory(p->options->budget, sizeof *p->stacks.items + 2 * sizeof hash,
                              (uint64_t)(bytes.data - p->content.data)) ||
           budget_error(p->options->budget, p->path, p->error);
}

static bool count_sample(struct pprof *p, uint32_t node, const void *at) {
    if (p->values.count < p->types.count)
        return pprof_damaged(p, at);
    for (size_t i = 0; i < p->types.count; i++)
        if (p->values.items[i] > INT64_MAX)
            return error_at(p->error, p->path, (uint64_t)((const char *)at - p->content.data),
                            "a sample has a negative value: differences of two profiles can't be "
                            "read; read the profiles themselves");
    size_t first = series_of_labels(p);
    for (size_t i = 0; i < p->counted.count; i++) {
        struct counted *counted = &p->counted.items[i];
        uint64_t weight,
            samples = counted->samples == UINT32_MAX ? 1 : p->values.items[counted->samples];
        if (!checked_multiply(p->values.items[counted->weight], counted->scale, &weight))
            return error_at(p->error, p->path, (uint64_t)((const char *)at - p->content.data),
                            "a sample lasts longer than 64 bits of nanoseconds can say");
        counted->has_any |= weight > 0;
        if (p->series.items[first + i] && (weight || samples))
            tree_count(p->tree, node, p->series.items[first + i], samples, weight);
    }
    return true;
}

/* A stack is one packed field, unless it was written in an unusual way: then its parts are joined. */
static bool read_sample(struct pprof *p, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field, packed = {0};
    uint64_t value;
    uint32_t node = 0;
    bool fine = true, bad = false, is_whole = false;
    p->path_now.count = p->values.count = p->label_now.count = 0;
    const uint8_t *before = m.at;
    for (bool is_first = true; fine && proto_next(&m, &field); before = m.at) {
        if (field.number == SAMPLE_LOCATION && is_first && field.wire == WIRE_TEXT) {
            packed = field;
            is_whole = true;
        } else if (field.number == SAMPLE_LOCATION) {
            fine = (!is_whole || push_locations(p, &packed, message.data)) &&
                   push_locations(p, &field, message.data);
            is_whole = false;
        } else if (field.number == SAMPLE_VALUE) {
            while (proto_repeated(&field, &value, &bad))
                vector_push(&p->values, value);
        } else if (field.number == SAMPLE_LABEL) {
            buffer_add(&p->label_now, (struct text){(const char *)before, (size_t)(m.at - before)});
        }
        is_first &= field.number != SAMPLE_LOCATION;
    }
    if (!fine)
        return false;
    if (m.damaged || bad)
        return pprof_damaged(p, message.data);
    if (is_whole && !node_of_bytes(p, packed.text, message.data, &node))
        return false;
    return count_sample(p, is_whole ? node : node_of_path(p), message.data);
}

static bool read_samples(struct pprof *p) {
    struct proto m = proto_begin(p->content);
    struct proto_field field;
    bool fine = true;
    p->placed.items = memory_zero(p->locations.items.count + 1, sizeof *p->placed.items);
    while (fine && proto_next(&m, &field)) {
        if (field.number == PROFILE_SAMPLE && field.wire == WIRE_TEXT)
            fine = read_sample(p, field.text);
        if (import_stops(p->options, (const char *)m.at))
            break;
    }
    return fine;
}

static void pprof_release(struct pprof *p) {
    pprof_release_tables(p);
    vector_release(&p->counted);
    vector_release(&p->placed);
    vector_release(&p->path_now);
    vector_release(&p->values);
    vector_release(&p->labels);
    vector_release(&p->series);
    vector_release(&p->stacks);
    index_release(&p->stack_index);
    index_release(&p->label_index);
    index_release(&p->threads);
    buffer_release(&p->label_now);
    arena_release(&p->arena);
}

static bool pprof_read(struct text content, const char *path, const struct import_options *options,
                       struct tree *tree, struct error *error) {
    struct pprof p = {
        .options = options, .path = path, .content = content, .tree = tree, .error = error};
    budget_init(&p.frames, &frame_limits, content.length);
    bool fine = pprof_read_tables(&p);
    pair_values(&p);
    if (fine && !p.counted.count)
        fine = error_set(error, ERROR_INPUT, "%s: the profile names no value types", path);
    fine = fine && choose_events(&p) && read_samples(&p);
    if (fine)
        note_if_zero(&p);
    pprof_release(&p);
    return fine;
}

/* Return true if a profile may have such a field. */
static bool is_plausible(const struct proto_field *field) {
    bool is_message = (field->number >= PROFILE_SAMPLE_TYPE && field->number <= PROFILE_STRING) ||
                      field->number == PROFILE_PERIOD_TYPE;
    bool is_either = field->number == PROFILE_COMMENT;
    return field->number > 0 && field->number <= 15 &&
           (is_either || field->wire == (is_message ? WIRE_TEXT : WIRE_NUMBER));
}

/* All leading fields must be those of a profile, and a sample type must be among them. */
static int pprof_score(struct text beginning) {
    struct proto m = proto_begin(beginning);
    struct proto_field field;
    unsigned fields = 0, samples = 0;
    for (; fields < 16 && proto_next(&m, &field); fields++) {
        if (!is_plausible(&field))
            return 0;
        samples += field.number == PROFILE_SAMPLE_TYPE || field.number == PROFILE_SAMPLE;
    }
    return fields >= 3 && samples ? 90 : 0;
}

const struct import_format format_pprof = {"pprof", "pprof's profile.proto, plain or gzip",
                                           pprof_score, pprof_read, TELLS_EVENTS};
