/* What the files of this room share. */
#ifndef WICK_PERFDATA_PRIVATE_H
#define WICK_PERFDATA_PRIVATE_H

#include "perfdata/perfdata.h"

enum { HEADER_SIZE = sizeof(struct perf_event_header) };

/* A part of what a recording keeps (docs/carrier.md): a BPF_EVENT record of type 0, which perf knows and ignores. Offsets from its header. */
#define CARRIER_TAG "wickkeep"
enum {
    CARRIER_VERSION = 1,
    CARRIER_AT_TYPE = 8,
    CARRIER_AT_VERSION = 10,
    CARRIER_AT_ENTRY = 12,
    CARRIER_AT_TAG = 16,
    CARRIER_AT_KIND = 24,
    CARRIER_AT_PART = 28,
    CARRIER_AT_TOTAL = 32,
    CARRIER_AT_SIZE = 40,
    CARRIER_AT_KEY = 44,
    CARRIER_AT_ENCODING = 48,
    CARRIER_AT_CHECKSUM = 52,
    CARRIER_FIXED = 56,
};
enum carrier_encoding { CARRIER_PLAIN, CARRIER_ZSTD };
/* CRC-32 of the fixed fields behind the header, up to the checksum itself, and of the payload. */
uint32_t carrier_checksum(const uint8_t *record, uint32_t payload);
struct perfdata_writer;
/* write.c: numbers the next entry, and tells how long the trailer of a record is. */
uint32_t writer_number_entry(struct perfdata_writer *writer, size_t *trailer);

/* The attribute at *at of data->file, which is moved on behind it. It must end before `end`. Its ids are not its own business. */
bool attribute_read(const struct perfdata *data, uint64_t *at, uint64_t end,
                    struct perfdata_event *event, struct error *error);
/* Adds the event whose attribute is at `offset`. */
bool event_add(struct perfdata *data, const struct perfdata_event *event, uint64_t offset,
               struct error *error);
/* After the last attribute: the table of ids, and whether events can be told apart. */
bool ids_read(struct perfdata *data, struct error *error);
/* The feature sections of a file. Damage is noted, and strict makes a cut table an error. */
bool features_read(struct perfdata *data, uint64_t table, const uint8_t *bitmap,
                   struct error *error);
/* One feature, which stands at `where`. Damage is noted; a section that the budget does not allow is known by budget_exceeded(). */
void feature_read(struct perfdata *data, unsigned feature, struct text section, uint64_t where);
/* stream.c: what a pipe-mode recording says of itself, anywhere among its records. */
bool stream_read(struct perfdata *data, struct error *error);
/* unpack.c: if records are compressed, data->file and the offsets become those of the unpacked ones. */
bool records_unpack(struct perfdata *data, struct error *error);
/* The name perf 6.1 would make up for an event that the header does not name. */
struct text event_make_name(struct arena *arena, const struct perfdata_event *event);
/* One record of the BUILD_ID section, or HEADER_BUILD_ID record, of `size` bytes. False: too short. */
bool build_id_decode(const uint8_t *record, size_t size, struct perfdata_build_id *build_id);

#endif
