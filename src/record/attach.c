/*
 * Attach to processes and threads: open events on every existing thread; threads and processes that it creates later inherit them.
 *
 * One that is created while events are opened or enabled may have none, some or all of them, and the kernel does not tell which. While an
 * event is disabled, no record reports a fork. So all threads are listed before the first event is opened. When all events are enabled, the
 * list is compared with the threads that exist then: if no thread is new, none was created meanwhile; otherwise everything is repeated while
 * the target is stopped. Existing processes are described before events are enabled, because they may exit at once; records are kept in
 * memory until the file begins.
 */
#include "record/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static const struct note_kind note_unheld = {
    "attached-in-passing",
    "the target created threads or processes while wick attached to it, and could not be stopped "
    "for that (ptrace): some of them may be missing or counted twice"};

/* Nanoseconds: CPU time after which a fork in progress is over; pause between checks; limit for waiting. */
enum { FORK_TAKES = 10000000, PAUSE = 2000000, PATIENCE = 1000000000 };

typedef bool thread_visitor(struct recording *, pid_t pid, pid_t tid, struct error *);

/* Visit the threads of a target that were not seen before. */
static bool visit_process(struct recording *r, pid_t pid, bool *found, thread_visitor *visit,
                          struct error *error) {
    DIR *directory = tasks_open(pid, error);
    r->no_files |= !directory && errno == EMFILE;
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

/* Any target may exit once its events are open. */
static bool may_end(const struct recording *r, size_t i) {
    bool opened = r->descriptors.count && !thread_lives(r->options->pids[i]);
    return opened || record_may_vanish(r->options, i);
}

static bool visit_all(struct recording *r, bool *found, thread_visitor *visit,
                      struct error *error) {
    const struct record_options *options = r->options;
    *found = false;
    for (size_t i = 0; i < options->pid_count; i++)
        if (!visit_process(r, options->pids[i], found, visit, error) &&
            (r->no_files || !may_end(r, i)))
            return false;
    return true;
}

static bool list_visited(struct recording *r, pid_t pid, pid_t tid, struct error *error) {
    (void)pid, (void)error;
    vector_push(&r->threads, tid);
    return true;
}

/* List the threads that were named individually. */
static bool list_threads(struct recording *r, struct error *error) {
    for (size_t i = 0; i < r->options->tid_count; i++) {
        pid_t tid = r->options->tids[i];
        if (!thread_lives(tid))
            return error_set(error, ERROR_INPUT, "thread %d: no such thread", tid);
        if (ids_add(&r->seen, tid))
            vector_push(&r->threads, tid);
    }
    return true;
}

/* A thread's creator is unknown, so check for new threads in all processes of the threads that were named individually. */
static bool look_around(struct recording *r) {
    struct process_list processes = {0};
    bool found = false;
    for (size_t i = 0; i < r->options->tid_count; i++)
        vector_push(&processes, process_of(r->options->tids[i]));
    if (processes.count)
        processes_add_children(&processes);
    for (size_t i = 0; i < processes.count; i++) {
        DIR *directory = tasks_open(processes.items[i], NULL);
        for (struct dirent *entry; directory && (entry = readdir(directory));) {
            pid_t tid = atoi(entry->d_name);
            found |= tid > 0 && ids_add(&r->around, tid);
        }
        if (directory)
            closedir(directory);
    }
    vector_release(&processes);
    return found;
}

/* Threads that existed before the first event was opened can't have inherited one. */
static bool open_all(struct recording *r, struct error *error) {
    bool found;
    r->threads.count = 0;
    if (!visit_all(r, &found, list_visited, error) || !list_threads(r, error))
        return false;
    look_around(r);
    for (size_t i = 0; i < r->threads.count; i++)
        if (!recording_open_thread(r, r->threads.items[i], error))
            return false;
    return true;
}

static bool tell_of_all(struct recording *r, struct error *error) {
    for (size_t i = 0; i < r->options->pid_count; i++)
        if (!synthesize_process(&r->sink, r->options->pids[i], error))
            return false;
    for (size_t i = 0; i < r->options->tid_count; i++)
        if (!synthesize_process(&r->sink, process_of(r->options->tids[i]), error))
            return false;
    return true;
}

static void expect_all(struct recording *r) {
    for (size_t i = 0; i < r->targets.count; i++)
        interpreted_expect(r->sink.interpreted, r->targets.items[i]);
    for (size_t i = 0; i < r->options->tid_count; i++)
        interpreted_expect(r->sink.interpreted, process_of(r->options->tids[i]));
}

static bool begin(struct recording *r, struct error *error) {
    if (!open_all(r, error) || !tell_of_all(r, error))
        return false;
    expect_all(r);
    if (!r->options->delay)
        recording_enable_events(r, true);
    return true;
}

static bool begin_again(struct recording *r, struct error *error) {
    recording_close(r);
    r->sink.early.count = r->sink.kernel_size;
    index_release(&r->seen);
    r->seen = (struct index){0};
    return begin(r, error);
}

/* Describe all targets again, to cover mappings and names that changed between the first description and enabling the events. */
static bool tell_changes(struct recording *r, struct error *error) {
    struct buffer *early = &r->sink.early;
    size_t before = early->count;
    if (!tell_of_all(r, error))
        return false;
    size_t size = early->count - before;
    if (size && size <= before - r->sink.kernel_size &&
        memcmp(early->items + r->sink.kernel_size, early->items + before, size) == 0)
        early->count = before;
    return true;
}

/* ---- new threads ---- */

/* A running thread may be in the middle of a fork, however long ago it last got a CPU. A sleeping thread is not. */
static bool may_fork(pid_t tid, uint64_t used_before) {
    pid_t parent;
    return thread_state(tid, &parent) == 'R' && thread_cpu_time(tid) - used_before < FORK_TAKES;
}

/* Drain the buffers, because the wait may be long and a full buffer loses records. */
static void pause_for(struct recording *r, long nanoseconds) {
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
    recording_drain(r, NULL);
}

/* Return false if some threads did not get enough CPU time for a fork to finish. */
static bool wait_for_forks(struct recording *r) {
    uint64_t end = monotonic() + PATIENCE;
    uint64_t *used = memory_zero(r->threads.count, sizeof *used);
    for (size_t i = 0; i < r->threads.count; i++)
        used[i] = thread_cpu_time(r->threads.items[i]);
    size_t over = 0;
    pause_for(r, FORK_TAKES);
    while (over < r->threads.count && monotonic() < end)
        if (may_fork(r->threads.items[over], used[over]))
            pause_for(r, PAUSE);
        else
            over++;
    free(used);
    return over == r->threads.count;
}

/* Whether a record comes from a thread that was not listed. It may have exited since, or have lost the parent by which it could be found. */
static bool anybody_recorded(struct recording *r) {
    const struct buffer *early = &r->sink.early;
    struct perf_event_header header;
    bool found = false;
    for (size_t at = r->sink.kernel_size; at + sizeof header <= early->count; at += header.size) {
        const uint8_t *record = (const uint8_t *)early->items + at;
        memcpy(&header, record, sizeof header);
        bool sample = header.type == PERF_RECORD_SAMPLE, fork = header.type == PERF_RECORD_FORK;
        if (!sample && (!fork || !load_u64(record + 24))) /* time 0: synthesized */
            continue;
        pid_t pid = (pid_t)load_u32(record + (sample ? r->sink.time_at - 8 : 8));
        pid_t tid = (pid_t)load_u32(record + (sample ? r->sink.time_at - 4 : 16));
        if (tid <= 0 || !ids_add(&r->seen, tid))
            continue;
        found = true;
        if (pid == tid && r->options->pid_count)
            recording_add_child(r, pid);
    }
    return found;
}

/* Whether a thread was created since, or may have been. */
static bool anybody_new(struct recording *r) {
    bool found, sure = wait_for_forks(r);
    found = anybody_recorded(r);
    found |= recording_find_children(r);
    found |= look_around(r);
    bool more;
    visit_all(r, &more, NULL, NULL);
    return found || more || !sure;
}

static bool introduce_visited(struct recording *r, pid_t pid, pid_t tid, struct error *error) {
    if (pid == tid)
        return synthesize_process(&r->sink, pid, error);
    struct task task = {pid, pid, tid, pid};
    return synthesize_task(&r->sink, PERF_RECORD_FORK, task, error) &&
           synthesize_comm(&r->sink, pid, tid, false, error);
}

/* The target can't be stopped, so do what is possible: describe new threads, and enable events again, because a thread forked meanwhile may
   have inherited disabled ones. */
static bool introduce(struct recording *r, struct error *error) {
    bool found;
    notes_add(&r->result->notes, &note_unheld, 1, 0, NULL);
    index_release(&r->seen);
    r->seen = (struct index){0};
    for (size_t i = 0; i < r->threads.count; i++)
        ids_add(&r->seen, r->threads.items[i]);
    if (!visit_all(r, &found, introduce_visited, error))
        return false;
    if (!r->options->delay)
        recording_enable_events(r, true);
    return true;
}

bool attach_open(struct recording *r, struct error *error) {
    bool refused;
    if (r->few_files || r->own.no_inherit)
        return begin_again(r, error);
    if (!begin(r, error))
        return false;
    if (!anybody_new(r))
        return tell_changes(r, error);
    bool fine = with_target_held(r, begin_again, &refused, error);
    return refused ? introduce(r, error) : fine;
}
