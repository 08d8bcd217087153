/*
 * Reading files: they are mapped whole and guarded against shrinking (guard.c); compressed files and pipes are
 * spooled first.
 */
#include "base/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#ifdef HAVE_LZMA
#include <lzma.h>
#endif

const struct budget_limits unpacking_limits = {.memory = 64 << 20, .memory_per_byte = 1040};

enum { SPOOL_CHUNK = 1 << 18 };

uint64_t context_spool_limit(const struct context *context) {
    return context && context->spool_limit ? context->spool_limit : 64ull << 30;
}

const struct budget_limits *context_limits(const struct context *context) {
    return context ? &context->limits : &budget_defaults;
}

static bool file_map(struct file *file, int descriptor, size_t size, struct error *error) {
    file->size = size;
    if (size == 0) {
        file->data = (const uint8_t *)"";
        return true;
    }
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED)
        return error_errno(error, file->path);
    file->data = data;
    file->guard = guard_enter(data, size);
    return true;
}

/* ---- spooling ---- */

bool spool_open(struct spool *spool, const char *path, const struct context *context,
                struct error *error) {
    *spool =
        (struct spool){.descriptor = file_temporary(error) + 1, .path = path, .context = context};
    return spool->descriptor > 0;
}

void spool_release(struct spool *spool) {
    if (spool->descriptor)
        close(spool->descriptor - 1);
    *spool = (struct spool){0};
}

bool spool_map(struct spool *spool, const char *path, struct file *file, struct error *error) {
    *file = (struct file){.path = memory_copy(path, strlen(path)), .spooled = true};
    bool fine = file_map(file, spool->descriptor - 1, spool->size, error);
    spool_release(spool);
    if (!fine)
        file_close(file);
    return fine;
}

bool spool_write(struct spool *spool, const void *data, size_t size, struct error *error) {
    uint64_t limit = context_spool_limit(spool->context);
    if (size > limit - spool->size)
        return error_set(error, ERROR_INPUT, "%s: more than %llu bytes when decompressed",
                         spool->path, (unsigned long long)limit);
    if (spool->budget && !budget_take_memory(spool->budget, size, NO_OFFSET))
        return error_set(error, ERROR_INPUT,
                         "%s: decompresses to more than a file of its size may: %llu bytes",
                         spool->path, (unsigned long long)spool->budget->memory.limit);
    spool->size += size;
    const char *p = data;
    while (size) {
        ssize_t written = write(spool->descriptor - 1, p, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return error_set(error, ERROR_INPUT, "%s: temporary file: %s", spool->path,
                             strerror(errno));
        p += written, size -= (size_t)written;
    }
    return true;
}

static bool spool_pipe(struct spool *spool, int descriptor, struct error *error) {
    char *chunk = memory_alloc(SPOOL_CHUNK);
    bool fine = true;
    for (ssize_t got; fine && (got = read(descriptor, chunk, SPOOL_CHUNK)) != 0;) {
        if (got < 0 && errno == EINTR)
            continue;
        fine = got < 0 ? error_errno(error, spool->path)
                       : spool_write(spool, chunk, (size_t)got, error);
        context_progress(spool->context, "reading; bytes:", spool->size, 0);
    }
    free(chunk);
    return fine;
}

/* Several gzip members in a row are one file; what follows the last is ignored, as gzip does. */
static bool spool_gzip(struct spool *spool, const struct file *packed, struct error *error) {
    z_stream stream = {0};
    if (inflateInit2(&stream, 15 + 16) != Z_OK)
        return error_set(error, ERROR_INTERNAL, "%s: zlib can't be initialized", packed->path);
    uint8_t *chunk = memory_alloc(SPOOL_CHUNK);
    size_t used = 0;
    bool fine = true, ended = false;
    while (fine && !(ended && (used >= packed->size || packed->data[used] != 0x1f))) {
        if (ended)
            inflateReset(&stream);
        size_t left = packed->size - used;
        stream.next_in = (uint8_t *)(uintptr_t)packed->data + used;
        stream.avail_in = left > 1u << 30 ? 1u << 30 : (unsigned)left;
        stream.next_out = chunk;
        stream.avail_out = SPOOL_CHUNK;
        unsigned before = stream.avail_in;
        int status = inflate(&stream, Z_NO_FLUSH);
        used += before - stream.avail_in;
        ended = status == Z_STREAM_END;
        if (status != Z_OK && status != Z_STREAM_END)
            fine = error_at(error, packed->path, used, "gzip data is %s",
                            status == Z_BUF_ERROR ? "cut short" : "damaged");
        else
            fine = spool_write(spool, chunk, SPOOL_CHUNK - stream.avail_out, error);
    }
    inflateEnd(&stream);
    free(chunk);
    return fine;
}

static bool spool_zstd(struct spool *spool, const struct file *packed, struct error *error) {
    ZSTD_DStream *stream = ZSTD_createDStream();
    uint8_t *chunk = memory_alloc(SPOOL_CHUNK);
    ZSTD_inBuffer in = {packed->data, packed->size, 0};
    size_t status = 0;
    bool fine = true;
    bool more = true;
    while (fine && more) {
        ZSTD_outBuffer to = {chunk, SPOOL_CHUNK, 0};
        status = ZSTD_decompressStream(stream, &to, &in);
        if (ZSTD_isError(status))
            fine = error_at(error, packed->path, in.pos, "zstd data is damaged: %s",
                            ZSTD_getErrorName(status));
        else
            fine = spool_write(spool, chunk, to.pos, error);
        /* At the end of a frame no output is pending, however full the chunk is. */
        more = in.pos < in.size || (to.pos == to.size && status != 0);
    }
    if (fine && status != 0)
        fine = error_at(error, packed->path, in.pos, "zstd data is cut short");
    ZSTD_freeDStream(stream);
    free(chunk);
    return fine;
}

#ifdef HAVE_LZMA
static bool spool_xz(struct spool *spool, const struct file *packed, struct error *error) {
    enum { MEMORY_MAX = 256 << 20 };
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, MEMORY_MAX, LZMA_CONCATENATED) != LZMA_OK)
        return error_set(error, ERROR_INTERNAL, "%s: liblzma can't be initialized", packed->path);
    uint8_t *chunk = memory_alloc(SPOOL_CHUNK);
    lzma_ret status = LZMA_OK;
    bool fine = true;
    stream.next_in = packed->data;
    stream.avail_in = packed->size;
    while (fine && status == LZMA_OK) {
        stream.next_out = chunk;
        stream.avail_out = SPOOL_CHUNK;
        status = lzma_code(&stream, LZMA_FINISH);
        fine = spool_write(spool, chunk, SPOOL_CHUNK - stream.avail_out, error);
    }
    if (fine && status != LZMA_STREAM_END)
        fine = error_at(error, packed->path, stream.total_in, "xz data is %s",
                        status == LZMA_BUF_ERROR ? "cut short"
                        : status == LZMA_MEMLIMIT_ERROR
                            ? "compressed in a way that needs too much memory"
                            : "damaged");
    lzma_end(&stream);
    free(chunk);
    return fine;
}
#else
static bool spool_xz(struct spool *spool, const struct file *packed, struct error *error) {
    return error_set(error, ERROR_INPUT,
                     "%s: compressed by xz, and this wick was built without liblzma", packed->path);
}
#endif

/* ---- opening ---- */

/* Replace the compressed `file` by its decompressed spool. */
static bool file_unpack(struct file *file,
                        bool (*unpack)(struct spool *, const struct file *, struct error *),
                        const struct context *context, struct error *error) {
    struct spool spool;
    if (!spool_open(&spool, file->path, context, error))
        return false;
    struct budget budget;
    budget_init(&budget, &unpacking_limits, file->size);
    spool.budget = &budget;
    struct file unpacked;
    bool fine = unpack(&spool, file, error) && spool_map(&spool, file->path, &unpacked, error);
    spool_release(&spool);
    if (!fine)
        return false;
    file_close(file);
    *file = unpacked;
    return true;
}

static uint64_t nanoseconds(const struct timespec *time) {
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

static bool file_open_any(struct file *file, int descriptor, const struct context *context,
                          struct error *error) {
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return error_errno(error, file->path);
    if (S_ISREG(status.st_mode)) {
        file->device = status.st_dev;
        file->inode = status.st_ino;
        file->written = nanoseconds(&status.st_mtim);
        file->touched = nanoseconds(&status.st_ctim);
        return file_map(file, descriptor, (size_t)status.st_size, error);
    }
    if (S_ISDIR(status.st_mode))
        return error_set(error, ERROR_INPUT, "%s: is a directory", file->path);
    if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode) && !S_ISCHR(status.st_mode))
        return error_set(error, ERROR_INPUT, "%s: neither a file nor a pipe", file->path);
    struct spool spool;
    if (!spool_open(&spool, file->path, context, error))
        return false;
    file->spooled = true;
    bool fine = spool_pipe(&spool, descriptor, error) &&
                file_map(file, spool.descriptor - 1, spool.size, error);
    spool_release(&spool);
    return fine;
}

static bool file_finish(struct file *file, bool unpack, const struct context *context,
                        struct error *error) {
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd},
                         xz[] = {0xfd, '7', 'z', 'X', 'Z', 0};
    bool fine = true;
    if (unpack && file->size > 2 && memcmp(file->data, gzip, 2) == 0)
        fine = file_unpack(file, spool_gzip, context, error);
    else if (unpack && file->size > 4 && memcmp(file->data, zstd, 4) == 0)
        fine = file_unpack(file, spool_zstd, context, error);
    else if (unpack && file->size > 6 && memcmp(file->data, xz, 6) == 0)
        fine = file_unpack(file, spool_xz, context, error);
    if (!fine)
        file_close(file);
    return fine;
}

bool file_open_descriptor(struct file *file, int descriptor, const char *path,
                          const struct context *context, struct error *error) {
    *file = (struct file){.path = memory_copy(path, strlen(path))};
    if (!file_open_any(file, descriptor, context, error)) {
        file_close(file);
        return false;
    }
    return file_finish(file, true, context, error);
}

static bool file_open_path(struct file *file, const char *path, bool unpack,
                           const struct context *context, struct error *error) {
    bool is_stdin = strcmp(path, "-") == 0;
    *file = (struct file){0};
    int descriptor = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return error_errno(error, path);
    *file = (struct file){.path = is_stdin ? memory_copy("standard input", 14)
                                           : memory_copy(path, strlen(path))};
    bool fine = file_open_any(file, descriptor, context, error);
    if (!is_stdin)
        close(descriptor);
    if (!fine) {
        file_close(file);
        return false;
    }
    return file_finish(file, unpack, context, error);
}

bool file_open(struct file *file, const char *path, const struct context *context,
               struct error *error) {
    return file_open_path(file, path, true, context, error);
}

bool file_open_raw(struct file *file, const char *path, const struct context *context,
                   struct error *error) {
    return file_open_path(file, path, false, context, error);
}

bool file_read_small(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, size - 1, file);
    fclose(file);
    text[length] = 0;
    while (length && text[length - 1] == '\n')
        text[--length] = 0;
    return true;
}

void file_close(struct file *file) {
    guard_leave(file->guard);
    if (file->size && file->data)
        munmap((void *)(uintptr_t)file->data, file->size);
    free(file->path);
    *file = (struct file){0};
}

bool file_is_settled(const struct file *file) {
    enum { SECOND = 1000000000 };
    struct stat status;
    struct timespec now;
    if (!file->inode || stat(file->path, &status) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0)
        return false;
    return status.st_dev == file->device && status.st_ino == file->inode &&
           (uint64_t)status.st_size == file->size &&
           nanoseconds(&status.st_mtim) == file->written &&
           nanoseconds(&status.st_ctim) == file->touched &&
           file->touched + 2ull * SECOND < nanoseconds(&now);
}
