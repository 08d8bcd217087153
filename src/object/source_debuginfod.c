/*
 * debuginfod: files by build id, from the cache shared by all its clients on this machine, and from servers.
 *
 * The helper process (net) asks the servers, stores their files in that cache and hands them over. libdebuginfod does not check them, so they are
 * checked here, and a file with the wrong build id is removed from the cache. The time limit for all files starts with the first request; once
 * it is over, no server is asked any more.
 */
#include "object/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* By libdebuginfod's rules: the oldest location is used if it exists. */
bool debuginfod_cache_path(struct buffer *path) {
    const char *given = getenv("DEBUGINFOD_CACHE_PATH"), *home = getenv("HOME"),
               *caches = getenv("XDG_CACHE_HOME");
    path->count = 0;
    if (given && *given) {
        buffer_printf(path, "%s", given);
    } else {
        struct stat status;
        buffer_printf(path, "%s/.debuginfod_client_cache", home ? home : "");
        buffer_add_char(path, 0);
        bool is_old = stat(path->items, &status) == 0;
        path->count--;
        if (!is_old && caches && *caches) {
            path->count = 0;
            buffer_printf(path, "%s/debuginfod_client", caches);
        } else if (!is_old) {
            path->count = 0;
            buffer_printf(path, "%s/.cache/debuginfod_client", home ? home : "");
        }
    }
    buffer_add_char(path, 0);
    return path->items[0] == '/';
}

static bool entry_path(const struct search *search, const char *name, struct buffer *path) {
    char hex[2 * BUILD_ID_MAX + 1];
    if (!debuginfod_cache_path(path))
        return false;
    build_id_print(&search->id, hex);
    path->count--;
    buffer_printf(path, "/%s/%s", hex, name);
    buffer_add_char(path, 0);
    return true;
}

/* ---- servers ---- */

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* Return how long this request may take; 0 if the time for all is over. */
static unsigned time_left(struct objects *objects) {
    const struct debuginfod_options *options = &objects->options.debuginfod;
    uint64_t time = now(), until = 0;
    if (__atomic_compare_exchange_n(&objects->fetch_until, &until, time + options->milliseconds_all,
                                    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        until = time + options->milliseconds_all;
    uint64_t left = until > time ? until - time : 0;
    return left < options->milliseconds_each ? (unsigned)left : options->milliseconds_each;
}

static void say_undelivered(struct object *object, const char *why) {
    if (!object->undelivered)
        object->undelivered = memory_copy(why, strlen(why));
}

/* Takes it out of the cache, if it is still what came. */
static void remove_entry(const char *path, int descriptor) {
    struct stat came, there;
    if (fstat(descriptor, &came) == 0 && lstat(path, &there) == 0 && came.st_ino == there.st_ino &&
        came.st_dev == there.st_dev)
        unlink(path);
}

static struct elf_image *check_delivery(const struct search *search, int descriptor,
                                        const char *path) {
    bool changed;
    struct elf_image *image = elf_image_open_descriptor(descriptor, path, false, &changed, NULL);
    if (image && build_id_matches(&search->id, &image->build_id))
        return image;
    say_undelivered(search->object, image ? "the server sent a file with another build id"
                                          : "the server sent something that is not an ELF file");
    elf_image_free(image);
    remove_entry(path, descriptor);
    return NULL;
}

static struct elf_image *ask(const struct search *search, enum net_kind kind, const char *path) {
    const struct debuginfod_options *options = &search->objects->options.debuginfod;
    struct net_file file = {.kind = kind, .build_id_size = search->id.size};
    struct elf_image *image = NULL;
    unsigned milliseconds = time_left(search->objects);
    memcpy(file.build_id, search->id.bytes, search->id.size);
    if (milliseconds == 0) {
        say_undelivered(search->object, "the time limit for all files was reached");
    } else if (net_debuginfo(options->net, &file, milliseconds, options->size_most)) {
        image = check_delivery(search, file.descriptor, path);
        close(file.descriptor);
    } else if (strcmp(file.message, "no server has it") != 0) {
        say_undelivered(search->object, file.message);
    }
    return image;
}

/* ---- the source ---- */

/* What is wrong in the cache is not the object's fault. */
static struct elf_image *open_either(const struct search *search, enum net_kind kind) {
    const struct debuginfod_options *options = &search->objects->options.debuginfod;
    struct buffer path = {0};
    struct elf_image *image = NULL;
    enum file_trouble trouble = search->object->trouble;
    if (options->cache && search->id.size >= 2 &&
        entry_path(search, kind == NET_EXECUTABLE ? "executable" : "debuginfo", &path)) {
        image = object_open(search->object, path.items, &search->id);
        if (!image && options->net)
            image = ask(search, kind, path.items);
    }
    search->object->trouble = trouble;
    buffer_release(&path);
    return image;
}

static struct elf_image *open_code(const struct search *search) {
    return search->object->identity.kind == OBJECT_FILE ? open_either(search, NET_EXECUTABLE)
                                                        : NULL;
}

static struct elf_image *open_debug(const struct search *search) {
    return open_either(search, NET_DEBUGINFO);
}

const struct source source_debuginfod_code = {.name = "debuginfod", .open = open_code},
                    source_debuginfod_debug = {.name = "debuginfod", .open = open_debug};
