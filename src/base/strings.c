/*
 * Interned strings: an arena with the bytes, an array of their offsets, and an index to find them.
 * Adding costs one hash of the bytes and, as a rule, one comparison.
 */
#include "base/base.h"

#include <stdlib.h>

struct strings {
    struct arena arena;
    VECTOR(struct text) texts; /* [0] means none */
    struct index index;
    uint64_t bytes; /* size of all texts */
    unsigned users;
};

struct strings *strings_new(void) {
    struct strings *strings = memory_zero(1, sizeof *strings);
    strings->users = 1;
    vector_push(&strings->texts, ((struct text){"", 0}));
    return strings;
}

struct strings *strings_share(struct strings *strings) {
    strings->users++;
    return strings;
}

void strings_free(struct strings *strings) {
    if (!strings || --strings->users > 0)
        return;
    arena_release(&strings->arena);
    vector_release(&strings->texts);
    index_release(&strings->index);
    free(strings);
}

static uint32_t strings_find_hashed(const struct strings *strings, struct text t, uint64_t hash) {
    uint32_t id;
    for (struct probe p = index_probe(&strings->index, hash);
         (id = index_next(&strings->index, &p));)
        if (text_equal(strings->texts.items[id], t))
            return id;
    return 0;
}

uint32_t strings_find(const struct strings *strings, struct text t) {
    return strings_find_hashed(strings, t, hash_bytes(t.data, t.length));
}

uint32_t strings_add(struct strings *strings, struct text t) {
    uint64_t hash = hash_bytes(t.data, t.length);
    uint32_t id = strings_find_hashed(strings, t, hash);
    if (id)
        return id;
    assert(strings->texts.count < UINT32_MAX);
    id = (uint32_t)strings->texts.count;
    vector_push(&strings->texts, arena_copy(&strings->arena, t));
    index_add(&strings->index, hash, id);
    strings->bytes += t.length;
    return id;
}

struct text strings_get(const struct strings *strings, uint32_t id) {
    assert(id < strings->texts.count);
    return strings->texts.items[id];
}

uint32_t strings_count(const struct strings *strings) {
    return (uint32_t)strings->texts.count - 1;
}

uint64_t strings_memory(const struct strings *strings) {
    enum {
        ENTRY = sizeof(struct text) + 2 * sizeof(uint64_t) + 8
    }; /* including its part of the index */
    return strings->bytes + strings->texts.count * ENTRY;
}
