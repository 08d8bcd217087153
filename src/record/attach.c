/*
 * Attaching to processes: every thread there is gets its events, and what it makes from then on inherits them. Whoever is made while they are
 * opened may have none, all or some of them, and can't be asked. So all threads are listed before the first event is opened, and afterwards it is
 * looked who is new: where nobody is, nobody was made; else all is opened again while the target is held still.
 */
#include "record/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static const struct note_kind note_unheld = {
    "attached-in-passing",
    "the target made threads or processes while wick attached to it, and could not be held still "
    "for that (ptrace): those of that moment may be missing, or counted twice"};

/* Nanoseconds: of CPU time in which a fork that was under way is over; between looks; and until we don't wait for it any longer. */
enum { FORK_TAKES = 10000000, PAUSE = 2000000, PATIENCE = 1000000000 };

typedef bool thread_visitor(struct recording *, pid_t pid, pid_t tid, struct error *);

/* Threads of a target that were not seen before. */
static bool visit_process(struct recording *r, pid_t pid, bool *found, thread_visitor *visit,
                          struct error *error) {
    DIR *directory = tasks_open(pid, error);
    if (!directory)
        return false;
    bool fine = true;
    for (struct dirent *entry; fine && (entry = readdir(directory));) {
        pid_t tid = atoi(entry->d_name);
        if (tid <= 0 || !ids_add(&r->seen, tid))
            continue;
        *found = true;
        fine = !visit || visit(r, pid, tid, error);
    }
    closedir(directory);
    return fine;
}

/* Once its events are open, any target may end. */
static bool may_end(const struct recording *r, size_t i) {
    bool opened = r->sink.writer && !thread_lives(r->options->pids[i]);
    return opened || record_may_vanish(r->options, i);
}

static bool visit_all(struct recording *r, bool *found, thread_visitor *visit,
                      struct error *error) {
    const struct record_options *options = r->options;
    *found = false;
    for (size_t i = 0; i < options->pid_count; i++)
        if (!visit_process(r, options->pids[i], found, visit, error) &&
            (errno == EMFILE || !may_end(r, i)))
            return false;
    return true;
}

static bool list_visited(struct recording *r, pid_t pid, pid_t tid, struct error *error) {
    (void)pid, (void)error;
    vector_push(&r->threads, tid);
    return true;
}

/* Nobody who was there before the first event was opened can have inherited any. */
static bool open_all(struct recording *r, struct error *error) {
    bool found;
    r->threads.count = 0;
    if (!visit_all(r, &found, list_visited, error))
        return false;
    for (size_t i = 0; i < r->threads.count; i++)
        if (!recording_open_thread(r, r->threads.items[i], error))
            return false;
    return true;
}

static bool open_again(struct recording *r, struct error *error) {
    recording_close(r);
    index_release(&r->seen);
    r->seen = (struct index){0};
    return open_all(r, error);
}

/* ---- who is new ---- */

/* A thread that runs may be in the middle of a fork, however long ago it got a CPU for that the last time. One that sleeps is not. */
static bool may_fork(pid_t tid, uint64_t used_before) {
    pid_t parent;
    return thread_state(tid, &parent) == 'R' && thread_cpu_time(tid) - used_before < FORK_TAKES;
}

/* False: some have not come that far, for want of a CPU. */
static bool wait_for_forks(struct recording *r) {
    uint64_t end = monotonic() + PATIENCE;
    uint64_t *used = memory_zero(r->threads.count, sizeof *used);
    for (size_t i = 0; i < r->threads.count; i++)
        used[i] = thread_cpu_time(r->threads.items[i]);
    size_t over = 0;
    nanosleep(&(struct timespec){.tv_nsec = FORK_TAKES}, NULL);
    while (over < r->threads.count && monotonic() < end)
        if (may_fork(r->threads.items[over], used[over]))
            nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
        else
            over++;
    free(used);
    return over == r->threads.count;
}

/* Whether anybody was made since, or may have been. */
static bool anybody_new(struct recording *r) {
    bool found, sure = wait_for_forks(r);
    recording_find_children(r);
    visit_all(r, &found, NULL, NULL);
    return found || !sure;
}

bool attach_open(struct recording *r, struct error *error) {
    bool refused;
    if (r->few_files || r->own.no_inherit)
        return open_again(r, error);
    if (!open_all(r, error))
        return false;
    if (!anybody_new(r))
        return true;
    bool fine = with_target_held(r, open_again, &refused, error);
    if (refused)
        notes_add(&r->result->notes, &note_unheld, 1, 0, NULL);
    return fine || refused;
}

static bool introduce_visited(struct recording *r, pid_t pid, pid_t tid, struct error *error) {
    if (pid == tid)
        return synthesize_process(&r->sink, pid, error);
    struct task task = {pid, pid, tid, pid};
    return synthesize_task(&r->sink, PERF_RECORD_FORK, task, error) &&
           synthesize_comm(&r->sink, pid, tid, false, error);
}

/* Also, what was forked in the moment of enabling may have inherited an event that was off, after the others were turned on: once more. */
bool attach_introduce(struct recording *r, struct error *error) {
    bool found;
    recording_find_children(r);
    if (!visit_all(r, &found, introduce_visited, error))
        return false;
    if (!r->options->delay)
        recording_enable(r, true);
    return true;
}
