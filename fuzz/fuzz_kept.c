/*
 * A recording that contains its own symbol files (docs/carrier.md) and is resolved only by these: programs and
 * libraries, debug files, the kernel's list, perf maps, jitdumps. No file of this machine is used: --symfs is an
 * empty place.
 */
#include <stdlib.h>

#include "checksums.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool visit_part(void *context, enum object_part part, const struct object_identity *identity,
                       struct text bytes) {
    *(uint64_t *)context += bytes.length + (uint64_t)part;
    return true;
}

/* Like --keep=all. */
static void visit_parts(const struct profile *profile) {
    uint64_t sum = 0;
    for (uint32_t id = 1; id <= objects_count(profile->objects); id++)
        objects_each_part(profile->objects, id, visit_part, &sum);
}

static void read_all(const uint8_t *bytes, size_t size, bool lines) {
    struct file file = {.path = (char *)"fuzz", .data = bytes, .size = size};
    const struct context context = {.threads = 1, .spool_limit = 16 << 20};
    struct profile_options options = {
        .objects = {.symfs = "/nonexistent", .buildid_cache = "/nonexistent"},
        .context = &context,
        .source_lines = lines,
        .all_events = true};
    struct error error = {0};
    struct profile *profile = profile_read(&file, &options, &error);
    assert(!profile == !!error.kind);
    if (!profile)
        return;
    for (size_t i = 1; i < profile->tree->locations.count; i++) {
        const struct location *location = &profile->tree->locations.items[i];
        assert(!location->object || location->frame_count);
    }
    visit_parts(profile);
    profile_free(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *copy = (uint8_t *)memory_copy(data, size);
    fix_checksums(copy, size);
    read_all(copy, size, size & 1);
    free(copy);
    return 0;
}
