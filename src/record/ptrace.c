/*
 * The ptrace sampler, used if perf events are refused. At each tick, every running thread of the target is stopped for some microseconds, its
 * registers and the top of its stack are copied, and it is resumed. The file is still a perf.data; its event, ptrace-clock, counts
 * nanoseconds of CPU time in user code and the kernel together, attributed to user code.
 *
 * It sees less than perf events do: no kernel stacks, only processes, only time; and a tick is late if there are many threads (the weight of
 * a sample accounts for that).
 */
#include "record/ptrace.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <time.h>
#include <unistd.h>

static const struct note_kind note_ptrace = {
    "ptrace", "recorded with ptrace, which stops threads to read their stacks: no kernel stacks"};
static const struct note_kind note_refused = {
    "perf-refused", "perf events are not available (`wick doctor` says why): recorded with ptrace, "
                    "which stops threads to read their stacks: no kernel stacks"};
static const struct note_kind note_waits = {
    "waits-refused", "without privileges perf events give no stacks of waits: recorded with "
                     "ptrace, which stops threads to read their stacks: no kernel stacks"};
static const struct note_kind note_late = {
    "late-looks",
    "# tick{|s} of the sampler came too late and {was|were} skipped: a lower -F avoids it"};
static const struct note_kind note_narrow = {
    "narrow-programs",
    "# sample{ is of a 32-bit program|s are of 32-bit programs}: only the address, no stack"};

static const struct note_kind note_interpreter = {
    "interpreter-ptrace",
    "BPF is not permitted, and without it perf events do not show an interpreter's functions: "
    "recorded with ptrace, which stops threads to read their stacks: no kernel stacks"};

enum { ROUND = 100000000, LINGER = 300000000 };

bool sampler_fail(struct sampler *s) {
    s->failed = true;
    return false;
}

/* ---- what it can do ---- */

static bool is_clock(const struct asked_event *asked) {
    const struct perf_event_attr *attr = &asked->attr;
    return asked->by_default || asked->role != ROLE_SAMPLE ||
           (attr->type == PERF_TYPE_SOFTWARE &&
            (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK));
}

bool ptrace_can(const struct recording *r, struct error *error) {
    const struct record_options *options = r->options;
    const char *why = NULL;
    for (size_t i = 0; i < r->events.count; i++)
        if (!is_clock(&r->events.items[i]))
            why = "it samples only CPU time and waits";
    if (options->system_wide || options->cpu_count || options->cgroup)
        why = "it samples processes, not CPUs";
    if (options->kernel_only)
        why = "it sees no kernel stacks";
    if (options->off_cpu == OFF_CPU_BPF)
        why = "it does not use BPF";
    if (options->wakers)
        why = "it does not see wakers";
    if (options->call_graph == CALL_GRAPH_LBR)
        why = "it has no branch records";
    if (options->period)
        why = "it has a frequency, but no count";
    if (!USER_REGISTERS)
        why = "this machine's registers are not known";
    return !why || error_set(error, ERROR_DENIED, "the ptrace sampler can't do this: %s", why);
}

/* ---- events ---- */

static void add_event(struct recording *r, uint64_t config, const char *name, uint64_t id) {
    const struct record_options *options = r->options;
    struct asked_event asked = {.name = memory_copy(name, strlen(name))};
    struct perf_event_attr *attr = &asked.attr;
    attr->type = PERF_TYPE_SOFTWARE;
    attr->size = sizeof *attr;
    attr->config = config;
    attr->freq = 1;
    attr->sample_freq = options->frequency;
    attr->sample_type =
        PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
    if (options->off_cpu)
        attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
    if (options->call_graph != CALL_GRAPH_NONE)
        attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
    if (options->call_graph == CALL_GRAPH_DWARF) {
        attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr->sample_regs_user = USER_REGISTERS;
        attr->sample_stack_user = options->stack_size;
        attr->mmap_data = 1;
    }
    if (options->call_graph == CALL_GRAPH_FP && LINK_REGISTER) {
        attr->sample_type |= PERF_SAMPLE_REGS_USER;
        attr->sample_regs_user = LINK_REGISTER;
    }
    attr->exclude_kernel = attr->exclude_hv = 1;
    attr->inherit = !options->no_inherit;
    attr->sample_id_all = attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC;
    vector_push(&asked.ids, id);
    vector_push(&r->events, asked);
}

static void choose_events(struct sampler *s) {
    struct recording *r = s->r;
    recording_drop_events(r);
    s->off_cpu = r->options->off_cpu != OFF_CPU_NOT;
    s->on_cpu = !s->off_cpu || r->options->wall;
    if (s->on_cpu)
        add_event(r, PERF_COUNT_SW_TASK_CLOCK, "ptrace-clock", s->on_id = 1);
    for (uint64_t i = 0; s->off_cpu && i < OFF_CPU_STATES; i++)
        add_event(r, PERF_COUNT_SW_BPF_OUTPUT, off_cpu_names[i], s->off_ids[i] = 2 + i);
}

/* ---- the target ---- */

static bool seize_failed(pid_t id, int why, struct error *error) {
    return error_set(error, why == EPERM || why == ENOSYS ? ERROR_DENIED : ERROR_INPUT,
                     "process %d can't be traced: %s%s", id, strerror(why),
                     why == EPERM ? "; it is another user's, already traced, or ptrace is not "
                                    "allowed (kernel.yama.ptrace_scope)"
                                  : "");
}

static struct process *target_process(struct sampler *s, pid_t pid) {
    struct process *process = process_find(&s->tracees, pid);
    if (!process)
        process = process_add(&s->tracees, pid);
    if (!process->is_target)
        s->tracees.targets++;
    process->is_target = true;
    return process;
}

bool traced_by_us(pid_t tid) {
    pid_t tracer = proc_status_id(tid, TEXT("TracerPid"));
    return tracer == gettid() || !thread_lives(tid);
}

/* A thread started meanwhile is traced if its creator is; so repeat until no thread is new. */
static bool attach_threads(struct sampler *s, struct process *process, bool *found) {
    DIR *directory = tasks_open(process->pid, s->error);
    if (!directory)
        return false;
    bool fine = true;
    *found = false;
    for (struct dirent *entry; fine && (entry = readdir(directory));) {
        pid_t tid = atoi(entry->d_name);
        if (tid <= 0 || tracee_find(&s->tracees, tid))
            continue;
        int why = seize(s, process, tid);
        if (!why)
            *found = true;
        else if (why != ESRCH && !traced_by_us(tid))
            fine = seize_failed(process->pid, why, s->error);
    }
    closedir(directory);
    return fine;
}

static bool attach_process(struct sampler *s, pid_t pid) {
    struct process *process = target_process(s, pid);
    bool found = true;
    while (found) {
        if (!attach_threads(s, process, &found)) {
            if (!process->threads)
                process_remove(&s->tracees, process);
            return false;
        }
        handle_stops(s);
        process = process_find(&s->tracees, pid);
        if (!process)
            return error_set(s->error, ERROR_INPUT, "process %d ended", pid);
    }
    if (!process->threads) { /* a zombie; or traced from its start, and not reported yet */
        process_remove(&s->tracees, process);
        return thread_lives(pid) || error_set(s->error, ERROR_INPUT, "process %d has ended", pid);
    }
    s->r->sink.time = 0;
    return synthesize_threads(&s->r->sink, pid, s->error) && maps_refresh(s, process);
}

static bool attach_thread(struct sampler *s, pid_t tid) {
    pid_t pid = proc_status_id(tid, TEXT("Tgid"));
    if (!pid)
        return error_set(s->error, ERROR_INPUT, "thread %d: %s", tid, strerror(ESRCH));
    struct process *process = target_process(s, pid);
    int why = seize(s, process, tid);
    if (why) {
        seize_failed(tid, why, s->error);
        if (!process->threads)
            process_remove(&s->tracees, process);
        return false;
    }
    s->r->sink.time = 0;
    return synthesize_threads(&s->r->sink, pid, s->error) && maps_refresh(s, process);
}

static bool has_times(struct error *error) {
    static const char path[] = "/proc/self/schedstat";
    return access(path, R_OK) == 0 ||
           error_set(error, ERROR_DENIED, "the ptrace sampler needs %s: %s", path, strerror(errno));
}

/* A child created before its parent was traced is not traced either, so repeat until there is none. */
static bool attach_family(struct sampler *s) {
    const struct record_options *options = s->r->options;
    do {
        for (; s->attached < options->pid_count; s->attached++)
            if (!process_find(&s->tracees, options->pids[s->attached]) &&
                !attach_process(s, options->pids[s->attached]) &&
                !record_may_vanish(options, s->attached))
                return false;
    } while (recording_find_children(s->r));
    return true;
}

static bool attach(struct sampler *s) {
    const struct record_options *options = s->r->options;
    if (!attach_family(s))
        return false;
    for (size_t i = 0; i < options->tid_count; i++)
        if (!attach_thread(s, options->tids[i]))
            return false;
    if (!s->r->child)
        return true;
    struct process *process = target_process(s, s->r->child);
    process->begun = false;
    int why = seize(s, process, s->r->child);
    if (why)
        return seize_failed(s->r->child, why, s->error);
    launch_begin(s->r);
    return true;
}

/* ---- while it runs ---- */

/* Wait until something happens to a child, or until `until`. */
static void wait_until(uint64_t until) {
    sigset_t children;
    uint64_t now = monotonic(), left = until > now ? until - now : 0;
    struct timespec timeout = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigtimedwait(&children, NULL, &timeout);
}

/* Write new mappings, and a mark that nothing older follows. */
static void end_round(struct sampler *s) {
    if (!s->looked_again && !attach_family(s))
        sampler_fail(s);
    s->looked_again = true; /* for a fork that was in progress */
    s->r->sink.time = monotonic();
    for (size_t i = 0; i < s->tracees.all.count; i++)
        if (s->tracees.all.items[i]->process->touched)
            maps_refresh(s, s->tracees.all.items[i]->process);
    if (!keeper_turn(s->r->sink.keeper, s->error) ||
        !interpreted_turn(s->r->sink.interpreted, s->error) || !sink_round(&s->r->sink, s->error))
        sampler_fail(s);
    context_progress(s->r->options->context, RECORDING_PROGRESS, s->r->result->samples, 0);
}

static void look(struct sampler *s) {
    look_at_all(s);
    s->looks++;
    uint64_t now = monotonic();
    s->next_look += s->interval;
    if (s->next_look > now)
        return;
    uint64_t late = (now - s->next_look) / s->interval + 1;
    s->skipped += late;
    s->next_look += late * s->interval;
}

static void run(struct sampler *s) {
    s->next_look = s->enable_at;
    while (!s->failed && !context_cancelled(s->r->options->context) && s->tracees.targets) {
        bool more = handle_stops(s);
        uint64_t now = monotonic();
        if (now >= s->end_at)
            break;
        if (now >= s->next_round) {
            end_round(s);
            s->next_round = now + ROUND;
        }
        s->sampling |= now >= s->enable_at;
        if (s->sampling && now >= s->next_look) {
            look(s);
            continue;
        }
        if (more)
            continue;
        uint64_t until = s->next_look < s->next_round ? s->next_look : s->next_round;
        wait_until(until < s->end_at ? until : s->end_at);
    }
}

/* Wait for pending interrupts: a thread that is detached with one pending would see its system call fail. */
static void let_go(struct sampler *s) {
    uint64_t end = monotonic() + LINGER;
    bool stopping = true;
    s->sampling = false;
    while (stopping && monotonic() < end) {
        handle_stops(s);
        stopping = false;
        for (size_t i = 0; i < s->tracees.all.count; i++)
            stopping |= s->tracees.all.items[i]->stopping;
        if (stopping)
            wait_until(monotonic() + 1000000);
    }
    for (size_t i = 0; i < s->tracees.all.count && !s->failed; i++)
        look_last(s, s->tracees.all.items[i]);
    if (!s->failed || sink_only_names(&s->r->sink))
        end_round(s);
}

static void *sampler_thread(void *argument) {
    struct sampler *s = argument;
    if (!has_times(s->error) || !attach(s)) {
        sampler_fail(s);
        return NULL;
    }
    uint64_t now = monotonic();
    s->enable_at = now + s->r->options->delay;
    s->end_at = s->r->options->duration ? s->enable_at + s->r->options->duration : UINT64_MAX;
    s->next_round = now + ROUND;
    run(s);
    let_go(s);
    return NULL;
}

/* ---- from beginning to end ---- */

static bool run_thread(struct sampler *s) {
    sigset_t children, before;
    pthread_t thread;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &children, &before);
    int why = pthread_create(&thread, NULL, sampler_thread, s);
    if (why == 0)
        pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (why)
        return error_set(s->error, ERROR_INTERNAL, "a thread: %s", strerror(why));
    return !s->failed;
}

bool record_with_ptrace(struct recording *r, struct error *error) {
    struct sampler s = {.r = r, .error = error, .interval = 1000000000u / r->options->frequency};
    choose_events(&s);
    recording_shape_records(r);
    raise_file_limit();
    bool fine = recording_begin_file(r, error);
    bool launched = r->child != 0;
    fine = fine && run_thread(&s);
    if (fine && launched && !r->child && !launch_began(r, error))
        fine = false;
    if (fine)
        notes_add(&r->result->notes,
                  r->for_interpreter ? &note_interpreter
                  : r->refused_waits ? &note_waits
                  : r->refused       ? &note_refused
                                     : &note_ptrace,
                  1, 0, NULL);
    if (s.skipped > s.looks / 20) /* a few are late on any busy machine */
        notes_add(&r->result->notes, &note_late, s.skipped, 0, NULL);
    if (s.narrow)
        notes_add(&r->result->notes, &note_narrow, s.narrow, 0, NULL);
    tracees_release(&s.tracees);
    capture_release(&s.capture);
    buffer_release(&s.record);
    buffer_release(&s.text);
    return fine;
}
