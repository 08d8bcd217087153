/*
 * Read the carrier's entries; docs/carrier.md has the format.
 *
 * Pass 1 hands over each record that may be a part of an entry, which costs a few loads, and 24 bytes for a part. Entries are assembled from
 * their parts on request. Each part has a checksum: the first part's is checked with its key, the others' when the entry's bytes are read.
 */
#include "perfdata/private.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

static const struct note_kind note_damaged = {
    "kept-entries-damaged",
    "# entr{y|ies} kept with the recording {is|are} damaged or incomplete and {was|were} skipped"};
static const struct note_kind note_newer = {"kept-entries-newer",
                                            "# part{|s} kept with the recording {has|have} a newer "
                                            "format and {was|were} skipped: use a newer wick"};

uint32_t carrier_checksum(const uint8_t *record, uint32_t payload) {
    uLong sum = crc32(0, record + HEADER_SIZE, CARRIER_AT_CHECKSUM - HEADER_SIZE);
    return (uint32_t)crc32(sum, record + CARRIER_FIXED, payload);
}

/* ---- parts ---- */

bool carrier_add(struct perfdata *data, const struct perfdata_record *record, struct error *error) {
    const uint8_t *p = record->data;
    if (record->size < CARRIER_FIXED || load_u16(p + CARRIER_AT_TYPE) != 0 ||
        memcmp(p + CARRIER_AT_TAG, CARRIER_TAG, 8) != 0)
        return true;
    if (load_u16(p + CARRIER_AT_VERSION) != CARRIER_VERSION) {
        notes_add(&data->notes, &note_newer, 1, record->offset, "version %u at byte %llu",
                  load_u16(p + CARRIER_AT_VERSION), (unsigned long long)record->offset);
        return true;
    }
    struct carrier_part part = {load_u32(p + CARRIER_AT_ENTRY), load_u32(p + CARRIER_AT_PART),
                                record->offset};
    if (!perfdata_take(data, sizeof part, record->offset, error))
        return false;
    vector_push(&data->parts, part);
    return true;
}

static int part_order(const void *a, const void *b) {
    const struct carrier_part *x = a, *y = b;
    if (x->entry != y->entry)
        return x->entry < y->entry ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static const uint8_t *part_bytes(const struct perfdata *data, size_t part) {
    return data->file->data + data->parts.items[part].offset;
}

/* The bytes that a part holds, the key included; false where the record is not as long as it says. carrier_add() saw the fixed part. */
static bool part_payload(const struct perfdata *data, size_t part, uint32_t *size) {
    const uint8_t *p = part_bytes(data, part);
    *size = load_u32(p + CARRIER_AT_SIZE);
    return *size <= load_u16(p + 6) - (uint32_t)CARRIER_FIXED;
}

static bool part_is_whole(const struct perfdata *data, size_t part, uint32_t *size) {
    const uint8_t *p = part_bytes(data, part);
    return part_payload(data, part, size) &&
           load_u32(p + CARRIER_AT_CHECKSUM) == carrier_checksum(p, *size);
}

/* ---- entries ---- */

/* The entry that begins with this part, of which there are `count`. */
static bool entry_read(const struct perfdata *data, size_t first, size_t count,
                       struct carrier_entry *entry) {
    const uint8_t *p = part_bytes(data, first);
    uint32_t size, key = load_u32(p + CARRIER_AT_KEY);
    if (!part_is_whole(data, first, &size) || key > size || key > CARRIER_KEY_MOST)
        return false;
    *entry = (struct carrier_entry){
        .kind = load_u32(p + CARRIER_AT_KIND),
        .key = {(const char *)p + CARRIER_FIXED, key},
        .stored = load_u64(p + CARRIER_AT_TOTAL),
        .offset = data->parts.items[first].offset,
        .first = first,
        .parts = count,
        .is_packed = load_u32(p + CARRIER_AT_ENCODING) == CARRIER_ZSTD,
    };
    if (load_u32(p + CARRIER_AT_ENCODING) > CARRIER_ZSTD)
        return false;
    uint64_t there = 0;
    for (size_t i = 0; i < count; i++, there += size)
        if (data->parts.items[first + i].number != i || !part_payload(data, first + i, &size))
            return false;
    return there == entry->stored + key;
}

void carrier_each(struct perfdata *data, carrier_visit *visit, void *context) {
    size_t count = data->parts.count;
    if (count)
        qsort(data->parts.items, count, sizeof *data->parts.items, part_order);
    for (size_t first = 0, next; first < count; first = next) {
        struct carrier_entry entry;
        for (next = first + 1; next < count; next++)
            if (data->parts.items[next].entry != data->parts.items[first].entry)
                break;
        if (entry_read(data, first, next - first, &entry))
            visit(context, &entry);
        else
            notes_add(&data->notes, &note_damaged, 1, data->parts.items[first].offset,
                      "the first at byte %llu",
                      (unsigned long long)data->parts.items[first].offset);
    }
}

/* ---- the bytes of one ---- */

/* What all entries may unpack to. Code packs to a third or so: a large recording may hold large files. */
static uint64_t room_of(const struct perfdata *data) {
    enum { SHARE = 16 };
    uint64_t size = data->source->size;
    uint64_t allowed = size < CARRIER_LARGE_MOST / SHARE ? SHARE * size : CARRIER_LARGE_MOST;
    return allowed > CARRIER_READ_MOST ? allowed : CARRIER_READ_MOST;
}

/* Takes what an entry unpacks to from that; entries are read from several threads. */
static bool take_room(struct perfdata *data, uint64_t size) {
    uint64_t most = room_of(data);
    uint64_t used = atomic_fetch_add(&data->carried, size) + size;
    return size <= most && used <= most;
}

static bool unpack(struct perfdata *data, const struct buffer *packed, uint64_t most,
                   struct buffer *bytes) {
    unsigned long long size = ZSTD_getFrameContentSize(packed->items, packed->count);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > most ||
        !take_room(data, size))
        return false;
    vector_reserve(bytes, size + 1);
    bytes->count = ZSTD_decompress(bytes->items, size, packed->items, packed->count);
    return !ZSTD_isError(bytes->count) && bytes->count == size;
}

static bool gather(struct perfdata *data, const struct carrier_entry *entry, struct buffer *bytes) {
    for (size_t i = 0; i < entry->parts; i++) {
        uint32_t size, skip = i ? 0 : (uint32_t)entry->key.length;
        if (!part_is_whole(data, entry->first + i, &size))
            return false;
        const char *payload = (const char *)part_bytes(data, entry->first + i) + CARRIER_FIXED;
        buffer_add(bytes, (struct text){payload + skip, size - skip});
    }
    return true;
}

bool carrier_read(struct perfdata *data, const struct carrier_entry *entry, struct buffer *bytes) {
    return carrier_read_most(data, entry, UINT64_MAX, bytes);
}

bool carrier_read_most(struct perfdata *data, const struct carrier_entry *entry, uint64_t most,
                       struct buffer *bytes) {
    struct buffer stored = {0};
    bytes->count = 0;
    if (entry->stored > most || !take_room(data, entry->stored))
        return false;
    bool fine = gather(data, entry, entry->is_packed ? &stored : bytes) &&
                (!entry->is_packed || unpack(data, &stored, most, bytes));
    buffer_release(&stored);
    if (!fine)
        bytes->count = 0;
    return fine;
}
