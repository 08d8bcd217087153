/*
 * Traced threads by their ids, and what /proc says about them.
 *
 * schedstat has three numbers: nanoseconds on a CPU, nanoseconds ready but without one, and the number of turns on one. The scheduler's tick
 * and every switch update the first: it is exact for a thread that is off the CPU, and up to a tick late for one that runs. Reading it
 * through an open file takes about a microsecond; stat, for the state, takes several.
 */
#include "record/ptrace.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static size_t bucket_of(pid_t id) {
    return (size_t)id % TRACEE_BUCKETS;
}

struct tracee *tracee_find(struct tracees *table, pid_t tid) {
    struct tracee *tracee = table->buckets[bucket_of(tid)];
    while (tracee && tracee->tid != tid)
        tracee = tracee->next;
    return tracee;
}

struct process *process_find(struct tracees *table, pid_t pid) {
    struct process *process = table->processes[bucket_of(pid)];
    while (process && process->pid != pid)
        process = process->next;
    return process;
}

struct process *process_add(struct tracees *table, pid_t pid) {
    struct process *process = memory_zero(1, sizeof *process);
    struct process **bucket = &table->processes[bucket_of(pid)];
    process->pid = pid;
    process->begun = true;
    process->next = *bucket;
    *bucket = process;
    return process;
}

static int open_proc(const struct tracee *tracee, const char *what) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", tracee->process->pid, tracee->tid, what);
    return open(path, O_RDONLY | O_CLOEXEC);
}

struct tracee *tracee_add(struct tracees *table, pid_t tid, struct process *process) {
    struct tracee *tracee = memory_zero(1, sizeof *tracee);
    struct tracee **bucket = &table->buckets[bucket_of(tid)];
    tracee->tid = tid;
    tracee->process = process;
    tracee->place = table->all.count;
    tracee->times_file = open_proc(tracee, "schedstat");
    tracee->state_file = open_proc(tracee, "stat");
    tracee->next = *bucket;
    *bucket = tracee;
    vector_push(&table->all, tracee);
    process->threads++;
    return tracee;
}

void process_remove(struct tracees *table, struct process *process) {
    struct process **at = &table->processes[bucket_of(process->pid)];
    while (*at != process)
        at = &(*at)->next;
    *at = process->next;
    table->targets -= process->is_target;
    vector_release(&process->maps);
    free(process);
}

void tracee_remove(struct tracees *table, struct tracee *tracee) {
    struct tracee **at = &table->buckets[bucket_of(tracee->tid)];
    while (*at != tracee)
        at = &(*at)->next;
    *at = tracee->next;
    struct tracee *last = table->all.items[--table->all.count];
    table->all.items[tracee->place] = last;
    last->place = tracee->place;
    if (--tracee->process->threads == 0)
        process_remove(table, tracee->process);
    if (tracee->times_file >= 0)
        close(tracee->times_file);
    if (tracee->state_file >= 0)
        close(tracee->state_file);
    capture_release(&tracee->wait);
    capture_release(&tracee->ran);
    free(tracee);
}

void tracees_release(struct tracees *table) {
    while (table->all.count)
        tracee_remove(table, table->all.items[table->all.count - 1]);
    vector_release(&table->all);
}

/* ---- what the scheduler says ---- */

/* Read the beginning of a small file, which is kept open or, if there are too few descriptors, opened for each read. */
static bool read_proc(const struct tracee *tracee, int kept, const char *what, char *text,
                      size_t size) {
    int file = kept >= 0 ? kept : open_proc(tracee, what);
    if (file < 0)
        return false;
    ssize_t got = pread(file, text, size - 1, 0);
    if (kept < 0)
        close(file);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

bool tracee_times(struct tracee *tracee, struct times *times) {
    char text[100];
    unsigned long long used, delayed, slices;
    if (!read_proc(tracee, tracee->times_file, "schedstat", text, sizeof text) ||
        sscanf(text, "%llu %llu %llu", &used, &delayed, &slices) != 3)
        return false;
    *times = (struct times){used, delayed, slices};
    return true;
}

/* "pid (comm) S ppid …": the comm may contain anything, even parentheses; the state is the 3rd field and the CPU the 39th. */
char tracee_state(struct tracee *tracee) {
    char text[1000];
    if (!read_proc(tracee, tracee->state_file, "stat", text, sizeof text))
        return 0;
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || !at[2])
        return 0;
    char state = at[2];
    for (int field = 2; field < 39 && at; field++)
        at = strchr(at + 1, ' ');
    if (at)
        tracee->cpu = (uint32_t)strtoul(at, NULL, 10);
    return state;
}
