/* Read the bytes as a recording, without names but with its waits, and print it as script text: both passes, and
   every column. */
#include "profile/profile.h"
#include "view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct file file = {.path = (char *)"fuzz", .data = bytes, .size = size};
    struct profile_options options = {.context =
                                          &(struct context){.threads = 1, .spool_limit = 16 << 20},
                                      .keep_samples = true,
                                      .all_events = true,
                                      .no_names = true,
                                      .quirks = size % 2 ? quirks_perf : quirks_none,
                                      .times = size / 2 % 3,
                                      .wakers = size / 6 % 2,
                                      .objects.kallsyms = "/dev/null"};
    struct error error = {0};
    struct profile *profile = profile_read(&file, &options, &error);
    assert(!profile == !!error.kind);
    if (!profile)
        return 0;
    struct out out;
    if (out_open(&out, "/dev/null", &error)) {
        script_write(&out, profile,
                     &(struct script_options){.context = options.context,
                                              .quirks = size % 2 ? quirks_perf : quirks_none},
                     &error);
        out_commit(&out, &error);
    }
    profile_free(profile);
    return 0;
}
