/*
 * Script text: what perf 6.1's `perf script` prints, sample by sample.
 *
 * Most of the text is frames, and most frames are the same few thousand locations. So the lines of each location are formatted once, in parallel,
 * and a sample is its own line followed by copies of these. All threads format samples in chunks; each writes its chunk in turn, so memory holds
 * one chunk for each thread and the text is in order.
 */
#include "view/script.h"

#include <stdlib.h>

enum { LINES_CHUNK = 256, ROWS_CHUNK = 256 };

/* ---- the lines of locations ---- */

static void line_add_source(const struct script *script, struct buffer *buffer,
                            const struct frame *frame) {
    if (!script->source_lines || !frame || !frame->file || !frame->line)
        return;
    struct text file = strings_get(script->profile->tree->strings, frame->file);
    size_t slash = text_find_last(file, '/');
    buffer_add(buffer, TEXT("  "));
    buffer_add_shown(buffer, slash == SIZE_MAX ? file : text_from(file, slash + 1));
    buffer_printf(buffer, ":%u\n", frame->line);
}

static void line_add_frame(const struct script *script, struct buffer *buffer,
                           const struct location *location, const struct frame *frame, bool brief) {
    const struct profile *profile = script->profile;
    buffer_printf(buffer, "\t%*llx ", SCRIPT_ADDRESS_WIDTH, (unsigned long long)location->address);
    if (frame && frame->name) {
        buffer_add(buffer, strings_get(profile->tree->strings, frame->name));
        if (!brief) {
            buffer_add(buffer, TEXT("+0x"));
            buffer_add_hex(buffer, frame->offset);
        }
    } else {
        buffer_add(buffer, TEXT("[unknown]"));
    }
    if (brief && !(frame && frame->inlined)) {
        buffer_add_char(buffer, '\n');
        return;
    }
    buffer_add(buffer, TEXT(" ("));
    if (frame && frame->inlined)
        buffer_add(buffer, TEXT("inlined"));
    else
        buffer_add(buffer, location->object ? objects_shown(profile->objects, location->object)
                                            : TEXT("[unknown]"));
    buffer_add(buffer, TEXT(")\n"));
}

/* A function that an interpreter ran has no address, but always its line. */
static size_t line_add_named(const struct script *script, struct buffer *buffer,
                             const struct location *location, bool brief) {
    const struct tree *tree = script->profile->tree;
    struct frame frame = location_frame(tree, location, 0);
    size_t start = buffer->count;
    buffer_printf(buffer, "\t%*llx ", SCRIPT_ADDRESS_WIDTH, 0ull);
    buffer_add_shown(buffer, strings_get(tree->strings, frame.name));
    if (!brief) {
        buffer_add(buffer, TEXT(" ("));
        buffer_add_shown(buffer,
                         frame.file ? strings_get(tree->strings, frame.file) : TEXT("[unknown]"));
        if (frame.file && frame.line)
            buffer_printf(buffer, ":%u", frame.line);
        buffer_add_char(buffer, ')');
    }
    buffer_add_char(buffer, '\n');
    return start;
}

size_t script_add_lines(const struct script *script, struct buffer *buffer, uint32_t id,
                        bool brief) {
    const struct tree *tree = script->profile->tree;
    const struct location *location = &tree->locations.items[id];
    size_t last = buffer->count;
    if (location->function)
        return line_add_named(script, buffer, location, brief);
    for (uint32_t i = location->frame_count; i-- > 0;) {
        const struct frame *frame = &tree->frames.items[location->first_frame + i];
        last = buffer->count;
        line_add_frame(script, buffer, location, frame, brief);
        line_add_source(script, buffer, frame);
    }
    if (!location->frame_count)
        line_add_frame(script, buffer, location, NULL, brief);
    return last;
}

struct lines_job {
    struct script *script;
    struct arena *arenas; /* one a worker */
    struct buffer_apart *buffers;
};

static void lines_chunk(void *context, unsigned worker, size_t item) {
    struct lines_job *job = context;
    size_t end = (item + 1) * LINES_CHUNK, count = job->script->profile->tree->locations.count;
    for (size_t i = item * LINES_CHUNK; i < end && i < count; i++) {
        struct buffer *buffer = &job->buffers[worker].buffer;
        buffer->count = 0;
        size_t last = script_add_lines(job->script, buffer, (uint32_t)i, false);
        job->script->lines[i] =
            (struct script_line){arena_copy(&job->arenas[worker], buffer_text(buffer)), last};
    }
}

/* The arenas hold the lines: the caller releases them. */
static void lines_make(struct script *script, struct arena *arenas, struct buffer_apart *buffers,
                       unsigned threads) {
    size_t count = script->profile->tree->locations.count;
    script->lines = memory_alloc(count * sizeof *script->lines);
    struct lines_job job = {script, arenas, buffers};
    parallel_run(threads, (count + LINES_CHUNK - 1) / LINES_CHUNK, lines_chunk, &job);
}

/* ---- rows ---- */

static void comms_make(struct script *script) {
    const struct tree *tree = script->profile->tree;
    struct buffer comm = {0};
    script->comms = memory_zero(tree->series.count, sizeof *script->comms);
    for (size_t i = 0; i < tree->series.count; i++) {
        comm.count = 0;
        tree_add_comm(tree, &tree->series.items[i], &comm);
        script->comms[i] = arena_copy(&script->arena, buffer_text(&comm));
    }
    buffer_release(&comm);
}

/* The tree's events are those of the file that are shown, in its order. */
static void event_places_make(struct script *script) {
    const struct tree *tree = script->profile->tree;
    const struct perfdata *data = script->profile->data;
    script->event_places = memory_zero(tree->events.count, sizeof *script->event_places);
    for (uint32_t i = 1, place = 0; i < tree->events.count && place < data->events.count; place++)
        if (text_equal(strings_get(tree->strings, tree->events.items[i].name),
                       data->events.items[place].name))
            script->event_places[i++] = place;
}

/* ---- formatting and writing ---- */

static bool rows_chunk(void *context, unsigned worker, size_t item, struct buffer *buffer,
                       struct error *error) {
    struct script *script = context;
    size_t end = (item + 1) * ROWS_CHUNK;
    for (size_t i = item * ROWS_CHUNK;
         i < end && i < script->profile->tree->samples.count && !error->kind; i++)
        script_print(script, buffer, i, error);
    context_progress(script->context, "printing samples", item * ROWS_CHUNK,
                     script->profile->tree->samples.count);
    return !error->kind;
}

bool script_write(struct out *out, const struct profile *profile,
                  const struct script_options *options, struct error *error) {
    unsigned threads = context_threads(options->context);
    struct script script = {.profile = profile,
                            .context = options->context,
                            .source_lines = options->source_lines,
                            .mark_incomplete = options->mark_incomplete};
    struct arena *arenas = memory_zero(threads, sizeof *arenas);
    struct buffer_apart *buffers = memory_zero(threads, sizeof *buffers);
    script_events_init(&script, &options->quirks);
    script_traces_init(&script, &options->quirks);
    event_places_make(&script);
    comms_make(&script);
    lines_make(&script, arenas, buffers, threads);
    bool fine = out_in_order(out, options->context, script.in_order ? 1 : threads,
                             (profile->tree->samples.count + ROWS_CHUNK - 1) / ROWS_CHUNK,
                             rows_chunk, &script, error);
    for (unsigned i = 0; i < threads; i++) {
        arena_release(&arenas[i]);
        buffer_release(&buffers[i].buffer);
    }
    script_traces_free(&script);
    arena_release(&script.arena);
    free(arenas);
    free(buffers);
    free(script.events);
    free(script.comms);
    free(script.lines);
    free(script.event_places);
    return !perfdata_changed(profile->data, error) &&
           fine; /* samples are read again to be printed */
}
