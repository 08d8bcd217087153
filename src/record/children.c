/*
 * The existing descendants of processes to attach to. Later children inherit events, but these don't.
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
        error_set(error, ERROR_INPUT, "process %d: no such process", pid);
    else if (!directory)
        error_set(error, ERROR_INPUT, "process %d: %s", pid, strerror(errno));
    return directory;
}

bool processes_hold(const struct process_list *list, pid_t pid) {
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i] == pid)
            return true;
    return false;
}

bool ids_add(struct index *set, pid_t id) {
    uint64_t hash = hash_mix((uint64_t)id, 1);
    uint32_t known;
    for (struct probe p = index_probe(set, hash); (known = index_next(set, &p));)
        if (known == (uint32_t)id)
            return false;
    index_add(set, hash, (uint32_t)id);
    return true;
}

/* Parse "… (comm) S 1 …": the state and the parent. /proc/TID/status has the same, but takes the kernel four times as long. */
char thread_state(pid_t tid, pid_t *parent) {
    char path[64], text[400], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", tid);
    const char *end = file_read_small(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    return end && sscanf(end, ") %c %d", &state, parent) == 2 ? state : 0;
}

uint64_t thread_cpu_time(pid_t tid) {
    char path[64], text[100];
    snprintf(path, sizeof path, "/proc/%d/schedstat", tid);
    return file_read_small(path, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

bool thread_lives(pid_t tid) {
    pid_t parent;
    char state = thread_state(tid, &parent);
    return state && state != 'Z' && state != 'X';
}

/* Never add wick itself, even below the target. Ids grow, so one pass finds most; children with smaller ids than their parents need another.
   */
void processes_add_children(struct process_list *list) {
    for (bool found = true; found;) {
        DIR *directory = opendir("/proc");
        found = false;
        for (struct dirent *entry; directory && (entry = readdir(directory));) {
            pid_t pid = atoi(entry->d_name), parent;
            if (pid <= 0 || pid == getpid() || processes_hold(list, pid) ||
                !thread_state(pid, &parent) || !processes_hold(list, parent))
                continue;
            vector_push(list, pid);
            found = true;
        }
        if (directory)
            closedir(directory);
    }
}

static void take_targets(struct recording *r) {
    r->own.pids = r->targets.items;
    r->own.pids_found += r->targets.count - r->own.pid_count;
    r->own.pid_count = r->targets.count;
}

void recording_add_child(struct recording *r, pid_t pid) {
    if (!processes_hold(&r->targets, pid))
        vector_push(&r->targets, pid);
    take_targets(r);
}

bool recording_find_children(struct recording *r) {
    size_t before = r->targets.count;
    if (!r->own.no_inherit && before)
        processes_add_children(&r->targets);
    take_targets(r);
    return r->targets.count > before;
}

bool record_may_vanish(const struct record_options *options, size_t i) {
    return i >= options->pid_count - options->pids_found && !thread_lives(options->pids[i]);
}
