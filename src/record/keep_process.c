/*
 * The processes that a recording has seen, and what is known of each: its mount namespace, its user, its labels.
 */
#include "record/keep.h"

#include <stdio.h>
#include <unistd.h>

/* ---- processes ---- */

static uint64_t hash_pid(pid_t pid) {
    return hash_mix((uint32_t)pid, 3);
}

struct kept_process *kept_process_find(const struct keeper *k, pid_t pid) {
    uint32_t number;
    for (struct probe p = index_probe(&k->by_pid, hash_pid(pid));
         (number = index_next(&k->by_pid, &p));)
        if (k->processes.items[number - 1].pid == pid)
            return &k->processes.items[number - 1];
    return NULL;
}

void kept_processes_drop_ended(struct keeper *k) {
    size_t kept = 0;
    if (k->ended < 64 || k->ended < k->processes.count / 2)
        return;
    index_release(&k->by_pid);
    for (size_t i = 0; i < k->processes.count; i++) {
        if (!k->processes.items[i].pid)
            continue;
        k->processes.items[kept++] = k->processes.items[i];
        index_add(&k->by_pid, hash_pid(k->processes.items[kept - 1].pid), (uint32_t)kept);
    }
    k->processes.count = kept;
    k->ended = 0;
}

struct kept_process *kept_process_get(struct keeper *k, pid_t pid) {
    struct kept_process *known = kept_process_find(k, pid);
    if (known)
        return known;
    vector_push(&k->processes, ((struct kept_process){.pid = pid, .map = -1}));
    index_add(&k->by_pid, hash_pid(pid), (uint32_t)k->processes.count);
    return &k->processes.items[k->processes.count - 1];
}

void kept_process_end(struct keeper *k, struct kept_process *process) {
    runtime_ends(k, process);
    if (process->map >= 0)
        close(process->map);
    *process = (struct kept_process){.map = -1};
    k->ended++;
}

/* ---- labels ---- */

/* Among the lines "number:controllers:path", take the unified hierarchy's, unless it is the root and another one is not. */
static void read_cgroup(pid_t pid, struct buffer *path) {
    char name[64], text[4096];
    snprintf(name, sizeof name, "/proc/%d/cgroup", pid);
    path->count = 0;
    if (!file_read_small(name, text, sizeof text))
        return;
    for (struct text rest = text_of(text); rest.length;) {
        struct text line = text_take_line(&rest);
        size_t first = text_find(line, ':');
        size_t second = first == SIZE_MAX ? first : text_find(text_from(line, first + 1), ':');
        if (second == SIZE_MAX)
            continue;
        struct text here = text_from(line, first + second + 2);
        if (here.length > path->count || (second == 0 && here.length > 1)) {
            path->count = 0;
            buffer_add(path, here);
        }
        if (second == 0 && here.length > 1)
            break;
    }
}

/* Collect its cgroup, the cgroup's container, and the labels that the recording's owner adds; nothing if there are none. */
static void find_labels(const struct keeper *k, pid_t pid, struct text comm,
                        struct buffer *labels) {
    const struct record_options *options = k->options;
    struct buffer cgroup = {0}, container = {0};
    read_cgroup(pid, &cgroup);
    if (cgroup.count) {
        buffer_add(labels, TEXT("cgroup\0"));
        buffer_add(labels, buffer_text(&cgroup));
        buffer_add_char(labels, 0);
    }
    if (container_of_cgroup(buffer_text(&cgroup), &container)) {
        buffer_add(labels, TEXT("container\0"));
        buffer_add(labels, buffer_text(&container));
        buffer_add_char(labels, 0);
    }
    if (options->add_labels)
        options->add_labels(options->label_context, pid, comm, buffer_text(&cgroup), labels);
    buffer_release(&cgroup);
    buffer_release(&container);
}

static bool write_labels(struct keeper *k, const struct wish *wish, struct text labels,
                         struct error *error) {
    uint64_t key[] = {(uint32_t)wish->pid, wish->time};
    return carrier_write(k->sink->writer, CARRIER_LABELS,
                         (struct text){(const char *)key, sizeof key}, labels, error);
}

bool kept_process_look(struct keeper *k, struct kept_process *process, const struct wish *wish,
                       struct error *error) {
    struct buffer labels = {0};
    bool fine = true;
    uint64_t mount = mount_of(process->pid);
    process->looked = true;
    process_owner(process);
    if (mount && mount != process->mount && (process->mount || mount != k->own_mount)) {
        uint64_t before = k->sink->time;
        k->sink->time = wish->time;
        fine = synthesize_namespaces(k->sink, process->pid, error);
        k->sink->time = before;
    }
    if (mount)
        process->mount = mount;
    mount_hold(k, process);
    struct text comm = wish->kind == WISH_PROCESS ? strings_get(k->paths, wish->path) : TEXT("");
    find_labels(k, process->pid, comm, &labels);
    uint32_t known = labels.count ? strings_add(k->labels, buffer_text(&labels)) : 0;
    if (fine && known && known != process->labels) {
        process->labels = known;
        fine = write_labels(k, wish, buffer_text(&labels), error);
    }
    buffer_release(&labels);
    return fine;
}
