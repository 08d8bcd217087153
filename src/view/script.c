/*
 * Script text: what perf 6.1's `perf script` prints, sample by sample.
 *
 * Most of the text is frames, and most frames are the same few thousand locations over and over. So the lines of each location are
 * made once, in parallel, and a sample is then its own line followed by copies. Samples are formatted in chunks by all threads; each
 * writes its chunk when its turn comes, so what is held is one chunk a thread and the text comes out in order.
 */
#include "view/script.h"

#include <stdlib.h>

enum { LINES_CHUNK = 256, ROWS_CHUNK = 256 };

/* ---- the lines of locations ---- */

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

size_t script_add_lines(const struct script *script, struct buffer *buffer, uint32_t id,
                        bool brief) {
    const struct tree *tree = script->profile->tree;
    const struct location *location = &tree->locations.items[id];
    size_t last = buffer->count;
    for (uint32_t i = location->frame_count; i-- > 0;) {
        last = buffer->count;
        line_add_frame(script, buffer, location, &tree->frames.items[location->first_frame + i],
                       brief);
    }
    if (!location->frame_count)
        line_add_frame(script, buffer, location, NULL, brief);
    return last;
}

struct lines_job {
    struct script *script;
    struct arena *arenas; /* one a worker */
    struct buffer *buffers;
};

static void lines_chunk(void *context, unsigned worker, size_t item) {
    struct lines_job *job = context;
    size_t end = (item + 1) * LINES_CHUNK, count = job->script->profile->tree->locations.count;
    for (size_t i = item * LINES_CHUNK; i < end && i < count; i++) {
        struct buffer *buffer = &job->buffers[worker];
        buffer->count = 0;
        size_t last = script_add_lines(job->script, buffer, (uint32_t)i, false);
        job->script->lines[i] =
            (struct script_line){arena_copy(&job->arenas[worker], buffer_text(buffer)), last};
    }
}

/* The arenas hold the lines: the caller releases them. */
static void lines_make(struct script *script, struct arena *arenas, struct buffer *buffers,
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

struct rows {
    struct script_row *items;
    size_t count;
    size_t capacity;
};

/* A counter was read with the sample: the row is of the counter's event, its period what the counter moved on since it was last read.
   perf leaves out those that did not move, and those it does not know. */
static void rows_add_value(struct rows *rows, const struct perfdata *data, uint64_t *previous,
                           uint32_t sample, uint64_t id, uint64_t value) {
    uint32_t slot = perfdata_id_slot(&data->ids, id);
    if (!id || !data->ids.slots[slot].event)
        return;
    uint64_t period = value - previous[slot];
    previous[slot] = value;
    if (period)
        vector_push(rows, ((struct script_row){sample, data->ids.slots[slot].event - 1, period}));
}

static void rows_add(struct rows *rows, const struct perfdata *data, uint64_t *previous,
                     uint32_t number, const struct perfdata_sample *sample) {
    const struct perfdata_event *event = &data->events.items[sample->event];
    uint64_t format = event->read_format;
    if (!(event->sample_type & PERF_SAMPLE_READ)) {
        bool recorded = event->sample_type & PERF_SAMPLE_PERIOD;
        uint64_t period = recorded ? sample->period : event->sample_period;
        vector_push(rows, ((struct script_row){number, sample->event, period}));
        return;
    }
    if (!(format & PERF_FORMAT_ID))
        return;
    size_t times =
        !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
    size_t each = 16 + (format & PERF_FORMAT_LOST ? 8 : 0);
    const uint8_t *value = sample->read + 8 + 8 * times, *end = sample->read + sample->read_size;
    if (!(format & PERF_FORMAT_GROUP))
        rows_add_value(rows, data, previous, number, load_u64(value), load_u64(sample->read));
    else
        for (; value + each <= end; value += each)
            rows_add_value(rows, data, previous, number, load_u64(value + 8), load_u64(value));
}

/* Only recordings that read counters with their samples (`:S`) have rows that are not simply their samples. */
static bool rows_make(struct script *script, struct error *error) {
    const struct tree *tree = script->profile->tree;
    struct perfdata *data = script->profile->data;
    script->row_count = tree->samples.count;
    bool reads = false;
    for (size_t i = 0; i < data->events.count; i++)
        reads |= data->events.items[i].sample_type & PERF_SAMPLE_READ;
    if (!reads)
        return true;
    struct rows rows = {0};
    uint64_t *previous = memory_zero((size_t)data->ids.mask + 1, sizeof *previous);
    bool fine = true;
    for (size_t i = 0; fine && i < tree->samples.count; i++) {
        uint64_t offset = tree->samples.items[i].offset;
        struct perfdata_record record;
        struct perfdata_sample sample;
        fine = perfdata_next(data, &offset, &record, error) &&
               perfdata_sample(data, &record, &sample, error);
        if (fine)
            rows_add(&rows, data, previous, (uint32_t)i, &sample);
    }
    free(previous);
    vector_reserve(&rows, 1);
    script->rows = rows.items;
    script->row_count = rows.count;
    return fine;
}

/* ---- formatting and writing ---- */

static bool rows_chunk(void *context, unsigned worker, size_t item, struct buffer *buffer,
                       struct error *error) {
    struct script *script = context;
    size_t end = (item + 1) * ROWS_CHUNK;
    for (size_t i = item * ROWS_CHUNK; i < end && i < script->row_count && !error->kind; i++)
        script_print(script, buffer, i, error);
    progress("printing samples", item * ROWS_CHUNK, script->row_count);
    return !error->kind;
}

bool script_write(struct out *out, const struct profile *profile,
                  const struct script_options *options, struct error *error) {
    unsigned threads = options->threads ? options->threads : parallel_default();
    struct script script = {.profile = profile};
    struct arena *arenas = memory_zero(threads, sizeof *arenas);
    struct buffer *buffers = memory_zero(threads, sizeof *buffers);
    script_events_init(&script, options->compat_perf);
    script_traces_init(&script);
    comms_make(&script);
    lines_make(&script, arenas, buffers, threads);
    bool fine =
        rows_make(&script, error) &&
        out_in_order(out, script.in_order ? 1 : threads,
                     (script.row_count + ROWS_CHUNK - 1) / ROWS_CHUNK, rows_chunk, &script, error);
    for (unsigned i = 0; i < threads; i++) {
        arena_release(&arenas[i]);
        buffer_release(&buffers[i]);
    }
    script_traces_free(script.traces);
    arena_release(&script.arena);
    free(arenas);
    free(buffers);
    free(script.events);
    free(script.comms);
    free(script.lines);
    free(script.rows);
    return !perfdata_changed(profile->data, error) &&
           fine; /* samples are read again to be printed */
}
