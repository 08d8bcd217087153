/*
 * Writing perf.data: a file that perf, hotspot and wick read, or a stream for a pipe.
 *
 * The header goes out first, and the size of the data in it is set after each round: of a recording that is killed, perf reads all rounds, and wick
 * all records. perfdata_finish() writes the feature sections and then the header again.
 * A stream has no such second thoughts: attributes and features are records of their own, at its beginning.
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
    int compress_level; /* 0: not at all; else records go into zstd-compressed ones */
    uint32_t
        entries; /* of the carrier, in earlier windows of the same recording: numbers go on from there */
};

/* `descriptor` stays the caller's. Writes the header, the events and their ids. */
struct perfdata_writer *perfdata_writer_new(int descriptor, const char *path,
                                            const struct perfdata_writer_event *events,
                                            size_t event_count,
                                            const struct perfdata_writer_options *options,
                                            struct error *error);
/* Sets up to `most` bytes of a disk aside, for when it is full; of a small one less. Does nothing where that can't be had. */
void perfdata_reserve(struct perfdata_writer *writer, uint64_t most);
/* After a write has failed: what was set aside is there to be written to, behind the last whole record, and the file stays one that was cut short.
   False: nothing was set aside, or nothing has failed. */
bool perfdata_use_reserve(struct perfdata_writer *writer);
/* Whole records, as they come from a ring buffer, in two parts where it wraps. False: the disk is full, or so; what was written before is
   good. */
bool perfdata_write_split(struct perfdata_writer *writer, const void *first, size_t first_size,
                          const void *second, size_t second_size, struct error *error);
/* When that failed: so many bytes of it are there, as whole records. Compressed, there may be more. */
size_t perfdata_kept(const struct perfdata_writer *writer);
bool perfdata_write_round(struct perfdata_writer *writer, struct error *error); /* FINISHED_ROUND */
/* Features to be written at the end (of a stream: at once). The bytes are copied. */
bool perfdata_add_feature(struct perfdata_writer *writer, enum perfdata_feature feature,
                          struct text bytes, struct error *error);
void perfdata_feature_string(struct buffer *bytes, struct text string); /* length, text, padding */
/* Keeps an entry (perfdata.h, "the carrier") with the recording, behind what was written so far. Large ones are packed and
   stand in several records. False as of perfdata_write_split(). */
bool carrier_write(struct perfdata_writer *writer, enum carrier_kind kind, struct text key,
                   struct text bytes, struct error *error);
uint32_t perfdata_writer_entries(const struct perfdata_writer *writer); /* the last number */
uint64_t perfdata_writer_size(const struct perfdata_writer *writer);
bool perfdata_finish(struct perfdata_writer *writer, struct error *error);
/* After perfdata_finish(), of a file: more can be written behind the records, and it can be finished again. Nothing that is there is cut off before
   that, so a reader may still have it mapped. */
bool perfdata_reopen(struct perfdata_writer *writer, struct error *error);
void perfdata_writer_free(struct perfdata_writer *writer);

#endif
