/*
 * The directory of a run. It is made under a name that hides, locked as long as its maker lives, and takes its own name in one step: by
 * rename, or by exchange with what had the name before. What a killed wick left is swept by the next.
 */
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WORKING ".wick-" /* in the name of a working directory */

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static char *printed(const char *format, ...) PRINTF_LIKE(1, 2);
static char *printed(const char *format, ...) {
    va_list list;
    va_start(list, format);
    char *text = memory_print(NULL, format, list);
    va_end(list);
    return text;
}

/* ---- beginning ---- */

/* A directory itself, not what a link of that name leads to: -1 if it is none. */
static int open_directory(const char *path) {
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Runs hold files and nothing deeper. `descriptor` is what `path` was when it was looked at: whoever may write beside it can have put a link
   to another directory in its place since. Closes it. */
static void remove_opened(int descriptor, const char *path) {
    DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!directory) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    for (struct dirent *entry; (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(directory), entry->d_name, 0);
    rmdir(path);
    closedir(directory); /* and with it the lock */
}

static void remove_directory(const char *path) {
    remove_opened(open_directory(path), path);
}

/* A name is one part of a path, and does not hide. */
static bool name_is_good(const char *name) {
    return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 200;
}

static bool is_there(const char *base, const char *name) {
    char *path = printed("%s/%s", base, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* A second run within a second does not take the first one's place. */
static char *name_of_now(const char *base) {
    time_t now = time(NULL);
    struct tm parts;
    char text[40];
    localtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%d_%H%M%S", &parts);
    char *name = memory_copy(text, strlen(text));
    for (unsigned i = 2; is_there(base, name); i++) {
        free(name);
        name = printed("%s-%u", text, i);
    }
    return name;
}

/* Others' are theirs to sweep, also where we could: in /tmp anybody can make one. */
static bool is_ours(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && status.st_uid == geteuid();
}

/* Working directories are locked by whoever works in them, for as long as it lives: one that can be locked was left by a wick that
   was killed. */
static void sweep(const char *base) {
    DIR *directory = opendir(base);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *mark = strstr(entry->d_name, WORKING);
        if (entry->d_name[0] != '.' || !mark || strlen(mark) != strlen(WORKING) + 6)
            continue;
        char *path = printed("%s/%s", base, entry->d_name);
        int descriptor = open_directory(path);
        if (descriptor >= 0 && is_ours(descriptor) && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            remove_opened(descriptor, path);
        else if (descriptor >= 0)
            close(descriptor);
        free(path);
    }
    if (directory)
        closedir(directory);
}

/* Somebody who sweeps may have come between making and locking it; what was locked is then no longer what has the name. File systems
   without locks do without sweeping, too. */
static bool lock_working(struct run *run) {
    struct stat named, locked;
    run->lock = open(run->working, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (run->lock < 0)
        return false;
    bool is_swept = flock(run->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_swept && fstat(run->lock, &locked) == 0 && stat(run->working, &named) == 0 &&
        named.st_dev == locked.st_dev && named.st_ino == locked.st_ino)
        return true;
    close(run->lock);
    run->lock = -1;
    errno = ENOENT;
    return false;
}

static bool make_working(struct run *run, struct error *error) {
    do {
        free(run->working);
        run->working = printed("%s/.%s" WORKING "XXXXXX", run->base, run->name);
        if (mkdtemp(run->working) && lock_working(run)) {
            mode_t mask = umask(0);
            umask(mask);
            (void)!chmod(run->working, 0777 & ~mask);
            return true;
        }
    } while (errno == ENOENT && access(run->base, F_OK) == 0);
    error_errno(error, run->working);
    free(run->working);
    run->working = NULL;
    return false;
}

bool run_begin(struct run *run, const char *base, const char *name, struct error *error) {
    run->lock = -1;
    if (name && !name_is_good(name))
        return error_set(error, ERROR_USAGE,
                         "'%s' is no name for a run: letters, digits, no '/', no '.' in front",
                         name);
    if (mkdir(base, 0777) != 0 && errno != EEXIST)
        return error_errno(error, base);
    sweep(base);
    run->base = memory_copy(base, strlen(base));
    run->name = name ? memory_copy(name, strlen(name)) : name_of_now(base);
    return make_working(run, error);
}

char *run_path(const struct run *run, const char *file) {
    return printed("%s/%s", run->working, file);
}

void run_wrote(struct run *run, const char *file) {
    vector_push(&run->artifacts, memory_copy(file, strlen(file)));
}

bool run_has_enough(const struct run *run) {
    return run->result->samples >= run->min_samples;
}

bool run_shortcoming(const struct run *run, struct buffer *why) {
    if (!run_has_enough(run)) {
        counted_print(why, "# sample{ is|s are} fewer than ", run->result->samples);
        buffer_add_u64(why, run->min_samples);
    }
    if (load_failed(run->load)) {
        buffer_add(why, why->count ? TEXT("; the load ") : TEXT("the load "));
        load_describe(run->load, why);
    }
    return why->count != 0;
}

void run_last_line(const char *path, char *line, size_t size) {
    struct file file;
    *line = 0;
    if (!file_open_raw(&file, path, NULL, NULL))
        return;
    struct text text = text_trim(file_text(&file));
    size_t before = text_find_last(text, '\n');
    if (before != SIZE_MAX)
        text = text_from(text, before + 1);
    snprintf(line, size, "%.*s", (int)(text.length < size ? text.length : size - 1), text.data);
    file_close(&file);
}

/* The kind stands in run.json as we write it; whoever else wrote one is not asked. */
bool run_can_compare(const struct run *run, struct error *error) {
    struct file stacks = {0}, json = {0};
    char *stacks_path = printed("%s/%s", run->compared, run->folded);
    char *json_path = printed("%s/run.json", run->compared);
    char *kind = printed("\"profile_kind\": \"%s\"", run->kind);
    bool fine = file_open(&json, json_path, run->recording->context, error) &&
                file_open(&stacks, stacks_path, run->recording->context, error);
    if (fine && text_search(file_text(&json), text_of(kind)) == SIZE_MAX)
        fine = error_set(error, ERROR_INPUT, "--compare %s: it is not a run of kind %s",
                         run->compared, run->kind);
    if (json.path)
        file_close(&json);
    if (stacks.path)
        file_close(&stacks);
    free(stacks_path);
    free(json_path);
    free(kind);
    return fine;
}

/* ---- the end ---- */

static bool sync_directory(const char *path, struct error *error) {
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool fine = descriptor >= 0 && (fsync(descriptor) == 0 || errno == EINVAL);
    if (!fine)
        error_errno(error, path);
    if (descriptor >= 0)
        close(descriptor);
    return fine;
}

/* Takes the name; what had it before is then under the working name, and goes. */
static bool take_name(struct run *run, char *path, struct error *error) {
    if (!sync_directory(run->working, error))
        return false;
    if (rename(run->working, path) == 0)
        return sync_directory(run->base, error);
    bool there = errno == ENOTEMPTY || errno == EEXIST;
    if (there &&
        syscall(SYS_renameat2, AT_FDCWD, run->working, AT_FDCWD, path, RENAME_EXCHANGE) == 0) {
        remove_directory(run->working);
        return sync_directory(run->base, error);
    }
    return error_errno(error, path);
}

static bool end_as(struct run *run, const char *suffix, char **path, struct error *error) {
    *path = printed("%s/%s%s", run->base, run->name, suffix);
    if (!take_name(run, *path, error)) {
        free(*path);
        *path = NULL;
        return false;
    }
    free(run->working);
    run->working = NULL;
    return true;
}

bool run_publish(struct run *run, char **path, struct error *error) {
    return end_as(run, "", path, error);
}

bool run_reject(struct run *run, char **path, struct error *error) {
    return end_as(run, ".rejected", path, error);
}

void run_discard(struct run *run) {
    if (run->working)
        remove_directory(run->working);
    free(run->working);
    run->working = NULL;
}

void run_release(struct run *run) {
    run_discard(run);
    if (run->lock > 0)
        close(run->lock);
    for (size_t i = 0; i < run->artifacts.count; i++)
        free(run->artifacts.items[i]);
    vector_release(&run->artifacts);
    notes_release(&run->notes);
    free(run->base);
    free(run->name);
}
