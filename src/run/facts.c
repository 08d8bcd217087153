/*
 * Facts about what was profiled: the program and its inputs by their digests, and the git tree that wick was called in. Git is asked, as
 * nobody else knows; where it is not there, nothing is said.
 */
#include "run/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
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

static bool add_input(struct facts *facts, const char *path) {
    struct input_file input = {0};
    struct stat status;
    struct file file;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || !file_open_raw(&file, path, NULL))
        return false;
    sha256_hex(file.data, file.size, input.digest);
    file_close(&file);
    input.path = memory_copy(path, strlen(path));
    vector_push(&facts->inputs, input);
    return true;
}

static void add_program(struct facts *facts, const char *path) {
    struct build_id id;
    if (!add_input(facts, path))
        return;
    if (object_file_build_id(path, &id))
        for (size_t i = 0; i < id.size; i++)
            buffer_printf(&facts->build_id, "%02x", id.bytes[i]);
    object_file_compiler(path, &facts->compiler);
}

/* Of a process that was attached to, if it is still there. */
static void add_process(struct facts *facts, int32_t pid) {
    char link[64], path[4200];
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = 0;
    add_program(facts, path);
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

/* Runs that are kept in the tree do not make it dirty. Git knows no path outside of its tree, and then says no. */
static bool ask_changes(const char *runs, char *changes, size_t size) {
    struct buffer without = {0};
    buffer_printf(&without, ":(exclude)%s", runs);
    buffer_add_char(&without, 0);
    char *const inside[] = {"git", "status", "--porcelain", "--", ":/", without.items, NULL};
    char *const all[] = {"git", "status", "--porcelain", NULL};
    bool known = ask_git(inside, changes, size) || ask_git(all, changes, size);
    buffer_release(&without);
    return known;
}

static void ask_tree(struct facts *facts, const char *runs) {
    char changes[8];
    char *const head[] = {"git", "rev-parse", "HEAD", NULL};
    if (!ask_git(head, facts->commit, sizeof facts->commit)) {
        facts->commit[0] = 0;
        return;
    }
    facts->commit[strcspn(facts->commit, "\n")] = 0;
    facts->tree_known = ask_changes(runs, changes, sizeof changes);
    facts->tree_dirty = facts->tree_known && changes[0];
}

/* ---- */

void facts_of_run(struct facts *facts, const struct run *run) {
    char path[4200];
    *facts = (struct facts){0};
    if (run->command && find_program(run->command[0], path, sizeof path))
        add_program(facts, path);
    for (char *const *word = run->command; word && *word; word++)
        if (word != run->command)
            add_input(facts, *word);
    for (size_t i = 0; i < run->recording->pid_count && !facts->inputs.count; i++)
        add_process(facts, run->recording->pids[i]);
    ask_tree(facts, run->base);
}

void facts_release(struct facts *facts) {
    for (size_t i = 0; i < facts->inputs.count; i++)
        free(facts->inputs.items[i].path);
    vector_release(&facts->inputs);
    buffer_release(&facts->build_id);
    buffer_release(&facts->compiler);
}
