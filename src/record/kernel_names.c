/*
 * Keep the names of the kernel functions that were hit in the recording: another machine's kernel has different ones, and this one moves at
 * its next boot.
 *
 * Every word of a sample, except in the copy of the user stack, that looks like a kernel address is taken for one. A wrong guess costs at
 * most a line. Each sample costs a comparison per word; addresses seen recently are skipped.
 */
#include "record/keep.h"

#include <stdlib.h>

enum { LATELY = 1 << 10, ADDRESSES_MOST = 1 << 18 };

struct kernel_hits {
    VECTOR(uint64_t) addresses; /* many of them more than once */
    uint64_t lately[LATELY];
};

struct kernel_hits *kernel_hits_new(void) {
    return memory_zero(1, sizeof(struct kernel_hits));
}

void kernel_hits_free(struct kernel_hits *hits) {
    if (hits)
        vector_release(&hits->addresses);
    free(hits);
}

static int compare_addresses(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void drop_repeated(struct kernel_hits *hits) {
    uint64_t *all = hits->addresses.items;
    size_t kept = 0;
    if (hits->addresses.count)
        qsort(all, hits->addresses.count, sizeof *all, compare_addresses);
    for (size_t i = 0; i < hits->addresses.count; i++)
        if (!kept || all[kept - 1] != all[i])
            all[kept++] = all[i];
    hits->addresses.count = kept;
}

/* Larger values are perf's marks in call chains. */
static bool is_in_kernel(uint64_t word) {
    return word >> 48 == 0xffff && word < UINT64_MAX - 4095;
}

void kernel_hits_saw(struct kernel_hits *hits, const uint8_t *sample, size_t size) {
    for (size_t at = sizeof(struct perf_event_header); hits && at + 8 <= size; at += 8) {
        uint64_t word = load_u64(sample + at), *seen = &hits->lately[(word >> 2) % LATELY];
        if (!is_in_kernel(word) || *seen == word)
            continue;
        *seen = word;
        if (hits->addresses.count == ADDRESSES_MOST)
            drop_repeated(hits);
        if (hits->addresses.count < ADDRESSES_MOST)
            vector_push(&hits->addresses, word);
    }
}

bool keep_kernel_names(struct keeper *k, struct error *error) {
    struct buffer key = {0};
    struct build_id id = {0};
    if (!k->hits || k->options->keep == KEEP_ALL)
        return true;
    drop_repeated(k->hits);
    if (!k->hits->addresses.count)
        return true;
    k->bytes.count = 0;
    kernel_names_print(k->hits->addresses.items, k->hits->addresses.count, k->options->cache,
                       &k->bytes);
    object_kernel_build_id(&id);
    keep_put_key(&key, 0, &id, TEXT("[kernel.kallsyms]"));
    bool fine = !k->bytes.count || keep_entry(k, CARRIER_KERNEL_NAMES, buffer_text(&key),
                                              buffer_text(&k->bytes), error);
    buffer_release(&key);
    return fine;
}
