/*
 * speedscope's own JSON: frames that all profiles share, and for each thread a profile, either of stacks with weights
 * ("sampled") or of frames that open and close ("evented").
 *
 * Times are nanoseconds from the start if the unit is a time. An empty stack is a gap.
 *
 * A file may measure several things, each in profiles of its own: memray's has bytes and numbers of allocations.
 * Those can't be added up, so only profiles that measure the same as the first count, or those that --event names.
 */
#include "base/json.h"
#include "import/reader.h"

#include <math.h>
#include <stdlib.h>

struct frame_on_path {
    uint32_t frame;
    uint32_t node;
};

/* A frame of the stack that was placed last: where it ends in the stack's text, and its node. */
struct placed_frame {
    size_t end;
    uint32_t node;
};

/* A stack as text of the file. */
struct known_stack {
    struct text text;
    uint32_t node;
};

/* The weight of one stack. */
struct passed {
    uint32_t node;
    double weight;
};

struct speedscope {
    struct reader r;
    struct json json;
    struct json late; /* the profiles, if they precede the frames */
    struct buffer key, name, file, title, unit, type;
    struct buffer other;                /* an event that was skipped */
    VECTOR(uint32_t) locations;         /* by frame */
    VECTOR(struct frame_on_path) path;  /* frames that are open */
    struct text placed_text;            /* the stack that was placed last */
    VECTOR(struct placed_frame) placed; /* its frames, root first */
    VECTOR(struct known_stack) known;
    struct index known_index; /* indexes in `known` + 1 */
    VECTOR(uint32_t) stacks;  /* nodes of a sampled profile, in order */
    VECTOR(double) weights;
    VECTOR(struct passed) passed; /* of an evented profile */
    double start, last;           /* in the profile's unit */
    struct text measured;         /* unit of the first profile; empty: none yet */
    uint64_t left_out;            /* profiles */
    bool has_frames;
    bool has_counted; /* a profile was selected */
    bool said;        /* description of the problem */
};

static bool key_is(const struct speedscope *s, struct text name) {
    return text_equal(buffer_text(&s->key), name);
}

/* ---- frames ---- */

static bool read_frame(struct speedscope *s) {
    double line = 0;
    bool fine = json_take(&s->json, '{');
    s->name.count = s->file.count = 0;
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("name"))   ? json_text(&s->json, &s->name)
               : key_is(s, TEXT("file")) ? json_text(&s->json, &s->file)
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

static size_t common_length(struct text a, struct text b) {
    size_t most = a.length < b.length ? a.length : b.length, at = 0;
    while (at + 8 <= most && load_u64(a.data + at) == load_u64(b.data + at))
        at += 8;
    while (at < most && a.data[at] == b.data[at])
        at++;
    return at;
}

/* Read [frame, frame, …], root first: a stack that was not seen before. Samples are in order of time, so it usually
   begins like the stack before it: frames that have the same text are not looked up again. */
static bool add_stack(struct speedscope *s, struct text text, uint32_t *node) {
    size_t same = common_length(text, s->placed_text);
    while (s->placed.count && s->placed.items[s->placed.count - 1].end >= same)
        s->placed.count--;
    bool resumes = s->placed.count > 0;
    struct json json = {text_from(text, resumes ? s->placed.items[s->placed.count - 1].end : 0)};
    *node = resumes ? s->placed.items[s->placed.count - 1].node : 0;
    s->placed_text = text;
    bool fine = resumes || json_take(&json, '[');
    while (fine && json_element(&json)) {
        uint32_t frame;
        fine = json_index(&json, &frame) && frame < s->locations.count;
        if (!fine)
            break;
        *node = tree_add_node(s->r.tree, *node, s->locations.items[frame]);
        size_t end = (size_t)(json.rest.data - text.data);
        vector_push(&s->placed, ((struct placed_frame){end, *node}));
    }
    s->json.rest = text_from(s->json.rest, (size_t)(json.rest.data - s->json.rest.data));
    return fine;
}

/* Most stacks occur many times, with the same bytes. */
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
    if (!add_stack(s, stack.text, &stack.node))
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

/* Like speedscope itself, refuse events that are not in order. */
static bool disordered(struct speedscope *s, const char *what) {
    s->said = true;
    return error_at(s->r.error, s->r.path, (uint64_t)(s->json.rest.data - s->r.content.data),
                    "%s; the program that wrote the file should close frames innermost first",
                    what);
}

static bool take_event(struct speedscope *s, char type, uint32_t frame, double at) {
    if (frame >= s->locations.count)
        return false;
    if (at < s->last)
        return disordered(s, "the event before this is earlier than the one before it");
    if (at > s->last)
        vector_push(&s->passed, ((struct passed){last_node(s, s->path.count), at - s->last}));
    s->last = at;
    if (type == 'O')
        push_frame(s, frame);
    else if (type == 'C' && s->path.count && s->path.items[s->path.count - 1].frame == frame)
        s->path.count--;
    else
        return type == 'C' &&
               disordered(s, "the event before this closes a frame that is not the innermost");
    return true;
}

/* Skip WORD, a literal, if it is next; white space before it, too. */
#define take_word(json, word) take_bytes(json, "" word, sizeof(word) - 1)
static inline __attribute__((always_inline)) bool take_bytes(struct json *json, const char *word,
                                                             size_t length) {
    json_peek(json);
    if (json->rest.length < length || memcmp(json->rest.data, word, length) != 0)
        return false;
    json->rest = text_from(json->rest, length);
    return true;
}

#define take_name(json, name)                                                                      \
    (take_word(json, "\"" name "\":") || (take_word(json, "\"" name "\"") && take_word(json, ":")))

/* Fast path for the order of members that speedscope and most others write, {"type":"O","frame":12,"at":3.5}, with
   or without white space. Return false and read nothing for any other form. */
static bool read_usual_event(struct speedscope *s, char *type, uint32_t *frame, double *at) {
    struct json json = s->json;
    if (!take_word(&json, "{") || !take_name(&json, "type") || !take_word(&json, "\"") ||
        json.rest.length < 2 || json.rest.data[1] != '"')
        return false;
    *type = json.rest.data[0];
    json.rest = text_from(json.rest, 2);
    if (!take_word(&json, ",") || !take_name(&json, "frame") || !json_index(&json, frame) ||
        !take_word(&json, ",") || !take_name(&json, "at") || !json_double(&json, at) ||
        !take_word(&json, "}"))
        return false;
    s->json = json;
    return true;
}

static bool read_event(struct speedscope *s, bool first) {
    uint32_t frame = UINT32_MAX;
    double at = 0;
    char type = 0;
    if (read_usual_event(s, &type, &frame, &at)) {
        if (first)
            s->start = s->last = at;
        return take_event(s, type, frame, at);
    }
    bool fine = json_take(&s->json, '{');
    s->type.count = 0;
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("type"))    ? json_text(&s->json, &s->type)
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
    if (fine && s->path.count && !import_stops(s->r.options, s->json.rest.data))
        return disordered(s, "the events before this leave a frame open");
    return fine;
}

/* ---- profiles ---- */

/* Return false if the profile is not selected. */
static bool choose_series(struct speedscope *s) {
    struct text unit = buffer_text(&s->unit), name = buffer_text(&s->name);
    bool is_time = (double)unit_nanoseconds(unit) > 0;
    struct text event = is_time                           ? TEXT("time")
                        : text_equal(unit, TEXT("bytes")) ? TEXT("bytes")
                                                          : TEXT("samples");
    struct text measured = is_time ? TEXT("ns") : event;
    struct track_name track;
    const struct filter *filter = &s->r.options->profile.filter;
    if (track_name_parse(name, &track) && track.event.length)
        event = track.event;
    if (!s->measured.length)
        s->measured = measured;
    if (filter->event_count ? !filter_event(filter, event) : !text_equal(s->measured, measured)) {
        s->other.count = 0;
        buffer_add(&s->other, event);
        return false;
    }
    stack_set_event(&s->r.stack, event, measured);
    /* A profile that has the file's name does not name a thread. */
    bool is_title = text_equal(name, buffer_text(&s->title));
    stack_set_track(&s->r.stack, is_title ? TEXT("") : name);
    return true;
}

/* Count the stacks and the events alike. Numbers without a unit count samples. A sample's timestamp is its end, as
   for perf. Time without a stack is a gap; any other weight without a stack is a stack without frames. */
static void count_all(struct speedscope *s) {
    double unit = (double)unit_nanoseconds(buffer_text(&s->unit)), scale = unit > 0 ? unit : 1;
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
        return json_text(&s->json, &s->name);
    if (key_is(s, TEXT("unit")))
        return json_text(&s->json, &s->unit);
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
                        "the profile that ends here has %zu samples but %zu weights",
                        s->stacks.count, s->weights.count);
    for (size_t i = 0; i < s->stacks.count; i++)
        vector_push(&s->passed, ((struct passed){s->stacks.items[i], s->weights.items[i]}));
    if (choose_series(s)) {
        s->has_counted = true;
        count_all(s);
    } else {
        s->left_out++;
    }
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
            fine = json_text(&s->json, &s->title);
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

static const struct note_kind note_others = {
    "other-events", "# profile{ measures|s measure} something else and {was|were} left out"};

/* Report what was skipped, unless --event skipped it; a selected event that does not exist is an error. */
static bool tell_of_others(struct speedscope *s) {
    const struct filter *filter = &s->r.options->profile.filter;
    if (s->left_out && !filter->event_count)
        notes_add(&s->r.tree->notes, &note_others, s->left_out, 0, "%s: --event %.*s shows it",
                  s->r.path, TEXT_ARGS(buffer_text(&s->other)));
    s->said = filter->event_count && !s->has_counted;
    return !s->said || !s->left_out ||
           error_set(s->r.error, ERROR_USAGE, "--event %s: %s has no such event, but %.*s",
                     filter->events[0], s->r.path, TEXT_ARGS(buffer_text(&s->other)));
}

static bool speedscope_read(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct speedscope s = {.json = {content}};
    reader_init(&s.r, content, path, options, tree, TEXT(""), error);
    bool fine = read_document(&s) && tell_of_others(&s);
    if (fine)
        reader_warn_cut(&s.r);
    else if (!s.said)
        error_at(error, path, (uint64_t)(s.json.rest.data - content.data),
                 "not a speedscope profile according to its schema");
    buffer_release(&s.key);
    buffer_release(&s.name);
    buffer_release(&s.file);
    buffer_release(&s.title);
    buffer_release(&s.unit);
    buffer_release(&s.type);
    buffer_release(&s.other);
    vector_release(&s.locations);
    vector_release(&s.path);
    vector_release(&s.placed);
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
                                                speedscope_score, speedscope_read,
                                                TELLS_EVENTS | TELLS_TIMES};
