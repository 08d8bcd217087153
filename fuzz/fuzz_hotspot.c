/* Take any bytes for the memory of a Java virtual machine. The bytes repeat throughout the address space, so that
   wild pointers lead somewhere. First find its tables; then look up code and methods, with the offsets of JDK 17 and
   25. */
#include "record/hotspot.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_fuzzed(void *context, uint64_t address, void *bytes, size_t size) {
    const struct text *memory = context;
    uint8_t *to = bytes;
    if (address & 1ull << 40)
        return false;
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)memory->data[(address + i) % memory->length];
    return true;
}

static const struct hotspot jdk17 = {.heaps = 0x10000,
                                     .low_bound = 0x10008,
                                     .high_bound = 0x10010,
                                     .array_length = 0,
                                     .array_data = 8,
                                     .heap_memory = 8,
                                     .heap_log2_segment = 256,
                                     .space_low = 16,
                                     .space_high = 24,
                                     .block_length = 0,
                                     .block_used = 8,
                                     .blob_name = 96,
                                     .blob_size = 12,
                                     .blob_frame_size = 28,
                                     .blob_frame_complete = 20,
                                     .blob_code_begin = 32,
                                     .blob_code_end = 40,
                                     .blob_code_offset = -1,
                                     .blob_data_offset = 24,
                                     .method_of_code = 112,
                                     .compiled_scopes_data = 120,
                                     .nmethod_metadata = 260,
                                     .nmethod_dependencies = 272,
                                     .nmethod_scopes_pcs = 268,
                                     .nmethod_scopes_data = -1,
                                     .nmethod_immutable = -1,
                                     .nmethod_immutable_size = -1,
                                     .nmethod_compile_id = 304,
                                     .blob_mutable = -1,
                                     .blob_mutable_size = -1,
                                     .blob_relocation_size = -1,
                                     .method_const = 8,
                                     .const_constants = 8,
                                     .const_code_size = 32,
                                     .const_name = 34,
                                     .const_flags = 28,
                                     .pool_holder = 24,
                                     .pool_length = 60,
                                     .pool_source_file = 54,
                                     .klass_name = 24,
                                     .klass_source_file = -1,
                                     .klass_constants = 232,
                                     .symbol_length = 4,
                                     .symbol_body = 6,
                                     .pc_offset = 0,
                                     .pc_scope = 4,
                                     .block_size = 16,
                                     .const_size = 48,
                                     .pool_size = 72,
                                     .pc_size = 16,
                                     .major = 17};

struct found {
    const struct hotspot *h;
    struct remote *remote;
    struct hotspot_method method;
    struct hotspot_scopes scopes;
    unsigned blobs;
};

static bool see_blob(void *context, const struct hotspot_blob *blob) {
    struct found *found = context;
    if (blob->code >= blob->code_end || !blob->kind)
        abort();
    hotspot_method(found->h, found->remote, blob->method, &found->method);
    if (hotspot_scopes(found->h, found->remote, blob, &found->scopes))
        for (size_t i = 0; i < found->scopes.pcs.count; i++)
            if (found->scopes.pcs.items[i].scope > found->scopes.scopes.count ||
                !found->scopes.pcs.items[i].scope)
                abort();
    for (size_t i = 0; i < found->scopes.scopes.count; i++)
        if (found->scopes.scopes.items[i].parent > i)
            abort();
    return ++found->blobs < 100;
}

static void walk(const struct hotspot *h, struct remote *remote) {
    struct found found = {.h = h, .remote = remote};
    remote_begin(remote, 2000);
    hotspot_each_blob(h, remote, see_blob, &found);
    for (uint64_t at = 0x20000; at < 0x20000 + 64; at += 8)
        hotspot_method(h, remote, at, &found.method);
    vector_release(&found.method.lines);
    hotspot_scopes_release(&found.scopes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text memory = {(const char *)data, size};
    struct remote *remote = memory_zero(1, sizeof *remote);
    struct hotspot h, jdk25 = jdk17;
    const char *missing;
    remote->read = read_fuzzed;
    remote->context = &memory;
    if (size) {
        remote_begin(remote, 2000);
        hotspot_learn(&h, remote, 0x100000, &missing);
        walk(&jdk17, remote);
        jdk25.major = 25;
        jdk25.blob_code_begin = jdk25.blob_code_end = -1;
        jdk25.blob_code_offset = 36;
        jdk25.blob_data_offset = 40;
        jdk25.nmethod_immutable = 96;
        jdk25.nmethod_immutable_size = 160;
        jdk25.nmethod_scopes_pcs = 196;
        jdk25.nmethod_scopes_data = 200;
        jdk25.blob_mutable = 16;
        jdk25.blob_mutable_size = 48;
        jdk25.blob_relocation_size = 28;
        jdk25.block_size = 8;
        jdk25.block_used = 4;
        walk(&jdk25, remote);
    }
    free(remote);
    return 0;
}
