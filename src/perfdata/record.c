/*
 * Walk records, beyond the inlined fast path; decode every record but the sample. Records that the kernel wrote end in the sample_id trailer if the
 * attribute says so; decoders read only what comes before it.
 */
#include "perfdata/private.h"

#include <sys/mman.h>

static const struct note_kind note_unknown = {
    "unknown-records", "# record{ of an unknown type was|s of unknown types were} skipped"};

enum {
    MISC_BIT_13 = 1 << 13, /* MMAP: data; COMM: exec */
    RECORD_FIRST_USER = 64,
};

const char *perfdata_record_name(uint32_t type) {
    static const char *const kernel[] = {"record",
                                         "MMAP",
                                         "LOST",
                                         "COMM",
                                         "EXIT",
                                         "THROTTLE",
                                         "UNTHROTTLE",
                                         "FORK",
                                         "READ",
                                         "SAMPLE",
                                         "MMAP2",
                                         "AUX",
                                         "ITRACE_START",
                                         "LOST_SAMPLES",
                                         "SWITCH",
                                         "SWITCH_CPU_WIDE",
                                         "NAMESPACES",
                                         "KSYMBOL",
                                         "BPF_EVENT",
                                         "CGROUP",
                                         "TEXT_POKE",
                                         "AUX_OUTPUT_HW_ID",
                                         "CALLCHAIN_DEFERRED"};
    static const char *const user[] = {"HEADER_ATTR",
                                       "HEADER_EVENT_TYPE",
                                       "HEADER_TRACING_DATA",
                                       "HEADER_BUILD_ID",
                                       "FINISHED_ROUND",
                                       "ID_INDEX",
                                       "AUXTRACE_INFO",
                                       "AUXTRACE",
                                       "AUXTRACE_ERROR",
                                       "THREAD_MAP",
                                       "CPU_MAP",
                                       "STAT_CONFIG",
                                       "STAT",
                                       "STAT_ROUND",
                                       "EVENT_UPDATE",
                                       "TIME_CONV",
                                       "HEADER_FEATURE",
                                       "COMPRESSED",
                                       "FINISHED_INIT",
                                       "COMPRESSED2",
                                       "BPF_METADATA"};
    if (type < COUNT_OF(kernel))
        return kernel[type];
    return type - RECORD_FIRST_USER < COUNT_OF(user) ? user[type - RECORD_FIRST_USER] : "record";
}

static bool record_error(const struct perfdata *data, const struct perfdata_record *record,
                         struct error *error) {
    return error_at(error, data->file->path, record->offset, "%s record of %u bytes is too short",
                    perfdata_record_name(record->type), record->size);
}

/* ---- walking ---- */

static bool walk_cut(struct perfdata *data, uint64_t at, struct error *error) {
    if (data->strict)
        return error_at(error, data->file->path, at, "the file ends inside a record");
    data->is_cut = true;
    data->cut = data->data_end = at;
    return false;
}

/* A record that does not fit between `at` and the end: cut off if the file is, else a contradiction. */
static bool walk_overrun(struct perfdata *data, uint64_t at, const char *what, uint64_t size,
                         struct error *error) {
    if (data->open_ended)
        return walk_cut(data, at, error);
    return error_at(error, data->file->path, at,
                    "%s of %llu bytes overruns the data, which end at %llu", what,
                    (unsigned long long)size, (unsigned long long)data->data_end);
}

/* AUXTRACE and TRACING_DATA are followed by a payload that their size does not include. */
static bool walk_payload(const struct perfdata *data, const struct perfdata_record *record,
                         uint64_t *payload, struct error *error) {
    *payload = 0;
    if (record->type != RECORD_AUXTRACE && record->type != RECORD_HEADER_TRACING_DATA)
        return true;
    if (record->size < 16)
        return record_error(data, record, error);
    *payload = record->type == RECORD_AUXTRACE ? load_u64(record->data + 8)
                                               : ((uint64_t)load_u32(record->data + 8) + 7) & ~7ull;
    return true;
}

bool perfdata_next_slow(struct perfdata *data, uint64_t *offset, struct perfdata_record *record,
                        struct error *error) {
    uint64_t at = *offset;
    if (at >= data->data_end)
        return false;
    uint64_t left = data->data_end - at;
    if (left < HEADER_SIZE)
        return walk_overrun(data, at, "record header", HEADER_SIZE, error);
    /* A file system that lost power leaves zeroes where the last writes were to be. */
    if (data->open_ended && load_u64(record->data) == 0)
        return walk_cut(data, at, error);
    if (record->size < HEADER_SIZE)
        return error_at(error, data->file->path, at, "record size %u is less than its header's",
                        record->size);
    if (record->size > left)
        return walk_overrun(data, at, perfdata_record_name(record->type), record->size, error);
    bool compressed = record->type == RECORD_COMPRESSED || record->type == RECORD_COMPRESSED2;
    if (compressed && !data->unpacking)
        return error_at(error, data->file->path, at, "a compressed record among uncompressed ones");
    uint64_t payload;
    if (!walk_payload(data, record, &payload, error))
        return false;
    if (payload > left - record->size)
        return walk_overrun(data, at, perfdata_record_name(record->type), payload, error);
    *offset = at + record->size + payload;
    return true;
}

/* ---- trailers ---- */

static const struct perfdata_event *
trailer_event(const struct perfdata *data, const struct perfdata_record *record, uint32_t *event) {
    uint32_t from_end = data->ids.trailer_offset;
    *event = 0;
    if (from_end && data->events.items[0].trailer_size && record->size >= HEADER_SIZE + from_end)
        *event = perfdata_find_event(data, load_u64(record->data + record->size - from_end));
    return *event == PERFDATA_NO_EVENT ? NULL : &data->events.items[*event];
}

bool perfdata_trailer(const struct perfdata *data, const struct perfdata_record *record,
                      struct perfdata_trailer *trailer, struct error *error) {
    *trailer = (struct perfdata_trailer){.pid = -1, .tid = -1, .cpu = UINT32_MAX};
    if (record->type >= RECORD_FIRST_USER)
        return true;
    const struct perfdata_event *event = trailer_event(data, record, &trailer->event);
    if (!event || !event->trailer_size)
        return true;
    if (record->size < HEADER_SIZE + event->trailer_size)
        return record_error(data, record, error);
    const uint8_t *p = record->data + record->size - event->trailer_size;
    uint64_t type = event->sample_type;
    if (type & PERF_SAMPLE_TID) {
        trailer->pid = (int32_t)load_u32(p);
        trailer->tid = (int32_t)load_u32(p + 4);
        p += 8;
    }
    trailer->has_time = type & PERF_SAMPLE_TIME;
    if (type & PERF_SAMPLE_TIME)
        trailer->time = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_ID)
        trailer->id = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_STREAM_ID)
        trailer->stream_id = load_u64(p), p += 8;
    if (type & PERF_SAMPLE_CPU)
        trailer->cpu = load_u32(p), p += 8;
    if (type & PERF_SAMPLE_IDENTIFIER)
        trailer->id = load_u64(p);
    return true;
}

/* ---- side records ---- */

/* The bytes between the header and the trailer. False when there are fewer than `least`. */
static bool record_body(const struct perfdata *data, const struct perfdata_record *record,
                        size_t least, struct text *body, struct error *error) {
    uint32_t index, trailer = 0;
    if (record->type < RECORD_FIRST_USER) {
        const struct perfdata_event *event = trailer_event(data, record, &index);
        trailer = event ? event->trailer_size : data->events.items[0].trailer_size;
    }
    *body = (struct text){(const char *)record->data + HEADER_SIZE, 0};
    if (record->size < HEADER_SIZE + trailer + least)
        return record_error(data, record, error);
    body->length = record->size - HEADER_SIZE - trailer;
    return true;
}

/* A NUL-terminated string, padded; one that fills its place to the last byte is taken too. */
static struct text body_string(struct text body, size_t at) {
    return (struct text){body.data + at, strnlen(body.data + at, body.length - at)};
}

static void mmap2_decode(const struct perfdata *data, struct perfdata_mmap *mmap,
                         const struct perfdata_record *record, const char *p) {
    if (perfdata_has_build_id(data->asks_build_ids, record->misc, load_u32(p + 32))) {
        mmap->build_id.size = (uint8_t)p[32];
        memcpy(mmap->build_id.bytes, p + 36, mmap->build_id.size);
    } else {
        mmap->major = load_u32(p + 32);
        mmap->minor = load_u32(p + 36);
        mmap->inode = load_u64(p + 40);
        mmap->generation = load_u64(p + 48);
    }
    mmap->protection = load_u32(p + 56);
    mmap->flags = load_u32(p + 60);
}

bool perfdata_mmap(const struct perfdata *data, const struct perfdata_record *record,
                   struct perfdata_mmap *mmap, struct error *error) {
    bool second = record->type == PERF_RECORD_MMAP2;
    size_t fixed = second ? 64 : 32;
    struct text body;
    if (!record_body(data, record, fixed, &body, error))
        return false;
    const char *p = body.data;
    *mmap = (struct perfdata_mmap){
        .pid = (int32_t)load_u32(p),
        .tid = (int32_t)load_u32(p + 4),
        .start = load_u64(p + 8),
        .length = load_u64(p + 16),
        .offset = load_u64(p + 24),
        .protection = record->misc & MISC_BIT_13 ? 0 : PROT_EXEC,
        .path = body_string(body, fixed),
    };
    if (second)
        mmap2_decode(data, mmap, record, p);
    mmap->executable = mmap->protection & PROT_EXEC;
    return true;
}

bool perfdata_task(const struct perfdata *data, const struct perfdata_record *record,
                   struct perfdata_task *task, struct error *error) {
    struct text body;
    if (!record_body(data, record, 24, &body, error))
        return false;
    *task = (struct perfdata_task){
        .pid = (int32_t)load_u32(body.data),
        .parent_pid = (int32_t)load_u32(body.data + 4),
        .tid = (int32_t)load_u32(body.data + 8),
        .parent_tid = (int32_t)load_u32(body.data + 12),
        .time = load_u64(body.data + 16),
    };
    return true;
}

bool perfdata_comm(const struct perfdata *data, const struct perfdata_record *record,
                   struct perfdata_comm *comm, struct error *error) {
    struct text body;
    if (!record_body(data, record, 8, &body, error))
        return false;
    *comm = (struct perfdata_comm){
        .pid = (int32_t)load_u32(body.data),
        .tid = (int32_t)load_u32(body.data + 4),
        .comm = body_string(body, 8),
        .exec = record->misc & MISC_BIT_13,
    };
    return true;
}

bool perfdata_namespaces(const struct perfdata *data, const struct perfdata_record *record,
                         struct perfdata_namespaces *namespaces, struct error *error) {
    enum { MOUNT = 5, AT = 16, EACH = 16 }; /* the kernel's order: net, uts, ipc, pid, user, mnt */
    struct text body;
    if (!record_body(data, record, AT, &body, error))
        return false;
    *namespaces = (struct perfdata_namespaces){.pid = (int32_t)load_u32(body.data),
                                               .tid = (int32_t)load_u32(body.data + 4)};
    uint64_t count = load_u64(body.data + 8);
    if (count > (body.length - AT) / EACH)
        return record_error(data, record, error);
    if (count > MOUNT) {
        namespaces->mount_device = load_u64(body.data + AT + MOUNT * EACH);
        namespaces->mount_inode = load_u64(body.data + AT + MOUNT * EACH + 8);
    }
    return true;
}

bool perfdata_ksymbol(const struct perfdata *data, const struct perfdata_record *record,
                      struct perfdata_ksymbol *ksymbol, struct error *error) {
    struct text body;
    if (!record_body(data, record, 16, &body, error))
        return false;
    *ksymbol = (struct perfdata_ksymbol){
        .address = load_u64(body.data),
        .length = load_u32(body.data + 8),
        .type = load_u16(body.data + 12),
        .flags = load_u16(body.data + 14),
        .name = body_string(body, 16),
    };
    ksymbol->unregister = ksymbol->flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
    return true;
}

bool perfdata_lost(const struct perfdata *data, const struct perfdata_record *record,
                   uint64_t *lost, struct error *error) {
    size_t at = record->type == PERF_RECORD_LOST ? 8 : 0;
    struct text body;
    if (!record_body(data, record, at + 8, &body, error))
        return false;
    *lost = load_u64(body.data + at);
    return true;
}

bool perfdata_deferred(const struct perfdata *data, const struct perfdata_record *record,
                       struct perfdata_deferred *deferred, struct error *error) {
    struct text body;
    if (!record_body(data, record, 16, &body, error))
        return false;
    *deferred = (struct perfdata_deferred){
        .cookie = load_u64(body.data),
        .chain_count = load_u64(body.data + 8),
        .chain = (const uint8_t *)body.data + 16,
    };
    if (deferred->chain_count > (body.length - 16) / 8)
        return record_error(data, record, error);
    return true;
}

bool perfdata_build_id(const struct perfdata *data, const struct perfdata_record *record,
                       struct perfdata_build_id *build_id, struct error *error) {
    return build_id_decode(record->data, record->size, build_id) ||
           record_error(data, record, error);
}

/* ---- all others ---- */

/* What a record of each type holds at least, between header and trailer. */
static const uint8_t least_kernel[] = {
    [PERF_RECORD_MMAP] = 32,
    [PERF_RECORD_LOST] = 16,
    [PERF_RECORD_COMM] = 8,
    [PERF_RECORD_EXIT] = 24,
    [PERF_RECORD_THROTTLE] = 24,
    [PERF_RECORD_UNTHROTTLE] = 24,
    [PERF_RECORD_FORK] = 24,
    [PERF_RECORD_READ] = 16,
    [PERF_RECORD_SAMPLE] = 0,
    [PERF_RECORD_MMAP2] = 64,
    [PERF_RECORD_AUX] = 24,
    [PERF_RECORD_ITRACE_START] = 8,
    [PERF_RECORD_LOST_SAMPLES] = 8,
    [PERF_RECORD_SWITCH] = 0,
    [PERF_RECORD_SWITCH_CPU_WIDE] = 8,
    [PERF_RECORD_NAMESPACES] = 16,
    [PERF_RECORD_KSYMBOL] = 16,
    [PERF_RECORD_BPF_EVENT] = 16,
    [PERF_RECORD_CGROUP] = 8,
    [PERF_RECORD_TEXT_POKE] = 12,
    [PERF_RECORD_AUX_OUTPUT_HW_ID] = 8,
    [RECORD_CALLCHAIN_DEFERRED] = 16,
};
static const uint8_t least_user[] = {
    [RECORD_HEADER_ATTR - RECORD_FIRST_USER] = 64,
    [RECORD_HEADER_EVENT_TYPE - RECORD_FIRST_USER] = 8,
    [RECORD_HEADER_TRACING_DATA - RECORD_FIRST_USER] = 8,
    [RECORD_HEADER_BUILD_ID - RECORD_FIRST_USER] = 28,
    [RECORD_FINISHED_ROUND - RECORD_FIRST_USER] = 0,
    [RECORD_ID_INDEX - RECORD_FIRST_USER] = 8,
    [RECORD_AUXTRACE_INFO - RECORD_FIRST_USER] = 8,
    [RECORD_AUXTRACE - RECORD_FIRST_USER] = 40,
    [RECORD_AUXTRACE_ERROR - RECORD_FIRST_USER] = 32,
    [RECORD_THREAD_MAP - RECORD_FIRST_USER] = 8,
    [RECORD_CPU_MAP - RECORD_FIRST_USER] = 2,
    [RECORD_STAT_CONFIG - RECORD_FIRST_USER] = 8,
    [RECORD_STAT - RECORD_FIRST_USER] = 40,
    [RECORD_STAT_ROUND - RECORD_FIRST_USER] = 16,
    [RECORD_EVENT_UPDATE - RECORD_FIRST_USER] = 16,
    [RECORD_TIME_CONV - RECORD_FIRST_USER] = 24,
    [RECORD_HEADER_FEATURE - RECORD_FIRST_USER] = 8,
    [RECORD_COMPRESSED - RECORD_FIRST_USER] = 0,
    [RECORD_FINISHED_INIT - RECORD_FIRST_USER] = 0,
    [RECORD_COMPRESSED2 - RECORD_FIRST_USER] = 8,
    [RECORD_BPF_METADATA - RECORD_FIRST_USER] = 0,
};

bool perfdata_check(struct perfdata *data, const struct perfdata_record *record,
                    struct error *error) {
    struct text body;
    if (record->type && record->type < COUNT_OF(least_kernel))
        return record_body(data, record, least_kernel[record->type], &body, error);
    if (record->type - RECORD_FIRST_USER < COUNT_OF(least_user))
        return record_body(data, record, least_user[record->type - RECORD_FIRST_USER], &body,
                           error);
    notes_add(&data->notes, &note_unknown, 1, record->offset, "type %u at byte %llu", record->type,
              (unsigned long long)record->offset);
    return true;
}
