/*
 * Hashes of content. They are stored and shared between machines, so nothing of the process goes into them: fields in
 * a fixed order, numbers as eight bytes, texts prefixed with their length.
 */
#define XXH_INLINE_ALL /* avoids loading another library */
#include <xxhash.h>

#include "store/internal.h"

struct store_hash store_hash_of(struct text content) {
    XXH128_canonical_t canonical;
    struct store_hash hash;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(content.data, content.length));
    memcpy(hash.bytes, canonical.digest, sizeof hash.bytes);
    return hash;
}

static void put_text(struct buffer *buffer, struct text text) {
    buffer_put_u64(buffer, text.length);
    buffer_add(buffer, text);
}

void frame_row_hash(struct frame_row *frame, struct buffer *scratch) {
    const uint64_t numbers[] = {frame->address,
                                frame->raw,
                                frame->offset,
                                frame->object_start,
                                frame->object_size,
                                frame->line,
                                frame->column,
                                frame->first_line,
                                frame->object_kind,
                                frame->flags,
                                (uint32_t)frame->object_pid};
    const struct text texts[] = {frame->name,     frame->file,   frame->module,
                                 frame->language, frame->object, frame->build_id};
    scratch->count = 0;
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        buffer_put_u64(scratch, numbers[i]);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        put_text(scratch, texts[i]);
    frame->id = store_hash_of(buffer_text(scratch));
}

void set_row_hash(struct set_row *set, const struct pair_row *pairs, struct buffer *scratch) {
    scratch->count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        put_text(scratch, pairs[set->first + i].key);
        put_text(scratch, pairs[set->first + i].value);
    }
    set->id = store_hash_of(buffer_text(scratch));
}

void store_batch_id(struct buffer *id, const struct text *parts, size_t count) {
    struct buffer all = {0};
    struct store_hash hash;
    for (size_t i = 0; i < count; i++) {
        hash = store_hash_of(parts[i]);
        buffer_add(&all, store_hash_text(&hash));
    }
    hash = store_hash_of(buffer_text(&all));
    for (size_t i = 0; i < sizeof hash.bytes; i++)
        buffer_printf(id, "%02x", hash.bytes[i]);
    buffer_release(&all);
}
