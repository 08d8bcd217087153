/*
 * The JSON of valgrind's DHAT, and of Rust's dhat library: program points ("pps"), each with its stack, leaf first,
 * as indexes into a table of frames ("ftbl") that comes later.
 *
 *     {"dhatFileVersion":2, "mode":"heap", …, "pps":[{"tb":50000,"tbk":50, "gb":…,"gbk":…, "eb":…,"ebk":…, "fs":[1,2,3]}],
 *      "ftbl":["[root]","0x48417B4: malloc (in /usr/lib/x.so)", …]}
 *
 * A point has the bytes and blocks that were allocated in total (t), that were in use at the peak of the whole
 * program (g), and at its end (e). The modes "copy" and "ad-hoc" have only t. wick counts t, like DHAT's viewer,
 * unless --event names another.
 */
#include "base/json.h"
#include "import/valgrind.h"

#include <stdlib.h>

enum { ALLOCATED, AT_PEAK, AT_END, VALUES };
static const struct {
    const char *event, *bytes, *blocks;
} values[VALUES] = {
    {"alloc_space", "tb", "tbk"},
    {"peak_space", "gb", "gbk"},
    {"inuse_space", "eb", "ebk"},
};

struct point {
    size_t first, depth; /* of `frames` */
    double bytes[VALUES], blocks[VALUES];
};

struct dhat {
    struct reader r;
    struct json json;
    struct buffer key, text;
    VECTOR(struct point) points;
    VECTOR(uint32_t) frames;
    VECTOR(uint32_t) locations; /* by index in the table */
    bool wanted[VALUES];
};

static bool key_is(const struct dhat *d, const char *name) {
    return text_equal(buffer_text(&d->key), text_of(name));
}

static bool read_stack(struct dhat *d, struct point *point) {
    uint32_t frame;
    bool fine = json_take(&d->json, '[');
    point->first = d->frames.count;
    while (fine && json_element(&d->json)) {
        fine = json_index(&d->json, &frame);
        if (fine)
            vector_push(&d->frames, frame);
    }
    point->depth = d->frames.count - point->first;
    return fine;
}

static double *value_of(struct dhat *d, struct point *point) {
    for (size_t i = 0; i < VALUES; i++)
        if (key_is(d, values[i].bytes) || key_is(d, values[i].blocks))
            return key_is(d, values[i].bytes) ? &point->bytes[i] : &point->blocks[i];
    return NULL;
}

static bool read_point(struct dhat *d) {
    struct point point = {0};
    bool fine = json_take(&d->json, '{');
    while (fine && json_member(&d->json, &d->key)) {
        double *value = value_of(d, &point);
        fine = key_is(d, "fs") ? read_stack(d, &point)
               : value         ? json_double(&d->json, value)
                               : json_skip(&d->json);
    }
    if (fine)
        vector_push(&d->points, point);
    return fine;
}

static bool read_frame(struct dhat *d) {
    struct stack *stack = &d->r.stack;
    if (!json_text(&d->json, &d->text))
        return false;
    struct text_frame frame = valgrind_frame_parse(buffer_text(&d->text));
    stack->locations.count = 0;
    stack_push_frame(stack, &frame);
    vector_push(&d->locations, stack->locations.items[--stack->locations.count]);
    return true;
}

static bool read_list(struct dhat *d, bool (*read)(struct dhat *)) {
    bool fine = json_take(&d->json, '[');
    while (fine && json_element(&d->json) && !import_stops(d->r.options, d->json.rest.data))
        fine = read(d);
    return fine;
}

/* Modes that do not count bytes of the heap have no unit. */
static bool read_document(struct dhat *d, bool *heap) {
    bool fine = json_take(&d->json, '{');
    while (fine && json_member(&d->json, &d->key)) {
        if (key_is(d, "pps")) {
            fine = read_list(d, read_point);
        } else if (key_is(d, "ftbl")) {
            fine = read_list(d, read_frame);
        } else if (key_is(d, "mode")) {
            fine = json_text(&d->json, &d->text);
            *heap = !text_equal(buffer_text(&d->text), TEXT("ad-hoc"));
        } else {
            fine = json_skip(&d->json);
        }
    }
    return fine;
}

static bool choose_events(struct dhat *d) {
    const struct filter *filter = &d->r.options->profile.filter;
    bool any = false;
    for (size_t i = 0; i < VALUES; i++) {
        struct text name = text_of(values[i].event);
        d->wanted[i] = filter->event_count ? filter_event(filter, name) : i == ALLOCATED;
        any |= d->wanted[i];
    }
    return any || error_set(d->r.error, ERROR_USAGE,
                            "--event %s: %s has no such event, only alloc_space, peak_space, "
                            "inuse_space",
                            filter->events[0], d->r.path);
}

static bool count_point(struct dhat *d, const struct point *point, size_t value) {
    struct stack *stack = &d->r.stack;
    uint64_t bytes = double_to_u64(point->bytes[value]);
    stack->locations.count = 0;
    for (size_t i = point->depth; i-- > 0;) {
        uint32_t frame = d->frames.items[point->first + i];
        if (frame >= d->locations.count)
            return error_set(d->r.error, ERROR_INPUT, "%s: there is no frame %u", d->r.path, frame);
        vector_push(&stack->locations, d->locations.items[frame]);
    }
    if (bytes)
        stack_count(stack, double_to_u64(point->blocks[value]), bytes);
    stack->locations.count = 0;
    return true;
}

static bool count_all(struct dhat *d, bool heap) {
    for (size_t value = 0; value < VALUES; value++) {
        if (!d->wanted[value])
            continue;
        stack_set_event(&d->r.stack, text_of(values[value].event),
                        heap ? TEXT("bytes") : TEXT("events"));
        for (size_t i = 0; i < d->points.count; i++)
            if (!count_point(d, &d->points.items[i], value))
                return false;
    }
    return true;
}

static bool dhat_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    struct dhat d = {.json = {content}};
    bool heap = true;
    reader_init(&d.r, content, path, options, tree, TEXT(""), error);
    bool fine = choose_events(&d) &&
                (read_document(&d, &heap) ||
                 error_at(error, path, (uint64_t)(d.json.rest.data - content.data),
                          "not a file of valgrind's DHAT")) &&
                count_all(&d, heap);
    if (fine)
        reader_warn_cut(&d.r);
    buffer_release(&d.key);
    buffer_release(&d.text);
    vector_release(&d.points);
    vector_release(&d.frames);
    vector_release(&d.locations);
    reader_release(&d.r);
    return fine;
}

static int dhat_score(struct text beginning) {
    struct json json = {beginning};
    return json_peek(&json) == '{' &&
                   text_search(beginning, TEXT("\"dhatFileVersion\"")) != SIZE_MAX
               ? 98
               : 0;
}

const struct import_format format_dhat = {"dhat", "valgrind's DHAT and Rust's dhat, JSON",
                                          dhat_score, dhat_read, TELLS_EVENTS};
