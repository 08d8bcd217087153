/*
 * Read sections into a tree. Every number is checked before it is used as an index; parents precede their children,
 * so that walking up always ends. What the filter drops is not added to the tree.
 *
 * Nodes are copied as one array; locations and series are added to the tree's indexes, so that others can be added
 * later.
 */
#include <stdlib.h>

#include "object/object.h"
#include "saved/layout.h"

struct reader {
    struct container container;
    const struct profile_options *options;
    struct tree *tree;
    struct error *error;
    struct buffer plain; /* decompressed content of the current section */
    uint32_t string_count, object_count, thread_count, label_count, series_count, function_count,
        location_count, node_count;
    uint32_t *strings, *objects, *threads, *labels, *series, *functions,
        *locations;     /* by the file's number: the tree's */
    bool *chosen;       /* by the file's series: it passes the filter */
    struct text *texts; /* by the file's string: its text in the tree */
};

/* ---- checks ---- */

static bool begin(struct reader *r, uint32_t tag, struct rows *rows, const char *what) {
    if (!container_rows(&r->container, tag, &r->plain, rows, r->error))
        return false;
    if (rows->count >= UINT32_MAX)
        return rows_error(rows, r->error, what);
    struct budget *budget = r->tree->budget;
    if (!budget)
        return true;
    budget_grow(budget, r->plain.count);
    return budget_take_steps(budget, rows->count, rows->offset) ||
           budget_error(budget, r->container.path, r->error);
}

/* Check that all numbers of a column are at most `most`. */
static bool within(const uint8_t *column, uint64_t count, uint32_t most) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t value = column_u32(column, i);
        largest = value > largest ? value : largest;
    }
    return largest <= most;
}

/* ---- strings, objects, events, threads ---- */

static bool read_meta(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_META, &rows, "metadata"))
        return false;
    const uint8_t *flags = rows_column(&rows, 4);
    const uint8_t *deviation = rows.rest.length ? rows_column(&rows, 8) : NULL;
    if (rows.short_of || rows.count != 1)
        return rows_error(&rows, r->error, "metadata");
    uint32_t meant = column_u32(flags, 0) >> META_MEANT_SHIFT & META_MEANT;
    r->tree->recorded = column_u32(flags, 0) & META_RECORDED;
    r->tree->is_heap = column_u32(flags, 0) & META_HEAP;
    r->tree->is_estimated = column_u32(flags, 0) & META_ESTIMATED;
    r->tree->deviation = deviation ? column_u64(deviation, 0) : 0;
    r->tree->meant = meant <= TIMES_BOTH ? (enum times)meant : TIMES_RUNNING;
    return true;
}

static bool read_when(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_WHEN, &rows, "date"))
        return false;
    const uint8_t *began = rows_column(&rows, 8), *lasted = rows_column(&rows, 8);
    if (rows.short_of || rows.count > 1)
        return rows_error(&rows, r->error, "date");
    if (rows.count) {
        r->tree->began = column_u64(began, 0);
        r->tree->lasted = column_u64(lasted, 0);
    }
    return true;
}

static bool read_strings(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_STRINGS, &rows, "strings"))
        return false;
    const uint8_t *lengths = rows_column(&rows, 4);
    if (rows.short_of)
        return rows_error(&rows, r->error, "strings");
    r->string_count = (uint32_t)rows.count;
    r->strings = memory_zero(rows.count + 1, sizeof *r->strings);
    r->texts = memory_zero(rows.count + 1, sizeof *r->texts);
    r->texts[0] = TEXT("");
    for (size_t i = 0; i < rows.count; i++) {
        struct text text = rows_bytes(&rows, column_u32(lengths, i));
        if (rows.short_of)
            return rows_error(&rows, r->error, "strings");
        r->strings[i + 1] = strings_add(r->tree->strings, text);
        r->texts[i + 1] = strings_get(r->tree->strings, r->strings[i + 1]);
    }
    return true;
}

static bool read_objects(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_OBJECTS, &rows, "objects"))
        return false;
    const uint8_t *kinds = rows_column(&rows, 4), *paths = rows_column(&rows, 4),
                  *pids = rows_column(&rows, 4);
    const uint8_t *starts = rows_column(&rows, 8), *sizes = rows_column(&rows, 8);
    const uint8_t *id_sizes = rows_column(&rows, 4), *ids = rows_column(&rows, BUILD_ID_MAX);
    if (rows.short_of || !within(kinds, rows.count, OBJECT_NAME) ||
        !within(paths, rows.count, r->string_count) || !within(id_sizes, rows.count, BUILD_ID_MAX))
        return rows_error(&rows, r->error, "objects");
    r->object_count = (uint32_t)rows.count;
    r->objects = memory_zero(rows.count + 1, sizeof *r->objects);
    if (rows.count)
        r->tree->objects = objects_new(&(struct objects_options){0});
    for (size_t i = 0; i < rows.count; i++) {
        struct object_identity identity = {.kind = column_u32(kinds, i),
                                           .path = r->texts[column_u32(paths, i)],
                                           .pid = (int32_t)column_u32(pids, i),
                                           .start = column_u64(starts, i),
                                           .size = column_u64(sizes, i)};
        identity.build_id.size = (uint8_t)column_u32(id_sizes, i);
        memcpy(identity.build_id.bytes, ids + i * BUILD_ID_MAX, identity.build_id.size);
        r->objects[i + 1] = objects_add(r->tree->objects, &identity);
    }
    return true;
}

static bool read_events(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_EVENTS, &rows, "events"))
        return false;
    const uint8_t *names = rows_column(&rows, 4), *units = rows_column(&rows, 4);
    const uint8_t *kinds = rows_column(&rows, 4), *chains = rows_column(&rows, 4);
    if (rows.short_of || !within(names, rows.count, r->string_count) ||
        !within(units, rows.count, r->string_count) || !within(kinds, rows.count, EVENT_BEFORE) ||
        !within(chains, rows.count, 1))
        return rows_error(&rows, r->error, "events");
    for (size_t i = 0; i < rows.count; i++) {
        uint32_t id = tree_add_event(r->tree, r->texts[column_u32(names, i)],
                                     r->texts[column_u32(units, i)], column_u32(kinds, i));
        r->tree->events.items[id].chains = column_u32(chains, i);
    }
    return true;
}

static bool read_times(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_TIMES, &rows, "times"))
        return false;
    const uint8_t *times = rows_column(&rows, 4);
    if (rows.short_of || (rows.count && rows.count != r->tree->events.count - 1) ||
        !within(times, rows.count, TIME_ASIDE))
        return rows_error(&rows, r->error, "times");
    for (size_t i = 0; i < rows.count; i++)
        r->tree->events.items[i + 1].time = column_u32(times, i);
    return true;
}

static bool read_threads(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_THREADS, &rows, "threads"))
        return false;
    const uint8_t *pids = rows_column(&rows, 4), *tids = rows_column(&rows, 4);
    const uint8_t *starts = rows_column(&rows, 8), *ends = rows_column(&rows, 8),
                  *unnamed = rows_column(&rows, 4);
    if (rows.short_of || !within(unnamed, rows.count, 1))
        return rows_error(&rows, r->error, "threads");
    r->thread_count = (uint32_t)rows.count;
    r->threads = memory_zero(rows.count + 1, sizeof *r->threads);
    for (size_t i = 0; i < rows.count; i++) {
        struct thread thread = {.pid = (int32_t)column_u32(pids, i),
                                .tid = (int32_t)column_u32(tids, i),
                                .start = column_u64(starts, i),
                                .end = column_u64(ends, i),
                                .unnamed = column_u32(unnamed, i)};
        r->threads[i + 1] = tree_add_thread(r->tree, &thread);
    }
    return true;
}

/* ---- series ---- */

/* Read the pairs of one set: key, value. */
static bool read_label_set(struct reader *r, struct text bytes, uint32_t *labels) {
    VECTOR(struct label_pair) pairs = {0};
    bool fine = true;
    for (size_t at = 0; at < bytes.length && fine; at += 8) {
        uint32_t key = load_u32(bytes.data + at), value = load_u32(bytes.data + at + 4);
        fine = key <= r->string_count && value <= r->string_count && !label_is_fixed(r->texts[key]);
        if (fine)
            vector_push(&pairs, ((struct label_pair){r->strings[key], r->strings[value]}));
    }
    if (fine)
        *labels = tree_add_labels(r->tree, pairs.items, pairs.count);
    vector_release(&pairs);
    return fine;
}

static bool read_labels(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_LABELS, &rows, "labels"))
        return false;
    const uint8_t *counts = rows_column(&rows, 4);
    if (rows.short_of)
        return rows_error(&rows, r->error, "labels");
    r->label_count = (uint32_t)rows.count;
    r->labels = memory_zero(rows.count + 1, sizeof *r->labels);
    for (size_t i = 0; i < rows.count; i++) {
        struct text pairs = rows_bytes(&rows, (uint64_t)column_u32(counts, i) * 8);
        if (rows.short_of || !read_label_set(r, pairs, &r->labels[i + 1]))
            return rows_error(&rows, r->error, "labels");
    }
    return true;
}

/* Return true if the filter passes a series, except for times and CPUs, which belong to samples. */
static bool series_passes(const struct reader *r, const struct series *series) {
    struct filter filter = r->options->filter;
    const struct tree *tree = r->tree;
    const struct thread *thread = &tree->threads.items[series->thread];
    filter.cpu_count = 0;
    filter.has_time = false;
    if (filter.event_count &&
        !filter_event(&filter, strings_get(tree->strings, tree->events.items[series->event].name)))
        return false;
    struct buffer comm = {0};
    if (series->comm || series->thread)
        tree_add_comm(tree, series, &comm);
    bool passes =
        filter_sample(&filter, series->thread ? thread->pid : -1, series->thread ? thread->tid : -1,
                      buffer_text(&comm), UINT32_MAX, 0);
    buffer_release(&comm);
    return passes;
}

static bool read_series(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_SERIES, &rows, "series"))
        return false;
    const uint8_t *events = rows_column(&rows, 4), *threads = rows_column(&rows, 4),
                  *comms = rows_column(&rows, 4);
    const uint8_t *states = rows_column(&rows, 4), *endings = rows_column(&rows, 4),
                  *labels = rows_column(&rows, 4);
    if (rows.short_of || !within(events, rows.count, (uint32_t)r->tree->events.count - 1) ||
        !within(threads, rows.count, r->thread_count) ||
        !within(comms, rows.count, r->string_count) ||
        !within(states, rows.count, STATE_PREEMPTED) ||
        !within(endings, rows.count, ENDING_UNKNOWN) || !within(labels, rows.count, r->label_count))
        return rows_error(&rows, r->error, "series");
    r->series_count = (uint32_t)rows.count;
    r->series = memory_zero(rows.count + 1, sizeof *r->series);
    r->chosen = memory_zero(rows.count + 1, sizeof *r->chosen);
    for (size_t i = 0; i < rows.count; i++) {
        struct series series = {.event = column_u32(events, i),
                                .thread = r->threads[column_u32(threads, i)],
                                .comm = r->strings[column_u32(comms, i)],
                                .labels = r->labels[column_u32(labels, i)],
                                .state = (uint8_t)column_u32(states, i),
                                .ending = (uint8_t)column_u32(endings, i)};
        if (!series.event)
            return rows_error(&rows, r->error, "series");
        r->series[i + 1] = tree_add_series(r->tree, &series);
        r->chosen[i + 1] = series_passes(r, &series);
    }
    return true;
}

/* ---- locations ---- */

/* Frames are in the order of their locations. */
static bool read_frames(struct reader *r, const uint32_t *counts) {
    struct rows rows;
    if (!begin(r, SECTION_FRAMES, &rows, "frames"))
        return false;
    const uint8_t *names = rows_column(&rows, 4), *files = rows_column(&rows, 4),
                  *lines = rows_column(&rows, 4);
    const uint8_t *columns = rows_column(&rows, 4), *offsets = rows_column(&rows, 8),
                  *inlined = rows_column(&rows, 4);
    uint64_t sum = 0;
    for (uint32_t i = 1; i <= r->location_count; i++)
        sum += counts[i];
    if (rows.short_of || sum != rows.count || !within(names, rows.count, r->string_count) ||
        !within(files, rows.count, r->string_count) || !within(inlined, rows.count, 1))
        return rows_error(&rows, r->error, "frames");
    const uint8_t *languages = rows.rest.length ? rows_column(&rows, 4) : NULL;
    if (rows.short_of || (languages && !within(languages, rows.count, r->string_count)))
        return rows_error(&rows, r->error, "frames");
    size_t at = 0;
    for (uint32_t i = 1; i <= r->location_count; at += counts[i++]) {
        struct location *location = &r->tree->locations.items[r->locations[i]];
        if (location->frame_count || !counts[i]) /* the first of two equal locations has them */
            continue;
        location->first_frame = (uint32_t)r->tree->frames.count;
        location->frame_count = r->options->no_inline ? 1 : counts[i];
        for (uint32_t k = 0; k < location->frame_count; k++) {
            size_t name = at + k, line = r->options->no_inline ? at + counts[i] - 1 : name;
            struct frame frame = {.name = r->strings[column_u32(names, name)],
                                  .offset = column_u64(offsets, name),
                                  .inlined = column_u32(inlined, name)};
            frame.language = languages ? r->strings[column_u32(languages, name)] : 0;
            if (r->options->source_lines || r->options->saved_lines) {
                frame.file = r->strings[column_u32(files, line)];
                frame.line = column_u32(lines, line);
                frame.column = column_u32(columns, line);
            }
            vector_push(&r->tree->frames, frame);
        }
    }
    return true;
}

static bool read_functions(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_FUNCTIONS, &rows, "functions"))
        return false;
    const uint8_t *names = rows_column(&rows, 4), *files = rows_column(&rows, 4),
                  *lines = rows_column(&rows, 4);
    const uint8_t *modules = rows_column(&rows, 4), *languages = rows_column(&rows, 4);
    if (rows.short_of || !within(names, rows.count, r->string_count) ||
        !within(files, rows.count, r->string_count) ||
        !within(modules, rows.count, r->string_count) ||
        !within(languages, rows.count, r->string_count))
        return rows_error(&rows, r->error, "functions");
    r->function_count = (uint32_t)rows.count;
    r->functions = memory_zero(rows.count + 1, sizeof *r->functions);
    for (size_t i = 0; i < rows.count; i++) {
        struct function function = {.name = r->strings[column_u32(names, i)],
                                    .file = r->strings[column_u32(files, i)],
                                    .line = column_u32(lines, i),
                                    .module = r->strings[column_u32(modules, i)],
                                    .language = r->strings[column_u32(languages, i)]};
        r->functions[i + 1] = tree_add_function(r->tree, &function);
    }
    return true;
}

static bool read_locations(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_LOCATIONS, &rows, "locations"))
        return false;
    const uint8_t *addresses = rows_column(&rows, 8), *raws = rows_column(&rows, 8),
                  *objects = rows_column(&rows, 4);
    const uint8_t *functions = rows_column(&rows, 4), *lines = rows_column(&rows, 4),
                  *kinds = rows_column(&rows, 4), *frames = rows_column(&rows, 4);
    if (rows.short_of || !within(objects, rows.count, r->object_count) ||
        !within(functions, rows.count, r->function_count))
        return rows_error(&rows, r->error, "locations");
    r->location_count = (uint32_t)rows.count;
    r->locations = memory_zero(rows.count + 1, sizeof *r->locations);
    uint32_t *counts = memory_zero(rows.count + 1, sizeof *counts);
    for (size_t i = 0; i < rows.count; i++) {
        uint32_t kind = column_u32(kinds, i);
        struct location location = {.address = column_u64(addresses, i),
                                    .raw = column_u64(raws, i),
                                    .object = r->objects[column_u32(objects, i)],
                                    .function = r->functions[column_u32(functions, i)],
                                    .line = column_u32(lines, i),
                                    .mode = (uint8_t)kind,
                                    .call = kind >> 8 & 1,
                                    .kinds = (uint8_t)(kind >> 16),
                                    .unwound = kind >> 24 & 1};
        if (location.mode > MODE_GUEST_KERNEL) {
            free(counts);
            return rows_error(&rows, r->error, "locations");
        }
        r->locations[i + 1] = tree_add_location(r->tree, &location);
        counts[i + 1] = column_u32(frames, i);
    }
    bool fine = read_frames(r, counts);
    free(counts);
    return fine;
}

/* ---- nodes and what was counted on them ---- */

static bool read_nodes(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_NODES, &rows, "nodes"))
        return false;
    const uint8_t *steps = rows_column(&rows, 4), *locations = rows_column(&rows, 4);
    if (rows.short_of || !within(locations, rows.count, r->location_count))
        return rows_error(&rows, r->error, "nodes");
    r->node_count = (uint32_t)rows.count;
    vector_reserve(&r->tree->nodes, rows.count + 1);
    for (uint32_t i = 1; i <= r->node_count; i++) {
        uint32_t step = column_u32(steps, i - 1), location = column_u32(locations, i - 1);
        if (step == 0 || step > i || location == 0)
            return rows_error(&rows, r->error, "nodes");
        tree_append_node(r->tree, i - step, r->locations[location]);
    }
    return true;
}

static bool read_cells(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_CELLS, &rows, "cells"))
        return false;
    const uint8_t *steps = rows_column(&rows, 4), *series = rows_column(&rows, 4);
    const uint8_t *samples = rows_column(&rows, 8), *weights = rows_column(&rows, 8);
    if (rows.short_of || !within(series, rows.count, r->series_count))
        return rows_error(&rows, r->error, "cells");
    vector_reserve(&r->tree->cells, rows.count + 1);
    uint64_t node = 0;
    for (size_t i = 0; i < rows.count; i++) {
        struct cell cell = {.series = column_u32(series, i),
                            .samples = column_u64(samples, i),
                            .weight = column_u64(weights, i)};
        node += column_u32(steps, i);
        if (node > r->node_count || !cell.series)
            return rows_error(&rows, r->error, "cells");
        if (!r->chosen[cell.series])
            continue;
        cell.node = (uint32_t)node;
        cell.series = r->series[cell.series];
        tree_append_cell(r->tree, &cell);
    }
    return true;
}

/* --time and --cpu select samples, so the counts are then summed again. */
static void count_sample(struct reader *r, const struct sample *sample, bool anew) {
    if (anew)
        tree_count(r->tree, sample->node, sample->series, 1, sample->weight);
    tree_keep_sample(r->tree, sample);
}

static bool read_samples(struct reader *r, bool anew) {
    const struct filter filter = {.cpus = r->options->filter.cpus,
                                  .cpu_count = r->options->filter.cpu_count,
                                  .has_time = r->options->filter.has_time,
                                  .time_from = r->options->filter.time_from,
                                  .time_to = r->options->filter.time_to};
    struct rows rows;
    if (!begin(r, SECTION_SAMPLES, &rows, "samples"))
        return false;
    const uint8_t *steps = rows_column(&rows, 8), *weights = rows_column(&rows, 8),
                  *nodes = rows_column(&rows, 4);
    const uint8_t *series = rows_column(&rows, 4), *cpus = rows_column(&rows, 4);
    if (rows.short_of || !within(nodes, rows.count, r->node_count) ||
        !within(series, rows.count, r->series_count))
        return rows_error(&rows, r->error, "samples");
    if (anew && !rows.count && r->node_count)
        return error_set(r->error, ERROR_INPUT,
                         "%s: saved without times, which --time and --cpu need", r->container.path);
    uint64_t time = 0;
    for (size_t i = 0; i < rows.count; i++) {
        uint32_t in = column_u32(series, i);
        time += column_u64(steps, i);
        if (!in)
            return rows_error(&rows, r->error, "samples");
        struct sample sample = {.time = time,
                                .offset = i,
                                .weight = column_u64(weights, i),
                                .node = column_u32(nodes, i),
                                .series = r->series[in],
                                .cpu = column_u32(cpus, i)};
        if (r->chosen[in] && filter_sample(&filter, 0, 0, TEXT(""), sample.cpu, sample.time))
            count_sample(r, &sample, anew);
    }
    return true;
}

static bool read_sources(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_SOURCES, &rows, "sources"))
        return false;
    const uint8_t *files = rows_column(&rows, 4), *sizes = rows_column(&rows, 4);
    bool fine = !rows.short_of && within(files, rows.count, r->string_count);
    for (size_t i = 0; i < rows.count && fine; i++) {
        struct text text = rows_bytes(&rows, column_u32(sizes, i));
        struct attached_source source = {r->strings[column_u32(files, i)], text};
        fine = !rows.short_of && source.file;
        if (fine) {
            source.text = arena_copy(&r->tree->attached, text);
            vector_push(&r->tree->sources, source);
        }
    }
    return fine || rows_error(&rows, r->error, "sources");
}

static bool read_codes(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_CODES, &rows, "code"))
        return false;
    const uint8_t *objects = rows_column(&rows, 4), *machines = rows_column(&rows, 4);
    const uint8_t *starts = rows_column(&rows, 8), *sizes = rows_column(&rows, 4);
    bool fine = !rows.short_of && within(objects, rows.count, r->object_count);
    for (size_t i = 0; i < rows.count && fine; i++) {
        struct text bytes = rows_bytes(&rows, column_u32(sizes, i));
        struct attached_code code = {r->objects[column_u32(objects, i)], column_u32(machines, i),
                                     column_u64(starts, i), bytes};
        fine = !rows.short_of && code.object;
        if (fine) {
            code.bytes = arena_copy(&r->tree->attached, bytes);
            vector_push(&r->tree->codes, code);
        }
    }
    return fine || rows_error(&rows, r->error, "code");
}

static bool read_notes(struct reader *r) {
    struct rows rows;
    if (!begin(r, SECTION_NOTES, &rows, "notes"))
        return false;
    const uint8_t *names = rows_column(&rows, 4), *sentences = rows_column(&rows, 4),
                  *examples = rows_column(&rows, 4);
    const uint8_t *apart = rows_column(&rows, 4), *counts = rows_column(&rows, 8),
                  *places = rows_column(&rows, 8);
    const uint8_t *views = rows.rest.length ? rows_column(&rows, 4) : NULL;
    enum { NOTES_MOST = 1000 };
    if (rows.short_of || rows.count > NOTES_MOST || !within(names, rows.count, r->string_count) ||
        !within(sentences, rows.count, r->string_count) ||
        !within(examples, rows.count, r->string_count) ||
        (views && !within(views, rows.count, VIEWS_OF_TIMES)))
        return rows_error(&rows, r->error, "notes");
    for (size_t i = 0; i < rows.count; i++) {
        uint32_t example = column_u32(examples, i);
        struct note_kind kind = {.name = r->texts[column_u32(names, i)].data,
                                 .sentence = r->texts[column_u32(sentences, i)].data,
                                 .apart = example && column_u32(apart, i)};
        struct notes one = {0};
        notes_add_copied(&one, &kind, column_u64(counts, i), column_u64(places, i),
                         example ? r->texts[example].data : NULL);
        notes_merge_for(&r->tree->notes, &one, views ? (uint8_t)column_u32(views, i) : 0);
        notes_release(&one);
    }
    return true;
}

static void reader_release(struct reader *r) {
    container_release(&r->container);
    buffer_release(&r->plain);
    free(r->strings);
    free(r->objects);
    free(r->threads);
    free(r->labels);
    free(r->series);
    free(r->functions);
    free(r->locations);
    free(r->chosen);
    free(r->texts);
}

bool saved_read(struct text content, const char *path, const struct profile_options *options,
                struct tree *tree, struct error *error) {
    struct reader r = {.options = options, .tree = tree, .error = error};
    bool anew = options->filter.has_time || options->filter.cpu_count;
    bool fine = container_open(&r.container, content, path, error) && read_meta(&r) &&
                read_when(&r) && read_strings(&r) && read_objects(&r) && read_events(&r) &&
                read_times(&r) && read_threads(&r) && read_labels(&r) && read_series(&r) &&
                read_functions(&r) && read_locations(&r) && read_nodes(&r) &&
                (anew || read_cells(&r)) &&
                (!(anew || tree->keep_samples) || read_samples(&r, anew)) && read_sources(&r) &&
                read_codes(&r) && read_notes(&r);
    reader_release(&r);
    return fine;
}
