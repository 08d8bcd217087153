/*
 * speedscope's own JSON: frames that all profiles share, and for each thread a profile, of stacks with weights ("sampled") or of frames that
 * open and close ("evented").
 *
 * Times are nanoseconds from the beginning, where the unit is one of time. An empty stack is a gap.
 */
#include "base/json.h"
#include "import/reader.h"

#include <math.h>
#include <stdlib.h>

struct frame_on_path {
    uint32_t frame;
    uint32_t node;
};

/* A stack as the file has it. */
struct known_stack {
    struct text text;
    uint32_t node;
};

/* What passed on one stack. */
struct passed {
    uint32_t node;
    double weight;
};

struct speedscope {
    struct reader r;
    struct json json;
    struct json late; /* the profiles, where they stand before the frames */
    struct buffer key, name, file, title, unit, type;
    VECTOR(uint32_t) locations;        /* by frame */
    VECTOR(struct frame_on_path) path; /* the frames that are open */
    VECTOR(struct known_stack) known;
    struct index known_index; /* places in `known` + 1 */
    VECTOR(uint32_t) stacks;  /* nodes of a sampled profile, in order */
    VECTOR(double) weights;
    VECTOR(struct passed) passed; /* of an evented one */
    double start, last;           /* in the profile's unit */
    bool has_frames;
    bool said; /* what is wrong */
};

static bool key_is(const struct speedscope *s, struct text name) {
    return text_equal(buffer_text(&s->key), name);
}

static bool string_value(struct speedscope *s, struct buffer *value) {
    value->count = 0;
    return json_peek(&s->json) == '"' ? json_string(&s->json, value) : json_skip(&s->json);
}

/* ---- frames ---- */

static bool read_frame(struct speedscope *s) {
    double line = 0;
    bool fine = json_take(&s->json, '{');
    s->name.count = s->file.count = 0;
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("name"))   ? string_value(s, &s->name)
               : key_is(s, TEXT("file")) ? string_value(s, &s->file)
               : key_is(s, TEXT("line")) ? json_double(&s->json, &line) || json_skip(&s->json)
                                         : json_skip(&s->json);
    if (!fine)
        return false;
    s->r.stack.locations.count = 0;
    uint64_t number = double_to_u64(line);
    stack_push_frame(&s->r.stack,
                     &(struct text_frame){.name = buffer_text(&s->name),
                                          .file = buffer_text(&s->file),
                                          .line = number <= UINT32_MAX ? (uint32_t)number : 0});
    vector_push(&s->locations, s->r.stack.locations.items[0]);
    return true;
}

static bool read_shared(struct speedscope *s) {
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key)) {
        if (!key_is(s, TEXT("frames"))) {
            fine = json_skip(&s->json);
            continue;
        }
        fine = json_take(&s->json, '[');
        while (fine && json_element(&s->json) && !import_stops(s->r.options, s->json.rest.data))
            fine = read_frame(s);
    }
    s->has_frames = true;
    return fine;
}

/* ---- stacks ---- */

static uint32_t last_node(const struct speedscope *s, size_t depth) {
    return depth ? s->path.items[depth - 1].node : 0;
}

static void push_frame(struct speedscope *s, uint32_t frame) {
    uint32_t node =
        tree_add_node(s->r.tree, last_node(s, s->path.count), s->locations.items[frame]);
    vector_push(&s->path, ((struct frame_on_path){frame, node}));
}

/* [frame, frame, …] from the root on, a stack that was not there before. */
static bool add_stack(struct speedscope *s, uint32_t *node) {
    *node = 0;
    if (!json_take(&s->json, '['))
        return false;
    while (json_element(&s->json)) {
        uint32_t frame;
        if (!json_index(&s->json, &frame) || frame >= s->locations.count)
            return false;
        *node = tree_add_node(s->r.tree, *node, s->locations.items[frame]);
    }
    return true;
}

/* Most stacks come again and again, in the same bytes. */
static bool read_stack(struct speedscope *s) {
    struct known_stack stack = {.text = s->json.rest};
    size_t length = text_find(stack.text, ']');
    uint32_t at;
    if (length == SIZE_MAX)
        return false;
    stack.text = text_upto(stack.text, length + 1);
    uint64_t hash = hash_bytes(stack.text.data, stack.text.length);
    for (struct probe p = index_probe(&s->known_index, hash);
         (at = index_next(&s->known_index, &p));) {
        if (text_equal(s->known.items[at - 1].text, stack.text)) {
            s->json.rest = text_from(s->json.rest, length + 1);
            vector_push(&s->stacks, s->known.items[at - 1].node);
            return true;
        }
    }
    if (!add_stack(s, &stack.node))
        return false;
    vector_push(&s->known, stack);
    index_add(&s->known_index, hash, (uint32_t)s->known.count);
    vector_push(&s->stacks, stack.node);
    return true;
}

static bool read_stacks(struct speedscope *s) {
    bool fine = json_take(&s->json, '[');
    while (fine && json_element(&s->json) && !import_stops(s->r.options, s->json.rest.data))
        fine = read_stack(s);
    return fine;
}

static bool read_weights(struct speedscope *s) {
    bool fine = json_take(&s->json, '[');
    double weight;
    while (fine && json_element(&s->json)) {
        fine = json_double(&s->json, &weight);
        if (fine)
            vector_push(&s->weights, weight);
    }
    return fine;
}

/* ---- events ---- */

static bool take_event(struct speedscope *s, char type, uint32_t frame, double at) {
    if (frame >= s->locations.count || at < s->last)
        return false;
    if (at > s->last)
        vector_push(&s->passed, ((struct passed){last_node(s, s->path.count), at - s->last}));
    s->last = at;
    if (type == 'O')
        push_frame(s, frame);
    else if (type == 'C' && s->path.count && s->path.items[s->path.count - 1].frame == frame)
        s->path.count--;
    else
        return false;
    return true;
}

static bool read_event(struct speedscope *s, bool first) {
    uint32_t frame = UINT32_MAX;
    double at = 0;
    bool fine = json_take(&s->json, '{');
    s->type.count = 0;
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("type"))    ? string_value(s, &s->type)
               : key_is(s, TEXT("frame")) ? json_index(&s->json, &frame)
               : key_is(s, TEXT("at"))    ? json_double(&s->json, &at)
                                          : json_skip(&s->json);
    if (first)
        s->start = s->last = at;
    return fine && s->type.count == 1 && take_event(s, s->type.items[0], frame, at);
}

static bool read_events(struct speedscope *s) {
    bool fine = json_take(&s->json, '[');
    for (bool first = true;
         fine && json_element(&s->json) && !import_stops(s->r.options, s->json.rest.data);
         first = false)
        fine = read_event(s, first);
    return fine;
}

/* ---- profiles ---- */

/* What one of the unit is in nanoseconds; 0 where it is none of time. */
static double nanoseconds_of(struct text unit) {
    return text_equal(unit, TEXT("nanoseconds"))    ? 1
           : text_equal(unit, TEXT("microseconds")) ? 1e3
           : text_equal(unit, TEXT("milliseconds")) ? 1e6
           : text_equal(unit, TEXT("seconds"))      ? 1e9
                                                    : 0;
}

static void choose_series(struct speedscope *s) {
    struct text unit = buffer_text(&s->unit), name = buffer_text(&s->name);
    bool is_time = nanoseconds_of(unit) > 0;
    struct text event = is_time                           ? TEXT("time")
                        : text_equal(unit, TEXT("bytes")) ? TEXT("bytes")
                                                          : TEXT("samples");
    struct text measured = is_time ? TEXT("ns") : event;
    struct track_name track;
    if (track_name_parse(name, &track) && track.event.length)
        event = track.event;
    stack_set_event(&s->r.stack, event, measured);
    /* A profile that is called as the file says nothing of a thread. */
    bool is_title = text_equal(name, buffer_text(&s->title));
    stack_set_track(&s->r.stack, is_title ? TEXT("") : name);
}

/* The stacks' and the events' alike. Numbers without a unit count samples. A sample is taken when its time is over, as perf does. Time without
   a stack is a gap between two; of anything else it is a stack without frames. */
static void count_all(struct speedscope *s) {
    double unit = nanoseconds_of(buffer_text(&s->unit)), scale = unit > 0 ? unit : 1;
    bool is_count = !unit && !text_equal(buffer_text(&s->unit), TEXT("bytes"));
    double now = s->start * scale;
    for (size_t i = 0; i < s->passed.count; i++) {
        const struct passed *passed = &s->passed.items[i];
        double length = passed->weight > 0 ? passed->weight * scale : 0;
        uint64_t weight = double_to_u64(round(length));
        uint64_t time = double_to_u64(round(i ? now + length : now));
        bool is_gap = !passed->node && (unit > 0 || s->path.count || !s->stacks.count);
        if (!is_gap && (weight || !is_count))
            stack_count_at(&s->r.stack, passed->node, is_count ? weight : 1, weight,
                           unit > 0 ? time + !time : 0);
        now += length;
    }
}

static bool profile_member(struct speedscope *s) {
    if (key_is(s, TEXT("name")))
        return string_value(s, &s->name);
    if (key_is(s, TEXT("unit")))
        return string_value(s, &s->unit);
    if (key_is(s, TEXT("startValue")))
        return json_double(&s->json, &s->start) || json_skip(&s->json);
    if (key_is(s, TEXT("samples")))
        return read_stacks(s);
    if (key_is(s, TEXT("weights")))
        return read_weights(s);
    if (key_is(s, TEXT("events")))
        return read_events(s);
    return json_skip(&s->json);
}

static bool read_profile(struct speedscope *s) {
    bool fine = json_take(&s->json, '{');
    s->path.count = s->stacks.count = s->weights.count = s->passed.count = 0;
    s->start = s->last = 0;
    s->unit.count = s->name.count = 0;
    while (fine && json_member(&s->json, &s->key))
        fine = profile_member(s);
    if (!fine)
        return false;
    s->said = s->stacks.count != s->weights.count;
    if (s->said)
        return error_at(s->r.error, s->r.path, (uint64_t)(s->json.rest.data - s->r.content.data),
                        "the profile before this has %zu samples and %zu weights", s->stacks.count,
                        s->weights.count);
    for (size_t i = 0; i < s->stacks.count; i++)
        vector_push(&s->passed, ((struct passed){s->stacks.items[i], s->weights.items[i]}));
    choose_series(s);
    count_all(s);
    return true;
}

static bool read_profiles(struct speedscope *s) {
    bool fine = json_take(&s->json, '[');
    while (fine && json_element(&s->json) && !import_stops(s->r.options, s->json.rest.data))
        fine = read_profile(s);
    return fine;
}

static bool read_document(struct speedscope *s) {
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key)) {
        if (key_is(s, TEXT("shared"))) {
            fine = read_shared(s);
        } else if (key_is(s, TEXT("name"))) {
            fine = string_value(s, &s->title);
        } else if (key_is(s, TEXT("profiles")) && s->has_frames) {
            fine = read_profiles(s);
        } else {
            if (key_is(s, TEXT("profiles")))
                s->late = s->json;
            fine = json_skip(&s->json);
        }
    }
    if (!fine || !s->late.rest.length)
        return fine;
    s->json = s->late;
    return read_profiles(s);
}

static bool speedscope_read(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct speedscope s = {.json = {content}};
    reader_init(&s.r, content, path, options, tree, TEXT(""), error);
    bool fine = read_document(&s);
    if (!fine && !s.said)
        error_at(error, path, (uint64_t)(s.json.rest.data - content.data),
                 "not a speedscope profile as its schema has it");
    buffer_release(&s.key);
    buffer_release(&s.name);
    buffer_release(&s.file);
    buffer_release(&s.title);
    buffer_release(&s.unit);
    buffer_release(&s.type);
    vector_release(&s.locations);
    vector_release(&s.path);
    vector_release(&s.known);
    index_release(&s.known_index);
    vector_release(&s.stacks);
    vector_release(&s.weights);
    vector_release(&s.passed);
    reader_release(&s.r);
    return fine;
}

static int speedscope_score(struct text beginning) {
    struct json json = {beginning};
    if (json_peek(&json) != '{')
        return 0;
    bool schema = text_search(beginning, TEXT("speedscope.app/file-format-schema")) != SIZE_MAX;
    bool frames = text_search(beginning, TEXT("\"shared\"")) != SIZE_MAX &&
                  text_search(beginning, TEXT("\"frames\"")) != SIZE_MAX;
    return schema ? 98 : frames ? 60 : 0;
}

const struct import_format format_speedscope = {"speedscope", "speedscope's JSON, plain or gzip",
                                                speedscope_score, speedscope_read, TELLS_TIMES};
