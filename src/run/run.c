/*
 * The directory of a run. It is created under a hidden name, stays locked while its creator lives, and takes its final name in one step: by
 * rename, or by exchange with the directory that has the name. The next run removes what a killed wick left behind.
 *
 * wick may run as root in another user's directory. So both directories are opened once, everything happens relative to them, no link is
 * followed, and a directory in which other users could replace entries is refused.
 */
#include "run/internal.h"

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

#include "base/temporary.h"

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

/* ---- directories ---- */

/* Never remove other users' directories, even if permitted: anyone can create one in /tmp. */
static bool is_ours(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 && status.st_uid == geteuid();
}

static bool is_the_same(int descriptor, int base, const char *name) {
    struct stat opened, named;
    return fstat(descriptor, &opened) == 0 &&
           fstatat(base, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/* Follow a link only if no other user can have put it there: it is in a safe directory and belongs to a trusted user. */
static bool link_is_safe(const char *path) {
    struct stat link;
    const char *unused, *slash = strrchr(path, '/');
    char *folder = memory_copy(slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    int parent = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool safe = parent >= 0 && directory_is_safe(parent, &unused) &&
                fstatat(parent, slash ? slash + 1 : path, &link, AT_SYMLINK_NOFOLLOW) == 0 &&
                S_ISLNK(link.st_mode) && user_is_trusted(link.st_uid);
    if (parent >= 0)
        close(parent);
    free(folder);
    return safe;
}

/* Open the directory of all runs; create it if needed. Refuse it if other users can rename its entries. */
static int open_base(const char *path, struct error *error) {
    const char *why;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        error_set(error, ERROR_INPUT, "%s: %s; -o DIR names another directory for runs", path,
                  strerror(errno));
        return -1;
    }
    int base =
        open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (link_is_safe(path) ? 0 : O_NOFOLLOW));
    struct stat status;
    if (base < 0) {
        if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode))
            error_set(
                error, ERROR_INPUT,
                "%s: a link that another user may have created; choose another directory with -o",
                path);
        else
            error_errno(error, path);
    } else if (!directory_is_safe(base, &why)) {
        error_set(error, ERROR_INPUT, "%s: %s; choose another directory with -o", path, why);
        close(base);
        base = -1;
    }
    return base;
}

/* ---- beginning ---- */

/* A name is a single path component and not hidden. */
static bool name_is_good(const char *name) {
    return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 200;
}

/* A second run within the same second gets another name. */
static char *name_of_now(int base) {
    time_t now = time(NULL);
    struct tm parts;
    char text[40];
    localtime_r(&now, &parts);
    strftime(text, sizeof text, "%Y-%m-%d_%H%M%S", &parts);
    char *name = memory_copy(text, strlen(text));
    for (unsigned i = 2; faccessat(base, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0; i++) {
        free(name);
        name = printed("%s-%u", text, i);
    }
    return name;
}

/* A process holds a lock on its working directory while it lives, so a directory that can be locked was left by a killed wick. */
static void sweep(int base) {
    DIR *directory = fdopendir(openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        const char *mark = strstr(entry->d_name, WORKING);
        if (entry->d_name[0] != '.' || !mark || strlen(mark) != strlen(WORKING) + 6)
            continue;
        int descriptor = directory_open(base, entry->d_name);
        if (descriptor >= 0 && is_ours(descriptor) && flock(descriptor, LOCK_EX | LOCK_NB) == 0)
            directory_remove(base, descriptor, entry->d_name);
        else if (descriptor >= 0)
            close(descriptor);
    }
    if (directory)
        closedir(directory);
}

/* Another wick may have removed the directory between its creation and the lock; then the locked directory no longer has the name. File
   systems without locks are not swept either. */
static bool lock_working(struct run *run) {
    bool is_swept = flock(run->directory, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return !is_swept && is_ours(run->directory) &&
           is_the_same(run->directory, run->base_directory, run->working);
}

/* Make it private; publishing restores the mode that mkdir() gave it. */
static void make_private(struct run *run) {
    struct stat status;
    run->mode = fstat(run->directory, &status) == 0 ? status.st_mode & 0777 : 0700;
    (void)!fchmod(run->directory, 0700);
}

static bool make_working(struct run *run, struct error *error) {
    char *beginning = printed(".%s" WORKING, run->name);
    bool locked = false;
    do {
        free(run->working);
        temporary_forget(run->registered);
        if (run->directory >= 0)
            close(run->directory);
        run->directory = temporary_directory(run->base_directory, beginning, 0777, &run->working,
                                             &run->registered);
        locked = run->directory >= 0 && lock_working(run);
    } while (run->directory >= 0 && !locked);
    free(beginning);
    if (locked)
        make_private(run);
    return locked || error_errno(error, run->base);
}

static bool is_empty(int descriptor) {
    DIR *directory = fdopendir(dup(descriptor));
    size_t count = 0;
    while (directory && count < 3 && readdir(directory))
        count++;
    if (directory)
        closedir(directory);
    return directory && count <= 2; /* "." and ".." */
}

/* Publishing removes what has the name, so it must be one of our runs, or empty. */
static bool may_take(const struct run *run, const char *name, struct error *error) {
    struct stat status;
    if (fstatat(run->base_directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode))
        return true; /* rename fails if it is not a directory */
    if (!user_is_trusted(status.st_uid))
        return error_set(error, ERROR_INPUT, "%s/%s: belongs to another user", run->base, name);
    int directory = directory_open(run->base_directory, name);
    bool is_run =
        directory >= 0 && (faccessat(directory, "run.json", F_OK, 0) == 0 || is_empty(directory));
    if (directory >= 0)
        close(directory);
    return is_run ||
           error_set(error, ERROR_INPUT, "%s/%s: exists and is not a run", run->base, name);
}

bool run_begin(struct run *run, const char *base, const char *name, struct error *error) {
    run->directory = -1;
    run->base_directory = -1;
    if (name && !name_is_good(name))
        return error_set(error, ERROR_USAGE,
                         "'%s' can't be the name of a run: use letters and digits, without '/' and "
                         "without '.' at the start",
                         name);
    run->base_directory = open_base(base, error);
    if (run->base_directory < 0)
        return false;
    sweep(run->base_directory);
    run->base = memory_copy(base, strlen(base));
    run->name = name ? memory_copy(name, strlen(name)) : name_of_now(run->base_directory);
    return may_take(run, run->name, error) && make_working(run, error);
}

/* ---- files ---- */

char *run_reading_path(const struct run *run, const char *file) {
    return printed("/proc/self/fd/%d/%s", run->directory, file);
}

int run_create(struct run *run, const char *file, struct error *error) {
    int descriptor =
        openat(run->directory, file, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0)
        error_errno(error, file);
    else
        run_wrote(run, file);
    return descriptor;
}

void run_wrote(struct run *run, const char *file) {
    vector_push(&run->artifacts, memory_copy(file, strlen(file)));
}

bool run_has_enough(const struct run *run) {
    return run->result->samples >= run->min_samples;
}

bool run_shortcoming(const struct run *run, struct buffer *why) {
    if (!run_has_enough(run))
        run_add_too_few(run, why);
    if (load_failed(run->load)) {
        buffer_add(why, why->count ? TEXT("; the load ") : TEXT("the load "));
        load_describe(run->load, why);
    }
    return why->count != 0;
}

void run_last_line(int log, char *line, size_t size) {
    char end[1000];
    struct stat status;
    off_t at = fstat(log, &status) == 0 && status.st_size > (off_t)sizeof end
                   ? status.st_size - (off_t)sizeof end
                   : 0;
    ssize_t got = pread(log, end, sizeof end, at);
    struct text text = text_trim((struct text){end, got > 0 ? (size_t)got : 0});
    size_t before = text_find_last(text, '\n');
    if (before != SIZE_MAX)
        text = text_from(text, before + 1);
    snprintf(line, size, "%.*s", TEXT_ARGS(text));
}

/* Search run.json for the kind as wick writes it; files written by other programs don't count. */
bool run_can_compare(const struct run *run, struct error *error) {
    struct file stacks = {0}, json = {0};
    char *stacks_path = printed("%s/%s", run->compared, run->folded);
    char *json_path = printed("%s/run.json", run->compared);
    char *kind = printed("\"profile_kind\": \"%s\"", run->kind);
    struct error why;
    bool fine = (file_open(&json, json_path, run->recording->context, &why) ||
                 error_set(error, ERROR_INPUT, "--compare %s: not a run of wick profile (%s)",
                           run->compared, why.message)) &&
                file_open(&stacks, stacks_path, run->recording->context, error);
    if (fine && text_search(file_text(&json), text_of(kind)) == SIZE_MAX)
        fine = error_set(error, ERROR_INPUT, "--compare %s: not a run of kind %s", run->compared,
                         run->kind);
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

static bool sync_directory(int directory, const char *path, struct error *error) {
    return fsync(directory) == 0 || errno == EINVAL || error_errno(error, path);
}

/* Take the name; what had it before then has the working name, and is removed. */
static bool take_name(struct run *run, const char *name, const char *path, struct error *error) {
    int base = run->base_directory;
    if (!is_the_same(run->directory, base, run->working))
        return error_set(error, ERROR_INPUT, "%s: the run's directory was renamed meanwhile",
                         run->base);
    if (!may_take(run, name, error) || !sync_directory(run->directory, path, error))
        return false;
    (void)!fchmod(run->directory, run->mode);
    if (renameat(base, run->working, base, name) == 0)
        return sync_directory(base, run->base, error);
    bool there = errno == ENOTEMPTY || errno == EEXIST;
    if (there && syscall(SYS_renameat2, base, run->working, base, name, RENAME_EXCHANGE) == 0) {
        directory_remove(base, directory_open(base, run->working), run->working);
        return sync_directory(base, run->base, error);
    }
    return error_errno(error, path);
}

static void forget_working(struct run *run) {
    temporary_forget(run->registered);
    free(run->working);
    run->registered = NULL;
    run->working = NULL;
}

static bool end_as(struct run *run, const char *suffix, char **path, struct error *error) {
    char *name = printed("%s%s", run->name, suffix);
    *path = printed("%s/%s", run->base, name);
    bool fine = take_name(run, name, *path, error);
    free(name);
    if (!fine) {
        free(*path);
        *path = NULL;
        return false;
    }
    forget_working(run);
    return true;
}

bool run_publish(struct run *run, char **path, struct error *error) {
    return end_as(run, "", path, error);
}

bool run_reject(struct run *run, char **path, struct error *error) {
    return end_as(run, ".rejected", path, error);
}

void run_discard(struct run *run) {
    if (run->working && is_the_same(run->directory, run->base_directory, run->working))
        directory_remove(run->base_directory, directory_open(run->base_directory, run->working),
                         run->working);
    forget_working(run);
}

void run_release(struct run *run) {
    run_discard(run);
    if (run->base && run->directory >= 0)
        close(run->directory);
    if (run->base)
        close(run->base_directory);
    for (size_t i = 0; i < run->artifacts.count; i++)
        free(run->artifacts.items[i]);
    vector_release(&run->artifacts);
    notes_release(&run->notes);
    buffer_release(&run->answer);
    buffer_release(&run->told);
    free(run->base);
    free(run->name);
    free(run->program);
}
