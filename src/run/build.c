/*
 * A build with debug information before the recording: shell scripts named like the compilers are put in front of PATH; each calls the real
 * compiler with its arguments followed by -g. Nothing else changes: setting variables such as CFLAGS would replace a Makefile's own options.
 */
#include "run/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- stand-ins ---- */

/* gcc, clang++-14, x86_64-linux-gnu-cc: a compiler's name, optionally with a machine before it and a version after it. */
static bool is_compiler(struct text name) {
    static const struct text kinds[] = {TEXT("cc"),      TEXT("c++"),   TEXT("gcc"),
                                        TEXT("g++"),     TEXT("clang"), TEXT("clang++"),
                                        TEXT("gfortran")};
    size_t dash = text_find_last(name, '-');
    if (dash != SIZE_MAX && dash + 1 < name.length && name.data[dash + 1] >= '0' &&
        name.data[dash + 1] <= '9')
        name = text_upto(name, dash);
    dash = text_find_last(name, '-');
    if (dash != SIZE_MAX)
        name = text_from(name, dash + 1);
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (text_equal(name, kinds[i]))
            return true;
    return false;
}

/* Append a word in single quotes, for a shell. */
static void add_quoted(struct buffer *text, const char *word) {
    buffer_add_char(text, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            buffer_add(text, TEXT("'\\'"));
        buffer_add_char(text, *word);
    }
    buffer_add_char(text, '\'');
}

/* The first program of a name in PATH wins, as it does without stand-ins. */
static void add_stand_in(int directory, const char *folder, const char *name) {
    struct buffer path = {0}, script = {0};
    buffer_printf(&path, "%s/%s%c", folder, name, 0);
    if (access(path.items, X_OK) == 0) {
        int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
        buffer_add(&script, TEXT("#!/bin/sh\nexec "));
        add_quoted(&script, path.items);
        buffer_add(&script, TEXT(" \"$@\" -g\n"));
        if (file >= 0) {
            if (write(file, script.items, script.count) != (ssize_t)script.count)
                unlinkat(directory, name, 0);
            close(file);
        }
    }
    buffer_release(&script);
    buffer_release(&path);
}

static void add_stand_ins(int directory, const char *folder) {
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (is_compiler(text_of(entry->d_name)))
            add_stand_in(directory, folder, entry->d_name);
    if (entries)
        closedir(entries);
}

/* Return the path of a new folder with stand-ins for all compilers in PATH; free() it. */
static char *make_stand_ins(struct error *error) {
    const char *temporary = getenv("TMPDIR"), *list = getenv("PATH");
    struct buffer path = {0};
    buffer_printf(&path, "%s/wick-build-XXXXXX%c", temporary && *temporary ? temporary : "/tmp", 0);
    if (!mkdtemp(path.items)) {
        error_errno(error, path.items);
        buffer_release(&path);
        return NULL;
    }
    int directory = open(path.items, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (list && *list && directory >= 0) {
        size_t length = strcspn(list, ":");
        char *folder = memory_copy(list, length);
        if (*folder == '/')
            add_stand_ins(directory, folder);
        free(folder);
        list += length + (list[length] == ':');
    }
    if (directory >= 0)
        close(directory);
    return path.items;
}

static void remove_stand_ins(const char *path) {
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
    rmdir(path);
}

/* ---- the build ---- */

static void build_child(const char *line, const char *path, int log) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    setenv("PATH", path, 1);
    setenv("CARGO_PROFILE_RELEASE_DEBUG", "true", 1);
    execl("/bin/sh", "sh", "-c", line, NULL);
    _exit(127);
}

/* Ctrl-C in a terminal also reaches the build; if anything else cancels wick, end the build here. */
static int wait_for(pid_t child, const struct context *context) {
    int status = 0;
    bool asked = false;
    for (pid_t ended; (ended = waitpid(child, &status, WNOHANG)) != child;) {
        if (ended < 0 && errno != EINTR)
            return -1;
        if (context_cancelled(context) && !asked)
            kill(child, SIGTERM);
        asked |= context_cancelled(context);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return status;
}

bool build_run(const char *line, int log, const struct context *context, struct error *error) {
    char *folder = make_stand_ins(error);
    if (!folder)
        return false;
    const char *list = getenv("PATH");
    struct buffer path = {0};
    buffer_printf(&path, "%s:%s%c", folder, list ? list : "/usr/bin:/bin", 0);
    pid_t child = fork();
    if (child == 0)
        build_child(line, path.items, log);
    int status = child < 0 ? -1 : wait_for(child, context);
    remove_stand_ins(folder);
    buffer_release(&path);
    free(folder);
    if (context_cancelled(context))
        return error_set(error, ERROR_INTERRUPTED, "interrupted while building");
    if (status == -1)
        return error_errno(error, "--build");
    if (WIFSIGNALED(status))
        return error_set(error, ERROR_INPUT, "--build: ended by signal %d", WTERMSIG(status));
    return status == 0 ||
           error_set(error, ERROR_INPUT, "--build: ended with status %d", WEXITSTATUS(status));
}
