/*
 * Open files that another process has mapped, or wrote about itself: through /proc/PID/map_files, which gives the very file even if it no
 * longer has a name (root only), otherwise by its path in the process's own mount namespace. Such a namespace may be hostile: a path is
 * resolved with that namespace's root as its root, no link in the last component is followed, and only regular files count.
 */
#include "record/keep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int regular(int descriptor) {
    struct stat status;
    if (descriptor >= 0 && (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };

static int open_outside(const char *path, int flags) {
    return regular(open(path, OPEN_FLAGS | flags));
}

static int open_inside(int root, const char *path, int flags) {
    struct open_how how = {.flags = (uint64_t)(OPEN_FLAGS | flags),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    return root < 0 ? -1 : regular((int)syscall(SYS_openat2, root, path, &how, sizeof how));
}

/* Open the very file that is mapped there, whatever became of its name. */
static int open_map_file(pid_t pid, uint64_t start, uint64_t end) {
    char path[100];
    snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)start,
             (unsigned long long)end);
    return open_outside(path, 0);
}

int open_mapped(pid_t pid, uint64_t start, uint64_t end, const char *path) {
    char root_path[64];
    int descriptor = open_map_file(pid, start, end);
    if (descriptor >= 0)
        return descriptor;
    snprintf(root_path, sizeof root_path, "/proc/%d/root", pid);
    int root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    descriptor = open_inside(root, path, 0);
    if (root >= 0)
        close(root);
    return descriptor;
}

bool descriptor_build_id(int descriptor, struct build_id *id) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return object_file_build_id(path, id);
}

/* ---- processes ---- */

uint64_t mount_of(pid_t pid) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

void process_owner(struct kept_process *process) {
    struct buffer status = {0};
    uint64_t number;
    proc_read(process->pid, "status", PROC_STATUS_MOST, &status);
    if (text_to_u64(proc_field(buffer_text(&status), TEXT("Uid"), 1), &number)) {
        process->user = (uid_t)number;
        process->has_user = true;
    }
    if (text_to_u64(proc_field(buffer_text(&status), TEXT("NSpid"), PROC_LAST), &number))
        process->inner_pid = (pid_t)number;
    buffer_release(&status);
}

/* ---- mount namespaces ---- */

/* Drop the oldest: its processes are the most likely to have exited. */
static void mount_drop_first(struct keeper *k) {
    close(k->mounts.items[0].space);
    close(k->mounts.items[0].root);
    memmove(k->mounts.items, k->mounts.items + 1, --k->mounts.count * sizeof *k->mounts.items);
}

/* Open a process's mount namespace, and its root in it. Return false if the process is gone, or is in another namespace. */
static bool mount_open(struct kept_mount *mount, pid_t pid, uint64_t inode) {
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    *mount = (struct kept_mount){.inode = inode, .space = open(path, O_RDONLY | O_CLOEXEC)};
    snprintf(path, sizeof path, "/proc/%d/root", pid);
    mount->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (mount->space >= 0 && mount->root >= 0 && fstat(mount->space, &status) == 0 &&
        status.st_ino == inode)
        return true;
    if (mount->space >= 0)
        close(mount->space);
    if (mount->root >= 0)
        close(mount->root);
    return false;
}

/* The process has exited, but another may live in its namespace: for example the shell of a container, whose records are in a buffer that was
   not read yet. */
static bool mount_open_elsewhere(struct kept_mount *mount, uint64_t inode) {
    DIR *directory = opendir("/proc");
    bool found = false;
    for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
        pid_t pid = atoi(entry->d_name);
        found = pid > 0 && mount_of(pid) == inode && mount_open(mount, pid, inode);
    }
    if (directory)
        closedir(directory);
    return found;
}

/* If the process is gone, this looks at all processes; the number of such searches per turn is limited. */
static int mount_root(struct keeper *k, pid_t pid, uint64_t inode) {
    enum { SEARCHES = 8 };
    struct kept_mount mount;
    for (size_t i = 0; i < k->mounts.count; i++)
        if (k->mounts.items[i].inode == inode)
            return k->mounts.items[i].root;
    if (!mount_open(&mount, pid, inode) &&
        (k->searches++ >= SEARCHES || !mount_open_elsewhere(&mount, inode)))
        return -1;
    if (k->mounts.count == MOUNTS_MOST)
        mount_drop_first(k);
    vector_push(&k->mounts, mount);
    return mount.root;
}

static bool is_foreign(const struct keeper *k, uint64_t mount) {
    return mount && k->own_mount && mount != k->own_mount;
}

void mount_hold(struct keeper *k, const struct kept_process *process) {
    if (is_foreign(k, process->mount))
        mount_root(k, process->pid, process->mount);
}

int folder_open(struct keeper *k, const struct kept_process *process, const char *path) {
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW };
    struct open_how how = {.flags = FLAGS, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    if (!is_foreign(k, process->mount))
        return open(path, FLAGS);
    int root = mount_root(k, process->pid, process->mount);
    return root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* ---- perf maps ---- */

/* Anyone may put a file into /tmp: it must belong to the process's user or to root. */
static bool is_believed(const struct kept_process *process, int descriptor) {
    struct stat status;
    uid_t user = process->has_user ? process->user : geteuid();
    return fstat(descriptor, &status) == 0 && (status.st_uid == user || status.st_uid == 0);
}

void map_open(struct keeper *k, struct kept_process *process) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map",
             process->inner_pid ? process->inner_pid : process->pid);
    int descriptor =
        is_foreign(k, process->mount)
            ? open_inside(mount_root(k, process->pid, process->mount), path, O_NOFOLLOW)
            : open_outside(path, O_NOFOLLOW);
    if (descriptor >= 0 && !is_believed(process, descriptor)) {
        close(descriptor);
        descriptor = -1;
    }
    process->map = descriptor;
}

/* ---- files ---- */

size_t files_allowed(void) {
    struct rlimit limit;
    size_t share = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 8 : 0;
    return share < FILES_MOST ? share : FILES_MOST;
}

static struct text without_deleted(struct text path, bool *deleted) {
    static const struct text suffix = TEXT(" (deleted)");
    *deleted = text_ends(path, suffix);
    return *deleted ? text_upto(path, path.length - suffix.length) : path;
}

static uint64_t identity_hash(const struct file_identity *identity) {
    return hash_mix(hash_mix(identity->mount, identity->path),
                    hash_bytes(identity->id.bytes, identity->id.size));
}

/* One mapping of each file is enough. */
static bool decided_before(const struct keeper *k, const struct file_identity *wanted) {
    uint32_t number;
    for (struct probe p = index_probe(&k->by_file, identity_hash(wanted));
         (number = index_next(&k->by_file, &p));) {
        const struct file_identity *known = &k->decided.items[number - 1];
        if (known->mount == wanted->mount && known->path == wanted->path &&
            memcmp(&known->id, &wanted->id, sizeof known->id) == 0)
            return true;
    }
    return false;
}

static void decide(struct keeper *k, const struct file_identity *identity) {
    vector_push(&k->decided, *identity);
    index_add(&k->by_file, identity_hash(identity), (uint32_t)k->decided.count);
}

static bool same_id(const struct build_id *a, const struct build_id *b) {
    return a->size && a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

/* Whether a path leads to the same file for wick. */
static bool is_found_outside(const char *path, const struct build_id *id) {
    struct build_id there;
    return id->size && object_file_build_id(path, &there) && same_id(&there, id);
}

static bool is_mapped_file(int descriptor, const struct wish *wish) {
    struct build_id there;
    struct stat status;
    if (wish->id.size)
        return descriptor_build_id(descriptor, &there) && same_id(&there, &wish->id);
    return fstat(descriptor, &status) == 0 && status.st_ino == wish->inode;
}

/* Open it by its path, unless that is another file by now or won't be found there later. */
static int open_file(struct keeper *k, const struct kept_process *process, const struct wish *wish,
                     const char *path, bool needed) {
    int by_path = -1, mapped = -1;
    if (is_foreign(k, process->mount))
        by_path = open_inside(mount_root(k, process->pid, process->mount), path, 0);
    else
        by_path = open_outside(path, 0);
    if (needed || by_path < 0 || !is_mapped_file(by_path, wish))
        mapped = open_map_file(wish->pid, wish->start, wish->end);
    if (mapped >= 0 && by_path >= 0)
        close(by_path);
    return mapped >= 0 ? mapped : by_path;
}

void file_want(struct keeper *k, const struct kept_process *process, const struct wish *wish) {
    struct file_identity identity = {.path = wish->path, .id = wish->id};
    bool foreign = is_foreign(k, process->mount), deleted;
    if (foreign)
        identity.mount = process->mount;
    if (decided_before(k, &identity))
        return;
    struct text shown = without_deleted(strings_get(k->paths, wish->path), &deleted);
    char *path = memory_copy(shown.data, shown.length);
    bool needed = (foreign || deleted) && !is_found_outside(path, &wish->id);
    int descriptor = -1;
    bool room =
        k->held < (needed ? 2 * k->held_most : k->held_most); /* needed files have priority */
    if (room && (needed || (!foreign && !deleted)))
        descriptor = open_file(k, process, wish, path, needed);
    if (!needed || descriptor >= 0 || !room) /* otherwise another process may still have it */
        decide(k, &identity);
    struct stat status;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0) {
        struct kept_file file = {.descriptor = descriptor,
                                 .mount = identity.mount,
                                 .device = status.st_dev,
                                 .inode = status.st_ino,
                                 .size = status.st_size,
                                 .id = wish->id,
                                 .path = wish->path,
                                 .is_needed = needed};
        vector_push(&k->files, file);
        k->held++;
    }
    free(path);
}

/* The process mapped the file itself, so it is its own: open it by the mapping, or by the path if that is the same file. */
void dump_want(struct keeper *k, struct kept_process *process, const struct wish *wish) {
    for (size_t i = 0; i < k->dumps.count; i++)
        if (k->dumps.items[i].pid == wish->pid && k->dumps.items[i].path == wish->path)
            return;
    struct text shown = strings_get(k->paths, wish->path);
    char *path = memory_copy(shown.data, shown.length);
    int descriptor = k->dumps.count < DUMPS_MOST ? open_file(k, process, wish, path, false) : -1;
    free(path);
    if (descriptor >= 0 && !is_mapped_file(descriptor, wish)) {
        close(descriptor);
        return;
    }
    struct kept_dump dump = {.pid = wish->pid, .descriptor = descriptor, .path = wish->path};
    process->has_dump |= descriptor >= 0;
    if (descriptor >= 0)
        vector_push(&k->dumps, dump);
}

bool file_was_replaced(const struct keeper *k, const struct kept_file *file) {
    struct text shown = strings_get(k->paths, file->path);
    char *path = memory_copy(shown.data, shown.length);
    struct stat status;
    bool same =
        stat(path, &status) == 0 && status.st_dev == file->device && status.st_ino == file->inode;
    bool replaced = !same && !is_found_outside(path, &file->id);
    free(path);
    return replaced;
}

bool file_is_own(const struct keeper *k, const struct kept_file *file) {
    static const struct text system[] = {
        TEXT("/usr/"),  TEXT("/lib/"), TEXT("/lib32/"), TEXT("/lib64/"), TEXT("/bin/"),
        TEXT("/sbin/"), TEXT("/opt/"), TEXT("/snap/"),  TEXT("/nix/"),   TEXT("/gnu/"),
        TEXT("/proc/"), TEXT("/dev/"), TEXT("//")};
    struct text path = strings_get(k->paths, file->path);
    for (size_t i = 0; i < COUNT_OF(system); i++)
        if (text_starts(path, system[i]))
            return false;
    return !file->mount && path.length && path.data[0] == '/';
}

bool file_is_that(const struct kept_file *file) {
    struct build_id there;
    return !file->id.size ||
           (descriptor_build_id(file->descriptor, &there) && same_id(&there, &file->id));
}

void files_release(struct keeper *k) {
    for (size_t i = 0; i < k->files.count; i++)
        if (k->files.items[i].descriptor >= 0)
            close(k->files.items[i].descriptor);
    for (size_t i = 0; i < k->mounts.count; i++) {
        close(k->mounts.items[i].space);
        close(k->mounts.items[i].root);
    }
    for (size_t i = 0; i < k->dumps.count; i++)
        close(k->dumps.items[i].descriptor);
    vector_release(&k->dumps);
    vector_release(&k->files);
    vector_release(&k->decided);
    vector_release(&k->mounts);
    index_release(&k->by_file);
}
