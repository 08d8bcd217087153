/*
 * The Firefox Profiler's processed profile, as the profiler itself, samply and `wick export --to firefox` write it, plain or gzip.
 *
 * Everything is tables of columns: stacks name frames, frames functions, functions strings. Up to version 59 each thread has its own tables, from
 * then on all share one set. The parts may stand in any order, so the document is skimmed for where they are, and read in the order of need.
 */
#include "base/json.h"
#include "import/reader.h"

#include <math.h>
#include <stdlib.h>

enum { NONE = -1 }; /* null, in a column of numbers */

struct numbers {
    VECTOR(int64_t) list;
};

/* What stacks are made of: the document's, or one thread's. */
struct tables {
    VECTOR(uint32_t) strings; /* the tree's */
    struct numbers function_name, function_file, function_source, function_resource, function_line,
        function_script;
    struct numbers frame_function, frame_line, frame_category, frame_depth;
    struct numbers stack_frame, stack_parent, stack_distance;
    struct numbers resource_lib, source_file;
    VECTOR(uint32_t) nodes; /* the tree's, by stack */
};

/* A column that is wanted, of a table. */
struct column {
    struct text table, name;
    size_t place; /* in struct tables */
};
#define COLUMN(table, name, field)                                                                 \
    { TEXT(table), TEXT(name), offsetof(struct tables, field) }
static const struct column columns[] = {
    COLUMN("funcTable", "name", function_name),
    COLUMN("funcTable", "fileName", function_file),
    COLUMN("funcTable", "source", function_source),
    COLUMN("funcTable", "resource", function_resource),
    COLUMN("funcTable", "lineNumber", function_line),
    COLUMN("funcTable", "isJS", function_script),
    COLUMN("frameTable", "func", frame_function),
    COLUMN("frameTable", "line", frame_line),
    COLUMN("frameTable", "category", frame_category),
    COLUMN("frameTable", "inlineDepth", frame_depth),
    COLUMN("stackTable", "frame", stack_frame),
    COLUMN("stackTable", "prefix", stack_parent),
    COLUMN("stackTable", "prefixOffset", stack_distance),
    COLUMN("resourceTable", "lib", resource_lib),
    COLUMN("sources", "filename", source_file),
};

struct firefox {
    struct reader r;
    struct json json;
    struct json meta, libs, shared, threads; /* where they are */
    struct buffer key, name, process, kind;
    struct tables all;
    VECTOR(uint32_t) paths;      /* strings, by lib */
    VECTOR(uint32_t) categories; /* enum frame_kind, by category */
    VECTOR(double) times, weights;
    struct numbers sample_stack;
    int64_t pid, tid;
    bool deltas; /* times are from sample to sample */
    bool weighed;
    bool said; /* what is wrong */
};

static bool is(const struct buffer *key, struct text name) {
    return text_equal(buffer_text(key), name);
}

static bool stops(const struct firefox *f) {
    return import_stops(f->r.options, f->json.rest.data);
}

static bool string_value(struct firefox *f, struct buffer *value) {
    value->count = 0;
    return json_peek(&f->json) == '"' ? json_string(&f->json, value) : json_skip(&f->json);
}

/* A number; or a word: true is 1, false 0, and null none. */
static bool cell_value(struct firefox *f, double *value) {
    char c = json_peek(&f->json);
    *value = c == 't' ? 1 : c == 'f' ? 0 : NONE;
    return json_double(&f->json, value) || json_skip(&f->json);
}

/* Numbers of JavaScript, of which only whole ones are wanted. */
static int64_t whole(double value) {
    return fabs(value) < 9e15 ? (int64_t)value : NONE;
}

static bool read_numbers(struct firefox *f, struct numbers *numbers) {
    numbers->list.count = 0;
    if (!json_take(&f->json, '['))
        return json_skip(&f->json);
    bool fine = true;
    double value;
    while (fine && json_element(&f->json) && !stops(f)) {
        fine = cell_value(f, &value);
        vector_push(&numbers->list, whole(value));
    }
    return fine;
}

static int64_t at(const struct numbers *numbers, int64_t row) {
    return row >= 0 && (uint64_t)row < numbers->list.count ? numbers->list.items[row] : NONE;
}

/* ---- tables ---- */

static void tables_release(struct tables *tables) {
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        vector_release(&((struct numbers *)((char *)tables + columns[i].place))->list);
    vector_release(&tables->strings);
    vector_release(&tables->nodes);
}

static bool read_strings(struct firefox *f, struct tables *tables) {
    bool fine = json_take(&f->json, '[');
    while (fine && json_element(&f->json) && !stops(f)) {
        fine = string_value(f, &f->kind);
        vector_push(&tables->strings, strings_add(f->r.tree->strings, buffer_text(&f->kind)));
    }
    return fine;
}

/* A table, or anything else that a thread or what all share has. */
static bool read_table(struct firefox *f, struct tables *tables, struct text table) {
    bool fine = true;
    if (text_equal(table, TEXT("stringArray")) || text_equal(table, TEXT("stringTable")))
        return json_peek(&f->json) == '[' ? read_strings(f, tables) : json_skip(&f->json);
    bool wanted = false;
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        wanted |= text_equal(table, columns[i].table);
    if (!wanted || !json_take(&f->json, '{'))
        return json_skip(&f->json);
    while (fine && json_member(&f->json, &f->key)) {
        struct numbers *numbers = NULL;
        for (size_t i = 0; i < COUNT_OF(columns); i++)
            if (text_equal(table, columns[i].table) && is(&f->key, columns[i].name))
                numbers = (struct numbers *)((char *)tables + columns[i].place);
        fine = numbers ? read_numbers(f, numbers) : json_skip(&f->json);
    }
    return fine;
}

static bool read_shared(struct firefox *f) {
    bool fine = json_take(&f->json, '{');
    struct buffer table = {0};
    while (fine && json_member(&f->json, &table))
        fine = read_table(f, &f->all, buffer_text(&table));
    buffer_release(&table);
    return fine;
}

/* ---- frames and stacks ---- */

static struct text string_at(const struct firefox *f, const struct tables *tables, int64_t number) {
    bool known = number >= 0 && (uint64_t)number < tables->strings.count;
    return known ? strings_get(f->r.tree->strings, tables->strings.items[number]) : TEXT("");
}

static uint32_t line_of(int64_t line) {
    return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

static struct text file_of(const struct firefox *f, const struct tables *tables, int64_t function) {
    struct text own = string_at(f, tables, at(&tables->function_file, function));
    int64_t source = at(&tables->function_source, function);
    return own.length ? own : string_at(f, tables, at(&tables->source_file, source));
}

static struct text path_of(const struct firefox *f, const struct tables *tables, int64_t function) {
    int64_t lib = at(&tables->resource_lib, at(&tables->function_resource, function));
    return lib >= 0 && (uint64_t)lib < f->paths.count
               ? strings_get(f->r.tree->strings, f->paths.items[lib])
               : TEXT("");
}

static uint32_t location_of(struct firefox *f, const struct tables *tables, int64_t frame) {
    int64_t function = at(&tables->frame_function, frame),
            category = at(&tables->frame_category, frame);
    bool known = category >= 0 && (uint64_t)category < f->categories.count;
    bool script = at(&tables->function_script, function) == 1;
    f->r.stack.locations.count = 0;
    stack_push_frame(
        &f->r.stack,
        &(struct text_frame){
            .name = string_at(f, tables, at(&tables->function_name, function)),
            .object = path_of(f, tables, function),
            .file = file_of(f, tables, function),
            .language = script ? TEXT("javascript") : TEXT(""),
            .line = line_of(at(&tables->frame_line, frame)),
            .first_line = line_of(at(&tables->function_line, function)),
            .kinds = (known ? f->categories.items[category] : 0) |
                     (at(&tables->frame_depth, frame) > 0 ? (uint32_t)KIND_INLINED : 0)});
    return f->r.stack.locations.items[--f->r.stack.locations.count];
}

/* The row of a stack's parent, NONE of a root. From version 66 on it is told as a distance, 0 of a root. */
static int64_t parent_of(const struct tables *tables, size_t row) {
    int64_t distance = at(&tables->stack_distance, (int64_t)row);
    if (tables->stack_distance.list.count)
        return distance > 0 && (uint64_t)distance <= row ? (int64_t)row - distance : NONE;
    return at(&tables->stack_parent, (int64_t)row);
}

/* Parents come before their children, in every version. */
static bool place_stacks(struct firefox *f, struct tables *tables) {
    VECTOR(uint32_t) locations = {0};
    size_t stacks = tables->stack_frame.list.count, frames = tables->frame_function.list.count;
    bool fine = true;
    for (size_t i = 0; i < frames; i++)
        vector_push(&locations, location_of(f, tables, (int64_t)i));
    for (size_t i = 0; i < stacks && fine; i++) {
        int64_t parent = parent_of(tables, i), frame = tables->stack_frame.list.items[i];
        fine = parent < (int64_t)i && frame >= 0 && (uint64_t)frame < frames;
        if (fine)
            vector_push(&tables->nodes,
                        tree_add_node(f->r.tree, parent < 0 ? 0 : tables->nodes.items[parent],
                                      locations.items[frame]));
        else
            error_set(f->r.error, ERROR_INPUT,
                      "%s: stack %zu has no such frame, or comes before its parent", f->r.path, i);
    }
    f->said |= !fine;
    vector_release(&locations);
    return fine;
}

/* ---- samples ---- */

static bool read_doubles(struct firefox *f, bool times) {
    if (!json_take(&f->json, '['))
        return json_skip(&f->json);
    bool fine = true;
    double value;
    while (fine && json_element(&f->json) && !stops(f)) {
        fine = cell_value(f, &value);
        if (times)
            vector_push(&f->times, value);
        else
            vector_push(&f->weights, value);
    }
    f->weighed |= !times;
    return fine;
}

static bool read_samples(struct firefox *f) {
    bool fine = json_take(&f->json, '{');
    f->times.count = f->weights.count = f->sample_stack.list.count = f->kind.count = 0;
    f->deltas = f->weighed = false;
    while (fine && json_member(&f->json, &f->key)) {
        f->deltas |= is(&f->key, TEXT("timeDeltas"));
        fine = is(&f->key, TEXT("stack"))        ? read_numbers(f, &f->sample_stack)
               : is(&f->key, TEXT("time"))       ? read_doubles(f, true)
               : is(&f->key, TEXT("timeDeltas")) ? read_doubles(f, true)
               : is(&f->key, TEXT("weight"))     ? read_doubles(f, false)
               : is(&f->key, TEXT("weightType")) ? string_value(f, &f->kind)
                                                 : json_skip(&f->json);
    }
    return fine;
}

static bool complain(struct firefox *f, const char *what) {
    f->said = true;
    return error_set(f->r.error, ERROR_INPUT, "%s: thread %.*s: %s", f->r.path,
                     TEXT_ARGS(buffer_text(&f->name)), what);
}

static bool count_samples(struct firefox *f, const struct tables *tables) {
    bool is_time = is(&f->kind, TEXT("tracing-ms")), is_bytes = is(&f->kind, TEXT("bytes"));
    double scale = is_time ? 1e6 : 1, now = 0;
    for (size_t i = 0; i < f->sample_stack.list.count; i++) {
        int64_t stack = f->sample_stack.list.items[i];
        double weight = f->weighed && i < f->weights.count ? f->weights.items[i] : 1;
        double time = i < f->times.count ? f->times.items[i] : 0;
        now = f->deltas ? now + time : time;
        if (stack == NONE)
            continue;
        if (stack < 0 || (uint64_t)stack >= tables->nodes.count)
            return complain(f, "a sample names a stack that is not there");
        if (weight < 0)
            return complain(
                f, "a sample counts less than nothing: what two profiles differ in can't be "
                   "read, only the profiles");
        uint64_t counted = double_to_u64(round(weight * scale)),
                 at_time = double_to_u64(round(now * 1e6));
        stack_count_at(&f->r.stack, tables->nodes.items[stack], is_time || is_bytes ? 1 : counted,
                       counted, f->times.count ? at_time + !at_time : 0);
    }
    return true;
}

/* ---- threads ---- */

/* A number, or a text that begins with one. */
static bool id_value(struct firefox *f, int64_t *id) {
    double value = NONE;
    uint64_t number;
    *id = NONE;
    if (json_peek(&f->json) != '"') {
        bool fine = json_double(&f->json, &value) || json_skip(&f->json);
        *id = whole(value);
        return fine;
    }
    bool fine = string_value(f, &f->key);
    struct text text = buffer_text(&f->key);
    size_t dot = text_find(text, '.');
    if (text_to_u64(dot == SIZE_MAX ? text : text_upto(text, dot), &number) && number <= INT32_MAX)
        *id = (int64_t)number;
    return fine;
}

static int32_t small_id(int64_t id) {
    return id > 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

static void choose_series(struct firefox *f) {
    bool is_time = is(&f->kind, TEXT("tracing-ms")), is_bytes = is(&f->kind, TEXT("bytes"));
    struct text event = is_time ? TEXT("time") : is_bytes ? TEXT("bytes") : TEXT("samples");
    int32_t pid = small_id(f->pid), tid = small_id(f->tid);
    stack_set_event(&f->r.stack, event, is_time ? TEXT("ns") : event);
    stack_set_thread(&f->r.stack, pid < 0 && tid < 0 ? TEXT("") : buffer_text(&f->name), pid, tid);
    stack_set_label(&f->r.stack, TEXT("process"), buffer_text(&f->process));
}

static bool read_thread(struct firefox *f) {
    struct tables own = {0};
    struct buffer key = {0};
    struct json samples = {{0}}, end;
    bool fine = json_take(&f->json, '{');
    f->pid = f->tid = NONE;
    f->name.count = f->process.count = 0;
    while (fine && json_member(&f->json, &key)) {
        if (is(&key, TEXT("samples")))
            samples = f->json;
        fine = is(&key, TEXT("name"))          ? string_value(f, &f->name)
               : is(&key, TEXT("processName")) ? string_value(f, &f->process)
               : is(&key, TEXT("pid"))         ? id_value(f, &f->pid)
               : is(&key, TEXT("tid"))         ? id_value(f, &f->tid)
                                               : read_table(f, &own, buffer_text(&key));
    }
    end = f->json;
    bool shared = own.stack_frame.list.count == 0;
    fine = fine && (shared || place_stacks(f, &own));
    if (fine && samples.rest.length) {
        f->json = samples;
        fine = read_samples(f);
        choose_series(f);
        fine = fine && count_samples(f, shared ? &f->all : &own);
        f->json = fine ? end : f->json;
    }
    tables_release(&own);
    buffer_release(&key);
    return fine;
}

/* ---- the document ---- */

/* A list of objects, of each of which one text is wanted: it is in f->kind when `take` is called. */
static bool read_objects(struct firefox *f, struct text wanted, void (*take)(struct firefox *)) {
    bool fine = json_take(&f->json, '[');
    while (fine && json_element(&f->json)) {
        fine = json_take(&f->json, '{');
        f->kind.count = 0;
        while (fine && json_member(&f->json, &f->key))
            fine = is(&f->key, wanted) ? string_value(f, &f->kind) : json_skip(&f->json);
        take(f);
    }
    return fine;
}

static void take_category(struct firefox *f) {
    uint32_t kinds = is(&f->kind, TEXT("Kernel"))    ? KIND_KERNEL
                     : is(&f->kind, TEXT("JIT"))     ? KIND_JIT
                     : is(&f->kind, TEXT("Library")) ? KIND_LIBRARY
                                                     : 0;
    vector_push(&f->categories, kinds);
}

static void take_lib(struct firefox *f) {
    vector_push(&f->paths, strings_add(f->r.tree->strings, buffer_text(&f->kind)));
}

static bool read_meta(struct firefox *f) {
    bool fine = json_take(&f->json, '{');
    while (fine && json_member(&f->json, &f->key))
        fine = is(&f->key, TEXT("categories")) && json_peek(&f->json) == '['
                   ? read_objects(f, TEXT("name"), take_category)
                   : json_skip(&f->json);
    return fine;
}

static bool read_libs(struct firefox *f) {
    return read_objects(f, TEXT("path"), take_lib);
}

static bool read_threads(struct firefox *f) {
    bool fine = json_take(&f->json, '[');
    while (fine && json_element(&f->json) && !stops(f))
        fine = read_thread(f);
    return fine;
}

static bool find_parts(struct firefox *f) {
    bool fine = json_take(&f->json, '{');
    while (fine && json_member(&f->json, &f->key)) {
        struct json *part = is(&f->key, TEXT("meta"))      ? &f->meta
                            : is(&f->key, TEXT("libs"))    ? &f->libs
                            : is(&f->key, TEXT("shared"))  ? &f->shared
                            : is(&f->key, TEXT("threads")) ? &f->threads
                                                           : NULL;
        if (part)
            *part = f->json;
        fine = json_skip(&f->json);
    }
    return fine;
}

static bool read_part(struct firefox *f, struct json part, bool (*read)(struct firefox *)) {
    if (!part.rest.length)
        return true;
    f->json = part;
    return read(f);
}

static bool read_document(struct firefox *f) {
    return find_parts(f) && read_part(f, f->meta, read_meta) && read_part(f, f->libs, read_libs) &&
           read_part(f, f->shared, read_shared) && place_stacks(f, &f->all) &&
           read_part(f, f->threads, read_threads);
}

static bool firefox_read(struct text content, const char *path,
                         const struct import_options *options, struct tree *tree,
                         struct error *error) {
    struct firefox f = {.json = {content}};
    reader_init(&f.r, content, path, options, tree, TEXT(""), error);
    bool fine = read_document(&f);
    if (!fine && !f.said)
        error_at(error, path, (uint64_t)(f.json.rest.data - content.data),
                 "not a processed profile as the Firefox Profiler has it");
    tables_release(&f.all);
    buffer_release(&f.key);
    buffer_release(&f.name);
    buffer_release(&f.process);
    buffer_release(&f.kind);
    vector_release(&f.paths);
    vector_release(&f.categories);
    vector_release(&f.times);
    vector_release(&f.weights);
    vector_release(&f.sample_stack.list);
    reader_release(&f.r);
    return fine;
}

static int firefox_score(struct text beginning) {
    struct json json = {beginning};
    bool version = text_search(beginning, TEXT("\"preprocessedProfileVersion\"")) != SIZE_MAX;
    return json_peek(&json) == '{' && version ? 97 : 0;
}

const struct import_format format_firefox = {
    "firefox", "the Firefox Profiler's processed profile, plain or gzip", firefox_score,
    firefox_read, TELLS_TIMES};
