/*
 * The output of `perf record -o -` and `wick record -o -`: a header of sixteen bytes, then only records. What a file has in its header is in
 * records of user space, most of which come first:
 *
 *     HEADER_ATTR (64)        an attribute and, up to the record's end, its ids
 *     EVENT_UPDATE (78)       one more fact about the event with an id: its name, unit, scale or CPUs
 *     HEADER_FEATURE (80)     a feature's number and the bytes of its section. Its size need not be a multiple of 8
 *     HEADER_TRACING_DATA (66) the formats of tracepoints, after the record
 *     HEADER_BUILD_ID (67)    the build id of one file; `perf inject -b` puts them anywhere
 *
 * They are collected before anything else, in an additional walk over the record headers, which only streams need.
 */
#include "perfdata/private.h"

#include <stdlib.h>

enum { UPDATE_NAME = 2, UPDATE_FIXED = 24, FEATURE_FIXED = 16, TRACING_FIXED = 16 };

static const struct note_kind note_strange = {
    "strange-stream-records", "# record{ that describes the stream is|s that describe the stream "
                              "are} invalid and {was|were} skipped"};

static void note(struct perfdata *data, const struct perfdata_record *record) {
    notes_add(&data->notes, &note_strange, 1, record->offset, "type %u at byte %llu", record->type,
              (unsigned long long)record->offset);
}

static bool stream_attribute(struct perfdata *data, const struct perfdata_record *record,
                             struct error *error) {
    uint64_t at = record->offset + HEADER_SIZE, end = record->offset + record->size;
    struct perfdata_event event;
    if (!attribute_read(data, &at, end, &event, error))
        return false;
    if ((end - at) % 8)
        return error_at(error, data->file->path, at,
                        "ids of %llu bytes are not a whole number of ids",
                        (unsigned long long)(end - at));
    event.ids = data->file->data + at;
    event.id_count = (end - at) / 8;
    return event_add(data, &event, record->offset, error);
}

static void stream_update(struct perfdata *data, const struct perfdata_record *record) {
    if (record->size < UPDATE_FIXED)
        return note(data, record);
    uint32_t event = perfdata_find_event(data, load_u64(record->data + 16));
    if (load_u64(record->data + 8) != UPDATE_NAME)
        return;
    if (event >= data->events.count)
        return note(data, record);
    const char *name = (const char *)record->data + UPDATE_FIXED;
    data->events.items[event].name =
        (struct text){name, strnlen(name, record->size - UPDATE_FIXED)};
}

static void stream_feature(struct perfdata *data, const struct perfdata_record *record) {
    uint64_t feature = record->size < FEATURE_FIXED ? FEATURES : load_u64(record->data + 8);
    if (feature >= FEATURES)
        return note(data, record);
    struct text section = {(const char *)record->data + FEATURE_FIXED,
                           record->size - FEATURE_FIXED};
    feature_read(data, (unsigned)feature, section, record->offset);
}

static void stream_describe(struct perfdata *data, const struct perfdata_record *record) {
    struct perfdata_build_id build_id;
    switch (record->type) {
    case RECORD_EVENT_UPDATE:
        return stream_update(data, record);
    case RECORD_HEADER_FEATURE:
        return stream_feature(data, record);
    case RECORD_HEADER_TRACING_DATA: /* the walk has seen that its payload is there */
        data->features[FEATURE_TRACING_DATA] = (struct text){
            (const char *)record->data + record->size, load_u32(record->data + HEADER_SIZE)};
        return;
    default:
        if (!build_id_decode(record->data, record->size, &build_id))
            note(data, record);
        else if (budget_take_memory(&data->budget, sizeof build_id, record->offset))
            vector_push(&data->build_ids, build_id);
    }
}

static bool is_description(uint32_t type) {
    return type == RECORD_EVENT_UPDATE || type == RECORD_HEADER_FEATURE ||
           type == RECORD_HEADER_TRACING_DATA || type == RECORD_HEADER_BUILD_ID;
}

bool stream_read(struct perfdata *data, struct error *error) {
    VECTOR(struct perfdata_record) descriptions = {0};
    uint64_t offset = data->data_start;
    struct perfdata_record record;
    struct error wrong = {.kind = ERROR_NONE};
    bool fine = true;
    while (fine && perfdata_next(data, &offset, &record, &wrong)) {
        if (record.type == RECORD_HEADER_ATTR)
            fine = stream_attribute(data, &record, &wrong);
        else if (is_description(record.type) &&
                 (fine = perfdata_take(data, sizeof record, record.offset, &wrong)))
            vector_push(&descriptions, record);
    }
    fine = fine && wrong.kind == ERROR_NONE;
    if (fine && !data->events.count)
        fine = error_at(&wrong, data->file->path, data->data_end, "the recording has no events");
    fine = fine && ids_read(data, &wrong);
    for (size_t i = 0; fine && i < descriptions.count && !budget_exceeded(&data->budget); i++)
        stream_describe(data, &descriptions.items[i]);
    if (fine && budget_exceeded(&data->budget))
        fine = budget_error(&data->budget, data->file->path, &wrong);
    vector_release(&descriptions);
    if (!fine && error)
        *error = wrong;
    return fine;
}
