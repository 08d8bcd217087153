/*
 * Files published whole or not at all.
 *
 * Temporaries are registered in a fixed table so that a signal handler can unlink them without taking a lock; more than
 * the table holds at once would only lose that courtesy, not correctness.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUT_BUFFER = 1 << 18, OUT_TEMPORARIES = 64 };

static _Atomic(char *) temporaries[OUT_TEMPORARIES];

static void temporary_register(char *path) {
    for (size_t i = 0; i < OUT_TEMPORARIES; i++) {
        char *none = NULL;
        if (atomic_compare_exchange_strong(&temporaries[i], &none, path))
            return;
    }
}

static void temporary_forget(char *path) {
    for (size_t i = 0; i < OUT_TEMPORARIES; i++) {
        char *expected = path;
        if (atomic_compare_exchange_strong(&temporaries[i], &expected, NULL))
            return;
    }
}

void out_remove_temporaries(void) {
    for (size_t i = 0; i < OUT_TEMPORARIES; i++) {
        char *path = atomic_load(&temporaries[i]);
        if (path)
            unlink(path);
    }
}

/* A new file beside `path`, with the mode that a plain open() gives: mkostemp() makes files private, and umask() can't be asked without
   changing it for every thread. Its name goes into *name. -1: errno says why. */
static int temporary_open(const char *path, char **name) {
    for (int tries = 0; tries < 100; tries++) {
        uint64_t number = 0;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return -1;
        struct buffer text = {0};
        buffer_printf(&text, "%s.%06llx", path, (unsigned long long)(number & 0xffffff));
        *name = memory_copy(text.items, text.count);
        buffer_release(&text);
        int descriptor = open(*name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
        free(*name);
        *name = NULL;
    }
    return -1;
}

/* A path that is there but is no regular file (/dev/null, a pipe) is written to directly: there is nothing to publish. */
static bool out_is_special(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

bool out_check(const char *path, struct error *error) {
    struct stat status;
    if (strcmp(path, "-") == 0 || out_is_special(path)) {
        errno = EISDIR;
        return stat(path, &status) != 0 || !S_ISDIR(status.st_mode) || error_errno(error, path);
    }
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    char *folder = memory_copy(slash ? path : ".", slash ? length : 1);
    bool fine = access(folder, W_OK) == 0 || error_errno(error, path);
    free(folder);
    return fine;
}

bool out_open(struct out *out, const char *path, struct error *error) {
    *out = (struct out){.descriptor = STDOUT_FILENO};
    if (strcmp(path, "-") == 0)
        return true;
    out->path = memory_copy(path, strlen(path));
    if (out_is_special(path)) {
        out->descriptor = open(path, O_WRONLY | O_CLOEXEC);
    } else {
        out->descriptor = temporary_open(path, &out->temporary);
    }
    if (out->descriptor < 0) {
        error_errno(error, path);
        free(out->path);
        free(out->temporary);
        *out = (struct out){.descriptor = -1, .failed = EBADF};
        return false;
    }
    if (out->temporary)
        temporary_register(out->temporary);
    return true;
}

void out_open_spool(struct out *out, struct spool *spool) {
    *out = (struct out){.descriptor = -1, .spool = spool};
}

static void out_raw(struct out *out, const char *data, size_t size) {
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

/* Also the second set of control characters, which UTF-8 writes as c2 80 … c2 9f. Costs a copy, on a terminal only. */
static void out_guarded(struct out *out, const char *data, size_t size) {
    struct buffer shown = {0};
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i], before = i ? (unsigned char)data[i - 1] : 0xc2;
        bool control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f ||
                       (c >= 0x80 && c < 0xa0 && before == 0xc2);
        buffer_add_char(&shown, control ? '?' : (char)c);
    }
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
    if (out->temporary)
        temporary_forget(out->temporary);
    buffer_release(&out->pending);
    free(out->path);
    free(out->temporary);
    *out = (struct out){.descriptor = -1, .closed = true};
}

void out_discard(struct out *out) {
    if (out->path)
        close(out->descriptor);
    if (out->temporary)
        unlink(out->temporary);
    out_forget(out);
}

bool out_commit(struct out *out, struct error *error) {
    out_flush(out);
    const char *shown = out->path    ? out->path
                        : out->spool ? "temporary file: set TMPDIR to where there is room"
                                     : "standard output";
    if (out->path && close(out->descriptor) != 0 && !out->failed)
        out->failed = errno;
    if (!out->failed && out->temporary && rename(out->temporary, out->path) != 0)
        out->failed = errno;
    bool fine = !out->failed;
    if (!fine) {
        error_set(error, ERROR_INPUT, "%s: %s", shown, strerror(out->failed));
        if (out->temporary)
            unlink(out->temporary);
    }
    out_forget(out);
    return fine;
}
