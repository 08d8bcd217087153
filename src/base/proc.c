/*
 * Files of /proc/PID. The kernel generates their text for each reader, so one pass must read them whole, and a
 * process may end at any moment.
 */
#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PIECE = 16384 };

enum proc_reading proc_read(pid_t pid, const char *name, size_t most, struct buffer *text) {
    char path[64];
    ssize_t got = -1;
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    text->count = 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return PROC_NONE;
    while (text->count < most) {
        vector_reserve(text, text->count + PIECE);
        got = read(descriptor, text->items + text->count, PIECE);
        if (got <= 0)
            break;
        text->count += (size_t)got;
    }
    close(descriptor);
    return got == 0 ? PROC_WHOLE : PROC_PART;
}

static struct text line_of(struct text status, struct text name) {
    while (status.length) {
        struct text line = text_take_line(&status);
        if (line.length > name.length && line.data[name.length] == ':' && text_starts(line, name))
            return text_trim(text_from(line, name.length + 1));
    }
    return TEXT("");
}

struct text proc_field(struct text status, struct text name, size_t place) {
    struct text rest = line_of(status, name);
    for (size_t i = 0;; i++) {
        size_t tab = text_find(rest, '\t');
        if (i == place || (tab == SIZE_MAX && place == PROC_LAST))
            return tab == SIZE_MAX ? rest : text_upto(rest, tab);
        if (tab == SIZE_MAX)
            return TEXT("");
        rest = text_from(rest, tab + 1);
    }
}

pid_t proc_status_id(pid_t pid, struct text name) {
    struct buffer status = {0};
    uint64_t id = 0;
    proc_read(pid, "status", PROC_STATUS_MOST, &status);
    bool fine = text_to_u64(proc_field(buffer_text(&status), name, 0), &id);
    buffer_release(&status);
    return fine ? (pid_t)id : 0;
}
