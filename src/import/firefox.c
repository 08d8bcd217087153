/*
 * The Firefox Profiler's processed profile, as written by the profiler itself, samply and `wick export --to firefox`,
 * plain or gzip.
 *
 * Everything is in tables of columns: stacks name frames, frames functions, functions strings. Up to version 59 each
 * thread has its own tables; later, all threads share one set. The parts may be in any order, so the document is
 * first scanned for their places, then read in the order of need.
 */
#include "import/firefox.h"

#include <math.h>
#include <stdlib.h>

enum { NONE = FIREFOX_NONE };

static const struct note_kind note_sidecar = {"symbols-beside",
                                              "symbols saved beside # profile{|s} could not be "
                                              "read; {its|their} functions are shown as addresses"};

static bool is(const struct buffer *key, struct text name) {
    return text_equal(buffer_text(key), name);
}

static bool stops(const struct firefox *f) {
    return import_stops(f->r.options, f->json.rest.data);
}

/* Read a number; true is 1, false 0, null none. */
static bool cell_value(struct firefox *f, double *value) {
    char c = json_peek(&f->json);
    *value = c == 't' ? 1 : c == 'f' ? 0 : NONE;
    return json_double(&f->json, value) || json_skip(&f->json);
}

/* JavaScript's numbers, of which only integers are used. */
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

/* ---- tables ---- */

static bool read_strings(struct firefox *f, struct tables *tables) {
    bool fine = json_take(&f->json, '[');
    while (fine && json_element(&f->json) && !stops(f)) {
        fine = json_text(&f->json, &f->kind);
        vector_push(&tables->strings, strings_add(f->r.tree->strings, buffer_text(&f->kind)));
    }
    return fine;
}

/* Read a table, or another member of a thread or of the shared part. */
static bool read_table(struct firefox *f, struct tables *tables, struct text table) {
    bool fine = true;
    if (text_equal(table, TEXT("stringArray")) || text_equal(table, TEXT("stringTable")))
        return json_peek(&f->json) == '[' ? read_strings(f, tables) : json_skip(&f->json);
    if (!firefox_wants_table(table) || !json_take(&f->json, '{'))
        return json_skip(&f->json);
    while (fine && json_member(&f->json, &f->key)) {
        struct numbers *numbers = firefox_column(tables, table, buffer_text(&f->key));
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
               : is(&f->key, TEXT("weightType")) ? json_text(&f->json, &f->kind)
                                                 : json_skip(&f->json);
    }
    return fine;
}

static bool complain(struct firefox *f, const char *what) {
    f->said = true;
    return error_set(f->r.error, ERROR_INPUT, "%s: thread %.*s: %s", f->r.path,
                     TEXT_ARGS(buffer_text(&f->name)), what);
}

static bool count_samples(struct firefox *f, struct tables *tables) {
    bool is_time = is(&f->kind, TEXT("tracing-ms")), is_bytes = is(&f->kind, TEXT("bytes"));
    double scale = is_time ? 1e6 : 1, now = 0;
    for (size_t i = 0; i < f->sample_stack.list.count && !stops(f); i++) {
        int64_t stack = f->sample_stack.list.items[i];
        double weight = f->weighed && i < f->weights.count ? f->weights.items[i] : 1;
        double time = i < f->times.count ? f->times.items[i] : 0;
        now = f->deltas ? now + time : time;
        if (stack == NONE)
            continue;
        if (stack < 0 || (uint64_t)stack >= tables->nodes.count)
            return complain(f, "a sample refers to a stack that does not exist");
        if (weight < 0)
            return complain(f, "a sample has a negative value: differences of two profiles can't "
                               "be read; read the profiles themselves");
        uint64_t counted = double_to_u64(round(weight * scale)),
                 at_time = double_to_u64(round(now * 1e6));
        stack_count_at(&f->r.stack, firefox_node(f, tables, (size_t)stack),
                       is_time || is_bytes ? 1 : counted, counted,
                       f->times.count ? at_time + !at_time : 0);
    }
    return true;
}

/* ---- threads ---- */

/* Read a number, or a text that begins with one. */
static bool id_value(struct firefox *f, int64_t *id) {
    double value = NONE;
    uint64_t number;
    *id = NONE;
    if (json_peek(&f->json) != '"') {
        bool fine = json_double(&f->json, &value) || json_skip(&f->json);
        *id = whole(value);
        return fine;
    }
    bool fine = json_text(&f->json, &f->key);
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
        fine = is(&key, TEXT("name"))          ? json_text(&f->json, &f->name)
               : is(&key, TEXT("processName")) ? json_text(&f->json, &f->process)
               : is(&key, TEXT("pid"))         ? id_value(f, &f->pid)
               : is(&key, TEXT("tid"))         ? id_value(f, &f->tid)
                                               : read_table(f, &own, buffer_text(&key));
    }
    end = f->json;
    bool shared = own.stack_frame.list.count == 0;
    fine = fine && (shared || firefox_check_stacks(f, &own));
    if (fine && samples.rest.length) {
        f->json = samples;
        fine = read_samples(f);
        choose_series(f);
        fine = fine && count_samples(f, shared ? &f->all : &own);
        f->json = fine ? end : f->json;
    }
    firefox_tables_release(&own);
    buffer_release(&key);
    return fine;
}

/* ---- the document ---- */

static bool read_list(struct firefox *f, bool (*read)(struct firefox *)) {
    bool fine = json_take(&f->json, '[');
    while (fine && json_element(&f->json) && !stops(f))
        fine = read(f);
    return fine;
}

static bool read_category(struct firefox *f) {
    bool fine = json_take(&f->json, '{');
    f->kind.count = 0;
    while (fine && json_member(&f->json, &f->key))
        fine = is(&f->key, TEXT("name")) ? json_text(&f->json, &f->kind) : json_skip(&f->json);
    uint32_t kinds = is(&f->kind, TEXT("Kernel"))    ? KIND_KERNEL
                     : is(&f->kind, TEXT("JIT"))     ? KIND_JIT
                     : is(&f->kind, TEXT("Library")) ? KIND_LIBRARY
                                                     : 0;
    vector_push(&f->categories, kinds);
    return fine;
}

static bool read_lib(struct firefox *f) {
    struct firefox_lib lib = {.in_sidecar = SIDECAR_NONE};
    bool fine = json_take(&f->json, '{');
    while (fine && json_member(&f->json, &f->key)) {
        bool path = is(&f->key, TEXT("path")), id = is(&f->key, TEXT("codeId")),
             debug_id = is(&f->key, TEXT("breakpadId")) && f->has_sidecar,
             base = is(&f->key, TEXT("wickBase"));
        fine = path || id || debug_id || base ? json_text(&f->json, &f->kind) : json_skip(&f->json);
        if (path)
            lib.path = strings_add(f->r.tree->strings, buffer_text(&f->kind));
        else if (id)
            lib.id = build_id_of_hex(buffer_text(&f->kind));
        else if (base && !text_hex_to_u64(buffer_text(&f->kind), &lib.base))
            lib.base = 0;
        else if (debug_id)
            lib.in_sidecar = sidecar_library(&f->sidecar, buffer_text(&f->kind));
    }
    vector_push(&f->libraries, lib);
    return fine;
}

static bool read_meta(struct firefox *f) {
    bool fine = json_take(&f->json, '{');
    while (fine && json_member(&f->json, &f->key)) {
        if (is(&f->key, TEXT("symbolicated")))
            f->symbolicated = json_peek(&f->json) == 't';
        fine = is(&f->key, TEXT("categories")) && json_peek(&f->json) == '['
                   ? read_list(f, read_category)
                   : json_skip(&f->json);
    }
    return fine;
}

static bool read_libs(struct firefox *f) {
    return read_list(f, read_lib);
}

static bool read_threads(struct firefox *f) {
    return read_list(f, read_thread);
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

/* Read the symbols that samply saved beside the profile. Without them the profile still has its addresses. */
static void read_sidecar(struct firefox *f) {
    if (!f->r.options->sidecar.length || f->symbolicated)
        return;
    f->has_sidecar = sidecar_read(&f->sidecar, f->r.options, f->r.tree);
    if (!f->has_sidecar)
        notes_add(&f->r.tree->notes, &note_sidecar, 1,
                  (uint64_t)(f->sidecar.json.rest.data - f->r.options->sidecar.data), "%s",
                  f->r.path);
}

static bool read_document(struct firefox *f) {
    bool fine = find_parts(f) && read_part(f, f->meta, read_meta);
    if (fine)
        read_sidecar(f);
    return fine && read_part(f, f->libs, read_libs) && read_part(f, f->shared, read_shared) &&
           firefox_check_stacks(f, &f->all) && read_part(f, f->threads, read_threads);
}

static bool firefox_read(struct text content, const char *path,
                         const struct import_options *options, struct tree *tree,
                         struct error *error) {
    struct firefox f = {.json = {content}};
    reader_init(&f.r, content, path, options, tree, TEXT(""), error);
    bool fine = read_document(&f);
    if (!fine && !f.said)
        error_at(error, path, (uint64_t)(f.json.rest.data - content.data),
                 "not a processed profile of the Firefox Profiler");
    firefox_tables_release(&f.all);
    sidecar_release(&f.sidecar);
    buffer_release(&f.key);
    buffer_release(&f.name);
    buffer_release(&f.process);
    buffer_release(&f.kind);
    vector_release(&f.libraries);
    vector_release(&f.way);
    vector_release(&f.lines);
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
