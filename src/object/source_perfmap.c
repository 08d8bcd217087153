/*
 * The perf map of a process, /tmp/perf-PID.map, which its JIT writes.
 */
#include "object/source.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Anybody may put a file into /tmp. A link is not followed, and another user's file is not believed, not by root either: whose program
   it was that ran as this process, a recording does not say. */
static int perfmap_open(struct object *object, const char *path) {
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) {
        object->trouble = errno == ELOOP ? FILE_REFUSED : FILE_ABSENT;
        return -1;
    }
    bool fine = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                user_is_trusted(status.st_uid);
    if (fine)
        return descriptor;
    object->trouble = FILE_REFUSED;
    close(descriptor);
    return -1;
}

static bool read_below(const struct search *search, const char *root) {
    struct object *object = search->object;
    struct buffer path = {0};
    buffer_printf(&path, "%s/tmp/perf-%d.map", root ? root : "", object->identity.pid);
    buffer_add_char(&path, 0);
    int descriptor = perfmap_open(object, path.items);
    bool fine = descriptor >= 0;
    if (fine) {
        object->trouble = FILE_FINE;
        fine = file_open_descriptor(&object->symbol_file, descriptor, path.items,
                                    search->objects->options.context, NULL);
        close(descriptor);
    }
    buffer_release(&path);
    return fine;
}

static bool read_map(const struct search *search) {
    return read_below(search, search->objects->options.symfs);
}

static bool read_host_map(const struct search *search) {
    return search->objects->options.symfs && read_below(search, NULL);
}

const struct source source_perfmap = {.name = "perf map", .read = read_map},
                    source_perfmap_host = {.name = "perf map", .read = read_host_map};
