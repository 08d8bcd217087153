/*
 * Facts about what was profiled: the program and its inputs, with digests. git.c adds the source tree that wick was called in.
 */
#include "run/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "object/object.h"

bool find_program(const char *name, char *path, size_t size) {
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
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) ||
        !file_open_raw(&file, path, NULL, NULL))
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

/* Find the program of an attached process, if it still runs. */
static bool find_process(int32_t pid, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t length = readlink(link, path, size - 1);
    if (length > 0)
        path[length] = 0;
    return length > 0;
}

void run_find_program(struct run *run) {
    char path[4200];
    bool found = run->command && find_program(run->command[0], path, sizeof path);
    for (size_t i = 0; i < run->recording->pid_count && !run->command && !found; i++)
        found = find_process(run->recording->pids[i], path, sizeof path);
    if (found)
        run->program = memory_copy(path, strlen(path));
}

void facts_of_run(struct facts *facts, const struct run *run) {
    *facts = (struct facts){0};
    if (run->program)
        add_program(facts, run->program);
    for (char *const *word = run->command; word && *word; word++)
        if (word != run->command)
            add_input(facts, *word);
    facts_of_git(facts);
}

void facts_release(struct facts *facts) {
    for (size_t i = 0; i < facts->inputs.count; i++)
        free(facts->inputs.items[i].path);
    vector_release(&facts->inputs);
    buffer_release(&facts->build_id);
    buffer_release(&facts->compiler);
    buffer_release(&facts->commit);
    buffer_release(&facts->branch);
}
