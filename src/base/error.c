/*
 * An error is one line, whatever a path or a name in it contains: escaping happens only here.
 */
#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void error_fill(struct error *error, enum error_kind kind, uint64_t offset,
                       const char *prefix, const char *format, va_list list) {
    if (!error)
        return;
    struct buffer shown = {0};
    char *why = memory_print(NULL, format, list);
    buffer_add_shown(&shown, text_of(prefix));
    buffer_add_shown(&shown, text_of(why));
    error->kind = kind;
    error->offset = offset;
    snprintf(error->message, sizeof error->message, "%.*s", (int)shown.count, shown.items);
    free(why);
    buffer_release(&shown);
}

bool error_set(struct error *error, enum error_kind kind, const char *format, ...) {
    va_list list;
    va_start(list, format);
    error_fill(error, kind, NO_OFFSET, "", format, list);
    va_end(list);
    return false;
}

bool error_at(struct error *error, const char *path, uint64_t offset, const char *format, ...) {
    char prefix[400];
    snprintf(prefix, sizeof prefix, "%.300s: byte %llu: ", path, (unsigned long long)offset);
    va_list list;
    va_start(list, format);
    error_fill(error, ERROR_INPUT, offset, prefix, format, list);
    va_end(list);
    return false;
}

bool error_errno(struct error *error, const char *path) {
    return error_set(error, ERROR_INPUT, "%s: %s", path, strerror(errno));
}
