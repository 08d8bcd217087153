/*
 * Handle events of traced threads: they fork, exec, exit, get signals, are stopped and continued. Each event is written to the file, and the
 * thread resumes as if it were not traced.
 */
#include "record/ptrace.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MOST_STOPS = 256
}; /* handled at once: a target that forks endlessly must not keep wick from sampling */

/* ---- system calls ---- */

/* Most system calls continue by themselves after a stop. Some fail with EINTR, which the program would not have seen without wick; like the
   others, they are restarted unless a signal handler is about to run. Their timeout also restarts. Not done on other machines, where the
   original arguments are not available. */
#if defined(__x86_64__)
enum { RESTART_UNLESS_HANDLED = 514 };

static bool gives_up_when_stopped(long number) {
    static const long numbers[] = {SYS_epoll_wait,   SYS_epoll_pwait,   SYS_epoll_pwait2,
                                   SYS_semop,        SYS_semtimedop,    SYS_rt_sigtimedwait,
                                   SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter,
                                   SYS_read,         SYS_recvfrom,      SYS_recvmsg,
                                   SYS_recvmmsg,     SYS_accept,        SYS_accept4,
                                   SYS_sendto,       SYS_sendmsg};
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (numbers[i] == number)
            return true;
    return false;
}

bool restart_system_call(pid_t tid) {
    struct user_regs_struct registers;
    struct iovec vector = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &vector) != 0)
        return false;
    if (vector.iov_len != sizeof registers || (long)registers.orig_rax < 0 ||
        (long)registers.rax != -EINTR || !gives_up_when_stopped((long)registers.orig_rax))
        return true;
    registers.rax = (unsigned long long)-RESTART_UNLESS_HANDLED;
    return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &vector) == 0;
}
#else
bool restart_system_call(pid_t tid) {
    (void)tid;
    return true;
}
#endif

/* ---- what they do ---- */

static bool is_thread_of(pid_t pid, pid_t tid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
    return access(path, F_OK) == 0;
}

static struct process *process_copy(struct tracees *table, const struct process *parent, pid_t pid,
                                    uint64_t now) {
    struct process *process = process_add(table, pid);
    for (size_t i = 0; i < parent->maps.count; i++)
        vector_push(&process->maps, parent->maps.items[i]);
    process->maps_at = now;
    process->begun = parent->begun;
    return process;
}

static struct tracee *add_child(struct sampler *s, struct process *parent, pid_t parent_tid,
                                pid_t pid, pid_t tid) {
    struct process *process =
        pid == parent->pid ? parent : process_copy(&s->tracees, parent, pid, s->r->sink.time);
    struct task task = {pid, parent->pid, tid, parent_tid};
    struct tracee *child = tracee_add(&s->tracees, tid, process);
    child->looked_at = s->r->sink.time;
    if (process->begun && !synthesize_task(&s->r->sink, PERF_RECORD_FORK, task, s->error))
        sampler_fail(s);
    return child;
}

static void on_fork(struct sampler *s, struct tracee *parent, int event) {
    unsigned long id = 0;
    ptrace(PTRACE_GETEVENTMSG, parent->tid, 0, &id);
    pid_t tid = (pid_t)id, pid = parent->process->pid;
    bool thread = event == PTRACE_EVENT_CLONE && is_thread_of(pid, tid);
    bool forks =
        event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE;
    if (forks && tid > 0 && !tracee_find(&s->tracees, tid))
        add_child(s, parent->process, parent->tid, thread ? pid : tid, tid)->fresh = true;
}

/* Add a thread as if it had existed before: nothing is owed for it. */
static void add_known(struct sampler *s, struct process *process, pid_t tid) {
    struct tracee *tracee = tracee_add(&s->tracees, tid, process);
    struct times times;
    if (tracee_times(tracee, &times))
        tracee->charged = tracee->used = times.used;
    tracee->looked_at = monotonic();
    tracee->sampled = true;
}

int seize(struct sampler *s, struct process *process, pid_t tid) {
    long options = PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT;
    if (!s->r->options->no_inherit)
        options |= PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    if (ptrace(PTRACE_SEIZE, tid, 0, options) != 0)
        return errno;
    add_known(s, process, tid);
    return 0;
}

/* The thread that calls exec continues under the id of the first thread, and all others are gone. */
static void replace_threads(struct sampler *s, struct process *process) {
    size_t count = s->tracees.all.count;
    add_known(s, process, process->pid);
    for (size_t i = count; i-- > 0;) {
        struct tracee *tracee = s->tracees.all.items[i];
        if (tracee->process == process) {
            look_last(s, tracee);
            tracee_remove(&s->tracees, tracee);
        }
    }
}

static void on_exec(struct sampler *s, pid_t pid) {
    struct process *process = process_find(&s->tracees, pid);
    unsigned long former = 0;
    if (!process)
        return;
    ptrace(PTRACE_GETEVENTMSG, pid, 0, &former);
    if (former != (unsigned long)pid || process->threads > 1 || !tracee_find(&s->tracees, pid))
        replace_threads(s, process);
    else
        look_last(s, tracee_find(&s->tracees, pid));
    process->begun = true;
    process->maps.count = 0;
    process->maps_hash = 0;
    process->maps_at = 0;
    if (!synthesize_comm(&s->r->sink, pid, pid, true, s->error))
        sampler_fail(s);
    maps_refresh(s, process);
}

/* The thread is about to exit; its memory still exists. */
static void on_exit_soon(struct sampler *s, struct tracee *tracee) {
    look_last(s, tracee);
    if (tracee->process->touched)
        maps_refresh(s, tracee->process);
}

static void on_gone(struct sampler *s, pid_t tid, int status) {
    struct tracee *tracee = tracee_find(&s->tracees, tid);
    if (tid == s->r->child) {
        s->r->result->target_status = status;
        s->r->child = 0;
    }
    if (!tracee)
        return;
    pid_t pid = tracee->process->pid;
    struct task task = {pid, pid, tid, pid};
    if (tracee->process->begun && !synthesize_task(&s->r->sink, PERF_RECORD_EXIT, task, s->error))
        sampler_fail(s);
    tracee_remove(&s->tracees, tracee);
}

/* An interrupt by wick, a thread's start, or a stop by a signal (and its end). */
static void on_stop(struct sampler *s, struct tracee *tracee, int signal) {
    bool ours = tracee->stopping;
    tracee->halted =
        signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
    tracee->stopping = tracee->fresh = false;
    if (tracee->halted) {
        restart_system_call(tracee->tid);
        ptrace(PTRACE_LISTEN, tracee->tid, 0, 0);
    } else if (ours && s->sampling) {
        look_closely(s, tracee);
    } else {
        restart_system_call(tracee->tid);
        ptrace(PTRACE_CONT, tracee->tid, 0, 0);
    }
}

/* A child may appear before its parent's fork is reported: /proc says whose it is. */
static void adopt(struct sampler *s, pid_t tid) {
    pid_t pid = proc_status_id(tid, TEXT("Tgid")), parent = proc_status_id(tid, TEXT("PPid"));
    struct process *process = process_find(&s->tracees, pid);
    struct process *from = process ? process : process_find(&s->tracees, parent);
    if (pid <= 0 || !from)
        return;
    add_child(s, from, process ? process->pid : parent, pid, tid);
}

static void handle(struct sampler *s, pid_t tid, int status) {
    int event = status >> 16, signal = WSTOPSIG(status);
    s->r->sink.time = monotonic();
    if (!WIFSTOPPED(status)) {
        on_gone(s, tid, status);
        return;
    }
    struct tracee *tracee = tracee_find(&s->tracees, tid);
    if (tracee && event != PTRACE_EVENT_STOP)
        tracee->stopping =
            false; /* the kernel drops an interrupt when it stops the thread for another reason */
    if (event == PTRACE_EVENT_EXEC)
        on_exec(s, tid);
    else if (!tracee)
        adopt(s, tid);
    else if (event == PTRACE_EVENT_STOP) {
        on_stop(s, tracee, signal);
        return;
    } else if (event == PTRACE_EVENT_EXIT)
        on_exit_soon(s, tracee);
    else if (event)
        on_fork(s, tracee, event);
    ptrace(PTRACE_CONT, tid, 0, event ? 0 : signal);
}

bool handle_stops(struct sampler *s) {
    int status;
    for (int i = 0; i < MOST_STOPS; i++) {
        pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
        if (tid <= 0)
            return false;
        handle(s, tid, status);
    }
    return true;
}
