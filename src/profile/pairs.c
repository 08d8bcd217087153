/*
 * Pairs of a beginning and an end, by key: see pairs.h. A key keeps its slot when its pair ends, because most keys, above all threads, are reused.
 */
#include "profile/pairs.h"

#include <stdlib.h>

static uint64_t key_hash(uint64_t key) {
    return hash_mix(key, 11);
}

static struct pair *pair_of(const struct pairs *pairs, uint64_t key) {
    uint32_t id;
    for (struct probe p = index_probe(&pairs->index, key_hash(key));
         (id = index_next(&pairs->index, &p));)
        if (pairs->all.items[id - 1].key == key)
            return &pairs->all.items[id - 1];
    return NULL;
}

struct pair *pairs_open(const struct pairs *pairs, uint64_t key) {
    struct pair *pair = pair_of(pairs, key);
    return pair && pair->is_open ? pair : NULL;
}

bool pairs_begin(struct pairs *pairs, uint64_t key, uint64_t time, struct pair **begun,
                 struct pair *torn) {
    struct pair *pair = pair_of(pairs, key);
    if (!pair) {
        vector_push(&pairs->all, ((struct pair){.key = key}));
        index_add(&pairs->index, key_hash(key), (uint32_t)pairs->all.count);
        pair = &pairs->all.items[pairs->all.count - 1];
    }
    bool was_open = pair->is_open;
    if (was_open && torn)
        *torn = *pair;
    *pair = (struct pair){.key = key, .began = time, .sample = NO_SAMPLE, .is_open = true};
    *begun = pair;
    return was_open;
}

bool pairs_end(struct pairs *pairs, uint64_t key, struct pair *ended) {
    struct pair *pair = pairs_open(pairs, key);
    if (!pair)
        return false;
    pair->is_open = false;
    *ended = *pair;
    return true;
}

const struct pair *pairs_next_open(const struct pairs *pairs, size_t *at) {
    while (*at < pairs->all.count) {
        const struct pair *pair = &pairs->all.items[(*at)++];
        if (pair->is_open)
            return pair;
    }
    return NULL;
}

void pairs_release(struct pairs *pairs) {
    vector_release(&pairs->all);
    index_release(&pairs->index);
}
