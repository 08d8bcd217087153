/* Profiles below the named directories: found by their names, opened beneath. Symbolic links are followed where they stay below, and never listed. */
#include "mcp/tools.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DEEPEST = 8, LOOKED_AT = 100000, LISTED = 200 };

static int open_beneath(int directory, const char *path) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

/* A run's recording, or that of `perf record --threads`; any other directory is no profile. Takes the descriptor. */
static int recording_of(int descriptor) {
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
        found = open_beneath(descriptor, inside[i]);
    close(descriptor);
    if (found >= 0 && (fstat(found, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(found);
        found = -1;
    }
    return found;
}

/* Behind the directory's own path, if `name` begins with it. */
static const char *name_below(const char *directory, const char *name) {
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        length--;
    bool below = strncmp(name, directory, length) == 0 && name[length] == '/';
    return below ? name + length + 1 : name;
}

int profile_open(const struct roots *roots, const char *name) {
    for (size_t i = 0; i < roots->options->directory_count; i++) {
        const char *path = name_below(roots->options->directories[i], name);
        int found = recording_of(open_beneath(roots->descriptors[i], path));
        if (found >= 0)
            return found;
    }
    return -1;
}

/* ---- the list ---- */

struct listed {
    char *name;
    int64_t time, size;
    bool is_run;
};

struct list {
    VECTOR(struct listed) items;
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
    return text_starts(name, TEXT("perf.data")) || text_starts(name, TEXT("callgrind.out"));
}

static void add_item(struct list *list, const struct stat *status, bool is_run) {
    struct listed item = {
        .time = status->st_mtim.tv_sec, .size = status->st_size, .is_run = is_run};
    item.name = memory_copy(list->path.items, list->path.count);
    vector_push(&list->items, item);
}

static void look(struct list *list, int descriptor, unsigned depth);

/* Below `directory`, as list->path has it. */
static void look_at(struct list *list, int directory, const char *name, unsigned depth) {
    struct stat status, recording;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISREG(status.st_mode) && is_profile(text_of(name)))
        add_item(list, &status, false);
    if (!S_ISDIR(status.st_mode) || depth == DEEPEST)
        return;
    int inner = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    if (fstatat(inner, "profile.data", &recording, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(recording.st_mode)) {
        add_item(list, &recording, true);
        close(inner);
    } else {
        look(list, inner, depth + 1);
    }
}

/* Takes the descriptor. */
static void look(struct list *list, int descriptor, unsigned depth) {
    DIR *directory = fdopendir(descriptor);
    if (!directory) {
        close(descriptor);
        return;
    }
    const struct dirent *entry;
    size_t length = list->path.count;
    while ((entry = readdir(directory)) && list->looked_at++ < LOOKED_AT) {
        if (entry->d_name[0] == '.')
            continue;
        list->path.count = length;
        buffer_printf(&list->path, "%s%s", length ? "/" : "", entry->d_name);
        look_at(list, dirfd(directory), entry->d_name, depth);
    }
    list->path.count = length;
    closedir(directory);
}

static int newest_first(const void *a, const void *b) {
    const struct listed *x = a, *y = b;
    int order = (x->time < y->time) - (x->time > y->time);
    return order ? order : strcmp(x->name, y->name);
}

static void add_line(struct buffer *answer, const struct listed *item) {
    struct tm broken;
    char when[32] = "";
    time_t time = (time_t)item->time;
    if (gmtime_r(&time, &broken))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &broken);
    buffer_add_shown(answer, text_of(item->name));
    buffer_printf(answer, "  (%s%lld bytes, %s)\n", item->is_run ? "a run, " : "",
                  (long long)item->size, when);
}

void profiles_list(const struct roots *roots, struct buffer *answer) {
    struct list list = {0};
    for (size_t i = 0; i < roots->options->directory_count; i++) {
        int again = openat(roots->descriptors[i], ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (again >= 0)
            look(&list, again, 0);
    }
    if (list.items.count)
        qsort(list.items.items, list.items.count, sizeof *list.items.items, newest_first);
    for (size_t i = 0; i < list.items.count && i < LISTED; i++)
        add_line(answer, &list.items.items[i]);
    if (list.items.count > LISTED)
        buffer_printf(answer, "… and %zu older ones\n", list.items.count - LISTED);
    if (!list.items.count)
        buffer_add(answer, TEXT("There are no profiles in the directories that wick was given.\n"));
    for (size_t i = 0; i < list.items.count; i++)
        free(list.items.items[i].name);
    vector_release(&list.items);
    buffer_release(&list.path);
}
