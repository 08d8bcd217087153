/*
 * `go tool pprof -raw`: a table of samples, each with the ids of its locations, leaf first, followed by a table of
 * locations. A location has a line for each function inlined there, innermost first.
 */
#include "import/reader.h"

#include <stdlib.h>

struct go_location {
    uint64_t id;
    uint32_t first; /* of names */
    uint32_t count;
};

/* Stacks grow when a location is replaced by the functions inlined there; in no real program by more than this. */
static const struct budget_limits frame_limits = {.steps = 1 << 16, .steps_per_byte = 4};

struct go {
    struct reader r;
    struct budget frames;
    VECTOR(struct go_location) locations;
    VECTOR(uint32_t) names; /* tree locations, leaf first */
    struct index index;
};

static struct text word(struct text *rest) {
    *rest = text_trim(*rest);
    size_t end = 0;
    while (end < rest->length && rest->data[end] != ' ' && rest->data[end] != '\t')
        end++;
    struct text first = text_upto(*rest, end);
    *rest = text_from(*rest, end);
    return first;
}

/* Parse "name file:line s=start". Names in other languages may contain spaces, so the name is what remains in front. */
static struct text_frame function_frame(struct text rest) {
    struct text_frame frame = {0};
    uint64_t start;
    rest = text_trim(rest);
    size_t space = text_find_last(rest, ' ');
    if (space != SIZE_MAX && text_starts(text_from(rest, space + 1), TEXT("s="))) {
        if (text_to_u64(text_from(rest, space + 3), &start) && start <= UINT32_MAX)
            frame.first_line = (uint32_t)start;
        rest = text_trim(text_upto(rest, space));
    }
    space = text_find_last(rest, ' ');
    if (space != SIZE_MAX && text_find(text_from(rest, space + 1), ':') != SIZE_MAX) {
        text_to_source(text_from(rest, space + 1), &frame.file, &frame.line);
        rest = text_trim(text_upto(rest, space));
    }
    frame.name = rest;
    return frame;
}

static void add_frame(struct go *g, struct text rest) {
    struct text_frame frame = function_frame(rest);
    if (!frame.name.length || !g->locations.count)
        return;
    g->r.stack.locations.count = 0;
    stack_push_frame(&g->r.stack, &frame);
    vector_push(&g->names, g->r.stack.locations.items[0]);
    g->locations.items[g->locations.count - 1].count++;
}

static struct go_location *find_location(const struct go *g, uint64_t id) {
    uint32_t at;
    for (struct probe p = index_probe(&g->index, hash_mix(id, 2));
         (at = index_next(&g->index, &p));)
        if (g->locations.items[at - 1].id == id)
            return &g->locations.items[at - 1];
    return NULL;
}

/* Parse "     3: 0x4a3b2c M=1 runtime.foo /x.go:12 s=10", or a continuation line of the same location. */
static void location_line(struct go *g, struct text line) {
    struct text rest = line, first = word(&rest);
    uint64_t id;
    if (!text_ends(first, TEXT(":")) || !text_to_u64(text_upto(first, first.length - 1), &id)) {
        add_frame(g, line);
        return;
    }
    struct go_location location = {.id = id, .first = (uint32_t)g->names.count};
    if (!find_location(g, id)) {
        vector_push(&g->locations, location);
        index_add(&g->index, hash_mix(id, 2), (uint32_t)g->locations.count);
    }
    struct text after = rest, address = word(&after);
    if (text_starts(address, TEXT("0x")))
        rest = after;
    struct text mapping = word(&after);
    if (text_starts(mapping, TEXT("M=")))
        rest = after;
    add_frame(g, rest);
}

/* An id without a location is shown as a number. */
static void push_id(struct go *g, struct text id_text) {
    uint64_t id;
    struct go_location *location = text_to_u64(id_text, &id) ? find_location(g, id) : NULL;
    if (!location || !location->count) {
        stack_push(&g->r.stack, id_text);
        return;
    }
    uint64_t offset = (uint64_t)(id_text.data - g->r.content.data);
    if (!budget_take_steps(&g->frames, location->count, offset))
        return;
    for (uint32_t i = 0; i < location->count; i++)
        vector_push(&g->r.stack.locations, g->names.items[location->first + i]);
}

/* Parse "   2   20000000: 1 2 3": the last value is the weight, as in pprof, and the first of several the samples. */
static void sample_line(struct go *g) {
    size_t colon = text_find(g->r.line, ':');
    struct text values = text_upto(g->r.line, colon == SIZE_MAX ? 0 : colon);
    struct text ids = colon == SIZE_MAX ? TEXT("") : text_from(g->r.line, colon + 1);
    uint64_t samples = 1, weight = 0;
    bool some = false;
    for (struct text value; (value = word(&values)).length; some = true) {
        if (!text_to_u64(value, &weight)) {
            some = false;
            break;
        }
        if (!some)
            samples = weight;
    }
    if (!some) { /* labels: "bytes:[1024]" */
        if (text_find(g->r.line, '[') == SIZE_MAX)
            reader_bad(&g->r, "no values in line");
        return;
    }
    g->r.stack.locations.count = 0;
    for (struct text id; (id = word(&ids)).length;)
        push_id(g, id);
    stack_reverse(&g->r.stack);
    stack_count(&g->r.stack, samples, weight);
}

/* Take the unit after the slash of the last value's type: "samples/count cpu/nanoseconds". */
static struct text unit_of(struct text types) {
    struct text type, last = TEXT("samples");
    while ((type = word(&types)).length)
        if (!text_starts(type, TEXT("[")))
            last = type;
    size_t slash = text_find(last, '/');
    return slash == SIZE_MAX ? last : text_from(last, slash + 1);
}

enum section { SECTION_HEADER, SECTION_SAMPLES, SECTION_LOCATIONS, SECTION_REST };

static enum section section_of(struct text line, enum section now) {
    if (text_equal(line, TEXT("Samples:")))
        return SECTION_SAMPLES;
    if (text_equal(line, TEXT("Locations")) || text_equal(line, TEXT("Locations:")))
        return SECTION_LOCATIONS;
    if (text_starts(line, TEXT("Mappings")))
        return SECTION_REST;
    return now;
}

/* Samples come first but need the locations, so the text is read twice. */
static void go_pass(struct go *g, struct text content, enum section wanted) {
    g->r.lines = (struct lines){.rest = content};
    enum section section = SECTION_HEADER;
    bool types = false;
    while (reader_next(&g->r)) {
        enum section next = section_of(g->r.line, section);
        if (next != section) {
            section = next;
            types = next == SECTION_SAMPLES;
        } else if (types) {
            types = false;
            if (wanted == SECTION_SAMPLES) {
                stack_release(&g->r.stack);
                stack_init(&g->r.stack, g->r.tree, unit_of(g->r.line));
            }
        } else if (section == wanted && g->r.line.length) {
            if (wanted == SECTION_LOCATIONS)
                location_line(g, g->r.line);
            else
                sample_line(g);
        }
    }
}

static bool go_read(struct text content, const char *path, const struct import_options *options,
                    struct tree *tree, struct error *error) {
    struct go g = {0};
    budget_init(&g.frames, &frame_limits, content.length);
    reader_init(&g.r, content, path, options, tree, TEXT("samples"), error);
    go_pass(&g, content, SECTION_LOCATIONS);
    go_pass(&g, content, SECTION_SAMPLES);
    vector_release(&g.locations);
    vector_release(&g.names);
    index_release(&g.index);
    reader_release(&g.r);
    return !budget_exceeded(&g.frames) || budget_error(&g.frames, path, error);
}

static int go_score(struct text beginning) {
    bool samples = text_search(beginning, TEXT("\nSamples:\n")) != SIZE_MAX;
    return samples && text_search(beginning, TEXT("PeriodType:")) != SIZE_MAX ? 95 : 0;
}

const struct import_format format_go = {"go", "go tool pprof -raw", go_score, go_read};
