/* perf script text, by both sets of rules: the first byte has the options. */
#include "reading.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    uint8_t bits = data[0];
    const char *all = "all", *skip = "main";
    struct naming_options names = {.quirks = bits & 1 ? quirks_inferno : quirks_none,
                                   .addresses = bits & 2,
                                   .show_tid = bits & 4,
                                   .mark_kernel = bits & 8,
                                   .mark_jit = bits & 8,
                                   .mark_inline = bits & 8,
                                   .keep_unknown = bits & 16,
                                   .is_script_text = true,
                                   .skip_after = &skip,
                                   .skip_after_count = bits & 32 ? 1 : 0};
    struct import_options import = {.profile = {.quirks = bits & 1 ? quirks_inferno : quirks_none,
                                                .context = &(struct context){.threads = 1},
                                                .raw_addresses = bits & 2}};
    if (bits & 64)
        import.profile.filter = (struct filter){.events = &all, .event_count = 1};
    struct text content = {(const char *)data + 1, size - 1};
    read_and_check(import_format_named("perf"), content, &import, &names);
    return 0;
}
