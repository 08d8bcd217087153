/* Demangle any bytes, by wick's rules and by perf's: output must be bounded, and a failure must leave nothing behind. */
#include "object/demangle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text name = {(const char *)data, size};
    for (int compat = 0; compat < 2; compat++) {
        struct objects_options options = {.quirks = compat ? quirks_perf : quirks_none};
        struct buffer buffer = {0};
        buffer_add(&buffer, TEXT("before"));
        bool fine = demangle(&options, name, &buffer, NULL);
        if (!fine && buffer.count != 6)
            abort();
        if (buffer.count > 1 << 20)
            abort();
        buffer_release(&buffer);
    }
    return 0;
}
