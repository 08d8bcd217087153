/*
 * Kept samples: an array in memory, or beyond SAMPLES_IN_MEMORY bytes a mapping of an unlinked temporary file, which the kernel can write out,
 * while anonymous memory could only be swapped. They are sorted by a radix sort, which is linear and takes a few milliseconds for a quarter of a
 * million samples; qsort takes a hundred.
 */
#include "tree/samples.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAMPLES_IN_MEMORY = 512 << 20 };

static bool samples_map(struct tree *tree, size_t capacity) {
    size_t bytes = capacity * sizeof(struct sample);
    bool moved = tree->samples_descriptor < 0;
    int descriptor = moved ? file_temporary(NULL) : tree->samples_descriptor;
    if (descriptor < 0 || ftruncate(descriptor, (off_t)bytes) != 0)
        return false;
    size_t old = tree->samples.capacity * sizeof(struct sample);
    void *mapped = moved ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
                         : mremap(tree->samples.items, old, bytes, MREMAP_MAYMOVE);
    if (mapped == MAP_FAILED) {
        if (moved)
            close(descriptor);
        return false;
    }
    if (moved) {
        memcpy(mapped, tree->samples.items, tree->samples.count * sizeof(struct sample));
        free(tree->samples.items);
    }
    tree->samples_descriptor = descriptor;
    tree->samples.items = mapped;
    tree->samples.capacity = capacity;
    return true;
}

/* Where no temporary file can be had, memory must do. Once in a file, there is no way back. */
static void samples_grow(struct tree *tree) {
    size_t capacity = tree->samples.capacity ? tree->samples.capacity * 2 : 1024;
    bool in_file = tree->samples_descriptor >= 0;
    if ((in_file || capacity * sizeof(struct sample) > SAMPLES_IN_MEMORY) &&
        samples_map(tree, capacity))
        return;
    if (in_file)
        memory_resize(NULL, SIZE_MAX, 2); /* the out-of-memory hook */
    vector_reserve(&tree->samples, capacity);
}

void tree_keep_sample(struct tree *tree, const struct sample *sample) {
    if (!tree->keep_samples)
        return;
    if (tree->samples.count == tree->samples.capacity)
        samples_grow(tree);
    tree->samples.items[tree->samples.count++] = *sample;
}

void samples_release(struct tree *tree) {
    if (tree->samples_descriptor < 0) {
        free(tree->samples.items);
    } else {
        munmap(tree->samples.items, tree->samples.capacity * sizeof(struct sample));
        close(tree->samples_descriptor);
    }
}

struct sort_key {
    uint64_t value;
    size_t sample;
};

/* Stable, by one byte of `value`; false when all have the same there and nothing had to move. */
static bool sort_by_byte(const struct sort_key *from, struct sort_key *to, size_t count,
                         unsigned shift) {
    size_t places[257] = {0};
    for (size_t i = 0; i < count; i++)
        places[(from[i].value >> shift & 255) + 1]++;
    if (places[(from[0].value >> shift & 255) + 1] == count)
        return false;
    for (unsigned i = 0; i < 256; i++)
        places[i + 1] += places[i];
    for (size_t i = 0; i < count; i++)
        to[places[from[i].value >> shift & 255]++] = from[i];
    return true;
}

static uint64_t sort_value(const struct sample *sample, unsigned field) {
    switch (field) {
    case 0:
        return sample->offset;
    case 1:
        return sample->file;
    case 2:
        return sample->time;
    default:
        return sample->round;
    }
}

/* From the least significant field of the key to the most significant one of these. */
static void sort_by_fields(struct tree *tree, unsigned fields) {
    size_t count = tree->samples.count;
    if (count < 2)
        return;
    struct sort_key *keys = memory_resize(NULL, count, sizeof *keys);
    struct sort_key *other = memory_resize(NULL, count, sizeof *other);
    for (size_t i = 0; i < count; i++)
        keys[i].sample = i;
    for (unsigned field = 0; field < fields; field++) {
        for (size_t i = 0; i < count; i++)
            keys[i].value = sort_value(&tree->samples.items[keys[i].sample], field);
        for (unsigned shift = 0; shift < 64; shift += 8) {
            if (sort_by_byte(keys, other, count, shift)) {
                struct sort_key *sorted = other;
                other = keys;
                keys = sorted;
            }
        }
    }
    struct sample *sorted = memory_resize(NULL, count, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = tree->samples.items[keys[i].sample];
    memcpy(tree->samples.items, sorted, count * sizeof *sorted);
    free(sorted);
    free(keys);
    free(other);
}

void tree_sort_samples(struct tree *tree) {
    sort_by_fields(tree, 4);
}

void tree_sort_samples_by_place(struct tree *tree) {
    sort_by_fields(tree, 2);
}
