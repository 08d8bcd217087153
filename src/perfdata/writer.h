/*
 * Write perf.data: a file that perf, hotspot and wick read, or a stream for a pipe.
 *
 * The header is written first, and its data size is updated after each round: if the recorder is killed, perf reads all rounds, and wick all
 * records. perfdata_finish() writes the feature sections and then the header again. A stream cannot be updated: its attributes and features are
 * records at its beginning.
 */
#ifndef WICK_PERFDATA_WRITER_H
#define WICK_PERFDATA_WRITER_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "perfdata/perfdata.h"

struct perfdata_writer_event {
    struct perf_event_attr attr;
    const char *name;
    const uint64_t *ids;
    size_t id_count;
};

struct perfdata_writer;

struct perfdata_writer_options {
    bool stream;        /* for a pipe */
    int compress_level; /* zstd's level for compressed records; 0: do not compress */
    uint32_t
        entries; /* number of carrier entries in earlier windows of the recording: numbering continues from there */
};

/* Write the header, the events and their ids. The caller keeps `descriptor`. */
struct perfdata_writer *perfdata_writer_new(int descriptor, const char *path,
                                            const struct perfdata_writer_event *events,
                                            size_t event_count,
                                            const struct perfdata_writer_options *options,
                                            struct error *error);
/* Reserve up to `most` bytes of the disk for when it is full, less of a small disk. Does nothing if that is not possible. */
void perfdata_reserve(struct perfdata_writer *writer, uint64_t most);
/* After a failed write, make the reserved space available for writing after the last whole record. The file remains truncated. Return false if
   nothing was reserved or nothing has failed. */
bool perfdata_use_reserve(struct perfdata_writer *writer);
/* Write whole records from a ring buffer, in two parts if it wraps. Return false if the disk is full or writing fails; what was written before
   stays valid. */
bool perfdata_write_split(struct perfdata_writer *writer, const void *first, size_t first_size,
                          const void *second, size_t second_size, struct error *error);
/* After that failed: return how many of its bytes were written, as whole records. If compressed, there may be more. */
size_t perfdata_kept(const struct perfdata_writer *writer);
bool perfdata_write_round(struct perfdata_writer *writer, struct error *error); /* FINISHED_ROUND */
/* Add a feature, which is written at the end (in a stream: at once). The bytes are copied. */
bool perfdata_add_feature(struct perfdata_writer *writer, enum perfdata_feature feature,
                          struct text bytes, struct error *error);
void perfdata_feature_string(struct buffer *bytes, struct text string); /* length, text, padding */
/* Write a carrier entry (see perfdata.h) after what was written so far. Large ones are compressed and take several records. Return false as
   perfdata_write_split() does. */
bool carrier_write(struct perfdata_writer *writer, enum carrier_kind kind, struct text key,
                   struct text bytes, struct error *error);
uint32_t perfdata_writer_entries(const struct perfdata_writer *writer); /* the last number */
uint64_t perfdata_writer_size(const struct perfdata_writer *writer);
bool perfdata_finish(struct perfdata_writer *writer, struct error *error);
/* After perfdata_finish() of a file: allow more records to be appended, and the file to be finished again. Nothing is truncated before that, so a
   reader may still have the file mapped. */
bool perfdata_reopen(struct perfdata_writer *writer, struct error *error);
void perfdata_writer_free(struct perfdata_writer *writer);

#endif
