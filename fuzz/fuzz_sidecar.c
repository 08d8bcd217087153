/* A Firefox Profiler profile, a NUL, and the symbols that samply saved beside it. */
#include "reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text both = {(const char *)data, size};
    size_t end = text_find(both, 0);
    if (end == SIZE_MAX)
        return 0;
    struct import_options import = {.sidecar = text_from(both, end + 1),
                                    .profile.context = &(struct context){.threads = 1}};
    read_and_check(import_format_named("firefox"), text_upto(both, end), &import,
                   &(struct naming_options){0});
    return 0;
}
