/*
 * What Firefox itself records (Gecko's profile, `MOZ_PROFILER_SHUTDOWN`, about:profiling before the Profiler's page
 * has processed it): a process with its threads, and nested in it the profiles of its child processes. Firefox's
 * DevTools saved it as the member `profile` of another object. Tables are lists of rows, whose columns are named by a
 * schema; each thread has its own.
 *
 * A frame is a text: a C++ or Rust function's name, or an address if the browser had no symbols, which is then named
 * after its library; a JavaScript frame is `function (url:line:column)`.
 */
#include "base/json.h"
#include "import/reader.h"

#include <math.h>
#include <stdlib.h>

enum { NONE = -1, COLUMNS_MOST = 4 };

struct gecko_lib {
    uint64_t start, end;
    uint32_t path; /* string */
};

/* Where the parts of a process, or of a thread, are in the document. */
struct parts {
    struct json libs, threads, processes;
    struct json samples, stacks, frames, strings;
    double start; /* for a process: milliseconds since 1970 */
};

struct gecko {
    struct reader r;
    struct json json;
    struct buffer key, text, name, process;
    VECTOR(struct json) waiting; /* processes that have not been read yet */
    VECTOR(struct gecko_lib) libs;
    VECTOR(uint32_t) strings, locations, nodes; /* the tree's ids, by row of the thread's tables */
    int64_t pid, tid;
    double first_start, start;
    bool has_start, said;
};

static bool is(const struct buffer *key, const char *name) {
    return text_equal(buffer_text(key), text_of(name));
}

static bool stops(const struct gecko *g) {
    return import_stops(g->r.options, g->json.rest.data);
}

static bool complain(struct gecko *g, const char *what) {
    g->said = true;
    return error_at(g->r.error, g->r.path, (uint64_t)(g->json.rest.data - g->r.content.data), "%s",
                    what);
}

static bool number_value(struct gecko *g, double *value) {
    *value = NONE;
    return json_double(&g->json, value) || json_skip(&g->json);
}

/* ---- tables ---- */

/* Read a row's columns that are used, NONE for those without a number. Call it in order. */
typedef bool on_row(struct gecko *g, const double *cells);

static bool read_schema(struct gecko *g, const char *const *names, size_t count, double *places) {
    bool fine = json_take(&g->json, '{');
    while (fine && json_member(&g->json, &g->key)) {
        double place, *to = &place;
        for (size_t i = 0; i < count; i++)
            if (is(&g->key, names[i]))
                to = &places[i];
        fine = number_value(g, to);
    }
    return fine;
}

static bool read_row(struct gecko *g, const double *places, size_t count, double *cells) {
    bool fine = json_take(&g->json, '[');
    for (size_t i = 0; i < count; i++)
        cells[i] = NONE;
    for (double at = 0; fine && json_element(&g->json); at++) {
        double value;
        fine = number_value(g, &value);
        for (size_t i = 0; i < count; i++)
            if (places[i] == at)
                cells[i] = value;
    }
    return fine;
}

static bool read_table(struct gecko *g, struct json table, const char *const *names, size_t count,
                       on_row *take) {
    double places[COLUMNS_MOST] = {NONE, NONE, NONE, NONE}, cells[COLUMNS_MOST];
    struct json schema = {{0}}, data = {{0}};
    if (!table.rest.length)
        return true;
    g->json = table;
    bool fine = json_take(&g->json, '{');
    while (fine && json_member(&g->json, &g->key)) {
        if (is(&g->key, "schema"))
            schema = g->json;
        else if (is(&g->key, "data"))
            data = g->json;
        fine = json_skip(&g->json);
    }
    if (!fine || !schema.rest.length || !data.rest.length)
        return fine;
    g->json = schema;
    fine = read_schema(g, names, count, places);
    g->json = fine ? data : g->json;
    fine = fine && json_take(&g->json, '[');
    while (fine && json_element(&g->json) && !stops(g))
        fine = read_row(g, places, count, cells) && take(g, cells);
    return fine;
}

/* ---- frames ---- */

static bool take_strings(struct gecko *g, struct json list) {
    if (!list.rest.length)
        return true;
    g->json = list;
    bool fine = json_take(&g->json, '[');
    while (fine && json_element(&g->json) && !stops(g)) {
        fine = json_text(&g->json, &g->text);
        vector_push(&g->strings, strings_add(g->r.tree->strings, buffer_text(&g->text)));
    }
    return fine;
}

static struct text path_of(const struct gecko *g, uint64_t address) {
    for (size_t i = 0; i < g->libs.count; i++)
        if (address >= g->libs.items[i].start && address < g->libs.items[i].end)
            return strings_get(g->r.tree->strings, g->libs.items[i].path);
    return TEXT("");
}

/* "function (url:line:column)" */
static bool split_script(struct text location, struct text_frame *frame) {
    size_t open = text_search(location, TEXT(" ("));
    if (open == SIZE_MAX || !text_ends(location, TEXT(")")))
        return false;
    struct text inside = text_from(location, open + 2);
    inside = text_upto(inside, inside.length - 1);
    if (!text_to_source(inside, &frame->file, &frame->first_line))
        return false;
    frame->name = text_upto(location, open);
    frame->language = TEXT("javascript");
    return true;
}

static bool take_frame(struct gecko *g, const double *cells) {
    double name = cells[0], line = cells[1];
    uint64_t address;
    struct text location = TEXT("");
    if (name >= 0 && name < (double)g->strings.count)
        location = strings_get(g->r.tree->strings, g->strings.items[(size_t)name]);
    struct text_frame frame = {.name = location};
    if (text_starts(location, TEXT("0x")) && text_hex_to_u64(text_from(location, 2), &address)) {
        frame.object = path_of(g, address);
        frame.name = frame.object.length ? TEXT("") : location;
    } else {
        split_script(location, &frame);
    }
    frame.line = line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
    g->r.stack.locations.count = 0;
    stack_push_frame(&g->r.stack, &frame);
    vector_push(&g->locations, g->r.stack.locations.items[--g->r.stack.locations.count]);
    return true;
}

static bool take_stack(struct gecko *g, const double *cells) {
    double parent = cells[0], frame = cells[1];
    if (frame < 0 || frame >= (double)g->locations.count || parent >= (double)g->nodes.count)
        return complain(g, "a stack has no such frame, or comes before its parent");
    vector_push(&g->nodes, tree_add_node(g->r.tree, parent < 0 ? 0 : g->nodes.items[(size_t)parent],
                                         g->locations.items[(size_t)frame]));
    return true;
}

/* A thread that slept has the same stack as before: it counts as often as it was sampled, as in the Profiler. */
static bool take_sample(struct gecko *g, const double *cells) {
    double stack = cells[0], time = cells[1] + (g->start - g->first_start);
    if (stack < 0)
        return true;
    if (stack >= (double)g->nodes.count)
        return complain(g, "a sample refers to a stack that does not exist");
    uint64_t at = double_to_u64(round((time > 0 ? time : 0) * 1e6));
    stack_count_at(&g->r.stack, g->nodes.items[(size_t)stack], 1, 1, at + !at);
    return true;
}

/* ---- threads ---- */

static int32_t small_id(double id) {
    return id > 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

static bool id_value(struct gecko *g, int64_t *id) {
    double value = NONE;
    uint64_t number;
    *id = NONE;
    if (json_peek(&g->json) != '"') {
        bool fine = number_value(g, &value);
        *id = small_id(value);
        return fine;
    }
    bool fine = json_text(&g->json, &g->text);
    if (text_to_u64(buffer_text(&g->text), &number) && number <= INT32_MAX)
        *id = (int64_t)number;
    return fine;
}

static bool read_tables(struct gecko *g, const struct parts *parts) {
    static const char *const frame_columns[] = {"location", "line"},
                             *const stack_columns[] = {"prefix", "frame"},
                             *const sample_columns[] = {"stack", "time"};
    g->strings.count = g->locations.count = g->nodes.count = 0;
    return take_strings(g, parts->strings) &&
           read_table(g, parts->frames, frame_columns, 2, take_frame) &&
           read_table(g, parts->stacks, stack_columns, 2, take_stack) &&
           read_table(g, parts->samples, sample_columns, 2, take_sample);
}

static bool read_thread(struct gecko *g) {
    struct parts parts = {0};
    bool fine = json_take(&g->json, '{');
    g->pid = g->tid = NONE;
    g->name.count = g->process.count = 0;
    while (fine && json_member(&g->json, &g->key)) {
        struct json *part = is(&g->key, "samples")       ? &parts.samples
                            : is(&g->key, "stackTable")  ? &parts.stacks
                            : is(&g->key, "frameTable")  ? &parts.frames
                            : is(&g->key, "stringTable") ? &parts.strings
                                                         : NULL;
        if (part)
            *part = g->json;
        fine = is(&g->key, "name")          ? json_text(&g->json, &g->name)
               : is(&g->key, "processName") ? json_text(&g->json, &g->process)
               : is(&g->key, "pid")         ? id_value(g, &g->pid)
               : is(&g->key, "tid")         ? id_value(g, &g->tid)
                                            : json_skip(&g->json);
    }
    if (!fine)
        return false;
    struct json end = g->json;
    stack_set_event(&g->r.stack, TEXT("samples"), TEXT("samples"));
    stack_set_thread(&g->r.stack, buffer_text(&g->name), (int32_t)g->pid, (int32_t)g->tid);
    stack_set_label(&g->r.stack, TEXT("process"), buffer_text(&g->process));
    fine = read_tables(g, &parts);
    g->json = fine ? end : g->json;
    return fine;
}

/* ---- processes ---- */

static bool read_lib(struct gecko *g) {
    struct gecko_lib lib = {0};
    double start = 0, end = 0;
    bool fine = json_take(&g->json, '{');
    g->text.count = 0;
    while (fine && json_member(&g->json, &g->key))
        fine = is(&g->key, "start")  ? number_value(g, &start)
               : is(&g->key, "end")  ? number_value(g, &end)
               : is(&g->key, "path") ? json_text(&g->json, &g->text)
                                     : json_skip(&g->json);
    lib.start = double_to_u64(start > 0 ? start : 0);
    lib.end = double_to_u64(end > 0 ? end : 0);
    lib.path = strings_add(g->r.tree->strings, buffer_text(&g->text));
    vector_push(&g->libs, lib);
    return fine;
}

static bool read_list(struct gecko *g, struct json list, bool (*read)(struct gecko *)) {
    if (!list.rest.length)
        return true;
    g->json = list;
    bool fine = json_take(&g->json, '[') || json_skip(&g->json);
    while (fine && list.rest.data[0] == '[' && json_element(&g->json) && !stops(g))
        fine = read(g);
    return fine;
}

static bool add_process(struct gecko *g) {
    vector_push(&g->waiting, g->json);
    return json_skip(&g->json);
}

static bool read_start(struct gecko *g, double *start) {
    bool fine = json_take(&g->json, '{');
    while (fine && json_member(&g->json, &g->text))
        fine = is(&g->text, "startTime") ? number_value(g, start) : json_skip(&g->json);
    return fine;
}

static bool read_process(struct gecko *g) {
    struct parts parts = {0};
    const char *begin = g->json.rest.data;
    bool fine = json_take(&g->json, '{');
    while (fine && json_member(&g->json, &g->key)) {
        struct json *part = is(&g->key, "libs")        ? &parts.libs
                            : is(&g->key, "threads")   ? &parts.threads
                            : is(&g->key, "processes") ? &parts.processes
                                                       : NULL;
        json_peek(&g->json); /* skip white space for read_list() */
        if (part)
            *part = g->json;
        if (is(&g->key, "profile") &&
            json_peek(&g->json) == '{') /* inside the object that DevTools saved */
            vector_push(&g->waiting, g->json);
        fine = is(&g->key, "meta") && json_peek(&g->json) == '{' ? read_start(g, &parts.start)
                                                                 : json_skip(&g->json);
    }
    if (!g->has_start)
        g->first_start = parts.start;
    g->has_start |= parts.threads.rest.length > 0;
    g->start = parts.start;
    g->libs.count = 0;
    /* A nested process is scanned again for each process around it. */
    return fine &&
           budget_take_steps(g->r.options->budget, (uint64_t)(g->json.rest.data - begin) / 4 + 100,
                             (uint64_t)(begin - g->r.content.data)) &&
           read_list(g, parts.libs, read_lib) && read_list(g, parts.threads, read_thread) &&
           read_list(g, parts.processes, add_process);
}

static bool gecko_read(struct text content, const char *path, const struct import_options *options,
                       struct tree *tree, struct error *error) {
    struct gecko g = {.json = {content}};
    reader_init(&g.r, content, path, options, tree, TEXT(""), error);
    vector_push(&g.waiting, g.json);
    bool fine = true;
    while (fine && g.waiting.count) {
        g.json = g.waiting.items[--g.waiting.count];
        fine =
            budget_take_steps(options->budget, 1000, (uint64_t)(g.json.rest.data - content.data)) &&
            read_process(&g);
    }
    if (!fine && !g.said && budget_exceeded(options->budget))
        budget_error(options->budget, path, error);
    else if (!fine && !g.said)
        error_at(error, path, (uint64_t)(g.json.rest.data - content.data), "not a Gecko profile");
    buffer_release(&g.key);
    buffer_release(&g.text);
    buffer_release(&g.name);
    buffer_release(&g.process);
    vector_release(&g.waiting);
    vector_release(&g.libs);
    vector_release(&g.strings);
    vector_release(&g.locations);
    vector_release(&g.nodes);
    reader_release(&g.r);
    return fine;
}

static int gecko_score(struct text beginning) {
    struct json json = {beginning};
    static const char *const parts[] = {"\"schema\"", "\"stackTable\"", "\"stringTable\""};
    if (json_peek(&json) != '{' ||
        text_search(beginning, TEXT("\"preprocessedProfileVersion\"")) != SIZE_MAX)
        return 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (text_search(beginning, text_of(parts[i])) == SIZE_MAX)
            return 0;
    return 96;
}

const struct import_format format_gecko = {"gecko",
                                           "Firefox's own recordings: Gecko profiles, JSON",
                                           gecko_score, gecko_read, TELLS_TIMES};
