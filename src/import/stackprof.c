/*
 * stackprof's JSON (`stackprof --json`, or the file named by `out:`): Ruby frames by id, and stacks as one array of numbers:
 *
 *     "raw": [HEIGHT, ID of the root, …, ID of the leaf, SAMPLES, HEIGHT, …]
 *
 * The weight of a sample depends on the mode: the interval (cpu), the time since the previous sample (wall), or 1 (object). The file has stacks
 * only if the program set `raw: true`; otherwise it has sums of functions, which wick does not read.
 */
#include "base/json.h"
#include "import/reader.h"

#include <stdlib.h>

struct ruby_frame {
    uint64_t id;
    uint32_t location;
};

struct stackprof {
    struct reader r;
    struct json json;
    struct buffer key, name, file, mode;
    VECTOR(struct ruby_frame) frames;
    struct index by_id; /* indexes of frames + 1 */
    VECTOR(uint64_t) raw;
    VECTOR(uint64_t) deltas; /* microseconds */
    double interval;
};

static bool key_is(const struct stackprof *s, struct text name) {
    return text_equal(buffer_text(&s->key), name);
}

/* ---- frames ---- */

static uint32_t find_frame(const struct stackprof *s, uint64_t id) {
    uint32_t at;
    for (struct probe probe = index_probe(&s->by_id, hash_mix(id, 1));
         (at = index_next(&s->by_id, &probe));)
        if (s->frames.items[at - 1].id == id)
            return at;
    return 0;
}

static void keep_frame(struct stackprof *s, uint64_t id, uint32_t line) {
    struct text name = buffer_text(&s->name);
    bool in_file = s->file.count && s->file.items[0] != '<';
    s->r.stack.locations.count = 0;
    stack_push_frame(&s->r.stack,
                     &(struct text_frame){.name = name.length ? name : TEXT("(unknown)"),
                                          .file = in_file ? buffer_text(&s->file) : TEXT(""),
                                          .first_line = in_file ? line : 0,
                                          .language = in_file ? TEXT("ruby") : TEXT("")});
    struct ruby_frame frame = {id, s->r.stack.locations.items[--s->r.stack.locations.count]};
    if (find_frame(s, id))
        return;
    vector_push(&s->frames, frame);
    index_add(&s->by_id, hash_mix(id, 1), (uint32_t)s->frames.count);
}

static bool read_frame(struct stackprof *s, uint64_t id) {
    uint32_t line = 0;
    s->name.count = s->file.count = 0;
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key))
        fine = key_is(s, TEXT("name"))   ? json_text(&s->json, &s->name)
               : key_is(s, TEXT("file")) ? json_text(&s->json, &s->file)
               : key_is(s, TEXT("line")) ? json_index(&s->json, &line) || json_skip(&s->json)
                                         : json_skip(&s->json);
    if (fine)
        keep_frame(s, id, line);
    return fine;
}

static bool read_frames(struct stackprof *s) {
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key) &&
           !import_stops(s->r.options, s->json.rest.data)) {
        uint64_t id;
        fine = text_to_u64(buffer_text(&s->key), &id) && read_frame(s, id);
    }
    return fine;
}

/* ---- the document ---- */

/* Read a 64-bit integer. A negative number, which the time between two samples may be, becomes 0. */
static bool read_number(struct stackprof *s, uint64_t *number) {
    struct text digits;
    double value;
    if (!json_number(&s->json, &digits))
        return false;
    if (!text_to_u64(digits, number))
        *number = text_to_double(digits, &value) && value > 0 ? double_to_u64(value) : 0;
    return true;
}

static bool read_numbers(struct stackprof *s, bool raw) {
    bool fine = json_take(&s->json, '[');
    uint64_t number;
    while (fine && json_element(&s->json) && !import_stops(s->r.options, s->json.rest.data)) {
        fine = read_number(s, &number);
        if (fine && raw)
            vector_push(&s->raw, number);
        else if (fine)
            vector_push(&s->deltas, number);
    }
    return fine;
}

static bool document_member(struct stackprof *s) {
    char next = json_peek(&s->json);
    if (key_is(s, TEXT("mode")))
        return json_text(&s->json, &s->mode);
    if (key_is(s, TEXT("interval")))
        return json_double(&s->json, &s->interval) || json_skip(&s->json);
    if (key_is(s, TEXT("frames")) && next == '{')
        return read_frames(s);
    if (key_is(s, TEXT("raw")) && next == '[')
        return read_numbers(s, true);
    if (key_is(s, TEXT("raw_timestamp_deltas")) && next == '[')
        return read_numbers(s, false);
    return json_skip(&s->json);
}

static bool read_document(struct stackprof *s) {
    bool fine = json_take(&s->json, '{');
    while (fine && json_member(&s->json, &s->key))
        fine = document_member(s);
    return fine ||
           error_at(
               s->r.error, s->r.path, (uint64_t)(s->json.rest.data - s->r.content.data),
               "not a stackprof profile in JSON; `stackprof --stackcollapse` writes folded text");
}

/* ---- stacks ---- */

/* Push the stack that begins at `at`, root first. Fail if the numbers are not a stack. */
static bool push_stack(struct stackprof *s, size_t at) {
    uint64_t height = s->raw.items[at];
    if (height >= s->raw.count - at - 1)
        return error_set(s->r.error, ERROR_INPUT,
                         "%s: \"raw\" ends inside a stack: entry %zu says %llu frames follow",
                         s->r.path, at, (unsigned long long)height);
    s->r.stack.locations.count = 0;
    for (size_t i = at + 1; i <= at + height; i++) {
        uint32_t frame = find_frame(s, s->raw.items[i]);
        if (!frame)
            return error_set(s->r.error, ERROR_INPUT,
                             "%s: entry %zu of \"raw\" refers to frame %llu, which does not exist",
                             s->r.path, i, (unsigned long long)s->raw.items[i]);
        vector_push(&s->r.stack.locations, s->frames.items[frame - 1].location);
    }
    return true;
}

enum stackprof_mode { MODE_INTERVALS, MODE_TIMES, MODE_COUNTS };

static enum stackprof_mode mode_of(const struct stackprof *s) {
    struct text mode = buffer_text(&s->mode);
    return text_equal(mode, TEXT("cpu"))                       ? MODE_INTERVALS
           : text_equal(mode, TEXT("wall")) && s->deltas.count ? MODE_TIMES
           : text_equal(mode, TEXT("wall")) && s->interval > 0 ? MODE_INTERVALS
                                                               : MODE_COUNTS;
}

/* Return the weight of `samples` samples, of which the first is number `first` in the file. */
static uint64_t weight_of(const struct stackprof *s, enum stackprof_mode mode, uint64_t first,
                          uint64_t samples) {
    if (mode == MODE_COUNTS)
        return samples;
    if (mode == MODE_INTERVALS)
        return double_to_u64((double)samples * s->interval * 1000);
    uint64_t sum = 0;
    for (uint64_t i = first; i < saturating_add(first, samples) && i < s->deltas.count; i++)
        sum = saturating_add(sum, s->deltas.items[i]);
    return double_to_u64((double)sum * 1000);
}

static bool count_stacks(struct stackprof *s) {
    enum stackprof_mode mode = mode_of(s);
    uint64_t seen = 0;
    stack_set_event(&s->r.stack, s->mode.count ? buffer_text(&s->mode) : TEXT("samples"),
                    mode == MODE_COUNTS ? TEXT("samples") : TEXT("ns"));
    for (size_t at = 0; at < s->raw.count && !import_stops(s->r.options, s->json.rest.data);) {
        if (!push_stack(s, at))
            return false;
        at += (size_t)s->raw.items[at] + 1;
        uint64_t samples = s->raw.items[at++];
        stack_count(&s->r.stack, samples, weight_of(s, mode, seen, samples));
        seen = saturating_add(seen, samples);
    }
    return s->raw.count > 0 ||
           error_set(s->r.error, ERROR_INPUT,
                     "%s: contains sums of functions but no stacks; record with `raw: true`",
                     s->r.path);
}

static bool stackprof_read(struct text content, const char *path,
                           const struct import_options *options, struct tree *tree,
                           struct error *error) {
    struct stackprof s = {.json = {content}};
    reader_init(&s.r, content, path, options, tree, TEXT(""), error);
    bool fine = read_document(&s) && count_stacks(&s);
    if (fine)
        reader_warn_cut(&s.r);
    buffer_release(&s.key);
    buffer_release(&s.name);
    buffer_release(&s.file);
    buffer_release(&s.mode);
    vector_release(&s.frames);
    vector_release(&s.raw);
    vector_release(&s.deltas);
    index_release(&s.by_id);
    reader_release(&s.r);
    return fine;
}

static int stackprof_score(struct text beginning) {
    struct json json = {beginning};
    return json_peek(&json) == '{' && text_search(beginning, TEXT("\"gc_samples\"")) != SIZE_MAX &&
                   text_search(beginning, TEXT("\"mode\"")) != SIZE_MAX &&
                   text_search(beginning, TEXT("\"frames\"")) != SIZE_MAX
               ? 96
               : 0;
}

const struct import_format format_stackprof = {"stackprof", "stackprof's JSON", stackprof_score,
                                               stackprof_read};
