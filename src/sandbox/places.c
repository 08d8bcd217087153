/*
 * The directories in which files named by a profile may be read: nearly all, because programs are built and installed nearly everywhere.
 * Excluded are directories with secrets and without programs: /etc, /dev, /run, most of /proc, /sys and /var, and hidden files in home
 * directories, except the few hidden directories with programs.
 */
#include "sandbox/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MOST = 4096 }; /* per directory; a rule costs about 3 µs */

/* Entries of the root directory that are not readable, or only in part. */
static const char *const closed[] = {"dev",  "etc", "home", "lost+found", "proc",
                                     "root", "run", "sys",  "var"};

/* Readable parts of the directories in `closed`. */
static const char *const parts[] = {
    "/etc/debuginfod",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/var/cache",
    "/var/lib/dpkg",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/flatpak",
    "/var/lib/kubelet",
    "/var/lib/machines",
    "/var/lib/snapd",
    "/var/lib/lxc",
    "/var/opt",
    "/var/tmp",
    "/var/www",
    "/run/host",
    "/run/current-system",
    "/run/wrappers",
    "/dev/null",
    "/dev/zero",
    "/dev/shm",
};

static const char *const held[] = {
    "/proc/cpuinfo",
    "/proc/kallsyms",
    "/proc/meminfo",
    "/proc/modules",
    "/proc/sys/kernel",
    "/proc/version",
    "/sys/kernel/notes",
    "/sys/module",
    "/sys/devices",
    "/sys/bus/event_source",
    "/sys/kernel/tracing/events",
    "/sys/kernel/debug/tracing/events",
};

/* Hidden directories in a home directory that contain programs. */
static const char *const of_home[] = {
    ".asdf",
    ".bun",
    ".cabal",
    ".cache",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".conda",
    ".debug",
    ".deno",
    ".dotnet",
    ".ghcup",
    ".gradle",
    ".julia",
    ".linuxbrew",
    ".local/bin",
    ".local/lib",
    ".local/share/flatpak",
    ".local/share/containers",
    ".m2",
    ".nix-profile",
    ".npm",
    ".nvm",
    ".opam",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".stack",
    ".steam",
    ".vscode-server",
    ".wine",
};

static bool is_listed(const char *name, const char *const *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

/* Call `each` for the entries of a directory. Return false if these are not all: it can't be read, or has too many. */
static bool entries_each(const struct ruleset *ruleset, const char *path,
                         void (*each)(const struct ruleset *ruleset, int directory,
                                      const char *name, bool is_link)) {
    DIR *directory = opendir(path);
    if (!directory)
        return false;
    struct dirent *entry;
    size_t count = 0;
    for (; count < ENTRIES_MOST && (entry = readdir(directory)); count++)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            each(ruleset, dirfd(directory), entry->d_name, entry->d_type == DT_LNK);
    closedir(directory);
    return count < ENTRIES_MOST;
}

static void allow_of_home(const struct ruleset *ruleset, int home, const char *hidden) {
    for (size_t i = 0; i < COUNT_OF(of_home); i++) {
        size_t length = strcspn(of_home[i], "/");
        if (!hidden || (strncmp(of_home[i], hidden, length) == 0 && !hidden[length]))
            ruleset_allow(ruleset, home, of_home[i], RIGHTS_READ);
    }
}

/* Links are skipped, because their targets have their own rules; except hidden ones that are listed. */
static void allow_in_home(const struct ruleset *ruleset, int directory, const char *name,
                          bool is_link) {
    if (name[0] == '.')
        allow_of_home(ruleset, directory, name);
    else if (!is_link)
        ruleset_allow(ruleset, directory, name, RIGHTS_READ);
}

/* A home directory has few of the listed directories: those that it does not show are not opened. */
static void allow_home(const struct ruleset *ruleset, const char *path) {
    if (entries_each(ruleset, path, allow_in_home))
        return;
    int home = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (home < 0)
        return;
    allow_of_home(ruleset, home, NULL);
    close(home);
}

static void allow_user(const struct ruleset *ruleset, int directory, const char *name,
                       bool is_link) {
    struct buffer path = {0};
    if (is_link)
        return;
    buffer_printf(&path, "/home/%s", name);
    buffer_add_char(&path, 0);
    allow_home(ruleset, path.items);
    buffer_release(&path);
}

static void allow_of_root(const struct ruleset *ruleset, int directory, const char *name,
                          bool is_link) {
    if (!is_link && !is_listed(name, closed, COUNT_OF(closed)))
        ruleset_allow(ruleset, directory, name, RIGHTS_READ);
}

void places_allow(const struct ruleset *ruleset) {
    const char *home = getenv("HOME");
    if (!entries_each(ruleset, "/", allow_of_root))
        ruleset_allow(ruleset, AT_FDCWD, "/usr", RIGHTS_READ);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        ruleset_allow(ruleset, AT_FDCWD, parts[i], RIGHTS_READ);
    for (size_t i = 0; i < COUNT_OF(held); i++)
        ruleset_allow_held(ruleset, held[i]);
    entries_each(ruleset, "/home", allow_user);
    allow_home(ruleset, "/root");
    if (home && home[0] == '/' && home[1] && strcmp(home, "/root") != 0)
        allow_home(ruleset, home);
}
