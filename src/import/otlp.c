/*
 * OpenTelemetry's profiles, ProfilesData as protobuf, as written to files by collectors and by `wick export --to
 * otlp`. The JSON form is converted to protobuf first (otlp_json.c). The collector's file exporter writes many messages
 * to one file: protobuf after its length in four bytes, big-endian, or a JSON document a line. Each has tables of its own.
 *
 * Samples refer to stacks and attributes in shared tables, which usually come after the samples: the message is
 * scanned for the tables first. A profile has one type, which becomes an event; of several types the first in the
 * file is counted unless --event names others. Attributes become labels; thread.name, thread.id, process.pid and
 * thread.state are the thread and its state.
 */
#include "import/otlp.h"

#include <stdlib.h>

#include "base/json.h"

static const struct budget_limits frame_limits = {
    .steps = 1 << 20, .steps_per_byte = 16, .memory = UINT64_MAX};

static bool damaged(struct otlp *t, const void *at) {
    return error_at(t->r.error, t->r.path, otlp_offset_of(t, at), "the profile is damaged here");
}

/* ---- tables ---- */

static bool read_tables(struct otlp *t) {
    struct proto data = proto_begin(t->message);
    struct proto_field part, field;
    while (proto_next(&data, &part)) {
        if (part.number != DATA_DICTIONARY || part.wire != WIRE_TEXT)
            continue;
        struct proto tables = proto_begin(part.text);
        while (proto_next(&tables, &field))
            if (field.number >= TABLE_MAPPING && field.number <= TABLE_STACK &&
                field.wire == WIRE_TEXT)
                vector_push(&t->tables[field.number].list, field.text);
        if (tables.damaged)
            return damaged(t, tables.at);
    }
    return !data.damaged || damaged(t, data.at);
}

/* ---- stacks ---- */

static bool node_of(struct otlp *t, uint64_t stack, const void *at, uint32_t *node) {
    if (stack >= t->nodes.count)
        return error_at(t->r.error, t->r.path, otlp_offset_of(t, at),
                        "a sample refers to stack %llu, which does not exist",
                        (unsigned long long)stack);
    if (!t->nodes.items[stack]) {
        struct proto m = proto_begin(otlp_row(t, TABLE_STACK, stack));
        struct proto_field field;
        uint64_t location;
        bool bad = false;
        t->r.stack.locations.count = 0;
        while (proto_next(&m, &field))
            while (field.number == STACK_LOCATIONS && proto_repeated(&field, &location, &bad)) {
                if (!budget_take_steps(&t->frames, 1, otlp_offset_of(t, at)))
                    return budget_error(&t->frames, t->r.path, t->r.error);
                otlp_push_location(t, location);
            }
        if (m.damaged || bad)
            return damaged(t, otlp_row(t, TABLE_STACK, stack).data);
        stack_reverse(&t->r.stack);
        t->nodes.items[stack] = stack_node(&t->r.stack) + 1;
    }
    *node = t->nodes.items[stack] - 1;
    return true;
}

/* ---- attributes ---- */

static int32_t id_of(struct text value) {
    uint64_t number;
    return text_to_u64(value, &number) && number <= INT32_MAX ? (int32_t)number : -1;
}

static void add_attribute(struct otlp *t, struct whose *whose, struct text key, struct text value) {
    if (text_equal(key, TEXT("thread.name")))
        whose->thread = strings_get(t->r.tree->strings, strings_add(t->r.tree->strings, value));
    else if (text_equal(key, TEXT("thread.id")))
        whose->tid = id_of(value);
    else if (text_equal(key, TEXT("process.pid")))
        whose->pid = id_of(value);
    else if (text_equal(key, TEXT("thread.state"))) {
        for (unsigned state = STATE_ON; state <= STATE_PREEMPTED; state++)
            if (text_equal(state_name((uint8_t)state), value))
                whose->state = (uint8_t)state;
    } else if (key.length && value.length && !label_is_fixed(key) &&
               whose->count < COUNT_OF(whose->pairs))
        whose->pairs[whose->count++] = (struct label_pair){strings_add(t->r.tree->strings, key),
                                                           strings_add(t->r.tree->strings, value)};
}

/* Parse a sample's attribute, a row of the table whose key is a number; or a resource's, a pair whose key is a text. */
static void take_attribute(struct otlp *t, struct whose *whose, struct text message) {
    struct proto m = otlp_look_into(t, message);
    struct proto_field field;
    struct text key = TEXT(""), value = TEXT("");
    while (proto_next(&m, &field)) {
        if (field.number == ATTRIBUTE_KEY)
            key = field.wire == WIRE_TEXT ? field.text : otlp_string_of(t, field.value);
        else if (field.number == ATTRIBUTE_VALUE && field.wire == WIRE_TEXT)
            value = otlp_value_of(t, field.text);
    }
    add_attribute(t, whose, key, value);
}

static void take_resource(struct otlp *t, struct text resource) {
    struct proto m = proto_begin(resource);
    struct proto_field field;
    t->resource = (struct whose){.pid = -1, .tid = -1};
    while (proto_next(&m, &field))
        if (field.number == ATTRIBUTES && field.wire == WIRE_TEXT)
            take_attribute(t, &t->resource, field.text);
}

static void choose_series(struct otlp *t) {
    struct whose whose = t->resource;
    for (size_t i = 0; i < t->attributes.count; i++)
        take_attribute(t, &whose, otlp_row(t, TABLE_ATTRIBUTE, t->attributes.items[i]));
    stack_set_thread(&t->r.stack, whose.thread, whose.pid, whose.tid);
    struct series series = t->r.tree->series.items[t->r.stack.series];
    series.state = whose.state;
    series.labels = tree_add_labels(t->r.tree, whose.pairs, whose.count);
    t->r.stack.series = tree_add_series(t->r.tree, &series);
}

/* ---- samples ---- */

static bool read_fields(struct otlp *t, struct text message, uint64_t *stack) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    uint64_t value;
    bool bad = false;
    t->values.count = t->times.count = t->attributes.count = 0;
    *stack = 0;
    while (proto_next(&m, &field)) {
        if (field.number == SAMPLE_STACK) {
            *stack = field.value;
        } else if (field.number == SAMPLE_ATTRIBUTES) {
            while (proto_repeated(&field, &value, &bad))
                vector_push(&t->attributes, value);
        } else if (field.number == SAMPLE_VALUES) {
            while (proto_repeated(&field, &value, &bad))
                vector_push(&t->values, value);
        } else if (field.number == SAMPLE_TIMES && field.wire == WIRE_EIGHT) {
            vector_push(&t->times, field.value);
        } else if (field.number == SAMPLE_TIMES && field.wire == WIRE_TEXT) {
            for (size_t i = 0; i + 8 <= field.text.length; i += 8)
                vector_push(&t->times, load_u64(field.text.data + i));
        }
    }
    return (!m.damaged && !bad) || damaged(t, message.data);
}

/* There is either one value for all, a time for each of value 1, or a value and a time for each. */
static bool read_sample(struct otlp *t, struct text message, bool counts) {
    uint64_t stack;
    uint32_t node = 0;
    if (!read_fields(t, message, &stack) || !node_of(t, stack, message.data, &node))
        return false;
    choose_series(t);
    if (budget_exceeded(&t->frames))
        return budget_error(&t->frames, t->r.path, t->r.error);
    size_t rows = t->values.count > t->times.count ? t->values.count : t->times.count;
    for (size_t i = 0; i < rows; i++) {
        uint64_t value = i < t->values.count ? t->values.items[i] : 1;
        if (value > INT64_MAX)
            return error_at(t->r.error, t->r.path, otlp_offset_of(t, message.data),
                            "a sample has a negative value");
        stack_count_at(&t->r.stack, node, counts ? value : 1, value,
                       i < t->times.count ? t->times.items[i] : 0);
    }
    return true;
}

/* ---- profiles ---- */

static void type_of(struct otlp *t, struct text profile, struct text *type, struct text *unit) {
    struct proto m = proto_begin(profile);
    struct proto_field field, number;
    *type = *unit = TEXT("");
    while (proto_next(&m, &field)) {
        if (field.number != PROFILE_TYPE || field.wire != WIRE_TEXT)
            continue;
        struct proto pair = proto_begin(field.text);
        while (proto_next(&pair, &number)) {
            if (number.number == TYPE_TYPE)
                *type = otlp_string_of(t, number.value);
            else if (number.number == TYPE_UNIT)
                *unit = otlp_string_of(t, number.value);
        }
    }
}

static bool is_wanted(struct otlp *t, struct text type) {
    const struct filter *filter = &t->r.options->profile.filter;
    if (filter->event_count)
        return filter_event(filter, type);
    if (!t->first_type.data)
        t->first_type = strings_get(t->r.tree->strings, strings_add(t->r.tree->strings, type));
    return text_equal(type, t->first_type);
}

/* The tree lasts from the first profile's start to the last one's end. A profile may not say when it began. */
static void extend_span(struct tree *tree, uint64_t began, uint64_t lasted) {
    if (!began) {
        tree->lasted = tree->lasted > lasted ? tree->lasted : lasted;
        return;
    }
    uint64_t end = began + lasted, known = tree->began ? tree->began + tree->lasted : 0;
    tree->began = tree->began && tree->began < began ? tree->began : began;
    tree->lasted = (end > known ? end : known) - tree->began;
}

static bool read_profile(struct otlp *t, struct text profile) {
    struct text type, unit;
    uint64_t began = 0, lasted = 0;
    type_of(t, profile, &type, &unit);
    if (!is_wanted(t, type))
        return true;
    bool counts = text_equal(unit, TEXT("count"));
    t->any = true;
    stack_set_event(&t->r.stack, type.length ? type : TEXT("samples"),
                    counts                                  ? TEXT("samples")
                    : text_equal(unit, TEXT("nanoseconds")) ? TEXT("ns")
                                                            : unit);
    struct proto m = proto_begin(profile);
    struct proto_field field;
    bool fine = true;
    while (fine && proto_next(&m, &field) && !import_stops(t->r.options, (const char *)m.at))
        if (field.number == PROFILE_SAMPLE && field.wire == WIRE_TEXT)
            fine = read_sample(t, field.text, counts);
        else if (field.number == PROFILE_TIME && field.wire == WIRE_EIGHT &&
                 field.value <= INT64_MAX)
            began = field.value;
        else if (field.number == PROFILE_DURATION && field.wire == WIRE_NUMBER &&
                 field.value <= INT64_MAX)
            lasted = field.value;
    extend_span(t->r.tree, began, lasted);
    return fine && (!m.damaged || damaged(t, m.at));
}

static bool read_scope(struct otlp *t, struct text scope) {
    struct proto m = proto_begin(scope);
    struct proto_field field;
    bool fine = true;
    while (fine && proto_next(&m, &field))
        if (field.number == SCOPE_PROFILE && field.wire == WIRE_TEXT)
            fine = read_profile(t, field.text);
    return fine && (!m.damaged || damaged(t, m.at));
}

static bool read_resource(struct otlp *t, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    struct text resource = TEXT("");
    bool fine = true;
    while (proto_next(&m, &field))
        if (field.number == RESOURCE_RESOURCE && field.wire == WIRE_TEXT)
            resource = field.text;
    take_resource(t, resource);
    m = proto_begin(message);
    while (fine && proto_next(&m, &field))
        if (field.number == RESOURCE_SCOPES && field.wire == WIRE_TEXT)
            fine = read_scope(t, field.text);
    return fine && (!m.damaged || damaged(t, m.at));
}

static bool read_data(struct otlp *t) {
    struct proto data = proto_begin(t->message);
    struct proto_field field;
    bool fine = true;
    size_t stacks = t->tables[TABLE_STACK].list.count;
    t->nodes.count = 0;
    for (size_t i = 0; i < stacks; i++)
        vector_push(&t->nodes, 0);
    while (fine && proto_next(&data, &field))
        if (field.number == DATA_RESOURCE && field.wire == WIRE_TEXT)
            fine = read_resource(t, field.text);
    return fine;
}

/* ---- messages ---- */

static bool read_messages(struct otlp *t) {
    const struct filter *filter = &t->r.options->profile.filter;
    for (size_t i = 0; i < t->messages.count; i++) {
        t->message = t->messages.items[i];
        for (size_t k = 0; k < TABLES; k++)
            t->tables[k].list.count = 0;
        if (!read_tables(t) || !read_data(t))
            return false;
        if (import_stops(t->r.options, t->message.data))
            return true;
    }
    if (filter->event_count && !t->any)
        return error_set(t->r.error, ERROR_USAGE, "--event %s: %s has no such profile",
                         filter->events[0], t->r.path);
    return true;
}

/* A protobuf message begins differently. */
static bool is_document(struct text content) {
    struct json json = {content};
    return json_peek(&json) == '{';
}

enum { LENGTH_SIZE = 4 };

static uint64_t length_at(struct text content) {
    const uint8_t *at = (const uint8_t *)content.data;
    return (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
}

/* A message begins with the key of its field 1 or 2, the length of one below 160 MB with a smaller byte. */
static bool has_lengths(struct text content) {
    return content.length > LENGTH_SIZE &&
           (uint8_t)content.data[0] < (DATA_RESOURCE << 3 | WIRE_TEXT);
}

static bool split_lengths(struct otlp *t, struct text content, const char *path,
                          struct error *error) {
    struct text rest = content;
    while (rest.length) {
        uint64_t length = rest.length < LENGTH_SIZE ? 0 : length_at(rest);
        if (rest.length < LENGTH_SIZE || length > rest.length - LENGTH_SIZE)
            return error_at(error, path, (uint64_t)(rest.data - content.data),
                            "a message begins here that is longer than the rest of the file");
        vector_push(&t->messages, text_upto(text_from(rest, LENGTH_SIZE), (size_t)length));
        rest = text_from(rest, LENGTH_SIZE + (size_t)length);
    }
    return true;
}

/* Convert each document; the messages are parts of `made`. */
static bool split_documents(struct otlp *t, struct text content, const char *path,
                            struct buffer *made, struct error *error) {
    VECTOR(size_t) ends = {0};
    bool fine = true;
    for (size_t at = 0; fine && at < content.length;) {
        fine = otlp_from_json(content, &at, path, made, &t->places, error);
        vector_push(&ends, made->count);
    }
    struct text all = made->count ? buffer_text(made) : TEXT("");
    for (size_t i = 0; i < ends.count; i++) {
        size_t from = i ? ends.items[i - 1] : 0;
        vector_push(&t->messages, text_from(text_upto(all, ends.items[i]), from));
    }
    vector_release(&ends);
    return fine;
}

static bool otlp_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    struct otlp t = {0};
    struct buffer made = {0};
    struct import_options unmapped = *options;
    bool is_json = is_document(content), fine = true;
    if (is_json) {
        fine = split_documents(&t, content, path, &made, error);
        unmapped.content = buffer_text(&made);
    } else if (has_lengths(content)) {
        fine = split_lengths(&t, content, path, error);
    } else {
        vector_push(&t.messages, content);
    }
    reader_init(&t.r, is_json ? buffer_text(&made) : content, path, &unmapped, tree, TEXT(""),
                error);
    budget_init(&t.frames, &frame_limits, content.length);
    fine = fine && read_messages(&t);
    vector_release(&t.messages);
    vector_release(&t.places);
    buffer_release(&made);
    for (size_t i = 0; i < TABLES; i++)
        vector_release(&t.tables[i].list);
    vector_release(&t.nodes);
    vector_release(&t.values);
    vector_release(&t.lines);
    vector_release(&t.times);
    vector_release(&t.attributes);
    buffer_release(&t.scratch);
    reader_release(&t.r);
    return fine;
}

/* The first field is a resource, which begins with another message, where pprof has a number; or the tables, whose
   first row is empty. */
static int otlp_score(struct text beginning) {
    struct proto m = proto_begin(beginning);
    if (is_document(beginning))
        return text_search(beginning, TEXT("\"resourceProfiles\"")) != SIZE_MAX ||
                       text_search(beginning, TEXT("\"resource_profiles\"")) != SIZE_MAX
                   ? 95
                   : 0;
    if (has_lengths(beginning))
        m = proto_begin(text_from(beginning, LENGTH_SIZE));
    if (m.end - m.at < 8)
        return 0;
    uint64_t key = proto_number(&m), size = proto_number(&m);
    if (m.damaged || m.end - m.at < 2 || size < 2)
        return 0;
    uint8_t inner = m.at[0], second = m.at[1];
    if (key == (DATA_RESOURCE << 3 | WIRE_TEXT))
        return inner == (RESOURCE_RESOURCE << 3 | WIRE_TEXT) ||
                       inner == (RESOURCE_SCOPES << 3 | WIRE_TEXT)
                   ? 91
                   : 0;
    bool tables =
        key == (DATA_DICTIONARY << 3 | WIRE_TEXT) && (inner & 7) == WIRE_TEXT && second == 0;
    return tables && inner >> 3 <= TABLE_STACK ? 91 : 0;
}

const struct import_format format_otlp = {
    "otlp", "OpenTelemetry's profiles, protobuf or JSON, plain or gzip", otlp_score, otlp_read,
    TELLS_EVENTS | TELLS_TIMES};
