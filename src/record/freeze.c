/*
 * Stop a target while events are opened on it.
 *
 * A thread that forks while its events are opened one by one may leave a child with some of them, and the kernel does not tell which. So if a
 * target creates threads or processes during that time, it is stopped: every thread is traced, with the option to trace its children, too,
 * and interrupted. Once all have stopped, none is inside a fork, all existing threads are visible, and what they create later inherits
 * everything.
 *
 * This stops the target once, for some microseconds per thread and CPU. Threads in an uninterruptible wait don't stop in time, but don't fork
 * either. Runnable threads without a CPU may be inside a fork, so they are waited for.
 */
#include "record/ptrace.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Nanoseconds: for threads that wait for something else, for threads without a CPU, and between checks. */
static const uint64_t PATIENCE = 100000000, LONG_PATIENCE = 10000000000;
enum { PAUSE = 200000 };
enum { MOST_TURNS = 50 }; /* traced threads add no unknown ones, so it ends long before */

struct held {
    pid_t tid;
    bool stopped;
    int signal; /* it was about to receive: passed on */
};

struct freezer {
    struct recording *r;
    bool (*then)(struct recording *, struct error *);
    struct error *error;
    VECTOR(struct held) threads;
    bool refused, fine;
};

static struct held *find(struct freezer *f, pid_t tid) {
    for (size_t i = 0; i < f->threads.count; i++)
        if (f->threads.items[i].tid == tid)
            return &f->threads.items[i];
    return NULL;
}

static struct held *hold(struct freezer *f, pid_t tid) {
    struct held *held = find(f, tid);
    if (held)
        return held;
    vector_push(&f->threads, (struct held){.tid = tid});
    return &f->threads.items[f->threads.count - 1];
}

/* Return true if the thread was not known. A thread just created by a traced one is already traced, and stops by itself. */
static bool seize_one(struct freezer *f, pid_t tid) {
    long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    if (find(f, tid))
        return false;
    int why = ptrace(PTRACE_SEIZE, tid, 0, options) == 0 ? 0 : errno;
    if (!why) {
        ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    } else if (!traced_by_us(tid)) {
        f->refused |= why != ESRCH;
        return false;
    }
    hold(f, tid)->stopped = !thread_lives(tid); /* a zombie never stops and need not */
    return true;
}

static bool seize_process(struct freezer *f, pid_t pid) {
    DIR *directory = tasks_open(pid, NULL);
    bool found = false;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        pid_t tid = atoi(entry->d_name);
        found |= tid > 0 && seize_one(f, tid);
    }
    if (directory)
        closedir(directory);
    return found;
}

static bool seize_all(struct freezer *f) {
    bool found = false;
    for (size_t i = 0; i < f->r->options->pid_count; i++)
        found |= seize_process(f, f->r->options->pids[i]);
    for (size_t i = 0; i < f->r->options->tid_count; i++)
        found |= seize_process(f, process_of(f->r->options->tids[i]));
    return recording_find_children(f->r) || found;
}

static void note_stop(struct freezer *f, pid_t tid, int status) {
    struct held *held = hold(f, tid);
    int event = status >> 16;
    held->stopped = true;
    if (!WIFSTOPPED(status))
        held->tid = 0; /* it is gone */
    else if (!event)
        held->signal = WSTOPSIG(status);
}

static bool all_stopped(struct freezer *f) {
    int status;
    for (pid_t tid; (tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG)) > 0;)
        note_stop(f, tid, status);
    for (size_t i = 0; i < f->threads.count; i++)
        if (!f->threads.items[i].stopped)
            return false;
    return true;
}

/* Whether a thread that has not stopped could be creating others. */
static bool any_runs(const struct freezer *f) {
    for (size_t i = 0; i < f->threads.count; i++) {
        const struct held *held = &f->threads.items[i];
        pid_t parent;
        char state = held->stopped ? 0 : thread_state(held->tid, &parent);
        if (state == 'R' || state == 'S')
            return true;
    }
    return false;
}

static void wait_for_stops(struct freezer *f) {
    uint64_t start = monotonic();
    while (!all_stopped(f)) {
        uint64_t waited = monotonic() - start;
        bool runs = waited >= PATIENCE && any_runs(f);
        f->refused |= runs && waited >= LONG_PATIENCE;
        if (f->refused || (waited >= PATIENCE && !runs))
            return;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
    }
}

static void let_go(struct freezer *f) {
    for (size_t i = 0; i < f->threads.count; i++) {
        struct held *held = &f->threads.items[i];
        if (!held->tid || !held->stopped)
            continue; /* the kernel does it when this thread ends */
        if (!held->signal)
            restart_system_call(held->tid);
        ptrace(PTRACE_DETACH, held->tid, 0, (long)held->signal);
    }
}

static void *freezer_thread(void *argument) {
    struct freezer *f = argument;
    bool found = true;
    for (int turn = 0; found && !f->refused && turn < MOST_TURNS; turn++) {
        found = seize_all(f);
        wait_for_stops(f);
    }
    if (!f->refused)
        f->fine = f->then(f->r, f->error);
    let_go(f);
    return NULL;
}

/* Don't stop processes that wait for wick or show its output. */
static bool is_above_us(const struct recording *r) {
    for (pid_t pid = getppid(); pid > 0; pid = proc_status_id(pid, TEXT("PPid"))) {
        for (size_t i = 0; i < r->options->pid_count; i++)
            if (r->options->pids[i] == pid)
                return true;
        for (size_t i = 0; i < r->options->tid_count; i++)
            if (process_of(r->options->tids[i]) == pid)
                return true;
    }
    return false;
}

bool with_target_held(struct recording *r, bool (*then)(struct recording *, struct error *),
                      bool *refused, struct error *error) {
    struct freezer f = {.r = r, .then = then, .error = error};
    pthread_t thread;
    f.refused = is_above_us(r) || pthread_create(&thread, NULL, freezer_thread, &f) != 0;
    if (!f.refused)
        pthread_join(thread, NULL);
    vector_release(&f.threads);
    *refused = f.refused;
    return f.fine;
}
