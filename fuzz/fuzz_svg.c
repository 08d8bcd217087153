/* Drawn flame graphs: any bytes give a tree whose weights add up, with nothing counted twice. */
#include "reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text content = {(const char *)data, size};
    struct import_options import = {.profile.context = &(struct context){.threads = 1}};
    import_guess(content);
    read_and_check(import_format_named("svg"), content, &import, &(struct naming_options){0});
    return 0;
}
