/* Any bytes as a packed file: gzip, zstd or xz, found by its beginning, unpacked into a temporary file and looked at. */
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static volatile uint64_t sink;
    static const struct context context = {.spool_limit = 16 << 20};
    char path[64];
    int packed = piece_file((struct text){(const char *)data, size}, path);
    struct file file;
    struct error error = {0};
    if (file_open_descriptor(&file, packed, path, &context, &error)) {
        sink = sink + hash_bytes(file.data, file.size);
        file_close(&file);
    } else {
        assert(error.kind);
    }
    close(packed);
    return 0;
}
