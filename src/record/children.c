/*
 * The children that processes to attach to have already, and theirs: those to come are inherited, but these are not.
 */
#include "record/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

DIR *tasks_open(pid_t pid, struct error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *directory = opendir(path);
    if (!directory && errno == ENOENT)
        error_set(error, ERROR_INPUT, "process %d: there is none", pid);
    else if (!directory)
        error_set(error, ERROR_INPUT, "process %d: %s", pid, strerror(errno));
    return directory;
}

static bool holds(const struct process_list *list, pid_t pid) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == pid)
            return true;
    return false;
}

/* Ids grow, so one turn finds most; children of processes with larger ids need another. */
void processes_add_children(struct process_list *list) {
    for (bool found = true; found;) {
        DIR *directory = opendir("/proc");
        found = false;
        for (struct dirent *entry; directory && (entry = readdir(directory));) {
            pid_t pid = atoi(entry->d_name);
            if (pid <= 0 || holds(list, pid) || !holds(list, status_id(pid, "PPid")))
                continue;
            vector_push(list, pid);
            found = true;
        }
        if (directory)
            closedir(directory);
    }
}

bool record_may_vanish(const struct record_options *options, size_t i) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", options->pids[i]);
    return i >= options->pid_count - options->pids_found && access(path, F_OK) != 0;
}
