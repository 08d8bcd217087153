/* A recording in several files, as made by perf record --threads: a directory with `data` and up to three `data.N`. */
#include "import/import.h"
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"parts/data", "parts/data.0", "parts/data.1",
                                        "parts/data.2"};
    static const char *const path = "parts";
    struct text pieces[COUNT_OF(names)];
    struct error error = {0};
    struct source source;
    size_t count = pieces_split(data, size, pieces, COUNT_OF(names));
    if (!count)
        return 0;
    work_in_a_folder("folder-parts");
    mkdir(path, 0700);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        unlink(names[i]);
        if (i < count)
            piece_write(names[i], pieces[i]);
    }
    struct import_options options = {
        .profile = {.context = &(struct context){.threads = 1, .spool_limit = 16 << 20},
                    .keep_samples = true,
                    .no_names = true,
                    .objects.kallsyms = "/dev/null"}};
    if (source_open(&source, &path, 1, &options, &error))
        source_close(&source);
    else
        assert(error.kind);
    return 0;
}
