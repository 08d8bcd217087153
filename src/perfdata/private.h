/* Private to this room. */
#ifndef WICK_PERFDATA_PRIVATE_H
#define WICK_PERFDATA_PRIVATE_H

#include "perfdata/perfdata.h"

enum { HEADER_SIZE = sizeof(struct perf_event_header) };

/* A part of a carrier entry (docs/carrier.md): a BPF_EVENT record of type 0, which perf knows and ignores. Offsets are from its header. */
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
/* Return the CRC-32 of the fixed fields between the header and the checksum, and of the payload. */
uint32_t carrier_checksum(const uint8_t *record, uint32_t payload);
struct perfdata_writer;
/* write.c: return a number for the next entry, and set *trailer to the size of a record's trailer. */
uint32_t writer_number_entry(struct perfdata_writer *writer, size_t *trailer);

/* Read the attribute at *at of data->file, without its ids, and advance *at. The attribute must end before `end`. */
bool attribute_read(const struct perfdata *data, uint64_t *at, uint64_t end,
                    struct perfdata_event *event, struct error *error);
/* Add the event whose attribute is at `offset`. */
bool event_add(struct perfdata *data, const struct perfdata_event *event, uint64_t offset,
               struct error *error);
/* After the last attribute: make the table of ids, and find out whether events can be distinguished. */
bool ids_read(struct perfdata *data, struct error *error);
/* Read the feature sections of a file. Damage is noted; with `strict` a truncated table is an error. */
bool features_read(struct perfdata *data, uint64_t table, const uint8_t *bitmap,
                   struct error *error);
/* Read one feature section, at offset `where`. Damage is noted; if the section exceeds the budget, budget_exceeded() is true. */
void feature_read(struct perfdata *data, unsigned feature, struct text section, uint64_t where);
/* stream.c: collect the attributes and features of a pipe-mode recording, which may be anywhere among its records. */
bool stream_read(struct perfdata *data, struct error *error);
/* unpack.c: if records are compressed, unpack them; data->file and the offsets then refer to the unpacked ones. */
bool records_unpack(struct perfdata *data, struct error *error);
/* Return the name that perf 6.1 would make up for an event that the header does not name. */
struct text event_make_name(struct arena *arena, const struct perfdata_event *event);
/* Decode a record of the BUILD_ID section, or a HEADER_BUILD_ID record. Return false if it is too short. */
bool build_id_decode(const uint8_t *record, size_t size, struct perfdata_build_id *build_id);

#endif
