/*
 * A recording that is passed on in windows, each a perf.data in memory, while it goes on.
 *
 * A window must not have samples whose mappings come with the next one. Buffers are drained one after the other, so one is read up to a later
 * time than another, and a record may reach its buffer shortly after its own time. So windows are cut by time: when a round begins,
 * everything up to the beginning of the previous round has certainly arrived, and only that goes to the window. Later records wait in memory,
 * usually for a tenth of a second.
 */
#include "record/windows.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "perfdata/perfdata.h"

struct window *window_new(uint64_t length) {
    struct window *window = memory_zero(1, sizeof *window);
    *window = (struct window){.descriptor = -1, .length = length};
    return window;
}

void window_free(struct window *window) {
    if (!window)
        return;
    if (window->descriptor >= 0)
        close(window->descriptor);
    buffer_release(&window->fresh);
    buffer_release(&window->later);
    free(window);
}

bool window_open(struct window *window, struct error *error) {
    window->descriptor = memfd_create("wick-window", MFD_CLOEXEC);
    return window->descriptor >= 0 || error_errno(error, "memfd_create");
}

/* ---- which records ---- */

void window_take(struct window *window, const void *first, size_t first_size, const void *second,
                 size_t second_size) {
    buffer_add(&window->fresh, (struct text){first, first_size});
    buffer_add(&window->fresh, (struct text){second, second_size});
}

/* Return the time of a record; 0: it is valid from the beginning. */
static uint64_t time_of(const struct sink *sink, const uint8_t *record,
                        const struct perf_event_header *header) {
    size_t trailer = 8 * sink->trailer_words;
    if (header->type == PERF_RECORD_SAMPLE)
        return header->size >= sink->time_at + 8 ? load_u64(record + sink->time_at) : 0;
    bool has_time = sink->trailer_words >= 2 && header->size >= sizeof *header + trailer;
    return has_time ? load_u64(record + header->size - trailer + 8) : 0;
}

/* Write records that are old enough, in as few pieces as possible, and keep the rest. */
static bool sort_out(struct sink *sink, struct window *window, struct error *error) {
    const uint8_t *bytes = (const uint8_t *)window->fresh.items;
    struct perf_event_header header;
    size_t from = 0, at = 0;
    bool fine = true;
    window->later.count = 0;
    for (; fine && at + sizeof header <= window->fresh.count; at += header.size) {
        memcpy(&header, bytes + at, sizeof header);
        if (header.size < sizeof header || header.size > window->fresh.count - at)
            break; /* no kernel writes that */
        if (time_of(sink, bytes + at, &header) <= window->cut)
            continue;
        fine = sink_write(sink, bytes + from, at - from, error);
        buffer_add(&window->later, (struct text){(const char *)bytes + at, header.size});
        from = at + header.size;
    }
    fine = fine && sink_write(sink, bytes + from, at - from, error);
    struct buffer empty = window->fresh;
    window->fresh = window->later;
    window->later = empty;
    return fine;
}

/* ---- passing them on ---- */

static bool yield(struct recording *r, struct error *error) {
    struct window *window = r->sink.window;
    /* A round is also a record. Without it the window would have no data at all, like the file of a recorder that was killed. */
    if (!interpreted_finish_window(r->sink.interpreted, error) ||
        !keeper_finish_window(r->sink.keeper, error) ||
        !perfdata_write_round(r->sink.writer, error) || !perfdata_finish(r->sink.writer, error))
        return false;
    r->result->bytes += perfdata_writer_size(r->sink.writer);
    window->entries = perfdata_writer_entries(r->sink.writer);
    perfdata_writer_free(r->sink.writer);
    r->sink.writer = NULL;
    bool fine = r->options->on_window(r->options->window_context, window->descriptor, error);
    close(window->descriptor);
    window->descriptor = -1;
    return fine;
}

void window_begin_round(struct recording *r) {
    struct window *window = r->sink.window;
    if (!window)
        return;
    window->cut = window->round;
    window->round = monotonic();
    if (!window->due)
        window->due = window->round + window->length;
}

bool window_end_round(struct recording *r, struct error *error) {
    struct window *window = r->sink.window;
    return !window || sort_out(&r->sink, window, error);
}

bool window_turn(struct recording *r, struct error *error) {
    struct window *window = r->sink.window;
    if (!window || window->cut < window->due)
        return true;
    while (window->due <= window->cut)
        window->due += window->length;
    return yield(r, error) && recording_begin_file(r, error);
}

bool window_finish(struct recording *r, struct error *error) {
    r->sink.window->cut = UINT64_MAX;
    return sort_out(&r->sink, r->sink.window, error) && yield(r, error);
}
