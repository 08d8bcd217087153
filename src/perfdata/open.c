/*
 * Open a file: read the file header, the attributes with their ids, and the position of the records. Everything here is read once and fully
 * checked; a number that contradicts the file is an error that names its byte offset.
 *
 * The layout of a file, all little-endian (see stream.c for pipes): magic "PERFILE2", the header's size (104, or 72 in files older than features),
 * the size of an attribute with its ids section, three sections (attributes, data, event types) as offset and size, then the bitmap of features. An
 * attribute contains its own size; its ids section follows directly.
 */
#include "perfdata/private.h"

#include <stdlib.h>

enum {
    FILE_HEADER_SIZE = 104,
    FILE_HEADER_OLD_SIZE = 72,
    FILE_HEADER_PIPE_SIZE = 16,
    AT_HEADER_SIZE = 8,
    AT_ATTRIBUTE_SIZE = 16,
    AT_ATTRIBUTES = 24,
    AT_DATA = 40,
    AT_FEATURES = 72,
    ATTRIBUTE_LEAST_SIZE = 64, /* the first published one */
    SECTION_SIZE = 16,
    EVENT_NAME_MOST = 128, /* of a name that is made up */
    KNOWN_READ_FORMAT = 0x1f,
};
#define KNOWN_SAMPLE_TYPE 0x1ffffffull
#define KNOWN_BRANCH_TYPE 0xfffffull

static const struct note_kind note_untold = {
    "events-untold", "# event{|s} can't be distinguished in the file; {its|their} samples are "
                     "counted as the first event's"};

struct section {
    uint64_t offset;
    uint64_t size;
};

static const char magic[8] = "PERFILE2", magic_swapped[8] = "2ELIFREP",
                  magic_ancient[8] = "PERFFILE";

bool perfdata_is(struct text beginning) {
    return beginning.length >= 8 && (memcmp(beginning.data, magic, 8) == 0 ||
                                     memcmp(beginning.data, magic_swapped, 8) == 0 ||
                                     memcmp(beginning.data, magic_ancient, 8) == 0);
}

static bool header_check(const struct file *file, struct error *error) {
    const char *path = file->path;
    if (!perfdata_is(file_text(file)))
        return error_at(error, path, 0, "not a perf.data file");
    if (memcmp(file->data, magic_swapped, 8) == 0)
        return error_at(error, path, 0,
                        "recorded on a machine of the other byte order, which wick does not read");
    if (memcmp(file->data, magic_ancient, 8) == 0)
        return error_at(error, path, 0,
                        "written by a perf older than Linux 3.4, which wick does not read");
    if (file->size < AT_HEADER_SIZE + 8)
        return error_at(error, path, file->size, "the file ends inside its header");
    uint64_t size = load_u64(file->data + AT_HEADER_SIZE);
    if (size != FILE_HEADER_SIZE && size != FILE_HEADER_OLD_SIZE && size != FILE_HEADER_PIPE_SIZE)
        return error_at(error, path, AT_HEADER_SIZE, "header size %llu is not %d, %d or %d",
                        (unsigned long long)size, FILE_HEADER_SIZE, FILE_HEADER_OLD_SIZE,
                        FILE_HEADER_PIPE_SIZE);
    if (file->size < size)
        return error_at(error, path, file->size, "the file ends inside its header of %llu bytes",
                        (unsigned long long)size);
    return true;
}

/* The section that the 16 bytes at `at` describe, which must lie in the file whole. */
static bool section_read(const struct file *file, uint64_t at, const char *what,
                         struct section *section, struct error *error) {
    *section = (struct section){load_u64(file->data + at), load_u64(file->data + at + 8)};
    if (section->offset > file->size || section->size > file->size - section->offset)
        return error_at(error, file->path, at,
                        "%s of %llu bytes at %llu do not fit in the file of %zu bytes", what,
                        (unsigned long long)section->size, (unsigned long long)section->offset,
                        file->size);
    return true;
}

/* ---- attributes ---- */

static uint32_t words(uint64_t sample_type, uint64_t mask) {
    return (uint32_t)__builtin_popcountll(sample_type & mask);
}

static void event_layout(struct perfdata_event *event) {
    const uint64_t before_time = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID;
    const uint64_t fixed = before_time | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
                           PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
    const uint64_t trailer = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                             PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    event->fixed_size = HEADER_SIZE + 8 * words(event->sample_type, fixed);
    if (event->sample_type & PERF_SAMPLE_TIME)
        event->time_offset = HEADER_SIZE + 8 * words(event->sample_type, before_time);
    if (event->flags >> ATTRIBUTE_SAMPLE_ID_ALL & 1)
        event->trailer_size = 8 * words(event->sample_type, trailer);
}

/* Fields beyond the attribute's own size are absent, and 0. */
static uint64_t attribute_u64(const uint8_t *attribute, uint32_t size, uint32_t at) {
    return at + 8 <= size ? load_u64(attribute + at) : 0;
}

static struct perfdata_event event_decode(const uint8_t *attribute, uint32_t size) {
    struct perfdata_event event = {
        .type = load_u32(attribute),
        .config = load_u64(attribute + 8),
        .sample_period = load_u64(attribute + 16),
        .sample_type = load_u64(attribute + 24),
        .read_format = load_u64(attribute + 32),
        .flags = load_u64(attribute + 40),
        .breakpoint_type = load_u32(attribute + 52),
        .breakpoint_address = load_u64(attribute + 56),
        .branch_sample_type = attribute_u64(attribute, size, 72),
        .regs_user = attribute_u64(attribute, size, 80),
        .stack_user = (uint32_t)attribute_u64(attribute, size, 88),
        .clock = (int32_t)(attribute_u64(attribute, size, 88) >> 32),
        .regs_intr = attribute_u64(attribute, size, 96),
    };
    event_layout(&event);
    return event;
}

/* A layout that wick does not know can't be decoded: guessing would give wrong stacks. */
static bool event_check(const struct perfdata *data, const struct perfdata_event *event,
                        uint64_t at, struct error *error) {
    uint64_t unknown = event->sample_type & ~KNOWN_SAMPLE_TYPE;
    if (unknown)
        return error_at(error, data->file->path, at + 24,
                        "samples have fields that wick does not know (bits %#llx)",
                        (unsigned long long)unknown);
    unknown = event->read_format & ~(uint64_t)KNOWN_READ_FORMAT;
    if (unknown && event->sample_type & PERF_SAMPLE_READ)
        return error_at(error, data->file->path, at + 32,
                        "counts have fields that wick does not know (bits %#llx)",
                        (unsigned long long)unknown);
    unknown = event->branch_sample_type & ~KNOWN_BRANCH_TYPE;
    if (unknown && event->sample_type & PERF_SAMPLE_BRANCH_STACK)
        return error_at(error, data->file->path, at + 72,
                        "branches have fields that wick does not know (bits %#llx)",
                        (unsigned long long)unknown);
    return true;
}

bool attribute_read(const struct perfdata *data, uint64_t *at, uint64_t end,
                    struct perfdata_event *event, struct error *error) {
    const struct file *file = data->file;
    if (end - *at < ATTRIBUTE_LEAST_SIZE)
        return error_at(error, file->path, *at, "the attributes end inside one");
    const uint8_t *attribute = file->data + *at;
    uint32_t size = load_u32(attribute + 4);
    if (size == 0)
        size = ATTRIBUTE_LEAST_SIZE;
    if (size < ATTRIBUTE_LEAST_SIZE || size % 8 || size > end - *at)
        return error_at(error, file->path, *at + 4, "attribute size %u does not fit", size);
    *event = event_decode(attribute, size);
    if (!event_check(data, event, *at, error))
        return false;
    *at += size;
    return true;
}

bool event_add(struct perfdata *data, const struct perfdata_event *event, uint64_t offset,
               struct error *error) {
    if (!perfdata_take(data, sizeof *event + EVENT_NAME_MOST, offset, error))
        return false;
    vector_push(&data->events, *event);
    return true;
}

/* Read the attribute at *at and the section of its ids after it. */
static bool attribute_with_ids(struct perfdata *data, uint64_t *at, uint64_t end,
                               struct error *error) {
    const struct file *file = data->file;
    struct perfdata_event event;
    struct section ids;
    if (end - *at < ATTRIBUTE_LEAST_SIZE + SECTION_SIZE)
        return error_at(error, file->path, *at, "the attributes end inside one");
    if (!attribute_read(data, at, end - SECTION_SIZE, &event, error) ||
        !section_read(file, *at, "ids", &ids, error))
        return false;
    if (ids.size % 8)
        return error_at(error, file->path, *at + 8,
                        "ids of %llu bytes are not a whole number of ids",
                        (unsigned long long)ids.size);
    event.ids = file->data + ids.offset;
    event.id_count = ids.size / 8;
    if (!event_add(data, &event, *at, error))
        return false;
    *at += SECTION_SIZE;
    return true;
}

static bool attributes_read(struct perfdata *data, struct error *error) {
    const struct file *file = data->file;
    struct section section;
    if (!section_read(file, AT_ATTRIBUTES, "attributes", &section, error))
        return false;
    uint64_t each = load_u64(file->data + AT_ATTRIBUTE_SIZE);
    if (each < ATTRIBUTE_LEAST_SIZE + SECTION_SIZE)
        return error_at(error, file->path, AT_ATTRIBUTE_SIZE, "attribute size %llu is too small",
                        (unsigned long long)each);
    if (section.size < each)
        return error_at(error, file->path, AT_ATTRIBUTES + 8, "the file has no events");
    uint64_t at = section.offset, end = section.offset + section.size;
    for (uint64_t left = section.size / each; left; left--)
        if (!attribute_with_ids(data, &at, end, error))
            return false;
    return true;
}

/* ---- ids ---- */

/* Where the id is in samples, from the header; 0 when there is none. */
static uint32_t sample_id_offset(uint64_t sample_type) {
    const uint64_t before = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;
    if (sample_type & PERF_SAMPLE_IDENTIFIER)
        return HEADER_SIZE;
    return sample_type & PERF_SAMPLE_ID ? HEADER_SIZE + 8 * words(sample_type, before) : 0;
}

/* The same of trailers, from their end. */
static uint32_t trailer_id_offset(uint64_t sample_type) {
    if (sample_type & PERF_SAMPLE_IDENTIFIER)
        return 8;
    return sample_type & PERF_SAMPLE_ID
               ? 8 + 8 * words(sample_type, PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU)
               : 0;
}

static void ids_add(struct perfdata_ids *ids, uint64_t id, uint32_t event) {
    if (id == 0)
        return;
    ids->slots[perfdata_id_slot(ids, id)] = (struct perfdata_id){id, event + 1};
}

/* Attributes may name one region of ids again and again, so that a small file asks for a huge table: real ones never overlap. */
static bool ids_fill(struct perfdata *data, struct error *error) {
    uint64_t total = 0;
    for (size_t i = 0; i < data->events.count; i++)
        total = saturating_add(total, data->events.items[i].id_count);
    if (total > data->file->size / 8)
        return error_at(error, data->file->path, AT_ATTRIBUTES, "ids overlap");
    uint64_t capacity = 16;
    while (capacity < total * 2)
        capacity *= 2;
    if (capacity > UINT32_MAX)
        return error_at(error, data->file->path, AT_ATTRIBUTES, "more ids than wick can hold");
    uint64_t where = (uint64_t)(data->events.items[0].ids - data->file->data);
    if (!perfdata_take(data, capacity * sizeof *data->ids.slots, where, error))
        return false;
    data->ids.slots = memory_zero(capacity, sizeof *data->ids.slots);
    data->ids.mask = (uint32_t)capacity - 1;
    for (size_t i = 0; i < data->events.count; i++)
        for (size_t j = 0; j < data->events.items[i].id_count; j++)
            ids_add(&data->ids, load_u64(data->events.items[i].ids + 8 * j), (uint32_t)i);
    return true;
}

static bool same_layout(const struct perfdata_event *a, const struct perfdata_event *b) {
    return a->sample_type == b->sample_type && a->read_format == b->read_format &&
           a->branch_sample_type == b->branch_sample_type && a->regs_user == b->regs_user &&
           a->regs_intr == b->regs_intr && a->trailer_size == b->trailer_size;
}

/* With several events, the id must stand at one place in all their samples, or they must look alike. */
bool ids_read(struct perfdata *data, struct error *error) {
    const struct perfdata_event *first = &data->events.items[0];
    if (!ids_fill(data, error))
        return false;
    if (data->events.count == 1)
        return true;
    data->ids.sample_offset = sample_id_offset(first->sample_type);
    data->ids.trailer_offset = trailer_id_offset(first->sample_type);
    bool alike = true, told = data->ids.sample_offset != 0;
    for (size_t i = 1; i < data->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        alike &= same_layout(first, event);
        told &= sample_id_offset(event->sample_type) == data->ids.sample_offset &&
                trailer_id_offset(event->sample_type) == data->ids.trailer_offset;
    }
    if (told)
        return true;
    if (!alike)
        return error_at(
            error, data->file->path, AT_ATTRIBUTES,
            "events with different sample layouts, and samples that do not identify their event");
    data->ids.sample_offset = data->ids.trailer_offset = 0;
    notes_add(&data->notes, &note_untold, data->events.count, 0, NULL);
    return true;
}

/* ---- the data section ---- */

/* wick's own writer tells the size now and then, so that perf reads what a killed recording left; its features come only at the end. */
static bool is_unfinished(const struct file *file, uint64_t end) {
    static const uint8_t none[32];
    return load_u64(file->data + AT_HEADER_SIZE) == FILE_HEADER_SIZE && file->size > end &&
           memcmp(file->data + AT_FEATURES, none, sizeof none) == 0;
}

/* perf writes the size when it ends: 0 is what a killed `perf record` leaves, and the records then go on to the end of the file. */
static bool data_read(struct perfdata *data, struct error *error) {
    const struct file *file = data->file;
    uint64_t offset = load_u64(file->data + AT_DATA), size = load_u64(file->data + AT_DATA + 8);
    if (offset > file->size)
        return error_at(error, file->path, AT_DATA,
                        "data at %llu, beyond the end of the file (%zu bytes)",
                        (unsigned long long)offset, file->size);
    uint64_t end;
    if (!checked_add(offset, size, &end))
        return error_at(error, file->path, AT_DATA + 8, "data size %#llx is impossible",
                        (unsigned long long)size);
    data->data_start = offset;
    data->data_end = end;
    data->open_ended = size == 0 || end > file->size || is_unfinished(file, end);
    if (!data->open_ended)
        return true;
    if (data->strict)
        return error_at(error, file->path, size ? file->size : AT_DATA + 8,
                        end > file->size ? "the file ends inside its data"
                        : size ? "the file is longer than its data: the recorder was killed"
                               : "data size is 0: the recorder was killed");
    data->data_end = data->cut = file->size;
    data->is_cut = true;
    return true;
}

static bool file_read(struct perfdata *data, struct error *error) {
    const struct file *file = data->file;
    if (!attributes_read(data, error) || !ids_read(data, error) || !data_read(data, error))
        return false;
    bool has_features =
        load_u64(file->data + AT_HEADER_SIZE) == FILE_HEADER_SIZE && !data->open_ended;
    if (has_features && !features_read(data, data->data_end, file->data + AT_FEATURES, error))
        return false;
    return records_unpack(data, error);
}

/* The records continue to the end of the file: their number was not known when the header was written. */
static bool pipe_read(struct perfdata *data, struct error *error) {
    data->is_stream = data->open_ended = true;
    data->data_start = FILE_HEADER_PIPE_SIZE;
    data->data_end = data->file->size;
    return records_unpack(data, error) && stream_read(data, error);
}

static bool perfdata_read(struct perfdata *data, struct error *error) {
    const struct file *file = data->file;
    if (!header_check(file, error))
        return false;
    bool is_pipe = load_u64(file->data + AT_HEADER_SIZE) == FILE_HEADER_PIPE_SIZE;
    if (!(is_pipe ? pipe_read(data, error) : file_read(data, error)))
        return false;
    for (size_t i = 0; i < data->events.count; i++) {
        struct perfdata_event *event = &data->events.items[i];
        data->asks_build_ids |= event->flags >> ATTRIBUTE_BUILD_ID & 1;
        if (!event->name.length)
            event->name = event_make_name(&data->arena, event);
    }
    return true;
}

struct perfdata *perfdata_open(const struct file *file, const struct perfdata_options *options,
                               struct error *error) {
    struct perfdata *data = memory_zero(1, sizeof *data);
    data->file = data->source = file;
    data->strict = options && options->strict;
    data->context = options ? options->context : NULL;
    budget_init(&data->budget, context_limits(data->context), file->size);
    if (perfdata_read(data, error))
        return data;
    perfdata_free(data);
    return NULL;
}

void perfdata_free(struct perfdata *data) {
    if (!data)
        return;
    vector_release(&data->events);
    vector_release(&data->build_ids);
    vector_release(&data->parts);
    notes_release(&data->notes);
    arena_release(&data->arena);
    free(data->ids.slots);
    file_close(&data->unpacked);
    free(data);
}

bool perfdata_take(struct perfdata *data, uint64_t bytes, uint64_t offset, struct error *error) {
    return budget_take_memory(&data->budget, bytes, offset) ||
           budget_error(&data->budget, data->file->path, error);
}

bool perfdata_changed(const struct perfdata *data, struct error *error) {
    return file_changed(data->source, error) || file_changed(data->file, error);
}
