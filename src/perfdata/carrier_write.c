/*
 * Write the carrier's entries; docs/carrier.md has the format.
 */
#include <zstd.h>

#include "perfdata/private.h"
#include "perfdata/writer.h"

/* A record's size has 16 bits, and its end is a multiple of 8. */
enum { RECORD_MOST = UINT16_MAX & ~7, PACK_FROM = 512, PACK_LEVEL = 1 };

struct part {
    uint32_t entry, number, kind, encoding;
    uint64_t total; /* of the entry's bytes, as stored */
};

static void put_part(struct buffer *record, const struct part *part, struct text key,
                     struct text bytes, size_t trailer) {
    uint32_t payload = (uint32_t)(key.length + bytes.length);
    struct perf_event_header header = {.type = PERF_RECORD_BPF_EVENT};
    header.size = (uint16_t)(((CARRIER_FIXED + payload + 7) & ~7u) + trailer);
    record->count = 0;
    buffer_add(record, (struct text){(const char *)&header, sizeof header});
    buffer_put_u32(record, (uint32_t)CARRIER_VERSION << 16); /* behind a type of 0 */
    buffer_put_u32(record, part->entry);
    buffer_add(record, TEXT(CARRIER_TAG));
    buffer_put_u32(record, part->kind);
    buffer_put_u32(record, part->number);
    buffer_put_u64(record, part->total);
    buffer_put_u32(record, payload);
    buffer_put_u32(record, (uint32_t)key.length);
    buffer_put_u32(record, part->encoding);
    buffer_put_u32(record, 0);
    buffer_add(record, key);
    buffer_add(record, bytes);
    uint32_t sum = carrier_checksum((const uint8_t *)record->items, payload);
    memcpy(record->items + CARRIER_AT_CHECKSUM, &sum, sizeof sum);
    while (record->count < header.size) /* its time is 0: readers take it where it stands */
        buffer_add_char(record, 0);
}

static bool write_parts(struct perfdata_writer *writer, struct part *part, struct text key,
                        struct text bytes, struct error *error) {
    struct buffer record = {0};
    size_t trailer;
    part->entry = writer_number_entry(writer, &trailer);
    part->total = bytes.length;
    bool fine = true, begun = false;
    for (; fine && (bytes.length || !begun); part->number++) {
        size_t most = RECORD_MOST - CARRIER_FIXED - trailer - key.length;
        size_t here = bytes.length < most ? bytes.length : most;
        put_part(&record, part, key, text_upto(bytes, here), trailer);
        fine = perfdata_write_split(writer, record.items, record.count, NULL, 0, error);
        bytes = text_from(bytes, here);
        key.length = 0;
        begun = true;
    }
    buffer_release(&record);
    return fine;
}

bool carrier_write(struct perfdata_writer *writer, enum carrier_kind kind, struct text key,
                   struct text bytes, struct error *error) {
    assert(key.length <= CARRIER_KEY_MOST);
    struct part part = {.kind = kind};
    struct buffer packed = {0};
    if (bytes.length >= PACK_FROM) {
        size_t bound = ZSTD_compressBound(bytes.length);
        vector_reserve(&packed, bound);
        size_t size = ZSTD_compress(packed.items, bound, bytes.data, bytes.length, PACK_LEVEL);
        if (!ZSTD_isError(size) && size < bytes.length) {
            part.encoding = CARRIER_ZSTD;
            bytes = (struct text){packed.items, size};
        }
    }
    bool fine = write_parts(writer, &part, key, bytes, error);
    buffer_release(&packed);
    return fine;
}
