/* Data that a recording keeps about Java virtual machines: parse any bytes as entries, each with one byte of kind and
   two of size, then look up the methods of frames. */
#include "profile/reading.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct java *java, int32_t pid, const uint8_t *data, size_t size) {
    const struct java_process *process = java_process(java, pid);
    for (size_t at = 0; process && at + 8 <= size && at < 256; at++)
        java_interpreted(process, at, load_u64(data + at), load_u64(data), at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct profile profile = {.tree = tree_new()};
    struct objects_options options = {0};
    struct reading reading = {.profile = &profile};
    uint64_t key[] = {7, 1000};
    profile.objects = objects_new(&options);
    struct java *java = java_new(&budget_defaults);
    for (size_t at = 0; at + 3 <= size;) {
        size_t length = load_u16(data + at + 1);
        length = length < size - at - 3 ? length : size - at - 3;
        struct text bytes = {(const char *)data + at + 3, length};
        struct text name = {(const char *)key, sizeof key};
        key[0] = 7 + (data[at] >> 1 & 3);
        if (data[at] & 1)
            java_add_code(java, name, bytes);
        else
            java_add_methods(java, name, bytes);
        at += 3 + length;
    }
    java_finish(java, &reading);
    for (uint32_t id = 1; id <= objects_count(profile.objects); id++)
        for (uint64_t place = 0; place < 2048; place += 61) {
            struct inline_chain chain = {0};
            struct symbol symbol;
            objects_symbol(profile.objects, id, place, &symbol);
            objects_inlines(profile.objects, id, place, true, &chain);
            objects_cfi(profile.objects, id, place);
            vector_release(&chain);
        }
    for (int32_t pid = 7; pid < 11; pid++)
        ask(java, pid, data, size);
    java_free(java);
    made_release(&reading.made);
    objects_free(profile.objects);
    tree_free(profile.tree);
    return 0;
}
