/*
 * The Firefox Profiler's processed profile, version 60: newer viewers upgrade it, older ones do not know it yet, and
 * it is the first version whose tables are shared by all threads.
 *
 * Tables are columns. Stacks share their outer parts, so deep ones take no more room than in the tree; frames with
 * the same address represent inlined functions by their depth. A thread is a track; its samples have a time and a
 * weight, so both are as recorded.
 */
#include "export/formats.h"
#include "export/locations.h"

#include <stdlib.h>

enum { VERSION = 60 };

struct firefox {
    const struct outline *outline;
    struct out *out;
    struct buffer json;
    struct strings *strings;    /* ids are the file's + 1; so are the following */
    struct strings *paths;      /* of objects: libs and resources */
    struct strings *files;      /* sources */
    VECTOR(uint32_t) objects;   /* one of each path */
    VECTOR(uint64_t) bases;     /* likewise: base of its addresses */
    VECTOR(uint32_t) functions; /* a place of each */
};

static int64_t number_in(struct strings *strings, struct text t) {
    return strings_add(strings, t) - 1;
}

/* ---- columns ---- */

/* Append the number of the current row, or null for NO_VALUE; a negative one is -1. */
typedef int64_t column_value(struct firefox *f, size_t row);
#define NO_VALUE INT64_MIN

static void add_value(struct buffer *json, int64_t value) {
    if (value == NO_VALUE)
        buffer_add(json, TEXT("null"));
    else if (value < 0)
        buffer_add(json, TEXT("-1"));
    else
        buffer_add_u64(json, (uint64_t)value);
}

static void write_column(struct firefox *f, const char *name, size_t rows, column_value *value) {
    buffer_printf(&f->json, ",\n\"%s\":[", name);
    for (size_t i = 0; i < rows; i++) {
        if (i)
            buffer_add_char(&f->json, ',');
        add_value(&f->json, value(f, i));
        buffer_flush(&f->json, f->out);
    }
    buffer_add_char(&f->json, ']');
}

static void write_same(struct firefox *f, const char *name, size_t rows, const char *value) {
    buffer_printf(&f->json, ",\n\"%s\":[", name);
    for (size_t i = 0; i < rows; i++) {
        buffer_add(&f->json, i ? TEXT(",") : TEXT(""));
        buffer_add(&f->json, text_of(value));
        buffer_flush(&f->json, f->out);
    }
    buffer_add_char(&f->json, ']');
}

static void begin_table(struct firefox *f, const char *name, size_t rows) {
    buffer_printf(&f->json, "\"%s\":{\"length\":%zu", name, rows);
}

static void end_table(struct firefox *f) {
    buffer_add(&f->json, TEXT("},\n"));
}

/* ---- functions, frames, stacks ---- */

static const struct place *function_place(struct firefox *f, size_t row) {
    return &f->outline->stacks->places.items[f->functions.items[row]];
}

static int64_t function_name(struct firefox *f, size_t row) {
    return number_in(f->strings, function_place(f, row)->name);
}
static int64_t function_resource(struct firefox *f, size_t row) {
    struct text path = function_place(f, row)->path;
    return path.length ? number_in(f->paths, path) : -1;
}
static int64_t function_source(struct firefox *f, size_t row) {
    struct text file = function_place(f, row)->file;
    return file.length ? number_in(f->files, file) : NO_VALUE;
}

static void write_functions(struct firefox *f) {
    size_t count = f->functions.count;
    begin_table(f, "funcTable", count);
    write_column(f, "name", count, function_name);
    write_same(f, "isJS", count, "false");
    write_same(f, "relevantForJS", count, "false");
    write_column(f, "resource", count, function_resource);
    write_column(f, "source", count, function_source);
    write_same(f, "lineNumber", count, "null");
    write_same(f, "columnNumber", count, "null");
    end_table(f);
}

static const struct place *frame_place(struct firefox *f, size_t row) {
    return &f->outline->stacks->places.items[row + 1];
}

/* The kernel's addresses exceed JavaScript's integers. They are relative to this, as those of a library are to its
   start. */
#define KERNEL_BASE 0xffff000000000000u

/* Addresses that exceed JavaScript's integers, and missing ones, are omitted. */
static int64_t frame_address(struct firefox *f, size_t row) {
    const struct place *place = frame_place(f, row);
    uint64_t base = place->path.length ? f->bases.items[number_in(f->paths, place->path)] : 0;
    bool holds = place->object && place->address >= base && place->address - base < 1ull << 53;
    return holds ? (int64_t)(place->address - base) : -1;
}
static int64_t frame_depth(struct firefox *f, size_t row) {
    return frame_place(f, row)->level;
}

static const struct {
    const char *name, *colour;
    uint32_t kinds;
} categories[] = {
    {"Other", "grey", KIND_UNKNOWN | KIND_ROOT},
    {"Kernel", "orange", KIND_KERNEL},
    {"JIT", "green", KIND_JIT},
    {"Library", "blue", KIND_LIBRARY},
    {"Program", "yellow", 0},
};

static int64_t frame_category(struct firefox *f, size_t row) {
    size_t i = 0;
    while (categories[i].kinds && !(frame_place(f, row)->kinds & categories[i].kinds))
        i++;
    return (int64_t)i;
}
static int64_t frame_function(struct firefox *f, size_t row) {
    return frame_place(f, row)->function - 1;
}
static int64_t frame_line(struct firefox *f, size_t row) {
    uint32_t line = frame_place(f, row)->line;
    return line ? line : NO_VALUE;
}
static int64_t frame_column(struct firefox *f, size_t row) {
    uint32_t column = frame_place(f, row)->column;
    return column ? column : NO_VALUE;
}

static void write_frames(struct firefox *f) {
    size_t count = f->outline->stacks->places.count - 1;
    begin_table(f, "frameTable", count);
    write_column(f, "address", count, frame_address);
    write_column(f, "inlineDepth", count, frame_depth);
    write_column(f, "category", count, frame_category);
    write_same(f, "subcategory", count, "0");
    write_column(f, "func", count, frame_function);
    write_same(f, "nativeSymbol", count, "null");
    write_same(f, "innerWindowID", count, "0");
    write_column(f, "line", count, frame_line);
    write_column(f, "column", count, frame_column);
    end_table(f);
}

static int64_t stack_prefix(struct firefox *f, size_t row) {
    uint32_t parent = f->outline->stacks->nodes.items[row + 1].parent;
    return parent ? (int64_t)parent - 1 : NO_VALUE;
}
static int64_t stack_frame(struct firefox *f, size_t row) {
    return f->outline->stacks->nodes.items[row + 1].place - 1;
}

static void write_stacks(struct firefox *f) {
    size_t count = f->outline->stacks->nodes.count - 1;
    begin_table(f, "stackTable", count);
    write_column(f, "prefix", count, stack_prefix);
    write_column(f, "frame", count, stack_frame);
    end_table(f);
}

/* ---- objects and sources ---- */

static struct text base_name(struct text path) {
    size_t slash = text_find_last(path, '/');
    return slash == SIZE_MAX ? path : text_from(path, slash + 1);
}

static int64_t resource_lib(struct firefox *f, size_t row) {
    return (int64_t)row;
}
static int64_t resource_name(struct firefox *f, size_t row) {
    return number_in(f->strings, base_name(strings_get(f->paths, (uint32_t)row + 1)));
}

static void write_resources(struct firefox *f) {
    size_t count = strings_count(f->paths);
    begin_table(f, "resourceTable", count);
    write_column(f, "lib", count, resource_lib);
    write_column(f, "name", count, resource_name);
    write_same(f, "host", count, "null");
    write_same(f, "type", count, "1");
    end_table(f);
}

static int64_t source_file(struct firefox *f, size_t row) {
    return number_in(f->strings, strings_get(f->files, (uint32_t)row + 1));
}

static void write_sources(struct firefox *f) {
    size_t count = strings_count(f->files);
    begin_table(f, "sources", count);
    write_same(f, "id", count, "null");
    write_column(f, "filename", count, source_file);
    end_table(f);
}

/* Append the first sixteen bytes as Microsoft's GUID, its first three numbers byte-swapped, and an age of 0. */
static void add_breakpad_id(struct buffer *json, const struct build_id *id) {
    static const uint8_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < COUNT_OF(order); i++)
        buffer_printf(json, "%02X", order[i] < id->size ? id->bytes[order[i]] : 0);
    buffer_add_char(json, '0');
}

static void write_lib(struct firefox *f, size_t row) {
    struct text path = strings_get(f->paths, (uint32_t)row + 1);
    struct build_id none = {0};
    const struct build_id *id =
        f->objects.items[row]
            ? &objects_get(f->outline->tree->objects, f->objects.items[row])->build_id
            : &none;
    static const char *const names[] = {"name", "debugName", "path", "debugPath"};
    buffer_add(&f->json, row ? TEXT(",\n{\"arch\":null") : TEXT("\n{\"arch\":null"));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        buffer_printf(&f->json, ",\"%s\":", names[i]);
        buffer_add_json_text(&f->json, i < 2 ? base_name(path) : path);
    }
    if (f->bases.items[row]) /* wick's own member, so that it can read back what it wrote */
        buffer_printf(&f->json, ",\"wickBase\":\"%llx\"", (unsigned long long)f->bases.items[row]);
    buffer_add(&f->json, TEXT(",\"breakpadId\":\""));
    add_breakpad_id(&f->json, id);
    buffer_add(&f->json, id->size ? TEXT("\",\"codeId\":\"") : TEXT("\",\"codeId\":null}"));
    buffer_add_build_id(&f->json, id);
    if (id->size)
        buffer_add(&f->json, TEXT("\"}"));
}

/* ---- threads ---- */

enum sample_column { SAMPLE_STACK, SAMPLE_TIME, SAMPLE_WEIGHT, SAMPLE_CPU };

/* Samples without times follow one another: each lasts its weight, or a millisecond. */
static void add_sample_value(struct buffer *json, const struct walk *walk, const struct step *step,
                             enum sample_column column) {
    bool is_time = measure_is_time(walk->outline, walk->track->measure);
    if (column == SAMPLE_STACK)
        buffer_add_u64(json, step->node - 1);
    else if (column == SAMPLE_CPU)
        buffer_add_u64(json, step->state == STATE_ON ? step->weight : 0);
    else if (column == SAMPLE_WEIGHT && !is_time)
        buffer_add_u64(json, step->weight);
    else if (column == SAMPLE_WEIGHT)
        buffer_add_decimal(json, step->weight, 6);
    else if (walk->track->has_times)
        buffer_add_decimal(json, step->time, 6);
    else if (is_time)
        buffer_add_decimal(json, step->start, 6);
    else
        buffer_add_u64(json, walk->next - 1);
}

static void write_samples(struct firefox *f, uint32_t track, enum sample_column column) {
    struct walk walk = walk_begin(f->outline, track);
    struct step step;
    for (bool first = true; walk_next(&walk, &step); first = false) {
        if (!first)
            buffer_add_char(&f->json, ',');
        add_sample_value(&f->json, &walk, &step, column);
        buffer_flush(&f->json, f->out);
    }
    buffer_add_char(&f->json, ']');
}

static const char *weight_type(const struct outline *o, const struct track *track) {
    const char *unit = weight_unit(o, track->measure);
    if (measure_is_time(o, track->measure))
        return "tracing-ms";
    return unit && strcmp(unit, "bytes") == 0 ? "bytes" : "samples";
}

static void write_identity(struct firefox *f, uint32_t number) {
    const struct outline *o = f->outline;
    const struct track *track = &o->tracks.items[number];
    struct buffer name = {0};
    buffer_add(&name, track->comm.length ? track->comm : track->name);
    if (o->measures.count > 1) {
        buffer_add_char(&name, ' ');
        buffer_add(&name, o->measures.items[track->measure].name);
    }
    buffer_add(&f->json, TEXT("\"processType\":\"default\",\"processName\":"));
    buffer_add_json_text(&f->json, track_process(o, number));
    buffer_add(&f->json, TEXT(",\"name\":"));
    buffer_add_json_text(&f->json, buffer_text(&name));
    buffer_printf(&f->json, ",\"isMainThread\":%s,\"pid\":\"%d\",\"tid\":",
                  track->tid == track->pid ? "true" : "false", track->pid < 0 ? 0 : track->pid);
    if (track->tid >= 0 && !track->twin)
        buffer_printf(&f->json, "%d,", track->tid);
    else /* shared or unknown: any unique text */
        buffer_printf(&f->json, "\"%d.%u\",", track->tid < 0 ? 0 : track->tid, number);
    buffer_release(&name);
}

static void write_thread(struct firefox *f, uint32_t number) {
    const struct track *track = &f->outline->tracks.items[number];
    buffer_add(&f->json, number ? TEXT(",\n{") : TEXT("\n{"));
    write_identity(f, number);
    buffer_add(&f->json,
               TEXT("\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
                    "\"unregisterTime\":null,\"pausedRanges\":[],\n"
                    "\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],"
                    "\"endTime\":[],\"phase\":[],\"category\":[]},\n"));
    buffer_printf(&f->json, "\"samples\":{\"length\":%zu,\"weightType\":\"%s\",\n\"stack\":[",
                  track->sample_count + track->left_count, weight_type(f->outline, track));
    write_samples(f, number, SAMPLE_STACK);
    buffer_add(&f->json, TEXT(",\n\"time\":["));
    write_samples(f, number, SAMPLE_TIME);
    buffer_add(&f->json, TEXT(",\n\"weight\":["));
    write_samples(f, number, SAMPLE_WEIGHT);
    if (track->has_times && measure_is_time(f->outline, track->measure)) {
        buffer_add(&f->json, TEXT(",\n\"threadCPUDelta\":["));
        write_samples(f, number, SAMPLE_CPU);
    }
    buffer_add(&f->json, TEXT("}}"));
}

/* ---- all of it ---- */

/* Return the sampling interval: the weight of the heaviest thread's samples, if it is a time. */
static uint64_t interval(const struct outline *o) {
    const struct track *track = &o->tracks.items[outline_heaviest(o)];
    bool known = measure_is_time(o, track->measure) && !track->waits && track->samples &&
                 track->weight >= track->samples;
    return known ? track->weight / track->samples : 1000000;
}

static void write_notes(struct firefox *f) {
    const struct notes *notes = f->outline->options->notes;
    struct buffer line = {0};
    if (!notes || !notes->count)
        return;
    buffer_add(&f->json, TEXT(",\n\"extra\":[{\"label\":\"Notes\",\"entries\":["));
    for (size_t i = 0; i < notes->count; i++) {
        line.count = 0;
        note_print(&notes->items[i], &line);
        buffer_add(&f->json, i ? TEXT(",\n{\"label\":") : TEXT("\n{\"label\":"));
        buffer_add_json_text(&f->json, text_of(notes->items[i].kind->name));
        buffer_add(&f->json, TEXT(",\"format\":\"string\",\"value\":"));
        buffer_add_json_text(&f->json, buffer_text(&line));
        buffer_add_char(&f->json, '}');
    }
    buffer_add(&f->json, TEXT("]}]"));
    buffer_release(&line);
}

static void write_meta(struct firefox *f) {
    struct buffer *json = &f->json;
    buffer_printf(json,
                  "{\"meta\":{\"version\":24,\"preprocessedProfileVersion\":%d,"
                  "\"processType\":0,\"stackwalk\":1,\"debug\":false,\"startTime\":0,"
                  "\"symbolicated\":true,\"platform\":\"X11\",\"oscpu\":\"Linux\",\n"
                  "\"usesOnlyOneStackType\":true,\"sourceCodeIsNotOnSearchfox\":true,"
                  "\"markerSchema\":[],\"importedFrom\":\"wick " WICK_VERSION "\",\n"
                  "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\","
                  "\"threadCPUDelta\":\"ns\"},\"product\":",
                  VERSION);
    buffer_add_json_text(json, text_of(f->outline->options->title));
    buffer_add(json, TEXT(",\"interval\":"));
    buffer_add_decimal(json, interval(f->outline), 6);
    buffer_printf(json, ",\"initialSelectedThreads\":[%u],\n\"categories\":[",
                  outline_heaviest(f->outline));
    for (size_t i = 0; i < COUNT_OF(categories); i++)
        buffer_printf(json, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}",
                      i ? "," : "", categories[i].name, categories[i].colour);
    buffer_add_char(json, ']');
    write_notes(f);
    buffer_add(json, TEXT("},\n\"pages\":[],\"counters\":[],\"profilerOverhead\":[],\n"));
}

/* Rows of these tables precede those of the tables that refer to them. */
static void find_rows(struct firefox *f) {
    const struct outline *o = f->outline;
    for (uint32_t i = 1; i < o->stacks->places.count; i++) {
        const struct place *place = &o->stacks->places.items[i];
        if (place->function > f->functions.count)
            vector_push(&f->functions, i);
        if (!place->path.length)
            continue;
        size_t row = (size_t)number_in(f->paths, place->path);
        if (row == f->objects.count) {
            vector_push(&f->objects, place->object);
            vector_push(&f->bases, 0);
        }
        if (place->object && place->address >= KERNEL_BASE)
            f->bases.items[row] = KERNEL_BASE;
    }
}

static void write_shared(struct firefox *f) {
    buffer_add(&f->json, TEXT("\"shared\":{\n"));
    write_functions(f);
    write_frames(f);
    write_stacks(f);
    write_resources(f);
    write_sources(f);
    buffer_add(&f->json, TEXT("\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],"
                              "\"name\":[],\"functionSize\":[]},\n\"stringArray\":["));
    for (uint32_t i = 1; i <= strings_count(f->strings); i++) {
        buffer_add(&f->json, i > 1 ? TEXT(",\n") : TEXT("\n"));
        buffer_add_json_text(&f->json, strings_get(f->strings, i));
        buffer_flush(&f->json, f->out);
    }
    buffer_add(&f->json, TEXT("]},\n"));
}

bool firefox_write(struct out *out, const struct outline *o, struct error *error) {
    struct firefox f = {.outline = o, .out = out};
    f.strings = strings_new();
    f.paths = strings_new();
    f.files = strings_new();
    find_rows(&f);
    write_meta(&f);
    buffer_add(&f.json, TEXT("\"libs\":["));
    for (size_t i = 0; i < f.objects.count; i++)
        write_lib(&f, i);
    buffer_add(&f.json, TEXT("],\n"));
    write_shared(&f);
    buffer_add(&f.json, TEXT("\"threads\":["));
    for (uint32_t i = 0; i < o->tracks.count; i++)
        write_thread(&f, i);
    buffer_add(&f.json, TEXT("]}\n"));
    out_text(out, buffer_text(&f.json));
    buffer_release(&f.json);
    strings_free(f.strings);
    strings_free(f.paths);
    strings_free(f.files);
    vector_release(&f.objects);
    vector_release(&f.bases);
    vector_release(&f.functions);
    return true;
}
