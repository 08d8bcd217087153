/*
 * The file as a table of sections.
 *
 * All numbers are little-endian; checksums are 64-bit XXH3. The header's checksum covers the header before it, and
 * the table.
 *
 * All numbers are little-endian; checksums are XXH3 of 64 bits. The header's covers what stands before it, and the table.
 */
#include <stdlib.h>
#include <zstd.h>
#define XXH_INLINE_ALL /* avoids loading another library */
#include <xxhash.h>

#include "saved/layout.h"

enum { CHECKSUM_AT = 24, LEVEL = 3 };
/* A section may grow by this factor when it is decompressed, in addition to a fixed amount: a small file can't
   request all memory. */
enum { GROWTH_MOST = 256, GROWTH_FREE = 1 << 24 };

bool saved_is(struct text beginning) {
    return text_starts(beginning, (struct text){SAVED_MAGIC, SAVED_MAGIC_SIZE});
}

static uint64_t may_unpack_to(uint64_t stored) {
    uint64_t grown;
    return checked_multiply(stored, GROWTH_MOST, &grown) ? saturating_add(grown, GROWTH_FREE)
                                                         : UINT64_MAX;
}

static uint64_t head_checksum(struct text head) {
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        memory_alloc(SIZE_MAX); /* the out-of-memory hook */
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, head.data, CHECKSUM_AT);
    XXH3_64bits_update(state, head.data + SAVED_HEADER, head.length - SAVED_HEADER);
    uint64_t checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return checksum;
}

/* ---- reading ---- */

static bool is_known(uint32_t tag) {
    static const uint32_t known[] = {
        SECTION_META,   SECTION_STRINGS, SECTION_OBJECTS,   SECTION_EVENTS,    SECTION_THREADS,
        SECTION_LABELS, SECTION_SERIES,  SECTION_FUNCTIONS, SECTION_LOCATIONS, SECTION_FRAMES,
        SECTION_NODES,  SECTION_CELLS,   SECTION_SAMPLES,   SECTION_SOURCES,   SECTION_CODES,
        SECTION_NOTES,  SECTION_TIMES};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (known[i] == tag)
            return true;
    return false;
}

static bool check_section(const struct container *c, const struct section *s, uint64_t at,
                          struct error *error) {
    uint64_t end;
    if (!checked_add(s->offset, s->stored, &end) || end > c->content.length)
        return error_at(error, c->path, at,
                        "a section lies outside of the file, which may be cut short");
    if (!(s->flags & SECTION_PACKED) ? s->plain != s->stored : s->plain > may_unpack_to(s->stored))
        return error_at(error, c->path, at, "a section of %llu bytes can't decompress to %llu",
                        (unsigned long long)s->stored, (unsigned long long)s->plain);
    if (s->flags & SECTION_NEEDED && !is_known(s->tag))
        return error_at(
            error, c->path, at,
            "this profile needs a newer wick: it has a section that this one does not know");
    return true;
}

static bool read_table(struct container *c, uint32_t count, struct error *error) {
    for (uint32_t i = 0; i < count; i++) {
        size_t at = SAVED_HEADER + (size_t)i * SAVED_ENTRY;
        const char *entry = c->content.data + at;
        struct section s = {.tag = load_u32(entry),
                            .flags = load_u32(entry + 4),
                            .offset = load_u64(entry + 8),
                            .stored = load_u64(entry + 16),
                            .plain = load_u64(entry + 24),
                            .checksum = load_u64(entry + 32)};
        if (!check_section(c, &s, at, error))
            return false;
        vector_push(&c->sections, s);
    }
    return true;
}

bool container_open(struct container *c, struct text content, const char *path,
                    struct error *error) {
    *c = (struct container){.content = content, .path = path};
    if (!saved_is(content) || content.length < SAVED_HEADER)
        return error_at(error, path, 0, "not a complete .wick file");
    unsigned major = load_u16(content.data + 8), minor = load_u16(content.data + 10);
    if (major > SAVED_MAJOR)
        return error_at(
            error, path, 8,
            "this profile has format version %u.%u, and this wick reads up to %d: use a newer wick",
            major, minor, SAVED_MAJOR);
    uint32_t count = load_u32(content.data + 12);
    uint64_t size = load_u64(content.data + 16);
    if (size != content.length)
        return error_at(error, path, 16, "the file has %zu bytes, but was written with %llu",
                        content.length, (unsigned long long)size);
    if (count > SAVED_SECTIONS_MOST ||
        SAVED_HEADER + (uint64_t)count * SAVED_ENTRY > content.length)
        return error_at(error, path, 12, "a table of %u sections is too large", count);
    if (head_checksum(text_upto(content, SAVED_HEADER + (size_t)count * SAVED_ENTRY)) !=
        load_u64(content.data + CHECKSUM_AT))
        return error_at(error, path, CHECKSUM_AT, "the header is damaged: its checksum is wrong");
    return read_table(c, count, error);
}

void container_release(struct container *c) {
    vector_release(&c->sections);
}

static bool unpack(const struct container *c, const struct section *s, struct buffer *plain,
                   struct error *error) {
    const char *stored = c->content.data + s->offset;
    if (XXH3_64bits(stored, s->stored) != s->checksum)
        return error_at(error, c->path, s->offset, "a section is damaged: its checksum is wrong");
    vector_reserve(plain, s->plain);
    plain->count = s->plain;
    if (!(s->flags & SECTION_PACKED)) {
        memcpy(plain->items, stored, s->stored);
        return true;
    }
    size_t got = ZSTD_decompress(plain->items, s->plain, stored, s->stored);
    return (!ZSTD_isError(got) && got == s->plain) ||
           error_at(error, c->path, s->offset, "a section does not decompress to its size");
}

bool container_rows(const struct container *c, uint32_t tag, struct buffer *plain,
                    struct rows *rows, struct error *error) {
    *rows = (struct rows){.path = c->path};
    plain->count = 0;
    for (size_t i = 0; i < c->sections.count; i++) {
        const struct section *s = &c->sections.items[i];
        if (s->tag != tag)
            continue;
        if (s->plain < sizeof(uint64_t))
            return error_at(error, c->path, s->offset, "a section has no number of rows");
        if (!unpack(c, s, plain, error))
            return false;
        *rows = (struct rows){.rest = text_from(buffer_text(plain), sizeof(uint64_t)),
                              .count = load_u64(plain->items),
                              .offset = s->offset,
                              .path = c->path};
        return true;
    }
    return true;
}

struct text rows_bytes(struct rows *rows, uint64_t size) {
    if (size > rows->rest.length) {
        rows->short_of = true;
        return (struct text){NULL, 0};
    }
    struct text bytes = text_upto(rows->rest, size);
    rows->rest = text_from(rows->rest, size);
    return bytes;
}

const uint8_t *rows_column(struct rows *rows, size_t width) {
    uint64_t size;
    if (!rows->count) /* a missing section has no rows, so nothing is read from its columns */
        return (const uint8_t *)"";
    if (!checked_multiply(rows->count, width, &size))
        size = UINT64_MAX;
    return (const uint8_t *)rows_bytes(rows, size).data;
}

bool rows_error(const struct rows *rows, struct error *error, const char *what) {
    return error_at(error, rows->path, rows->offset, "the section of %s is invalid", what);
}

/* ---- writing ---- */

struct buffer *draft_section(struct draft *draft, uint32_t tag, uint64_t count) {
    vector_push(&draft->sections, ((struct draft_section){.tag = tag}));
    struct buffer *plain = &draft->sections.items[draft->sections.count - 1].plain;
    buffer_put_u64(plain, count);
    return plain;
}

/* Compress a section in place. One with a suspiciously high ratio is stored uncompressed, because the reader would
   refuse it. */
static void pack(struct draft_section *section, struct section *entry) {
    struct buffer *plain = &section->plain, packed = {0};
    vector_reserve(&packed, ZSTD_compressBound(plain->count));
    size_t got = ZSTD_compress(packed.items, packed.capacity, plain->items, plain->count, LEVEL);
    *entry = (struct section){.tag = section->tag, .plain = plain->count};
    if (!ZSTD_isError(got) && got < plain->count && plain->count <= may_unpack_to(got)) {
        packed.count = got;
        buffer_release(plain);
        *plain = packed;
        entry->flags = SECTION_PACKED;
    } else {
        buffer_release(&packed);
    }
    if (section->tag == SECTION_TIMES) /* a reader without it would count running time twice */
        entry->flags |= SECTION_NEEDED;
    entry->stored = plain->count;
    entry->checksum = XXH3_64bits(plain->items, plain->count);
}

static void put_entry(struct buffer *head, const struct section *entry) {
    buffer_put_u32(head, entry->tag);
    buffer_put_u32(head, entry->flags);
    buffer_put_u64(head, entry->offset);
    buffer_put_u64(head, entry->stored);
    buffer_put_u64(head, entry->plain);
    buffer_put_u64(head, entry->checksum);
}

void draft_write(struct draft *draft, struct out *out) {
    struct buffer table = {0}, head = {0};
    uint64_t offset = SAVED_HEADER + draft->sections.count * SAVED_ENTRY;
    for (size_t i = 0; i < draft->sections.count; i++) {
        struct section entry;
        pack(&draft->sections.items[i], &entry);
        entry.offset = offset;
        offset += entry.stored;
        put_entry(&table, &entry);
    }
    buffer_add(&head, (struct text){SAVED_MAGIC, SAVED_MAGIC_SIZE});
    buffer_put_u32(&head, SAVED_MAJOR | SAVED_MINOR << 16);
    buffer_put_u32(&head, (uint32_t)draft->sections.count);
    buffer_put_u64(&head, offset);
    buffer_put_u64(&head, 0);
    buffer_add(&head, buffer_text(&table));
    uint64_t checksum = head_checksum(buffer_text(&head));
    memcpy(head.items + CHECKSUM_AT, &checksum, sizeof checksum);
    out_text(out, buffer_text(&head));
    for (size_t i = 0; i < draft->sections.count; i++)
        out_text(out, buffer_text(&draft->sections.items[i].plain));
    buffer_release(&table);
    buffer_release(&head);
}

void draft_release(struct draft *draft) {
    for (size_t i = 0; i < draft->sections.count; i++)
        buffer_release(&draft->sections.items[i].plain);
    vector_release(&draft->sections);
}
