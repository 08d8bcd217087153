/* What a writer writes, as a string: written_begin(), the writer with .out, written_end(). */
#ifndef WICK_TESTS_WRITTEN_H
#define WICK_TESTS_WRITTEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

struct written {
    struct out out;
    char path[sizeof "/tmp/wick-test-XXXXXX"];
};

static inline void written_begin(struct written *written) {
    struct error error;
    *written = (struct written){.path = "/tmp/wick-test-XXXXXX"};
    int descriptor = mkstemp(written->path);
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_true(out_open(&written->out, written->path, &error));
}

/* With a NUL at its end, which *size (may be NULL) does not count; free() it. */
static inline char *written_end(struct written *written, size_t *size) {
    struct error error;
    struct file file;
    assert_true(out_commit(&written->out, &error));
    assert_true(file_open_raw(&file, written->path, NULL, &error));
    char *text = memory_copy(file.data, file.size);
    if (size)
        *size = file.size;
    file_close(&file);
    unlink(written->path);
    return text;
}

#endif
