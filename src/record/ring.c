/*
 * Ring buffers to the file. Between tail and head there are complete records, in one piece or, if the buffer wraps, in two; they are written
 * unchanged and only then released to the kernel. After all buffers, a FINISHED_ROUND says that nothing older than the previous round
 * follows.
 */
#include "record/internal.h"

static bool ring_drain(struct sink *sink, struct ring *ring, struct error *error) {
    struct perf_event_mmap_page *control = ring->pages;
    if (!control)
        return true; /* a thread that exited while its events were opened */
    const uint8_t *data = (const uint8_t *)ring->pages + control->data_offset;
    uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE),
             tail = control->data_tail;
    if (head == tail)
        return true;
    size_t mask = ring->size - 1, start = tail & mask, size = head - tail;
    size_t first = size < ring->size - start ? size : ring->size - start;
    bool fine = sink_split(sink, data + start, first, data, size - first, error);
    if (!fine)
        head = tail + perfdata_kept(sink->writer);
    __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
    return fine;
}

static bool drain_all(struct recording *r, struct error *error) {
    for (size_t i = 0; i < r->rings.count; i++)
        if (!ring_drain(&r->sink, &r->rings.items[i], error))
            return false;
    return true;
}

bool recording_drain(struct recording *r, struct error *error) {
    window_begin_round(r);
    return drain_all(r, error) && heap_turn(r, error) && off_cpu_turn(r, error) &&
           window_end_round(r, error) && keeper_turn(r->sink.keeper, error) &&
           interpreted_turn(r->sink.interpreted, error) && sink_round(&r->sink, error) &&
           window_turn(r, error);
}

void recording_drain_names(struct recording *r) {
    if (r->sink.writer && sink_only_names(&r->sink) && drain_all(r, NULL))
        perfdata_write_round(r->sink.writer, NULL);
}
