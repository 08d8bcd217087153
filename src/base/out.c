/*
 * Buffered output: to a file that is published whole or not at all, to standard output, to a spool or to memory.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { OUT_BUFFER = 1 << 18 };

bool out_check(const char *path, struct error *error) {
    return strcmp(path, "-") == 0 || publish_check(path, error);
}

bool out_open_at(struct out *out, int directory, const char *path, struct error *error) {
    *out = (struct out){.descriptor = -1};
    if (publish_open(&out->file, directory, path, PUBLISH_OUTPUT, error))
        out->descriptor = out->file.descriptor;
    else
        out->failed = EBADF;
    return out->descriptor >= 0;
}

bool out_open(struct out *out, const char *path, struct error *error) {
    if (strcmp(path, "-") != 0)
        return out_open_at(out, AT_FDCWD, path, error);
    *out = (struct out){.descriptor = STDOUT_FILENO};
    return true;
}

void out_open_spool(struct out *out, struct spool *spool) {
    *out = (struct out){.descriptor = -1, .spool = spool};
}

void out_open_buffer(struct out *out, struct buffer *buffer) {
    *out = (struct out){.descriptor = -1, .memory = buffer};
}

static void out_raw(struct out *out, const char *data, size_t size) {
    if (out->memory) {
        buffer_add(out->memory, (struct text){data, size});
        return;
    }
    if (out->spool) {
        if (!out_closed(out) && !spool_write(out->spool, data, size, NULL))
            out->failed = ENOSPC;
        return;
    }
    while (size && !out_closed(out)) {
        ssize_t written = write(out->descriptor, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EPIPE)
            out->closed = true;
        else if (written < 0)
            out->failed = errno;
        else
            data += written, size -= (size_t)written;
    }
}

/* Costs a copy, on a terminal only. */
static void out_guarded(struct out *out, const char *data, size_t size) {
    struct buffer shown = {0};
    buffer_add_guarded(&shown, (struct text){data, size});
    out_raw(out, shown.items, shown.count);
    buffer_release(&shown);
}

static void out_send(struct out *out, const char *data, size_t size) {
    if (out->guarded)
        out_guarded(out, data, size);
    else
        out_raw(out, data, size);
}

static void out_flush(struct out *out) {
    out_send(out, out->pending.items, out->pending.count);
    out->pending.count = 0;
}

void out_write(struct out *out, const void *data, size_t size) {
    if (out->pending.count + size > OUT_BUFFER)
        out_flush(out);
    if (size > OUT_BUFFER)
        out_send(out, data, size);
    else
        buffer_add(&out->pending, (struct text){data, size});
}

void out_char(struct out *out, char c) {
    out_write(out, &c, 1);
}

void out_u64(struct out *out, uint64_t value) {
    buffer_add_u64(&out->pending, value);
}

void out_printf(struct out *out, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t length;
    char *line = memory_print(&length, format, list);
    va_end(list);
    out_write(out, line, length);
    free(line);
}

static void out_forget(struct out *out) {
    buffer_release(&out->pending);
    *out = (struct out){.descriptor = -1, .closed = true};
}

void out_discard(struct out *out) {
    if (out->file.path)
        publish_discard(&out->file);
    out_forget(out);
}

bool out_commit(struct out *out, struct error *error) {
    out_flush(out);
    const char *shown = out->file.path ? out->file.path
                        : out->spool   ? "temporary file: set TMPDIR to a directory with free space"
                                       : "standard output";
    bool fine = !out->failed;
    if (!fine)
        error_set(error, ERROR_INPUT, "%s: %s", shown, strerror(out->failed));
    else if (out->file.path)
        fine = publish_commit(&out->file, error);
    if (fine)
        out_forget(out);
    else
        out_discard(out);
    return fine;
}
