/*
 * Write perf.data. The layout suits all its readers, perf 6.1, hotspot and wick, even if the recorder was killed or ran out of disk space.
 */
#include "perfdata/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zstd.h>

#include "perfdata/private.h"

enum {
    FILE_HEADER_SIZE = 104,
    STREAM_HEADER_SIZE = 16,
    AT_DATA_SIZE = 48,
    AT_FEATURES = 72,
    COMPRESSED_MOST = 60000, /* of a record's 65,535 bytes */
    UNPACKED_MOST =
        1 << 20,        /* what one of them holds: perf makes room for as much as the header says */
    RESERVED_SHARE = 8, /* of what is free, one part is set aside at most */
};

struct feature {
    enum perfdata_feature bit;
    char *bytes;
    size_t size;
};

struct perfdata_writer {
    int descriptor;
    char *path;
    struct perfdata_writer_options options;
    uint64_t size;    /* bytes written so far */
    uint64_t whole;   /* where the last record ends that is there as a whole */
    size_t kept;      /* of the last stretch, if it failed */
    bool failed;      /* the last write: the size told in the header stays what it is */
    bool was_full;    /* it goes on in what was set aside */
    bool is_reopened; /* what was there may be longer */
    int reserve;      /* a file without a name; -1: none */
    size_t trailer;   /* of records: what the first event asks for */
    uint32_t entries; /* of the carrier */
    uint64_t data_start;
    uint64_t data_end; /* once it is finished */
    uint8_t header[FILE_HEADER_SIZE];
    VECTOR(struct feature) features;
    ZSTD_CStream *zstd; /* one stream for the whole recording, flushed at the end of each write */
    struct buffer packed;
};

/* ---- bytes ---- */

static bool write_all(struct perfdata_writer *writer, const void *data, size_t size,
                      struct error *error) {
    const char *p = data;
    while (size) {
        ssize_t written = write(writer->descriptor, p, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            writer->failed = true;
            return error_set(error, ERROR_INPUT, "%s: %s", writer->path, strerror(errno));
        }
        p += written;
        size -= (size_t)written;
        writer->size += (uint64_t)written;
    }
    return true;
}

static void add_record_header(struct buffer *buffer, uint32_t type, size_t size) {
    struct perf_event_header header = {.type = type, .size = (uint16_t)size};
    assert(size <= UINT16_MAX);
    buffer_add(buffer, (struct text){(const char *)&header, sizeof header});
}

void perfdata_feature_string(struct buffer *bytes, struct text string) {
    size_t padded = (string.length + 1 + 63) & ~(size_t)63;
    buffer_put_u32(bytes, (uint32_t)padded);
    buffer_add(bytes, string);
    for (size_t i = string.length; i < padded; i++)
        buffer_add_char(bytes, 0);
}

/* ---- the beginning ---- */

/* File: header, all ids, attributes with where their ids are. */
static void file_beginning(struct perfdata_writer *writer,
                           const struct perfdata_writer_event *events, size_t count,
                           struct buffer *out) {
    uint64_t id_count = 0, attribute_size = sizeof(struct perf_event_attr) + 16;
    for (size_t i = 0; i < count; i++)
        id_count += events[i].id_count;
    uint64_t attributes = FILE_HEADER_SIZE + 8 * id_count, ids = FILE_HEADER_SIZE;
    writer->data_start = attributes + count * attribute_size;
    buffer_add(out, TEXT("PERFILE2"));
    uint64_t rest[] = {FILE_HEADER_SIZE, attribute_size, attributes, count * attribute_size,
                       writer->data_start};
    buffer_add(out, (struct text){(const char *)rest, sizeof rest});
    while (out->count < FILE_HEADER_SIZE)
        buffer_add_char(out, 0);
    memcpy(writer->header, out->items, FILE_HEADER_SIZE);
    for (size_t i = 0; i < count; i++)
        buffer_add(out, (struct text){(const char *)events[i].ids, 8 * events[i].id_count});
    for (size_t i = 0; i < count; i++) {
        struct perf_event_attr attr = events[i].attr;
        attr.size = sizeof attr;
        buffer_add(out, (struct text){(const char *)&attr, sizeof attr});
        buffer_put_u64(out, ids);
        buffer_put_u64(out, 8 * events[i].id_count);
        ids += 8 * events[i].id_count;
    }
}

/* Stream: a short header, then a HEADER_ATTR record for each event; ids that do not fit one record are left to ID in samples. */
static void stream_beginning(const struct perfdata_writer_event *events, size_t count,
                             struct buffer *out) {
    buffer_add(out, TEXT("PERFILE2"));
    buffer_put_u64(out, STREAM_HEADER_SIZE);
    for (size_t i = 0; i < count; i++) {
        struct perf_event_attr attr = events[i].attr;
        size_t most = (UINT16_MAX - sizeof(struct perf_event_header) - sizeof attr) / 8;
        size_t ids = events[i].id_count < most ? events[i].id_count : most;
        attr.size = sizeof attr;
        add_record_header(out, RECORD_HEADER_ATTR,
                          sizeof(struct perf_event_header) + sizeof attr + 8 * ids);
        buffer_add(out, (struct text){(const char *)&attr, sizeof attr});
        buffer_add(out, (struct text){(const char *)events[i].ids, 8 * ids});
    }
}

/* EVENT_DESC: what the events are called. */
static bool add_event_names(struct perfdata_writer *writer,
                            const struct perfdata_writer_event *events, size_t count,
                            struct error *error) {
    struct buffer bytes = {0};
    buffer_put_u32(&bytes, (uint32_t)count);
    buffer_put_u32(&bytes, sizeof(struct perf_event_attr));
    for (size_t i = 0; i < count; i++) {
        struct perf_event_attr attr = events[i].attr;
        attr.size = sizeof attr;
        buffer_add(&bytes, (struct text){(const char *)&attr, sizeof attr});
        buffer_put_u32(&bytes, (uint32_t)events[i].id_count);
        perfdata_feature_string(&bytes, text_of(events[i].name));
        buffer_add(&bytes, (struct text){(const char *)events[i].ids, 8 * events[i].id_count});
    }
    bool fine = perfdata_add_feature(writer, FEATURE_EVENT_DESC, buffer_text(&bytes), error);
    buffer_release(&bytes);
    return fine;
}

static bool start_compression(struct perfdata_writer *writer, struct error *error) {
    if (!writer->options.compress_level)
        return true;
    writer->zstd = ZSTD_createCStream();
    if (!writer->zstd ||
        ZSTD_isError(ZSTD_initCStream(writer->zstd, writer->options.compress_level)))
        return error_set(error, ERROR_INTERNAL, "zstd can't be initialized");
    uint32_t fields[] = {0, 1, (uint32_t)writer->options.compress_level, 0, UNPACKED_MOST};
    struct text bytes = {(const char *)fields, sizeof fields};
    return perfdata_add_feature(writer, FEATURE_COMPRESSED, bytes, error);
}

static size_t trailer_size(const struct perf_event_attr *attr) {
    const uint64_t fields = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                            PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER;
    return attr->sample_id_all ? 8 * (size_t)__builtin_popcountll(attr->sample_type & fields) : 0;
}

struct perfdata_writer *perfdata_writer_new(int descriptor, const char *path,
                                            const struct perfdata_writer_event *events,
                                            size_t event_count,
                                            const struct perfdata_writer_options *options,
                                            struct error *error) {
    struct perfdata_writer *writer = memory_zero(1, sizeof *writer);
    writer->descriptor = descriptor;
    writer->reserve = -1;
    writer->path = memory_copy(path, strlen(path));
    writer->options = *options;
    writer->entries = options->entries;
    writer->trailer = trailer_size(&events[0].attr);
    struct buffer beginning = {0};
    if (options->stream)
        stream_beginning(events, event_count, &beginning);
    else
        file_beginning(writer, events, event_count, &beginning);
    bool fine = write_all(writer, beginning.items, beginning.count, error) &&
                add_event_names(writer, events, event_count, error) &&
                start_compression(writer, error);
    buffer_release(&beginning);
    if (fine)
        return writer;
    perfdata_writer_free(writer);
    return NULL;
}

/* ---- records ---- */

/* As many COMPRESSED records as it takes; each is flushed, so that what was written can be read. The stream is never ended: perf gives up at
   a record that holds nothing but its end. */
static bool write_packed(struct perfdata_writer *writer, const void *data, size_t size,
                         struct error *error) {
    ZSTD_inBuffer in = {data, size, 0};
    size_t left = 1;
    while (left || in.pos < in.size) {
        writer->packed.count = 0;
        add_record_header(&writer->packed, RECORD_COMPRESSED, sizeof(struct perf_event_header));
        vector_reserve(&writer->packed, sizeof(struct perf_event_header) + COMPRESSED_MOST);
        ZSTD_outBuffer to = {writer->packed.items + writer->packed.count, COMPRESSED_MOST, 0};
        left = ZSTD_compressStream2(writer->zstd, &to, &in, ZSTD_e_flush);
        if (ZSTD_isError(left))
            return error_set(error, ERROR_INTERNAL, "zstd: %s", ZSTD_getErrorName(left));
        writer->packed.count += to.pos;
        ((struct perf_event_header *)writer->packed.items)->size = (uint16_t)writer->packed.count;
        if (to.pos && !write_all(writer, writer->packed.items, writer->packed.count, error))
            return false;
        writer->whole = writer->size;
    }
    writer->kept += size;
    return true;
}

static bool write_records(struct perfdata_writer *writer, const void *records, size_t size,
                          struct error *error) {
    if (!writer->zstd)
        return write_all(writer, records, size, error);
    for (size_t done = 0; done < size; done += UNPACKED_MOST) {
        size_t part = size - done < UNPACKED_MOST ? size - done : UNPACKED_MOST;
        if (!write_packed(writer, (const char *)records + done, part, error))
            return false;
    }
    return true;
}

/* In the header, where perf looks for it: all that was written until now can be read, whatever happens next. The mark of the round comes after it:
   what is longer than it says, and has no features, is known to be unfinished. */
static bool tell_end(struct perfdata_writer *writer, uint64_t end, struct error *error) {
    if (writer->options.stream)
        return true;
    uint64_t size = end - writer->data_start;
    memcpy(writer->header + AT_DATA_SIZE, &size, sizeof size);
    return pwrite(writer->descriptor, &size, sizeof size, AT_DATA_SIZE) == sizeof size ||
           error_errno(error, writer->path);
}

static bool tell_size(struct perfdata_writer *writer, struct error *error) {
    return tell_end(writer, writer->size, error);
}

/* The disk is full: how much of a stretch, of which `size` bytes can be read, is there as whole records. No header is in both parts. */
static size_t whole_records(const char *first, size_t first_size, const char *second, size_t size) {
    struct perf_event_header header;
    size_t at = 0;
    while (at + sizeof header <= size) {
        memcpy(&header, at < first_size ? first + at : second + (at - first_size), sizeof header);
        if (header.size < sizeof header || at + header.size > size)
            break;
        at += header.size;
    }
    return at;
}

bool perfdata_write_split(struct perfdata_writer *writer, const void *first, size_t first_size,
                          const void *second, size_t second_size, struct error *error) {
    uint64_t before = writer->size;
    writer->whole = before;
    writer->kept = 0;
    bool fine = write_records(writer, first, first_size, error) &&
                write_records(writer, second, second_size, error);
    if (fine)
        return true;
    size_t there = writer->zstd ? writer->kept : writer->size - before;
    writer->kept = whole_records(first, first_size, second, there);
    if (!writer->zstd) {
        writer->whole = before + writer->kept;
        tell_end(writer, writer->whole, NULL);
    }
    return false;
}

size_t perfdata_kept(const struct perfdata_writer *writer) {
    return writer->kept;
}

/* Never compressed: perf looks for it between compressed records. */
bool perfdata_write_round(struct perfdata_writer *writer, struct error *error) {
    struct perf_event_header round = {.type = RECORD_FINISHED_ROUND, .size = sizeof round};
    writer->whole = writer->size;
    return tell_size(writer, error) && write_all(writer, &round, sizeof round, error);
}

uint32_t writer_number_entry(struct perfdata_writer *writer, size_t *trailer) {
    *trailer = writer->trailer;
    return ++writer->entries;
}

uint32_t perfdata_writer_entries(const struct perfdata_writer *writer) {
    return writer->entries;
}

uint64_t perfdata_writer_size(const struct perfdata_writer *writer) {
    return writer->size;
}

/* ---- a full disk ---- */

static int open_nameless(const char *beside) {
    const char *slash = strrchr(beside, '/');
    char *folder = slash ? memory_copy(beside, (size_t)(slash - beside + 1)) : memory_copy(".", 1);
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    free(folder);
    return file;
}

void perfdata_reserve(struct perfdata_writer *writer, uint64_t most) {
    struct stat status;
    struct statvfs disk;
    if (writer->options.stream || fstat(writer->descriptor, &status) != 0 ||
        !S_ISREG(status.st_mode) || fstatvfs(writer->descriptor, &disk) != 0)
        return;
    uint64_t share = (uint64_t)disk.f_bavail * disk.f_frsize / RESERVED_SHARE;
    writer->reserve = open_nameless(writer->path);
    if (writer->reserve < 0 ||
        fallocate(writer->reserve, 0, 0, (off_t)(share < most ? share : most)) == 0)
        return;
    close(writer->reserve);
    writer->reserve = -1;
}

static void release_reserve(struct perfdata_writer *writer) {
    if (writer->reserve >= 0)
        close(writer->reserve);
    writer->reserve = -1;
}

/* What follows is not compressed: the stream lacks what could not be written. */
bool perfdata_use_reserve(struct perfdata_writer *writer) {
    if (!writer->failed || writer->reserve < 0)
        return false;
    release_reserve(writer);
    if (ftruncate(writer->descriptor, (off_t)writer->whole) != 0 ||
        lseek(writer->descriptor, (off_t)writer->whole, SEEK_SET) < 0)
        return false;
    ZSTD_freeCStream(writer->zstd);
    writer->zstd = NULL;
    writer->size = writer->whole;
    writer->failed = false;
    writer->was_full = true;
    return true;
}

/* ---- features and the end ---- */

static bool write_feature_record(struct perfdata_writer *writer, enum perfdata_feature feature,
                                 struct text bytes, struct error *error) {
    struct buffer record = {0};
    size_t size =
        sizeof(struct perf_event_header) + 8 + bytes.length; /* perf takes more for data */
    if (size > UINT16_MAX)
        return true; /* a stream does without what does not fit a record */
    add_record_header(&record, RECORD_HEADER_FEATURE, size);
    buffer_put_u64(&record, feature);
    buffer_add(&record, bytes);
    bool fine = write_all(writer, record.items, record.count, error);
    buffer_release(&record);
    return fine;
}

/* A record of its own kind, whose size does not count what follows it. */
static bool write_tracing_record(struct perfdata_writer *writer, struct text bytes,
                                 struct error *error) {
    enum { SIZE = 16 };
    struct buffer record = {0};
    add_record_header(&record, RECORD_HEADER_TRACING_DATA, SIZE);
    buffer_put_u64(&record, (bytes.length + 7) & ~7ull);
    buffer_add(&record, bytes);
    while (record.count % 8)
        buffer_add_char(&record, 0);
    bool fine = write_all(writer, record.items, record.count, error);
    buffer_release(&record);
    return fine;
}

bool perfdata_add_feature(struct perfdata_writer *writer, enum perfdata_feature feature,
                          struct text bytes, struct error *error) {
    if (writer->options.stream && feature == FEATURE_TRACING_DATA)
        return write_tracing_record(writer, bytes, error);
    if (writer->options.stream)
        return write_feature_record(writer, feature, bytes, error);
    struct feature added = {feature, memory_copy(bytes.data, bytes.length), bytes.length};
    vector_push(&writer->features, added);
    return true;
}

static int feature_order(const void *a, const void *b) {
    return (int)((const struct feature *)a)->bit - (int)((const struct feature *)b)->bit;
}

/* The table of sections, in the order of their bits, then the sections. */
static bool write_features(struct perfdata_writer *writer, struct error *error) {
    size_t count = writer->features.count;
    if (count)
        qsort(writer->features.items, count, sizeof *writer->features.items, feature_order);
    uint64_t at = writer->size + 16 * count;
    struct buffer table = {0};
    for (size_t i = 0; i < count; i++) {
        const struct feature *feature = &writer->features.items[i];
        writer->header[AT_FEATURES + feature->bit / 8] |= (uint8_t)(1u << feature->bit % 8);
        buffer_put_u64(&table, at);
        buffer_put_u64(&table, feature->size);
        at += feature->size;
    }
    bool fine = write_all(writer, table.items, table.count, error);
    for (size_t i = 0; i < count && fine; i++)
        fine = write_all(writer, writer->features.items[i].bytes, writer->features.items[i].size,
                         error);
    buffer_release(&table);
    return fine;
}

bool perfdata_finish(struct perfdata_writer *writer, struct error *error) {
    if (writer->options.stream)
        return true;
    release_reserve(writer);
    writer->data_end = writer->size;
    if (writer->failed || writer->was_full || !tell_size(writer, error) ||
        !write_features(writer, error))
        return false;
    if (writer->is_reopened && ftruncate(writer->descriptor, (off_t)writer->size) != 0)
        return error_errno(error, writer->path);
    if (pwrite(writer->descriptor, writer->header, FILE_HEADER_SIZE, 0) != FILE_HEADER_SIZE)
        return error_errno(error, writer->path);
    return true;
}

bool perfdata_reopen(struct perfdata_writer *writer, struct error *error) {
    assert(!writer->options.stream && writer->data_end);
    writer->is_reopened = true;
    writer->failed = false;
    writer->size = writer->whole = writer->data_end;
    return lseek(writer->descriptor, (off_t)writer->data_end, SEEK_SET) >= 0 ||
           error_errno(error, writer->path);
}

void perfdata_writer_free(struct perfdata_writer *writer) {
    if (!writer)
        return;
    for (size_t i = 0; i < writer->features.count; i++)
        free(writer->features.items[i].bytes);
    vector_release(&writer->features);
    release_reserve(writer);
    ZSTD_freeCStream(writer->zstd);
    buffer_release(&writer->packed);
    free(writer->path);
    free(writer);
}
