#include "run/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "object/object.h"

extern char **environ;

/* ---- the program ---- */

static bool find_program(const char *name, char *path, size_t size) {
    const char *list = getenv("PATH");
    if (strchr(name, '/')) {
        snprintf(path, size, "%s", name);
        return access(path, R_OK) == 0;
    }
    while (list && *list) {
        size_t length = strcspn(list, ":");
        snprintf(path, size, "%.*s/%s", (int)length, list, name);
        if (access(path, X_OK) == 0)
            return true;
        list += length + (list[length] == ':');
    }
    return false;
}

void describe_program(struct buffer *text, const char *name) {
    char path[4200], hex[65];
    struct file file;
    if (!find_program(name, path, sizeof path) || !file_open_raw(&file, path, NULL))
        return;
    sha256_hex(file.data, file.size, hex);
    file_close(&file);
    buffer_printf(text, "%-22s sha256:%s\n", "Program digest:", hex);
    struct build_id id;
    if (object_file_build_id(path, &id)) {
        buffer_printf(text, "%-22s ", "Build id:");
        for (size_t i = 0; i < id.size; i++)
            buffer_printf(text, "%02x", id.bytes[i]);
        buffer_add_char(text, '\n');
    }
    struct buffer compiler = {0};
    if (object_file_compiler(path, &compiler)) {
        buffer_printf(text, "%-22s ", "Compiler:");
        buffer_add_shown(text, buffer_text(&compiler));
        buffer_add_char(text, '\n');
    }
    buffer_release(&compiler);
}

/* ---- git ---- */

/* The first bytes of what git prints; false if it is not there or says no. */
static bool ask_git(char *const *words, char *answer, size_t size) {
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    bool started = posix_spawnp(&pid, "git", &actions, NULL, words, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t length = 0;
    char spare[512];
    for (ssize_t got;
         started && (got = read(ends[0], length < size - 1 ? answer + length : spare,
                                length < size - 1 ? size - 1 - length : sizeof spare)) != 0;) {
        if (got < 0 && errno != EINTR)
            break;
        if (got > 0 && length < size - 1)
            length += (size_t)got;
    }
    answer[length] = 0;
    close(ends[0]);
    if (started)
        waitpid(pid, &status, 0);
    return started && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void describe_git(struct buffer *text) {
    char commit[100], changes[8];
    char *const head[] = {"git", "rev-parse", "HEAD", NULL};
    char *const state[] = {"git", "status", "--porcelain", NULL};
    if (!ask_git(head, commit, sizeof commit))
        return;
    commit[strcspn(commit, "\n")] = 0;
    bool known = ask_git(state, changes, sizeof changes);
    buffer_printf(text, "%-22s %s%s\n", "Git commit:", commit,
                  !known       ? ""
                  : changes[0] ? ", dirty"
                               : ", clean");
}
