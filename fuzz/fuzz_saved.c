/* Saved profiles: checksums are corrected first, so that the code behind them is reached. */
#include <stdint.h>
#include <stdlib.h>
#include <xxhash.h>

#include "object/object.h"
#include "saved/saved.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEADER = 32, ENTRY = 40 };

/* The fuzzer's sections are stored uncompressed: correct their checksums and the header's. */
static void mend(char *bytes, size_t size) {
    uint64_t length = size;
    uint32_t count = load_u32(bytes + 12) % 16;
    if (HEADER + (size_t)count * ENTRY > size)
        count = (uint32_t)((size - HEADER) / ENTRY);
    memcpy(bytes + 12, &count, sizeof count);
    memcpy(bytes + 16, &length, sizeof length);
    for (uint32_t i = 0; i < count; i++) {
        char *entry = bytes + HEADER + (size_t)i * ENTRY;
        uint64_t offset = load_u64(entry + 8), stored = load_u64(entry + 16), checksum;
        if (offset > size || stored > size - offset)
            continue;
        checksum = XXH3_64bits(bytes + offset, stored);
        memcpy(entry + 32, &checksum, sizeof checksum);
    }
    XXH3_state_t *state = XXH3_createState();
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, bytes, 24);
    XXH3_64bits_update(state, bytes + HEADER, (size_t)count * ENTRY);
    uint64_t checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    memcpy(bytes + 24, &checksum, sizeof checksum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *bytes = memory_copy(data, size);
    if (size >= HEADER)
        mend(bytes, size);
    struct tree *tree = tree_new();
    struct error error;
    tree->keep_samples = size & 1;
    struct profile_options options = {.source_lines = size & 2, .no_inline = size & 4};
    if (saved_read((struct text){bytes, size}, "input", &options, tree, &error)) {
        struct spool spool = {0};
        struct out out;
        if (spool_open(&spool, "input", NULL, &error)) {
            out_open_spool(&out, &spool);
            if (saved_write(&out, tree, &error))
                out_commit(&out, &error);
            else
                out_discard(&out);
            spool_release(&spool);
        }
    }
    objects_free(tree->objects);
    tree_free(tree);
    free(bytes);
    return 0;
}
