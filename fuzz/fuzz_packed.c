/* Open any bytes as a compressed file: gzip, zstd or xz, detected by its beginning and decompressed into a temporary
   file. The result must be the same by descriptor, by path and, if it fits, by pipe. */
#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PIPE_HOLDS = 65536 };

static const struct context context = {.spool_limit = 16 << 20};

/* Return the hash of its content, or 0. */
static uint64_t look(bool fine, struct file *file, const struct error *error) {
    assert(fine == !error->kind);
    if (!fine)
        return 0;
    uint64_t hash = hash_bytes(file->data, file->size);
    file_close(file);
    return hash ? hash : 1;
}

static uint64_t by_pipe(const uint8_t *data, size_t size) {
    int ends[2];
    struct file file;
    struct error error = {0};
    if (pipe2(ends, O_CLOEXEC) != 0 || write(ends[1], data, size) != (ssize_t)size)
        abort();
    close(ends[1]);
    bool fine = file_open_descriptor(&file, ends[0], "pipe", &context, &error);
    close(ends[0]);
    return look(fine, &file, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    int packed = piece_file((struct text){(const char *)data, size}, path);
    struct file file;
    struct error error = {0};
    uint64_t hash =
        look(file_open_descriptor(&file, packed, path, &context, &error), &file, &error);
    error = (struct error){0};
    uint64_t again = look(file_open(&file, path, &context, &error), &file, &error);
    assert(again == hash);
    if (size && size <= PIPE_HOLDS) {
        again = by_pipe(data, size);
        assert(again == hash);
    }
    close(packed);
    return 0;
}
