/* An object of bytes in memory, for fuzzers: a file without a name, opened by its descriptor. */
#ifndef WICK_FUZZ_ELF_BYTES_H
#define WICK_FUZZ_ELF_BYTES_H

#include "object/object.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct elf_bytes {
    struct objects *objects;
    uint32_t object;
    int descriptor;
};

static inline bool elf_bytes_open(struct elf_bytes *elf, const uint8_t *data, size_t size) {
    char path[64];
    struct objects_options options = {.buildid_cache = "/nowhere", .lines = true};
    elf->descriptor = memfd_create("fuzz", 0);
    if (elf->descriptor < 0)
        return false;
    if (write(elf->descriptor, data, size) != (ssize_t)size) {
        close(elf->descriptor);
        return false;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", elf->descriptor);
    struct object_identity identity = {.path = text_of(path), .kind = OBJECT_FILE};
    elf->objects = objects_new(&options);
    elf->object = objects_add(elf->objects, &identity);
    return true;
}

static inline void elf_bytes_close(struct elf_bytes *elf) {
    objects_free(elf->objects);
    close(elf->descriptor);
}

/* Places to ask for: every few bytes of a small file, always the same number of a large one. */
static inline size_t elf_bytes_stride(size_t size) {
    return size / 200 + 1;
}

#endif
