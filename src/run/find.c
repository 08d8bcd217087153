/*
 * Profiles below a directory, found by their names and opened beneath it. Symbolic links are never listed; if the caller allows it, they are
 * followed as long as they stay below the directory.
 */
#include "run/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEEPEST = 8, LOOKED_AT = 100000 };

static int open_beneath(int directory, const char *path, bool links) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS |
                                      (links ? 0 : RESOLVE_NO_SYMLINKS)};
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int found_recording(int descriptor, bool links) {
    static const char *const inside[] = {"profile.data", "data"};
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        if (descriptor >= 0)
            close(descriptor);
        return -1;
    }
    if (S_ISREG(status.st_mode))
        return descriptor;
    int found = -1;
    for (size_t i = 0; i < COUNT_OF(inside) && found < 0 && S_ISDIR(status.st_mode); i++)
        found = open_beneath(descriptor, inside[i], links);
    close(descriptor);
    if (found >= 0 && (fstat(found, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(found);
        found = -1;
    }
    return found;
}

int found_open(int directory, const char *name, bool links) {
    return found_recording(open_beneath(directory, name, links), links);
}

/* ---- the list ---- */

struct look {
    found_list *list;
    size_t looked_at;
    struct buffer path;
};

static bool is_profile(struct text name) {
    static const char *const ends[] = {
        ".wick",  ".data",    ".folded",     ".collapsed",       ".pb",
        ".pb.gz", ".pprof",   ".cpuprofile", ".speedscope.json", ".heapprofile",
        ".perf",  ".json.gz", ".otlp"};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (text_ends(name, text_of(ends[i])))
            return true;
    static const char *const begins[] = {"perf.data", "callgrind.out", "dhat.out", "massif.out"};
    for (size_t i = 0; i < COUNT_OF(begins); i++)
        if (text_starts(name, text_of(begins[i])))
            return true;
    return false;
}

static void add_item(struct look *l, const struct stat *status, bool is_run) {
    struct found item = {.time = status->st_mtim.tv_sec, .size = status->st_size, .is_run = is_run};
    item.name = memory_copy(l->path.items, l->path.count);
    vector_push(l->list, item);
}

static void look(struct look *l, int descriptor, unsigned depth);

/* Look at an entry of `directory`, whose path is in l->path. */
static void look_at(struct look *l, int directory, const char *name, unsigned depth) {
    struct stat status, recording;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISREG(status.st_mode) && is_profile(text_of(name)))
        add_item(l, &status, false);
    if (!S_ISDIR(status.st_mode) || depth == DEEPEST)
        return;
    int inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    if (fstatat(inner, "profile.data", &recording, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(recording.st_mode)) {
        add_item(l, &recording, true);
        close(inner);
    } else {
        look(l, inner, depth + 1);
    }
}

/* Takes over the descriptor. */
static void look(struct look *l, int descriptor, unsigned depth) {
    DIR *directory = fdopendir(descriptor);
    if (!directory) {
        close(descriptor);
        return;
    }
    const struct dirent *entry;
    size_t length = l->path.count;
    while ((entry = readdir(directory)) && l->looked_at++ < LOOKED_AT) {
        if (entry->d_name[0] == '.')
            continue;
        l->path.count = length;
        buffer_printf(&l->path, "%s%s", length ? "/" : "", entry->d_name);
        look_at(l, dirfd(directory), entry->d_name, depth);
    }
    l->path.count = length;
    closedir(directory);
}

static int newest_first(const void *a, const void *b) {
    const struct found *x = a, *y = b;
    int order = (x->time < y->time) - (x->time > y->time);
    return order ? order : strcmp(x->name, y->name);
}

void found_look(found_list *list, int directory) {
    struct look l = {.list = list};
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (again >= 0)
        look(&l, again, 0);
    buffer_release(&l.path);
}

void found_sort(found_list *list) {
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, newest_first);
}

void found_release(found_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].name);
    vector_release(list);
}
