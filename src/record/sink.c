/*
 * Records on their way to the file: counted, inspected for losses and mapped files, and written unchanged.
 */
#include "record/internal.h"

#include <stdlib.h>

#include "perfdata/perfdata.h"

/* ---- processes in the file ---- */

static void learn_from(struct sink *sink, const uint8_t *record,
                       const struct perf_event_header *header) {
    bool names = header->type == PERF_RECORD_COMM || header->type == PERF_RECORD_FORK ||
                 header->type == PERF_RECORD_MMAP2;
    pid_t pid = names && header->size >= 16 ? (pid_t)load_u32(record + sizeof *header) : 0;
    if (pid > 0)
        ids_add(&sink->processes, pid);
}

bool sink_introduce(struct sink *sink, pid_t pid, struct error *error) {
    return pid <= 0 || !ids_add(&sink->processes, pid) || synthesize_process(sink, pid, error);
}

void sink_release(struct sink *sink) {
    keeper_free(sink->keeper);
    for (size_t i = 0; i < SETUPS; i++)
        free(sink->settings[i]);
    interpreted_free(sink->interpreted);
    programs_free(sink->programs);
    window_free(sink->window);
    index_release(&sink->processes);
    buffer_release(&sink->early);
    buffer_release(&sink->batch);
    perfdata_writer_free(sink->writer);
    strings_free(sink->paths);
    vector_release(&sink->ids);
}

/* ---- mapped files ---- */

/* Keep the first mapping's id. A file that was replaced has several, and then only the mappings are right. */
static void learn_id(struct sink *sink, uint32_t path, const struct build_id *id) {
    static const struct build_id none;
    bool first = path > sink->ids.count;
    while (sink->ids.count < path)
        vector_push(&sink->ids, none);
    struct build_id *known = &sink->ids.items[path - 1];
    if (first)
        *known = *id;
    else if (memcmp(known, id, sizeof *id) != 0)
        *known = none;
}

bool mapping_build_id(const struct sink *sink, const uint8_t *record,
                      const struct perf_event_header *header, struct build_id *id) {
    enum { ID = 40 };
    uint32_t size = load_u32(record + ID);
    if (!perfdata_has_build_id(sink->asks_build_ids, header->misc, size))
        return false;
    id->size = (uint8_t)size;
    memcpy(id->bytes, record + ID + 4, size);
    return true;
}

/* pid, tid, start, length, offset, then device and inode, or the build id, then protection and flags */
static void look_at_mapping(struct sink *sink, const uint8_t *record,
                            const struct perf_event_header *header) {
    enum { PROTECTION = 64, NAME = 72 };
    struct build_id id = {0};
    if (header->size <= NAME || !(load_u32(record + PROTECTION) & 4))
        return;
    size_t length = strnlen((const char *)record + NAME, header->size - NAME);
    mapping_build_id(sink, record, header, &id);
    learn_id(sink, strings_add(sink->paths, (struct text){(const char *)record + NAME, length}),
             &id);
}

/* ---- all records ---- */

static void look_at_time(struct sink *sink, const uint8_t *record,
                         const struct perf_event_header *header) {
    if (header->size < sink->time_at + 8)
        return;
    uint64_t time = load_u64(record + sink->time_at);
    if (!sink->first || time < sink->first)
        sink->first = time;
    if (time > sink->last)
        sink->last = time;
}

/* `have`: bytes of the record that are here; of a sample it may be only the beginning. */
static void look_at(struct sink *sink, const uint8_t *record,
                    const struct perf_event_header *header, size_t have) {
    if (sink->knows_processes)
        learn_from(sink, record, header);
    keeper_saw(sink->keeper, record, header);
    interpreted_saw(sink->interpreted, record, header);
    programs_saw(sink->programs, record, header);
    switch (header->type) {
    case PERF_RECORD_SAMPLE:
        sink->result->samples++;
        look_at_time(sink, record, header);
        keeper_saw_sample(sink->keeper, record, header, have);
        break;
    case PERF_RECORD_LOST:
        if (header->size >= 24)
            sink->result->lost += load_u64(record + 16);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        if (header->size >= 16)
            sink->result->lost += load_u64(record + 8);
        break;
    case PERF_RECORD_THROTTLE:
        sink->result->throttled++;
        break;
    case PERF_RECORD_MMAP2:
        look_at_mapping(sink, record, header);
        break;
    }
}

/* `record` may be in two parts; then the first ends inside it. */
static void look_at_split(struct sink *sink, const uint8_t *first, size_t first_size,
                          const uint8_t *second, size_t second_size) {
    uint8_t copy[4400]; /* a mapping with the longest path */
    struct perf_event_header header;
    size_t total = first_size + second_size;
    for (size_t at = 0; at + sizeof header <= total; at += header.size) {
        if (at >= first_size)
            memcpy(&header, second + (at - first_size), sizeof header);
        else if (at + sizeof header <= first_size)
            memcpy(&header, first + at, sizeof header);
        else { /* headers and the buffer's end are 8-byte aligned, so a header is never split */
            return;
        }
        if (header.size < sizeof header)
            return;
        if (at >= first_size) {
            look_at(sink, second + (at - first_size), &header, header.size);
        } else if (at + header.size <= first_size) {
            look_at(sink, first + at, &header, header.size);
        } else {
            size_t have = first_size - at, more = header.size - have;
            size_t head = have < sizeof copy ? have : sizeof copy;
            size_t tail = more < sizeof copy - head ? more : sizeof copy - head;
            memcpy(copy, first + at, head);
            memcpy(copy + head, second, tail);
            if (header.type == PERF_RECORD_SAMPLE || header.size <= sizeof copy)
                look_at(sink, copy, &header, head + tail);
        }
    }
}

/* ---- a full disk ---- */

static bool tells_names(uint32_t type) {
    return type == PERF_RECORD_MMAP || type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM ||
           type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT || type == PERF_RECORD_KSYMBOL ||
           type == PERF_RECORD_BPF_EVENT || type == PERF_RECORD_NAMESPACES ||
           type == PERF_RECORD_TEXT_POKE;
}

bool sink_only_names(struct sink *sink) {
    sink->only_names = perfdata_use_reserve(sink->writer);
    return sink->only_names;
}

/* Write everything except samples and the like. */
static bool write_names(struct sink *sink, const uint8_t *first, size_t first_size,
                        const uint8_t *second, size_t second_size, struct error *error) {
    struct perf_event_header header;
    bool fine = true;
    for (size_t at = 0; fine && at + sizeof header <= first_size + second_size; at += header.size) {
        const uint8_t *record = at < first_size ? first + at : second + (at - first_size);
        memcpy(&header, record, sizeof header);
        if (header.size < sizeof header)
            break;
        bool split = at < first_size && header.size > first_size - at;
        size_t here = split ? first_size - at : header.size;
        if (tells_names(header.type))
            fine =
                perfdata_write_split(sink->writer, record, here, second, header.size - here, error);
    }
    return fine;
}

static bool write_split(struct sink *sink, const uint8_t *first, size_t first_size,
                        const uint8_t *second, size_t second_size, struct error *error) {
    bool fine = perfdata_write_split(sink->writer, first, first_size, second, second_size, error);
    size_t kept = fine ? first_size + second_size : perfdata_kept(sink->writer);
    size_t in_first = kept < first_size ? kept : first_size;
    look_at_split(sink, first, in_first, second, kept - in_first);
    return fine;
}

bool sink_write(struct sink *sink, const uint8_t *records, size_t size, struct error *error) {
    return write_split(sink, records, size, NULL, 0, error);
}

bool sink_split(struct sink *sink, const uint8_t *first, size_t first_size, const uint8_t *second,
                size_t second_size, struct error *error) {
    sink->wrote = true;
    if (!sink->writer) {
        buffer_add(&sink->early, (struct text){(const char *)first, first_size});
        buffer_add(&sink->early, (struct text){(const char *)second, second_size});
        return true;
    }
    if (sink->only_names)
        return write_names(sink, first, first_size, second, second_size, error);
    if (sink->window)
        window_take(sink->window, first, first_size, second, second_size);
    return sink->window || write_split(sink, first, first_size, second, second_size, error);
}

bool sink_records(struct sink *sink, const uint8_t *records, size_t size, struct error *error) {
    return sink_split(sink, records, size, NULL, 0, error);
}

bool sink_early(struct sink *sink, struct error *error) {
    bool fine = !sink->early.count ||
                sink_records(sink, (const uint8_t *)sink->early.items, sink->early.count, error);
    buffer_release(&sink->early);
    return fine;
}

bool sink_round(struct sink *sink, struct error *error) {
    if (!sink->wrote || sink->no_rounds || !sink->writer)
        return true;
    sink->wrote = false;
    return perfdata_write_round(sink->writer, error);
}
