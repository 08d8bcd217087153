/*
 * The header's feature sections. Their table directly follows the data: an (offset, size) pair for each bit that is set in the bitmap, in
 * ascending order. wick decodes the features that it uses and keeps the positions of all. None is needed to read samples, so damaged ones are
 * skipped and noted, as perf does; with `strict` a truncated table is an error.
 */
#include "perfdata/private.h"

static const struct note_kind note_damaged = {
    "damaged-header-feature",
    "# header section{ is|s are} damaged; names or build ids may be missing"};

enum { TABLE_ENTRY = 16, BUILD_ID_RECORD = 36, MISC_BUILD_ID_SIZE = 1 << 15 };

/* Reads a section from the front. Nothing is read beyond the end. */
struct reader {
    struct text left;
};

/* A section and its position. What is kept of it is charged to the recording's budget. */
struct feature {
    struct perfdata *data;
    struct text bytes;
    uint64_t where;
};

/* Whether what begins where the reader is may be kept, in so many bytes. */
static bool section_take(const struct feature *section, const struct reader *reader,
                         uint64_t bytes) {
    struct budget *budget = &section->data->budget;
    uint64_t offset = section->where + (section->bytes.length - reader->left.length);
    return budget_take_steps(budget, 1, offset) && budget_take_memory(budget, bytes, offset);
}

static bool reader_skip(struct reader *reader, uint64_t size) {
    if (size > reader->left.length)
        return false;
    reader->left = text_from(reader->left, size);
    return true;
}

static bool reader_u32(struct reader *reader, uint32_t *value) {
    if (reader->left.length < 4)
        return false;
    *value = load_u32(reader->left.data);
    return reader_skip(reader, 4);
}

/* A u32 length, with the padding, then the string and at least one NUL. */
static bool reader_string(struct reader *reader, struct text *string) {
    uint32_t length;
    if (!reader_u32(reader, &length) || length > reader->left.length)
        return false;
    *string = (struct text){reader->left.data, strnlen(reader->left.data, length)};
    return reader_skip(reader, length);
}

bool build_id_decode(const uint8_t *record, size_t size, struct perfdata_build_id *build_id) {
    if (size < BUILD_ID_RECORD)
        return false;
    const char *path = (const char *)record + BUILD_ID_RECORD;
    *build_id = (struct perfdata_build_id){
        .path = {path, strnlen(path, size - BUILD_ID_RECORD)},
        .misc = load_u16(record + 4),
        .pid = (int32_t)load_u32(record + 8),
        .id.size = BUILD_ID_MAX,
    };
    if (build_id->misc & MISC_BUILD_ID_SIZE && record[32] < BUILD_ID_MAX)
        build_id->id.size = record[32];
    memcpy(build_id->id.bytes, record + 12, build_id->id.size);
    build_id->misc &= PERF_RECORD_MISC_CPUMODE_MASK;
    return true;
}

/* Records framed by their own size; the type in their headers is 0. Up to 7 bytes of padding may be left. */
static bool feature_build_ids(const struct feature *section) {
    struct reader reader = {section->bytes};
    while (reader.left.length >= 8) {
        const uint8_t *record = (const uint8_t *)reader.left.data;
        uint16_t size = load_u16(record + 6);
        struct perfdata_build_id build_id;
        if (size > reader.left.length || !build_id_decode(record, size, &build_id) ||
            !section_take(section, &reader, sizeof build_id))
            return false;
        vector_push(&section->data->build_ids, build_id);
        reader_skip(&reader, size);
    }
    return true;
}

static bool feature_cpus(struct perfdata *data, struct text bytes) {
    struct reader reader = {bytes};
    return reader_u32(&reader, &data->cpus_available) && reader_u32(&reader, &data->cpus_online);
}

/* The arguments, joined by spaces. */
static bool feature_cmdline(const struct feature *section) {
    struct reader reader = {section->bytes};
    struct buffer joined = {0};
    uint32_t count;
    bool fine = reader_u32(&reader, &count);
    for (uint32_t i = 0; fine && i < count; i++) {
        struct text argument;
        fine = reader_string(&reader, &argument) &&
               section_take(section, &reader, argument.length + 1);
        if (fine && i)
            buffer_add_char(&joined, ' ');
        if (fine)
            buffer_add(&joined, argument);
    }
    if (fine)
        section->data->cmdline = arena_copy(&section->data->arena, buffer_text(&joined));
    buffer_release(&joined);
    return fine;
}

/* The event that a description is of: the one that shares its first id, else the one at its place. */
static struct perfdata_event *described(struct perfdata *data, const char *ids, uint32_t id_count,
                                        uint32_t place) {
    uint64_t id = id_count ? load_u64(ids) : 0;
    uint32_t event = id ? perfdata_find_event(data, id) : PERFDATA_NO_EVENT;
    if (event == PERFDATA_NO_EVENT)
        event = place;
    return event < data->events.count ? &data->events.items[event] : NULL;
}

static bool feature_event_names(const struct feature *section) {
    struct reader reader = {section->bytes};
    uint32_t count, attribute_size;
    if (!reader_u32(&reader, &count) || !reader_u32(&reader, &attribute_size))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t id_count;
        struct text name;
        if (!reader_skip(&reader, attribute_size) || !reader_u32(&reader, &id_count) ||
            !reader_string(&reader, &name))
            return false;
        const char *ids = reader.left.data;
        if (!reader_skip(&reader, (uint64_t)id_count * 8) || !section_take(section, &reader, 0))
            return false;
        struct perfdata_event *event = described(section->data, ids, id_count, i);
        if (event && !event->name.length)
            event->name = name;
    }
    return true;
}

static bool feature_string(struct text bytes, struct text *string) {
    return reader_string(&(struct reader){bytes}, string);
}

static bool feature_decode(const struct feature *section, unsigned number) {
    struct perfdata *data = section->data;
    struct text bytes = section->bytes;
    switch (number) {
    case FEATURE_BUILD_ID:
        return feature_build_ids(section);
    case FEATURE_HOSTNAME:
        return feature_string(bytes, &data->hostname);
    case FEATURE_OSRELEASE:
        return feature_string(bytes, &data->os_release);
    case FEATURE_VERSION:
        return feature_string(bytes, &data->version);
    case FEATURE_ARCH:
        return feature_string(bytes, &data->arch);
    case FEATURE_NRCPUS:
        return feature_cpus(data, bytes);
    case FEATURE_CPUDESC:
        return feature_string(bytes, &data->cpu_desc);
    case FEATURE_CMDLINE:
        return feature_cmdline(section);
    case FEATURE_SAMPLE_TIME:
        if (bytes.length < 16)
            return false;
        data->first_sample = load_u64(bytes.data);
        data->last_sample = load_u64(bytes.data + 8);
        return true;
    case FEATURE_CLOCK_DATA: /* version, clock, and both times */
        if (bytes.length < 24)
            return false;
        data->clock_day = load_u64(bytes.data + 8);
        data->clock_own = load_u64(bytes.data + 16);
        return true;
    case FEATURE_EVENT_DESC:
        return feature_event_names(section);
    default:
        return true;
    }
}

void feature_read(struct perfdata *data, unsigned feature, struct text section, uint64_t where) {
    struct feature own = {data, section, where};
    data->features[feature] = section;
    if (!feature_decode(&own, feature) && !budget_exceeded(&data->budget))
        notes_add(&data->notes, &note_damaged, 1, where, "feature %u at byte %llu", feature,
                  (unsigned long long)where);
}

bool features_read(struct perfdata *data, uint64_t table, const uint8_t *bitmap,
                   struct error *error) {
    const struct file *file = data->file;
    for (unsigned feature = 0; feature < FEATURES; feature++) {
        if (!(bitmap[feature / 8] >> feature % 8 & 1))
            continue;
        if (file->size - table < TABLE_ENTRY) {
            notes_add(&data->notes, &note_damaged, 1, table, "the file ends at byte %zu",
                      file->size);
            return !data->strict || error_at(error, file->path, file->size,
                                             "the file ends inside its feature table");
        }
        uint64_t offset = load_u64(file->data + table), size = load_u64(file->data + table + 8);
        bool fits = offset <= file->size && size <= file->size - offset;
        if (fits)
            feature_read(data, feature, (struct text){(const char *)file->data + offset, size},
                         offset);
        else
            notes_add(&data->notes, &note_damaged, 1, offset, "feature %u at byte %llu", feature,
                      (unsigned long long)offset);
        table += TABLE_ENTRY;
    }
    return !budget_exceeded(&data->budget) || budget_error(&data->budget, file->path, error);
}
