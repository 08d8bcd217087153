/* Sorting by small numbers: linear, where comparing would not be. */
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
