/*
 * Files that get their name only when they are complete, in a directory that others may also write to.
 *
 * The directory is opened once, and everything happens relative to it: a user who renames a directory on the path, or
 * puts a link in place of the name, changes neither what is written nor what is replaced. The temporary file is
 * created, never opened, so it is ours.
 *
 * Temporaries are registered in a fixed table so that a signal handler can unlink them without taking a lock; more than
 * the table holds at once would only lose that courtesy, not correctness.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/temporary.h"

enum { TEMPORARIES = 64, ATTEMPTS = 100, RANDOM_LETTERS = 6 };

/* ---- trusted users ---- */

/* Under sudo: the id of its caller, from the environment. */
static bool is_sudo_caller(const char *variable, uint32_t id) {
    uint64_t caller;
    const char *text = geteuid() == 0 ? getenv(variable) : NULL;
    return text && text_to_u64(text_of(text), &caller) && caller == id;
}

bool user_is_trusted(uint32_t user) {
    return user == geteuid() || user == 0 || is_sudo_caller("SUDO_UID", user);
}

static bool group_is_trusted(uint32_t group) {
    return group == getegid() || group == 0 || is_sudo_caller("SUDO_GID", group);
}

bool others_write(const struct stat *status) {
    return status->st_mode & S_IWOTH ||
           (status->st_mode & S_IWGRP && !group_is_trusted(status->st_gid));
}

bool directory_is_safe(int directory, const char **why) {
    struct stat status;
    *why = "can't be examined";
    if (fstat(directory, &status) != 0)
        return false;
    *why = "belongs to another user";
    if (!user_is_trusted(status.st_uid))
        return false;
    *why = "other users can write to it";
    return status.st_mode & S_ISVTX || !others_write(&status);
}

/* ---- temporaries, for signal handlers ---- */

struct temporary {
    int directory;
    pid_t
        maker; /* process that made a directory of files, which forked children leave alone; 0: a file */
    char name[];
};
static _Atomic(struct temporary *) temporaries[TEMPORARIES];

/* `temporary` has room for the name: running out of memory after the file was created would leave the file behind. */
static struct temporary *temporary_register(struct temporary *temporary, int directory,
                                            const char *name, pid_t maker) {
    struct temporary *none = NULL;
    temporary->directory = directory;
    temporary->maker = maker;
    memcpy(temporary->name, name, strlen(name) + 1);
    for (size_t i = 0; i < TEMPORARIES; i++, none = NULL)
        if (atomic_compare_exchange_strong(&temporaries[i], &none, temporary))
            break;
    return temporary;
}

void temporary_forget(struct temporary *temporary) {
    for (size_t i = 0; temporary && i < TEMPORARIES; i++) {
        struct temporary *expected = temporary;
        if (atomic_compare_exchange_strong(&temporaries[i], &expected, NULL))
            break;
    }
    free(temporary);
}

void directory_remove(int base, int directory, const char *name) {
    alignas(struct dirent64) char entries[4096];
    ssize_t size;
    if (directory < 0)
        return;
    while ((size = getdents64(directory, entries, sizeof entries)) > 0)
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            unlinkat(directory, entry->d_name, 0);
            at += entry->d_reclen;
        }
    unlinkat(base, name, AT_REMOVEDIR);
    close(directory); /* closing it also releases its lock */
}

int directory_open(int base, const char *name) {
    return openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void out_remove_temporaries(void) {
    for (size_t i = 0; i < TEMPORARIES; i++) {
        struct temporary *temporary = atomic_load(&temporaries[i]);
        if (temporary && temporary->maker && temporary->maker == getpid())
            directory_remove(temporary->directory,
                             directory_open(temporary->directory, temporary->name),
                             temporary->name);
        else if (temporary && !temporary->maker)
            unlinkat(temporary->directory, temporary->name, 0);
    }
}

/* ---- opening ---- */

/* Open the directory of `path`, relative to `directory`; *name is what the file is called in it. */
static int open_parent(int directory, const char *path, const char **name) {
    const char *slash = strrchr(path, '/');
    *name = slash ? slash + 1 : path;
    if (!**name)
        *name = "."; /* "folder/" can't be replaced */
    char *folder = memory_copy(slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    int parent = openat(directory, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    return parent;
}

/*
 * Return true if the name is that of something that can't be replaced: a device, a pipe, a directory. Then there is
 * nothing to publish.
 *
 * If another user could have put it there, above all a link, treat it as a file: it is replaced, and nothing is
 * written to its target. *flags gets the flags that open it safely.
 */
static bool is_special(int directory, const char *name, struct stat *status, int *flags) {
    const char *unused;
    if (fstatat(directory, name, status, AT_SYMLINK_NOFOLLOW) != 0 || S_ISREG(status->st_mode))
        return false;
    bool is_link = S_ISLNK(status->st_mode);
    struct stat folder;
    bool is_safe = directory_is_safe(directory, &unused) && fstat(directory, &folder) == 0 &&
                   (!(folder.st_mode & S_ISVTX) || user_is_trusted(status->st_uid));
    if (!is_safe && (is_link || !user_is_trusted(status->st_uid)) && !S_ISDIR(status->st_mode))
        return false;
    *flags = is_link ? 0 : O_NOFOLLOW;
    return !is_link || (fstatat(directory, name, status, 0) == 0 && !S_ISREG(status->st_mode));
}

/* Return our own descriptor that a path names (/dev/stdout), or -1. Such a path may be a link to a file: replacing
   the link would break it for everyone. */
static int own_descriptor(int directory, const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    uint64_t number;
    if (directory != AT_FDCWD)
        return -1;
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        if (text_starts(text_of(path), text_of(folders[i])) &&
            text_to_u64(text_of(path + strlen(folders[i])), &number) && number < INT32_MAX)
            return (int)number;
    return -1;
}

static int open_special(int directory, const char *name, const struct stat *wanted, int flags) {
    struct stat status;
    int descriptor = openat(directory, name, flags | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0 || (fstat(descriptor, &status) == 0 && status.st_dev == wanted->st_dev &&
                           status.st_ino == wanted->st_ino))
        return descriptor;
    close(descriptor);
    errno = EAGAIN; /* it was replaced a moment ago */
    return -1;
}

static void add_random_letters(struct buffer *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint8_t bytes[RANDOM_LETTERS] = {0};
    (void)!getrandom(bytes, sizeof bytes, 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        buffer_add_char(name, letters[bytes[i] % (sizeof letters - 1)]);
    buffer_add_char(name, 0);
}

int create_unique(int directory, const char *beginning, int mode, bool is_directory, char **name) {
    int descriptor = -1;
    *name = NULL;
    for (int i = 0; i < ATTEMPTS && descriptor < 0; i++) {
        struct buffer tried = {0};
        buffer_add(&tried, text_of(beginning));
        add_random_letters(&tried);
        free(*name);
        *name = tried.items;
        if (!is_directory)
            descriptor =
                openat(directory, *name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        else if (mkdirat(directory, *name, (mode_t)mode) == 0)
            descriptor = openat(directory, *name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (descriptor < 0 && errno != EEXIST)
            break;
    }
    if (descriptor < 0) {
        free(*name);
        *name = NULL;
    }
    return descriptor;
}

int temporary_directory(int base, const char *beginning, int mode, char **name,
                        struct temporary **registered) {
    struct temporary *room = memory_alloc(sizeof *room + strlen(beginning) + RANDOM_LETTERS + 1);
    int directory = create_unique(base, beginning, mode, true, name);
    *registered = NULL;
    if (directory >= 0)
        *registered = temporary_register(room, base, *name, getpid());
    else
        free(room);
    return directory;
}

static void publish_release(struct publish *p) {
    temporary_forget(p->registered);
    if (p->descriptor >= 0)
        close(p->descriptor);
    if (p->directory >= 0)
        close(p->directory);
    free(p->path);
    free(p->temporary);
    *p = (struct publish){.directory = -1, .descriptor = -1};
}

bool publish_check(const char *path, struct error *error) {
    struct stat status;
    const char *name;
    int own = own_descriptor(AT_FDCWD, path);
    if (own >= 0)
        return fcntl(own, F_GETFD) >= 0 || error_errno(error, path);
    int flags, directory = open_parent(AT_FDCWD, path, &name);
    bool fine = directory >= 0;
    if (fine && is_special(directory, name, &status, &flags)) {
        errno = EISDIR;
        fine = !S_ISDIR(status.st_mode);
    } else if (fine) {
        fine = faccessat(directory, ".", W_OK, 0) == 0;
    }
    if (!fine)
        error_errno(error, path);
    if (directory >= 0)
        close(directory);
    return fine;
}

bool publish_open(struct publish *p, int directory, const char *path, enum publish_kind kind,
                  struct error *error) {
    struct stat status;
    struct buffer beginning = {0};
    struct temporary *registered = NULL;
    int flags, own = own_descriptor(directory, path);
    *p = (struct publish){.path = memory_copy(path, strlen(path)), .descriptor = -1};
    p->directory = open_parent(directory, p->path, &p->name);
    if (p->directory >= 0 && own >= 0) {
        p->descriptor = fcntl(own, F_DUPFD_CLOEXEC, 0);
    } else if (p->directory >= 0 && is_special(p->directory, p->name, &status, &flags)) {
        flags |= kind == PUBLISH_RECORDING ? O_RDWR : O_WRONLY;
        p->descriptor = open_special(p->directory, p->name, &status, flags);
    } else if (p->directory >= 0) {
        buffer_printf(&beginning, "%s%s", p->name,
                      kind == PUBLISH_RECORDING ? ".unfinished-" : ".");
        buffer_add_char(&beginning, 0);
        registered = memory_alloc(sizeof *registered + beginning.count + RANDOM_LETTERS);
        p->descriptor =
            create_unique(p->directory, beginning.items, kind == PUBLISH_RECORDING ? 0600 : 0666,
                          false, &p->temporary);
        buffer_release(&beginning);
    }
    if (p->descriptor >= 0 && p->temporary && kind == PUBLISH_OUTPUT)
        p->registered = temporary_register(registered, p->directory, p->temporary, 0);
    else
        free(registered);
    if (p->descriptor >= 0)
        return true;
    error_errno(error, path);
    publish_release(p);
    return false;
}

/* ---- commit and discard ---- */

bool publish_commit(struct publish *p, struct error *error) {
    int descriptor = p->descriptor;
    p->descriptor = -1;
    bool fine = close(descriptor) == 0 &&
                (!p->temporary || renameat(p->directory, p->temporary, p->directory, p->name) == 0);
    if (!fine) {
        error_errno(error, p->path);
        publish_discard(p);
        return false;
    }
    publish_release(p);
    return true;
}

void publish_discard(struct publish *p) {
    if (p->temporary)
        unlinkat(p->directory, p->temporary, 0);
    publish_release(p);
}

bool publish_would_replace(const struct publish *p) {
    struct stat status;
    return p->temporary && fstatat(p->directory, p->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

char *publish_leave(struct publish *p) {
    struct buffer path = {0};
    buffer_add(&path, (struct text){p->path, (size_t)(p->name - p->path)});
    buffer_add(&path, text_of(p->temporary ? p->temporary : p->name));
    buffer_add_char(&path, 0);
    publish_release(p);
    return path.items;
}
