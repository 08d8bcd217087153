/*
 * Unpack compressed records: the kernel's records, as they came from the buffers, in one zstd stream that continues from one COMPRESSED record to
 * the next. A record may begin in one of them and end two later, with records between that are not compressed (FINISHED_ROUND); an incomplete
 * record waits until it is complete. So everything is written out once, in the order in which perf would see it, and then read like any other
 * recording. This costs a copy, and disk instead of memory.
 *
 * The files of a recording in several files (perf record --threads) are also written out, one after the other; each has its own zstd stream.
 *
 * The header says whether a file is compressed, but not if its recorder was killed, and in a pipe this may come late. So the first compressed record
 * decides; there are no samples before it.
 */
#include "perfdata/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

enum { WRITE_SIZE = 1 << 18, CHUNK = 1 << 17, COMPRESSED2_FIXED = 16 };

struct unpacking {
    struct perfdata *data;
    ZSTD_DStream *stream;
    struct spool spool;
    struct buffer out;    /* whole records, on their way to the spool */
    struct buffer held;   /* unpacked, from the beginning of a record */
    struct budget budget; /* what the file, or one of several, may unpack to */
};

static bool is_compressed(const struct perfdata_record *record) {
    return record->type == RECORD_COMPRESSED || record->type == RECORD_COMPRESSED2;
}

static bool records_are_compressed(struct perfdata *data) {
    uint64_t offset = data->data_start;
    struct perfdata_record record;
    struct error ignored = {.kind = ERROR_NONE}; /* the reader of the records will report it */
    if (data->features[FEATURE_COMPRESSED].length)
        return true;
    while (perfdata_next(data, &offset, &record, &ignored)) {
        if (is_compressed(&record))
            return true;
        if (record.type == PERF_RECORD_SAMPLE)
            return false;
    }
    return false;
}

static bool add(struct unpacking *u, struct text bytes, struct error *error) {
    buffer_add(&u->out, bytes);
    if (u->out.count < WRITE_SIZE)
        return true;
    bool fine = spool_write(&u->spool, u->out.items, u->out.count, error);
    u->out.count = 0;
    return fine;
}

/* Moves the whole records from what is held to the file. */
static bool add_held(struct unpacking *u, uint64_t where, struct error *error) {
    size_t at = 0;
    while (u->held.count - at >= HEADER_SIZE) {
        uint16_t size = load_u16(u->held.items + at + 6);
        if (size < HEADER_SIZE)
            return error_at(error, u->data->file->path, where,
                            "a record in this compressed one has size %u, less than its header",
                            size);
        if (size > u->held.count - at)
            break;
        at += size;
    }
    bool fine = add(u, text_upto(buffer_text(&u->held), at), error);
    u->held.count -= at;
    memmove(u->held.items, u->held.items + at, u->held.count);
    return fine;
}

/* What a compressed record carries. */
static bool payload_of(const struct unpacking *u, const struct perfdata_record *record,
                       ZSTD_inBuffer *in, struct error *error) {
    *in = (ZSTD_inBuffer){record->data + HEADER_SIZE, record->size - HEADER_SIZE, 0};
    if (record->type == RECORD_COMPRESSED)
        return true;
    uint64_t size =
        record->size < COMPRESSED2_FIXED ? UINT64_MAX : load_u64(record->data + HEADER_SIZE);
    if (record->size < COMPRESSED2_FIXED || size > record->size - COMPRESSED2_FIXED)
        return error_at(error, u->data->file->path, record->offset,
                        "COMPRESSED2 record of %u bytes is too short", record->size);
    *in = (ZSTD_inBuffer){record->data + COMPRESSED2_FIXED, size, 0};
    return true;
}

static bool unpack_record(struct unpacking *u, const struct perfdata_record *record,
                          struct error *error) {
    ZSTD_inBuffer in;
    if (!payload_of(u, record, &in, error))
        return false;
    bool more = true;
    while (more) {
        vector_reserve(&u->held, u->held.count + CHUNK);
        ZSTD_outBuffer to = {u->held.items + u->held.count, CHUNK, 0};
        size_t status = ZSTD_decompressStream(u->stream, &to, &in);
        if (ZSTD_isError(status))
            return error_at(error, u->data->file->path, record->offset,
                            "compressed record is damaged: %s", ZSTD_getErrorName(status));
        if (!budget_take_memory(&u->budget, to.pos, record->offset))
            return budget_error(&u->budget, u->data->file->path, error);
        u->held.count += to.pos;
        more = to.pos == to.size || in.pos < in.size;
        if (!add_held(u, record->offset, error))
            return false;
    }
    return true;
}

static bool unpack_all(struct unpacking *u, struct error *error) {
    struct perfdata *data = u->data;
    uint64_t offset = data->data_start, last = offset;
    struct perfdata_record record;
    error->kind = ERROR_NONE;
    while (!context_cancelled(data->context) && perfdata_next(data, &offset, &record, error)) {
        struct text whole = {(const char *)record.data, offset - record.offset};
        last = record.offset;
        if (!(is_compressed(&record) ? unpack_record(u, &record, error) : add(u, whole, error)))
            return false;
        context_progress(data->context, "unpacking", offset - data->data_start,
                         data->data_end - data->data_start);
    }
    if (error->kind != ERROR_NONE)
        return false;
    if (u->held.count && !data->is_cut) { /* the rest of a record was never written */
        if (data->strict)
            return error_at(error, data->file->path, last, "the recording ends inside a record");
        data->is_cut = true;
        data->cut = last;
    }
    bool fine = spool_write(&u->spool, u->out.items, u->out.count, error);
    u->out.count = u->held.count = 0;
    return fine;
}

/* ---- a recording in several files ---- */

/* The path of one of them, beside that of the first. */
static void part_path(const struct perfdata *data, size_t number, struct buffer *path) {
    path->count = 0;
    buffer_printf(path, "%s.%zu", data->source->path, number);
    buffer_add_char(path, 0);
}

/* A recorder that was killed has not written which features it has. */
static bool has_parts(const struct perfdata *data) {
    bool named = text_ends(text_of(data->source->path), TEXT("/data"));
    return data->features[FEATURE_DIR_FORMAT].length || (data->is_cut && named);
}

static bool unpack_part(struct unpacking *u, const char *path, struct error *error) {
    struct perfdata *whole = u->data;
    struct file file;
    if (!file_open(&file, path, whole->context, error))
        return false;
    struct perfdata part = {.file = &file,
                            .source = &file,
                            .strict = whole->strict,
                            .context = whole->context,
                            .unpacking = true,
                            .open_ended = whole->open_ended,
                            .data_end = file.size};
    u->data = &part;
    budget_grow(&u->budget, file.size);
    ZSTD_initDStream(u->stream);
    bool fine = unpack_all(u, error) && !file_changed(&file, error);
    u->data = whole;
    whole->is_cut |= part.is_cut;
    file_close(&file);
    return fine;
}

static bool unpack_parts(struct unpacking *u, struct error *error) {
    struct buffer path = {0};
    bool fine = true;
    for (size_t i = 0; fine && has_parts(u->data); i++) {
        part_path(u->data, i, &path);
        if (access(path.items, F_OK) != 0)
            break;
        fine = unpack_part(u, path.items, error);
    }
    buffer_release(&path);
    return fine;
}

static bool unpack_map(struct unpacking *u, struct error *error) {
    struct perfdata *data = u->data;
    struct buffer path = {0};
    buffer_printf(&path, "%s, unpacked", data->source->path);
    buffer_add_char(&path, 0);
    bool fine = spool_map(&u->spool, path.items, &data->unpacked, error);
    buffer_release(&path);
    data->file = &data->unpacked;
    data->data_start = 0;
    data->data_end = data->unpacked.size;
    data->open_ended = false;
    budget_grow(&data->budget, data->unpacked.size);
    return fine;
}

bool records_unpack(struct perfdata *data, struct error *error) {
    struct error wrong = {.kind = ERROR_NONE};
    struct unpacking u = {.data = data};
    data->unpacking = true;
    bool fine = true;
    if (records_are_compressed(data) || has_parts(data)) {
        u.stream = ZSTD_createDStream();
        fine = u.stream || error_set(&wrong, ERROR_INTERNAL, "zstd can't be initialized");
        budget_init(&u.budget, &unpacking_limits, data->file->size);
        fine = fine && spool_open(&u.spool, data->source->path, data->context, &wrong) &&
               unpack_all(&u, &wrong) && unpack_parts(&u, &wrong) && unpack_map(&u, &wrong);
    }
    data->unpacking = false;
    ZSTD_freeDStream(u.stream);
    spool_release(&u.spool);
    buffer_release(&u.out);
    buffer_release(&u.held);
    if (!fine && error)
        *error = wrong;
    return fine;
}
