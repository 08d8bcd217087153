/* Every format in the table: the first byte chooses it, the second has the options. */
#include "reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    size_t formats = 0;
    while (import_formats[formats])
        formats++;
    uint8_t bits = data[1];
    struct import_options import = {.profile.quirks = bits & 1 ? quirks_inferno : quirks_none,
                                    .no_modules = bits & 2,
                                    .include_offset = bits & 4,
                                    .ghc_column = (bits >> 3) % 3,
                                    .profile.no_names = true, /* paths in it are not opened */
                                    .profile.context = &(struct context){.threads = 1}};
    struct naming_options names = {.quirks = bits & 1 ? quirks_inferno : quirks_none,
                                   .is_script_text = true};
    struct text content = {(const char *)data + 2, size - 2};
    import_guess(content);
    read_and_check(import_formats[data[0] % formats], content, &import, &names);
    return 0;
}
