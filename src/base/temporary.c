/*
 * Unnamed files, for data that is too large for memory. A process that is about to be confined opens some in advance,
 * because it can create none afterwards; when those are used up, memory is used instead.
 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RESERVED_MOST = 64 };

static atomic_int reserved[RESERVED_MOST]; /* descriptors + 1; 0: none, or taken */
static atomic_bool is_reserved;            /* as many as were requested, possibly none */

static const char *folder(void) {
    const char *directory = getenv("TMPDIR");
    return directory && *directory ? directory : "/tmp";
}

static int open_named(void) {
    struct buffer name = {0};
    buffer_printf(&name, "%s/wick.XXXXXX", folder());
    buffer_add_char(&name, 0);
    int descriptor = mkostemp(name.items, O_CLOEXEC);
    if (descriptor >= 0)
        unlink(name.items);
    buffer_release(&name);
    return descriptor;
}

/* Unnamed from the start, if the file system supports that. */
static int open_nameless(void) {
    int descriptor = open(folder(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    return descriptor >= 0 ? descriptor : open_named();
}

static int take_reserved(void) {
    for (size_t i = 0; i < RESERVED_MOST && is_reserved; i++) {
        int descriptor = atomic_exchange(&reserved[i], 0);
        if (descriptor)
            return descriptor - 1;
    }
    return -1;
}

void file_temporaries_reserve(unsigned count) {
    is_reserved = true;
    for (unsigned i = 0; i < count && i < RESERVED_MOST; i++) {
        int none = 0, descriptor = open_nameless();
        if (descriptor < 0)
            return;
        if (!atomic_compare_exchange_strong(&reserved[i], &none, descriptor + 1))
            close(descriptor);
    }
}

int file_temporary(struct error *error) {
    int descriptor = take_reserved();
    if (descriptor < 0)
        descriptor = open_nameless();
    if (descriptor < 0 && is_reserved)
        descriptor = memfd_create("wick", MFD_CLOEXEC);
    if (descriptor < 0)
        error_set(error, ERROR_INPUT, "%s: %s: set TMPDIR to a directory with free space", folder(),
                  strerror(errno));
    return descriptor;
}
