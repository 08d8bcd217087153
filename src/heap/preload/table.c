/*
 * The addresses that were recorded and not freed: a counting filter that rejects any other address with one load, and behind it buckets of
 * eight words, each taken and released by one compare-and-swap. The allocating thread adds an address before any other thread knows it and
 * removes it before it can be reused, so no two threads ever handle the same one.
 *
 * The pages of the first level exist from the beginning. When a bucket is full, the next level, eight times as large, is created: heaps of
 * many gigabytes have hundreds of thousands of recorded blocks.
 */
#include "heap/preload/preload.h"

#include <sys/mman.h>

enum { WAYS = 8, LEVELS = 5, FIRST_BUCKETS = 1 << 10, FULL = 255 };

uint8_t filter[FILTER_SIZE];
static uintptr_t *levels[LEVELS];

static size_t buckets_of(unsigned level) {
    return (size_t)FIRST_BUCKETS << 3 * level;
}

static uintptr_t *level_make(unsigned level) {
    size_t size = buckets_of(level) * WAYS * sizeof(uintptr_t);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (level ? MAP_NORESERVE : MAP_POPULATE);
    long made = system_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (made < 0 && made > -4096)
        return NULL;
    uintptr_t *none = NULL;
    if (!__atomic_compare_exchange_n(&levels[level], &none, (uintptr_t *)made, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        system_call(SYS_munmap, made, (long)size, 0, 0, 0, 0); /* another thread was first */
    return levels[level];
}

static uintptr_t *bucket_of(uintptr_t *level, unsigned number, uintptr_t address) {
    uint64_t hash = (uint64_t)(address >> 4) * 0xd6e8feb86659fd93u;
    return level + (hash >> 32 & (buckets_of(number) - 1)) * WAYS;
}

static bool bucket_replace(uintptr_t *bucket, uintptr_t old, uintptr_t new) {
    for (int i = 0; i < WAYS; i++) {
        uintptr_t expected = old;
        if (__atomic_load_n(&bucket[i], __ATOMIC_RELAXED) == old &&
            __atomic_compare_exchange_n(&bucket[i], &expected, new, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

/* A saturated counter stays saturated: the filter then matches every address in that slot. */
static void filter_count(uintptr_t address, int step) {
    uint8_t *slot = &filter[filter_slot((void *)address)],
            value = __atomic_load_n(slot, __ATOMIC_RELAXED);
    while (value != FULL && !__atomic_compare_exchange_n(slot, &value, (uint8_t)(value + step),
                                                         true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
}

void table_prepare(void) {
    if (!levels[0])
        level_make(0);
}

bool table_add(uintptr_t address) {
    for (unsigned i = 0; i < LEVELS; i++) {
        uintptr_t *level = __atomic_load_n(&levels[i], __ATOMIC_ACQUIRE);
        if (!level && !(level = level_make(i)))
            return false;
        filter_count(address, 1);
        if (bucket_replace(bucket_of(level, i, address), 0, address))
            return true;
        filter_count(address, -1);
    }
    return false;
}

bool table_remove(uintptr_t address) {
    for (unsigned i = 0; i < LEVELS; i++) {
        uintptr_t *level = __atomic_load_n(&levels[i], __ATOMIC_ACQUIRE);
        if (!level)
            return false;
        if (bucket_replace(bucket_of(level, i, address), address, 0)) {
            filter_count(address, -1);
            return true;
        }
    }
    return false;
}

/* Call after a fork, when there is one thread: the parent's records are not the child's. */
void table_clear(void) {
    for (size_t i = 0; i < FILTER_SIZE; i++)
        filter[i] = 0;
    for (unsigned i = 0; i < LEVELS && levels[i]; i++) {
        system_call(SYS_munmap, (long)levels[i], (long)(buckets_of(i) * WAYS * sizeof(uintptr_t)),
                    0, 0, 0, 0);
        levels[i] = NULL;
    }
}

void filter_take_all(void) {
    for (size_t i = 0; i < FILTER_SIZE; i++)
        filter[i] = FULL;
}
