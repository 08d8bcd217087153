/*
 * pprof's profile.proto: what Go, Pyroscope, Parca, many heap profilers and `wick export --to pprof` write, packed with gzip or not.
 *
 * Fields may stand in any order, so the message is walked twice: first for what samples name (strings, functions, mappings, locations), then
 * for the samples. Values come in pairs, a number of things and what they amount to (`samples/count cpu/nanoseconds`,
 * `alloc_objects/count alloc_space/bytes`): each pair becomes one event. The event that pprof shows by itself is counted unless --event names
 * others. Labels become labels of the series; those that wick writes itself (thread, pid, tid, state) are the thread and its state again.
 *
 * protobuf-c would need a generated copy of every message in memory; walking takes none, and bounds are checked in one place (proto.h).
 */
#include "import/pprof_fields.h"
#include "import/proto.h"
#include "import/reader.h"

#include <stdlib.h>

/* What samples name, by id. `message` is looked into when it is first used. */
struct known {
    uint64_t id;
    struct text message;
};
struct table {
    VECTOR(struct known) items;
    struct index index; /* by id: places in items + 1 */
};

struct value_type {
    struct text type, unit;
};

/* A pair of values, or one that stands alone. */
struct counted {
    uint32_t event;   /* 0: not wanted */
    uint32_t samples; /* which value is the number of things; UINT32_MAX: there is none */
    uint32_t weight;
};

/* A location's place in the tree, once it was used. */
struct placed_location {
    uint32_t location;
    bool done;
};

/* One set of labels, as its bytes stand in a sample. */
struct label_bytes {
    struct text bytes;
    size_t first; /* of its series, one for each of `counted` */
};

/* One stack, as its bytes stand in a sample: profiles with labels have it once for each of their sets. */
struct stack_bytes {
    struct text bytes;
    uint32_t node;
};

struct pprof {
    const struct import_options *options;
    const char *path;
    struct text content;
    struct tree *tree;
    struct error *error;
    VECTOR(struct text) strings;
    VECTOR(struct value_type) types;
    struct text default_type;
    struct table mappings, locations, functions;
    VECTOR(struct counted) counted;
    VECTOR(struct placed_location) placed; /* as `locations` */
    VECTOR(uint32_t) path_now;             /* of the sample at hand, leaf first */
    VECTOR(uint64_t) values;
    VECTOR(struct label_bytes) labels;
    VECTOR(uint32_t) series;
    VECTOR(struct stack_bytes) stacks;
    struct index label_index, stack_index, threads;
    struct buffer label_now;
    struct arena arena;
    struct budget frames;
};

static const struct budget_limits frame_limits = {
    .steps = 1 << 20, .steps_per_byte = 16, .memory = UINT64_MAX};

static bool damaged(struct pprof *p, const void *at) {
    return error_at(p->error, p->path, (uint64_t)((const char *)at - p->content.data),
                    "the profile is damaged here");
}

static struct text string_of(const struct pprof *p, uint64_t number) {
    return number < p->strings.count ? p->strings.items[number] : TEXT("");
}

/* ---- what samples name ---- */

/* Nearly all writers number from 1 on: then the number is the place. */
static const struct known *table_find(const struct table *table, uint64_t id) {
    uint32_t at;
    if (id - 1 < table->items.count && table->items.items[id - 1].id == id)
        return &table->items.items[id - 1];
    for (struct probe probe = index_probe(&table->index, hash_mix(id, 1));
         (at = index_next(&table->index, &probe));)
        if (table->items.items[at - 1].id == id)
            return &table->items.items[at - 1];
    return NULL;
}

static bool table_add(struct pprof *p, struct table *table, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    struct known known = {.message = message};
    while (proto_next(&m, &field))
        if (field.number == ANY_ID && field.wire == WIRE_NUMBER)
            known.id = field.value;
    if (m.damaged)
        return damaged(p, message.data);
    if (!table_find(table, known.id)) {
        vector_push(&table->items, known);
        index_add(&table->index, hash_mix(known.id, 1), (uint32_t)table->items.count);
    }
    return true;
}

static void table_release(struct table *table) {
    vector_release(&table->items);
    index_release(&table->index);
}

/* Types name strings that may stand behind them: numbers first. */
struct pair {
    uint64_t type, unit;
};

static bool pair_of(struct pprof *p, struct text message, struct pair *pair) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    *pair = (struct pair){0};
    while (proto_next(&m, &field)) {
        if (field.number == VALUE_TYPE)
            pair->type = field.value;
        if (field.number == VALUE_UNIT)
            pair->unit = field.value;
    }
    return !m.damaged || damaged(p, message.data);
}

static bool read_tables(struct pprof *p) {
    struct proto m = proto_begin(p->content);
    struct proto_field field;
    VECTOR(struct pair) types = {0};
    uint64_t default_type = 0;
    bool fine = true;
    while (fine && proto_next(&m, &field)) {
        struct pair pair;
        bool is_text = field.wire == WIRE_TEXT;
        if (field.number == PROFILE_STRING && is_text)
            vector_push(&p->strings, field.text);
        else if (field.number == PROFILE_MAPPING && is_text)
            fine = table_add(p, &p->mappings, field.text);
        else if (field.number == PROFILE_LOCATION && is_text)
            fine = table_add(p, &p->locations, field.text);
        else if (field.number == PROFILE_FUNCTION && is_text)
            fine = table_add(p, &p->functions, field.text);
        else if (field.number == PROFILE_TIME && !is_text && field.value <= INT64_MAX)
            p->tree->began = field.value;
        else if (field.number == PROFILE_DURATION && !is_text && field.value <= INT64_MAX)
            p->tree->lasted = field.value;
        else if (field.number == PROFILE_DEFAULT_TYPE)
            default_type = field.value;
        else if (field.number == PROFILE_SAMPLE_TYPE && is_text &&
                 (fine = pair_of(p, field.text, &pair)))
            vector_push(&types, pair);
    }
    for (size_t i = 0; i < types.count; i++)
        vector_push(&p->types, ((struct value_type){string_of(p, types.items[i].type),
                                                    string_of(p, types.items[i].unit)}));
    p->default_type = string_of(p, default_type);
    vector_release(&types);
    return fine && (!m.damaged || damaged(p, m.at));
}

/* ---- events ---- */

/* What wick calls a unit itself. */
static struct text unit_of(struct text unit) {
    if (text_equal(unit, TEXT("nanoseconds")))
        return TEXT("ns");
    return text_equal(unit, TEXT("count")) ? TEXT("samples") : unit;
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
        vector_push(&p->counted, counted);
    }
}

/* pprof shows the type that the profile names, or else the last. */
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

static bool no_such_event(struct pprof *p, const char *name) {
    struct buffer names = {0};
    for (size_t i = 0; i < p->counted.count; i++)
        buffer_printf(&names, "%s%.*s", i ? ", " : "",
                      TEXT_ARGS(p->types.items[p->counted.items[i].weight].type));
    error_set(p->error, ERROR_USAGE, "--event %s: %s has no such event, only %.*s", name, p->path,
              TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
    return false;
}

static bool choose_events(struct pprof *p) {
    const struct filter *filter = &p->options->profile.filter;
    size_t shown = default_pair(p);
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

/* ---- locations ---- */

struct mapped {
    uint32_t object;
    uint64_t bias; /* what an address differs by from the object's own terms */
    uint8_t mode;
};

static void build_id_of(struct text hex, struct build_id *id) {
    uint64_t byte;
    if (hex.length % 2 || hex.length > 2 * BUILD_ID_MAX)
        return;
    for (size_t i = 0; i < hex.length; i += 2) {
        if (!text_hex_to_u64((struct text){hex.data + i, 2}, &byte))
            return;
        id->bytes[i / 2] = (uint8_t)byte;
    }
    id->size = (uint8_t)(hex.length / 2);
}

static struct mapped mapping_of(struct pprof *p, uint64_t id) {
    const struct known *known = id ? table_find(&p->mappings, id) : NULL;
    struct mapped mapped = {.mode = MODE_USER};
    if (!known)
        return mapped;
    struct proto m = proto_begin(known->message);
    struct proto_field field;
    struct object_identity identity = {.kind = OBJECT_NAME};
    uint64_t start = 0, offset = 0;
    while (proto_next(&m, &field)) {
        if (field.number == MAPPING_START)
            start = field.value;
        else if (field.number == MAPPING_OFFSET)
            offset = field.value;
        else if (field.number == MAPPING_FILE)
            identity.path = string_of(p, field.value);
        else if (field.number == MAPPING_BUILD_ID)
            build_id_of(string_of(p, field.value), &identity.build_id);
    }
    mapped.bias = start - offset;
    if (!identity.path.length)
        return mapped;
    if (text_equal(identity.path, TEXT("[vdso]")))
        identity.kind = OBJECT_VDSO;      /* a library to those who ask */
    object_named(p->tree, identity.path); /* gives the tree its objects */
    mapped.object = objects_add(p->tree->objects, &identity);
    mapped.mode = script_object_kinds(identity.path, false) & KIND_KERNEL ? MODE_KERNEL : MODE_USER;
    return mapped;
}

static struct frame frame_of_line(struct pprof *p, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    struct frame frame = {0};
    uint64_t function = 0;
    while (proto_next(&m, &field)) {
        if (field.number == LINE_FUNCTION)
            function = field.value;
        else if (field.number == LINE_LINE && field.value <= UINT32_MAX)
            frame.line = (uint32_t)field.value;
        else if (field.number == LINE_COLUMN && field.value <= UINT32_MAX)
            frame.column = (uint32_t)field.value;
    }
    const struct known *known = table_find(&p->functions, function);
    struct text name = TEXT(""), system = TEXT(""), file = TEXT("");
    m = proto_begin(known ? known->message : TEXT(""));
    while (proto_next(&m, &field)) {
        if (field.number == FUNCTION_NAME)
            name = string_of(p, field.value);
        else if (field.number == FUNCTION_SYSTEM_NAME)
            system = string_of(p, field.value);
        else if (field.number == FUNCTION_FILE)
            file = string_of(p, field.value);
    }
    name = name.length ? name : system;
    frame.name = name.length ? strings_add(p->tree->strings, name) : 0;
    if (p->options->profile.source_lines && file.length)
        frame.file = strings_add(p->tree->strings, file);
    else
        frame.line = frame.column = 0;
    return frame;
}

/* The lines of one location, innermost first in the file and outermost first in the tree. */
static void place_lines(struct pprof *p, struct location *location, struct text message) {
    struct proto m = proto_begin(message);
    struct proto_field field;
    size_t first = p->tree->frames.count;
    while (proto_next(&m, &field))
        if (field.number == LOCATION_LINE && field.wire == WIRE_TEXT)
            vector_push(&p->tree->frames, frame_of_line(p, field.text));
    size_t count = p->tree->frames.count - first;
    if (!count)
        return;
    struct frame *frames = &p->tree->frames.items[first];
    for (size_t i = 0; i < count / 2; i++) {
        struct frame swapped = frames[i];
        frames[i] = frames[count - 1 - i];
        frames[count - 1 - i] = swapped;
    }
    for (size_t i = 1; i < count; i++)
        frames[i].inlined = true;
    if (p->options->profile.no_inline && count > 1) {
        frames[0].file = frames[count - 1].file;
        frames[0].line = frames[count - 1].line;
        p->tree->frames.count = first + (count = 1);
    }
    location->first_frame = (uint32_t)first;
    location->frame_count = (uint32_t)count;
}

static uint32_t location_of(struct pprof *p, const struct known *known) {
    struct proto m = proto_begin(known->message);
    struct proto_field field;
    uint64_t mapping = 0, address = 0;
    while (proto_next(&m, &field)) {
        if (field.number == LOCATION_MAPPING)
            mapping = field.value;
        else if (field.number == LOCATION_ADDRESS)
            address = field.value;
    }
    struct mapped mapped = mapping_of(p, mapping);
    struct location location = {
        .object = mapped.object, .mode = mapped.mode, .address = address - mapped.bias};
    if (!address) { /* the place is known by its id alone */
        location.address = 0;
        location.raw = known->id;
    }
    size_t before = p->tree->locations.count;
    uint32_t id = tree_add_location(p->tree, &location);
    if (id == before)
        place_lines(p, &p->tree->locations.items[id], known->message);
    return id;
}

static bool push_location(struct pprof *p, uint64_t id, const void *at) {
    const struct known *known = table_find(&p->locations, id);
    if (!known)
        return error_at(p->error, p->path, (uint64_t)((const char *)at - p->content.data),
                        "a sample names location %llu, which is not there", (unsigned long long)id);
    if (!budget_take_steps(&p->frames, 1, (uint64_t)((const char *)at - p->content.data)))
        return budget_error(&p->frames, p->path, p->error);
    struct placed_location *placed = &p->placed.items[known - p->locations.items.items];
    if (!placed->done) {
        placed->done = true;
        placed->location = location_of(p, known);
    }
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
            key = string_of(p, field.value);
        else if (field.number == LABEL_STRING)
            value = string_of(p, field.value);
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
        for (uint8_t state = STATE_ON; state <= STATE_PREEMPTED; state++)
            if (text_equal(state_name(state), value))
                labels->state = state;
    } else if (key.length && !label_is_fixed(key)) {
        struct buffer text = {digits, 0, sizeof digits};
        if (!value.length) {
            buffer_add_u64(&text, number);
            value = buffer_text(&text);
        }
        labels->set = tree_set_label(p->tree, labels->set, key, value);
    }
}

/* The series of a sample's labels, one for each pair of values: found by the bytes of the labels, or made. */
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
    return fine && (!bad || damaged(p, at));
}

/* The node of a stack that is one packed field: found by its bytes, which takes no look at its frames, or made. */
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
        return damaged(p, at);
    for (size_t i = 0; i < p->types.count; i++)
        if (p->values.items[i] > INT64_MAX)
            return error_at(p->error, p->path, (uint64_t)((const char *)at - p->content.data),
                            "a sample counts less than nothing: what two profiles differ in can't "
                            "be read, only the profiles");
    size_t first = series_of_labels(p);
    for (size_t i = 0; i < p->counted.count; i++) {
        const struct counted *counted = &p->counted.items[i];
        uint64_t weight = p->values.items[counted->weight],
                 samples = counted->samples == UINT32_MAX ? 1 : p->values.items[counted->samples];
        if (p->series.items[first + i] && (weight || samples))
            tree_count(p->tree, node, p->series.items[first + i], samples, weight);
    }
    return true;
}

/* A stack is one packed field, unless it was written as nobody does: then its parts are put together. */
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
        return damaged(p, message.data);
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
    vector_release(&p->strings);
    vector_release(&p->types);
    table_release(&p->mappings);
    table_release(&p->locations);
    table_release(&p->functions);
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
    bool fine = read_tables(&p);
    pair_values(&p);
    if (fine && !p.counted.count)
        fine =
            error_set(error, ERROR_INPUT, "%s: the profile says of no value what it counts", path);
    fine = fine && choose_events(&p) && read_samples(&p);
    pprof_release(&p);
    return fine;
}

/* Whether a profile may have such a field. */
static bool is_plausible(const struct proto_field *field) {
    bool is_message = (field->number >= PROFILE_SAMPLE_TYPE && field->number <= PROFILE_STRING) ||
                      field->number == PROFILE_PERIOD_TYPE;
    bool is_either = field->number == PROFILE_COMMENT;
    return field->number > 0 && field->number <= 15 &&
           (is_either || field->wire == (is_message ? WIRE_TEXT : WIRE_NUMBER));
}

/* All fields in front must be those of a profile, and what samples count must be among them. */
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
