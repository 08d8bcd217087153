/* Linear-time sorting by integer keys. */
#include "base/base.h"

#include <stdlib.h>

uint32_t *counting_sort(const uint32_t *keys, size_t count, size_t key_count, size_t *ends) {
    size_t *places = memory_zero(key_count + 1, sizeof *places);
    uint32_t *order = memory_resize(NULL, count, sizeof *order);
    for (size_t i = 0; i < count; i++)
        places[keys[i] + 1]++;
    for (size_t i = 0; i < key_count; i++)
        places[i + 1] += places[i];
    for (size_t i = 0; i < count; i++)
        order[places[keys[i]]++] = (uint32_t)i;
    if (ends)
        memcpy(ends, places, key_count * sizeof *ends);
    free(places);
    return order;
}

/* Byte by byte from the least significant; bytes that are equal in all keys are skipped. */
uint32_t *radix_sort(const uint64_t *keys, size_t count) {
    enum { BYTES = sizeof *keys, VALUES = 256 };
    size_t places[BYTES][VALUES] = {0};
    uint32_t *order = memory_resize(NULL, count, sizeof *order);
    uint32_t *next = memory_resize(NULL, count, sizeof *next);
    for (size_t i = 0; i < count; i++) {
        order[i] = (uint32_t)i;
        for (unsigned byte = 0; byte < BYTES; byte++)
            places[byte][keys[i] >> 8 * byte & 0xff]++;
    }
    for (unsigned byte = 0; byte < BYTES && count > 0; byte++) {
        if (places[byte][keys[0] >> 8 * byte & 0xff] == count)
            continue;
        for (size_t value = 0, before = 0; value < VALUES; value++) {
            size_t here = places[byte][value];
            places[byte][value] = before;
            before += here;
        }
        for (size_t i = 0; i < count; i++)
            next[places[byte][keys[order[i]] >> 8 * byte & 0xff]++] = order[i];
        uint32_t *sorted = next;
        next = order;
        order = sorted;
    }
    free(next);
    return order;
}
