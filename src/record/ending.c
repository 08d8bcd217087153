/*
 * End a launched target: the process and everything that it started.
 *
 * While the target runs, wick is a subreaper: it becomes the parent of every process below it that loses its own parent. So no process
 * escapes by leaving its group or session; wick reaps them as they exit. If wick ends the recording, all of them get SIGTERM and, two seconds
 * later, SIGKILL. A target that exits by itself may leave processes running on purpose, so those are left alone. Attached targets are never
 * ended.
 */
#include "record/internal.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 50000000, ASK_AGAIN = 10, PATIENCE = 40, MOST_STEPS = 80 };

/* Add wick's children that are not in `known`, as listed in /proc. */
static void add_own_children(struct process_list *list, const struct process_list *known) {
    DIR *directory = opendir("/proc");
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        pid_t pid = atoi(entry->d_name), parent;
        if (pid > 0 && thread_state(pid, &parent) && parent == getpid() &&
            !processes_hold(known, pid))
            vector_push(list, pid);
    }
    if (directory)
        closedir(directory);
}

static bool has_children(void) {
    siginfo_t ended;
    return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* The wick command has no children yet, so it skips the look at every process of the machine, which takes 10 microseconds each. */
void target_adopt_orphans(struct recording *r) {
    const struct process_list none = {0};
    r->launched = true;
    if (has_children())
        add_own_children(&r->other_children, &none);
    prctl(PR_GET_CHILD_SUBREAPER, &r->was_subreaper);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* Reap processes below the target that lost their parents and have exited. Leave the status of the target itself, and of other children,
   alone. */
void target_reap_orphans(struct recording *r) {
    siginfo_t ended = {0};
    while (r->launched && waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid && ended.si_pid != r->child &&
           !processes_hold(&r->other_children, ended.si_pid)) {
        waitpid(ended.si_pid, NULL, 0);
        ended.si_pid = 0;
    }
}

static void signal_all(const struct process_list *list, int signal) {
    for (size_t i = 0; i < list->count; i++)
        kill(list->items[i], signal);
}

/* Find the target's processes that have not exited, at any depth. */
static void find_rest(const struct recording *r, struct process_list *rest) {
    rest->count = 0;
    add_own_children(rest, &r->other_children);
    processes_add_children(rest);
    size_t kept = 0;
    for (size_t i = 0; i < rest->count; i++)
        if (thread_lives(rest->items[i]))
            rest->items[kept++] = rest->items[i];
    rest->count = kept;
}

static bool reap_target(struct recording *r) {
    if (r->child && waitpid(r->child, &r->result->target_status, WNOHANG) == r->child)
        r->child = 0;
    return !r->child;
}

/* Signal the target first, so that it can end its own children in order. After Ctrl-C it got the signal, too, and has half a second before it
   is asked. */
static void end_all(struct recording *r) {
    struct process_list rest = {0};
    bool asked = false;
    for (int step = 0; step < MOST_STEPS; step++) {
        int cancelled = context_cancelled(r->options->context);
        bool ask = reap_target(r) || step >= ASK_AGAIN;
        target_reap_orphans(r);
        find_rest(r, &rest);
        if (!rest.count && !r->child)
            break;
        if (step >= PATIENCE || cancelled > 1)
            signal_all(&rest, SIGKILL);
        else if (ask && !asked)
            signal_all(&rest, SIGTERM);
        else if (step == 0 && !cancelled)
            kill(r->child, SIGTERM);
        asked |= ask;
        nanosleep(&(struct timespec){.tv_nsec = STEP}, NULL);
    }
    if (!reap_target(r))
        waitpid(r->child, &r->result->target_status, 0);
    vector_release(&rest);
}

void target_wait(struct recording *r) {
    while (!reap_target(r) && !context_cancelled(r->options->context)) {
        target_reap_orphans(r);
        nanosleep(&(struct timespec){.tv_nsec = STEP}, NULL);
    }
}

void target_end(struct recording *r) {
    if (!r->launched)
        return;
    if (r->child_go >= 0) {
        close(r->child_go); /* it never called exec */
        r->child_go = -1;
    }
    bool ended = reap_target(r);
    if (!ended || context_cancelled(r->options->context)) {
        r->result->target_ended = !ended;
        end_all(r);
    }
    target_reap_orphans(r);
    r->child = 0;
    r->launched = false;
    prctl(PR_SET_CHILD_SUBREAPER, r->was_subreaper);
}
