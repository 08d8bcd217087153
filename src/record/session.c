/*
 * A recording from beginning to end: open events, synthesize records, start the target, drain the buffers until it is over, finish the file.
 *
 * The loop sleeps in poll() until a buffer is a quarter full, the target exits, or a tenth of a second has passed.
 */
#include "record/windows.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct note_kind note_lost = {"recording-lost",
                                           "# sample{ was|s were} lost: a larger --buffer, a lower "
                                           "-F or a smaller stack (-g dwarf,8192) helps"};
static const struct note_kind note_lost_switches = {
    "recording-lost-switches",
    "# switch{ was|es were} lost, and the waits between are unknown: --off-cpu=bpf adds them up "
    "in "
    "the kernel; a larger --buffer or a smaller stack (-g dwarf,8192) helps"};
static const struct note_kind note_throttled = {
    "throttled", "the kernel throttled the sampling # time{|s}: a lower -F avoids it"};

enum { PRIORITY = -10 };
enum { ENABLE_AGAIN = 50000000 }; /* nanoseconds */
enum { ROUND = 100, LOOK = 10 };  /* milliseconds */
enum {
    RESERVE = 1 << 20
}; /* bytes reserved for mappings if the disk is full: ten thousand of them */

static uint64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t monotonic(void) {
    return now_ns(CLOCK_MONOTONIC);
}

/* ---- beginning ---- */

static bool cpu_exists(uint32_t cpu) {
    static const char folder[] = "/sys/devices/system/cpu";
    char path[60];
    snprintf(path, sizeof path, "%s/cpu%u", folder, cpu);
    return access(path, F_OK) == 0 || access(folder, F_OK) != 0;
}

static bool choose_cpus(struct recording *r, struct error *error) {
    if (r->options->cpu_count) {
        for (size_t i = 0; i < r->options->cpu_count; i++) {
            if (!cpu_exists(r->options->cpus[i]))
                return error_set(error, ERROR_INPUT, "CPU %u: no such CPU", r->options->cpus[i]);
            vector_push(&r->cpus, r->options->cpus[i]);
        }
        return true;
    }
    char text[400];
    if (!file_read_small("/sys/devices/system/cpu/online", text, sizeof text)) {
        for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); i++)
            vector_push(&r->cpus, (uint32_t)i);
        return true;
    }
    for (const char *at = text; *at;) { /* "0-3,8" */
        char *end;
        unsigned long low = strtoul(at, &end, 10), high = low;
        if (*end == '-')
            high = strtoul(end + 1, &end, 10);
        if (end == at)
            return error_set(error, ERROR_INTERNAL, "the list of CPUs reads '%s'", text);
        for (; low <= high; low++)
            vector_push(&r->cpus, (uint32_t)low);
        at = *end == ',' ? end + 1 : end;
    }
    return true;
}

static bool choose_events(struct recording *r, struct error *error) {
    static const char *const by_default[] = {"cycles"}, *const by_time[] = {"cpu-clock"};
    const struct record_options *options = r->options;
    if (options->heap)
        return heap_choose_events(r, error);
    const char *const *names = options->event_count ? options->events
                               : options->wall      ? by_time
                                                    : by_default;
    size_t count = options->event_count                 ? options->event_count
                   : options->off_cpu && !options->wall ? 0
                                                        : 1;
    if (options->delay || options->window)
        recording_add_side_event(
            r); /* don't miss what happens meanwhile, or while processes are listed */
    for (size_t i = 0; i < count; i++) {
        struct asked_event asked = {.by_default = !r->options->event_count};
        if (!record_parse_event(names[i], &asked.attr, error))
            return false;
        asked.name = memory_copy(names[i], strlen(names[i]));
        vector_push(&r->events, asked);
    }
    return !options->off_cpu || off_cpu_choose_events(r, error);
}

void recording_shape_records(struct recording *r) {
    const struct perf_event_attr *attr = &r->events.items[0].attr;
    bool identified = attr->sample_type & PERF_SAMPLE_IDENTIFIER;
    r->sink.time_at = sizeof(struct perf_event_header) + 8 * (identified + 2); /* ip, tid */
    r->sink.data_mappings = attr->mmap_data;
    r->sink.asks_build_ids = attr->build_id;
    for (size_t i = 0; i < r->events.count && !r->sink.stack_size; i++) {
        r->sink.stack_size = r->events.items[i].attr.sample_stack_user;
        r->sink.registers = r->events.items[i].attr.sample_regs_user;
    }
    r->sink.trailer_words = (size_t)__builtin_popcountll(
        attr->sample_type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                             PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER));
}

/* Return the descriptor to write to, or -1 and set *error. */
static int open_file(struct recording *r, struct error *error) {
    const struct record_options *asked = r->options;
    int relative_to = asked->output_directory ? asked->output_directory - 1 : AT_FDCWD;
    if (r->sink.window)
        return window_open(r->sink.window, error) ? r->sink.window->descriptor : -1;
    if (strcmp(asked->output, "-") == 0)
        return STDOUT_FILENO;
    bool fine = publish_open(&r->file, relative_to, asked->output, PUBLISH_RECORDING, error);
    return fine ? r->file.descriptor : -1;
}

static bool open_output(struct recording *r, struct error *error) {
    const struct record_options *asked = r->options;
    bool stream = !r->sink.window && strcmp(asked->output, "-") == 0;
    int descriptor = open_file(r, error);
    if (descriptor < 0)
        return false;
    if (stream && isatty(STDOUT_FILENO))
        return error_set(error, ERROR_USAGE,
                         "a recording can't be written to a terminal: use -o FILE, or a pipe");
    struct perfdata_writer_event *events = memory_zero(r->events.count, sizeof *events);
    for (size_t i = 0; i < r->events.count; i++) {
        const struct asked_event *event = &r->events.items[i];
        events[i] = (struct perfdata_writer_event){event->attr, event->name, event->ids.items,
                                                   event->ids.count};
    }
    struct perfdata_writer_options options = {
        .stream = stream,
        .compress_level = asked->compress_level,
        .entries = r->sink.window ? r->sink.window->entries : 0,
    };
    r->sink.writer = perfdata_writer_new(descriptor, r->sink.window ? "window" : asked->output,
                                         events, r->events.count, &options, error);
    free(events);
    if (r->sink.writer && !r->sink.window)
        perfdata_reserve(r->sink.writer, RESERVE);
    return r->sink.writer != NULL;
}

pid_t process_of(pid_t tid) {
    pid_t pid = proc_status_id(tid, TEXT("Tgid"));
    return pid ? pid : tid;
}

/* ---- while it runs ---- */

struct loop {
    struct recording *r;
    VECTOR(struct pollfd)
    polled;              /* rings, then the interpreters', the heap's, and the targets' pidfds */
    size_t first_target; /* of those */
    size_t alive;        /* targets that have not exited; SIZE_MAX: none to wait for */
    uint64_t enable_at;  /* 0: enabled already */
    bool enabled;        /* … once */
    uint64_t end_at;     /* UINT64_MAX: open-ended */
};

static void loop_watch(struct loop *loop, pid_t pid) {
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    if (descriptor < 0)
        return;
    vector_push(&loop->polled, ((struct pollfd){.fd = descriptor, .events = POLLIN}));
    loop->alive++;
}

static void loop_init(struct loop *loop, struct recording *r) {
    const struct record_options *options = r->options;
    uint64_t now = monotonic();
    *loop = (struct loop){.r = r};
    loop->enable_at = options->delay ? now + options->delay : 0;
    loop->end_at = options->duration ? now + options->delay + options->duration : UINT64_MAX;
    for (size_t i = 0; i < r->rings.count; i++)
        vector_push(&loop->polled,
                    ((struct pollfd){.fd = r->rings.items[i].descriptor, .events = POLLIN}));
    vector_push(&loop->polled, ((struct pollfd){.fd = interpreted_descriptor(r->sink.interpreted),
                                                .events = POLLIN}));
    for (int i = 0; r->heap && i < HEAP_DESCRIPTORS; i++)
        vector_push(&loop->polled,
                    ((struct pollfd){.fd = heap_poll_descriptor(r, i), .events = POLLIN}));
    loop->first_target = loop->polled.count;
    if (r->child)
        loop_watch(loop, r->child);
    for (size_t i = 0; i < options->pid_count; i++)
        loop_watch(loop, options->pids[i]);
    for (size_t i = 0; i < options->tid_count; i++)
        loop_watch(loop, process_of(options->tids[i]));
    if (!r->child && options->system_wide)
        loop->alive = SIZE_MAX;
}

static void loop_release(struct loop *loop) {
    for (size_t i = loop->first_target; i < loop->polled.count; i++)
        if (loop->polled.items[i].fd >= 0)
            close(loop->polled.items[i].fd);
    vector_release(&loop->polled);
}

/* Stop polling targets that exited, and rings whose events all ended, which would wake the loop for nothing. */
static void loop_look(struct loop *loop) {
    for (size_t i = 0; i < loop->polled.count; i++) {
        struct pollfd *polled = &loop->polled.items[i];
        bool is_ring = i < loop->r->rings.count, is_target = i >= loop->first_target;
        if (is_ring && polled->revents & (POLLHUP | POLLERR))
            polled->fd = -1;
        if (is_target && polled->fd >= 0 && polled->revents & POLLIN) {
            close(polled->fd);
            polled->fd = -1;
            loop->alive--;
        }
    }
}

static int loop_timeout(const struct loop *loop, uint64_t now) {
    uint64_t next =
        loop->enable_at && loop->enable_at < loop->end_at ? loop->enable_at : loop->end_at;
    if (next <= now)
        return 0;
    uint64_t ms = (next - now) / 1000000 + 1;
    return heap_patience(loop->r, ms < ROUND ? (int)ms : ROUND);
}

/* Wait for the next round, or until there is something to do. Meanwhile name what interpreters run, because they may exit at any time. */
static bool loop_wait(struct loop *loop) {
    struct recording *r = loop->r;
    for (int left = loop_timeout(loop, monotonic()), step;; left -= step) {
        step = left > LOOK && interpreted_is_used(r->sink.interpreted) ? LOOK : left;
        int ready = poll(loop->polled.items, loop->polled.count, step);
        bool only_names = ready == 1 && loop->polled.items[r->rings.count].revents;
        if (ready < 0)
            return errno == EINTR;
        interpreted_look(r->sink.interpreted);
        if ((ready && !only_names) || left <= step)
            return true;
    }
}

/* Whether a child of the attached processes has outlived them: its events are part of theirs. */
static bool children_live(const struct recording *r) {
    bool live = false;
    for (size_t i = 0; r->options->pid_count && !live && i < r->descriptors.count; i++) {
        struct pollfd one = {.fd = r->descriptors.items[i]};
        live = poll(&one, 1, 0) == 0;
    }
    return live;
}

/* Enable twice: a child being forked may inherit disabled events after its parent's were enabled. */
static void loop_enable(struct loop *loop, uint64_t now) {
    recording_enable(loop->r, true);
    loop->enable_at = loop->enabled ? 0 : now + ENABLE_AGAIN;
    loop->enabled = true;
}

static bool loop_run(struct loop *loop, struct error *error) {
    struct recording *r = loop->r;
    while ((loop->alive || children_live(r)) && !context_cancelled(r->options->context)) {
        uint64_t now = monotonic();
        if (now >= loop->end_at)
            break;
        if (loop->enable_at && now >= loop->enable_at)
            loop_enable(loop, now);
        if (!loop_wait(loop))
            return error_errno(error, "poll");
        loop_look(loop);
        target_reap_orphans(r);
        if (!recording_drain(r, error))
            return false;
        context_progress(r->options->context, RECORDING_PROGRESS, r->result->samples, 0);
    }
    return true;
}

/* ---- the end ---- */

static bool finish(struct recording *r, struct error *error) {
    if (r->sink.window)
        return window_finish(r, error);
    if (!interpreted_finish(r->sink.interpreted, error) || !keeper_finish(r->sink.keeper, error) ||
        !write_build_ids(r, error) || !write_sample_time(r, error) ||
        !perfdata_finish(r->sink.writer, error))
        return false;
    r->result->bytes = perfdata_writer_size(r->sink.writer);
    if (r->options->keep == KEEP_ALL && r->file.path && !keep_all(r, error))
        return false;
    if (r->file.path && fsync(r->file.descriptor) != 0 && errno != EINVAL)
        return error_errno(error, r->options->output);
    return true;
}

/* A failed recording does not replace another file; what there is of it is left beside that file. A failed recording without samples is
   removed. */
static bool publish_recording(struct recording *r, bool fine, struct error *error) {
    if (!r->file.path)
        return fine;
    if (!fine && !r->result->samples)
        publish_discard(&r->file);
    else if (!fine && publish_would_replace(&r->file))
        r->result->left = publish_leave(&r->file);
    else
        return publish_commit(&r->file, fine ? error : NULL) && fine;
    return fine;
}

static void describe(struct recording *r) {
    struct buffer names = {0};
    for (size_t i = 0; i < r->events.count; i++)
        if (r->events.items[i].role != ROLE_SIDE)
            buffer_printf(&names, "%s%s", names.count ? "," : "", r->events.items[i].name);
    r->result->events = memory_copy(names.items, names.count);
    r->result->stack_size = r->own.stack_size;
    r->result->method = r->method == METHOD_PTRACE ? "ptrace"
                        : r->sums                  ? "bpf"
                        : heap_is_attached(r)      ? "bpf"
                        : r->heap                  ? "preload"
                                                   : "perf";
    buffer_release(&names);
    if (r->result->lost && !r->heap)
        notes_add(&r->result->notes, r->off_cpu == OFF_CPU_PERF ? &note_lost_switches : &note_lost,
                  r->result->lost, 0, NULL);
    if (r->result->throttled)
        notes_add(&r->result->notes, &note_throttled, r->result->throttled, 0, NULL);
}

bool recording_begin_file(struct recording *r, struct error *error) {
    return open_output(r, error) && write_tracing_data(r, error) && write_host_features(r, error);
}

static bool perf_run(struct recording *r, struct error *error) {
    if (r->child && !launch_go(r, error))
        return false;
    struct loop loop;
    loop_init(&loop, r);
    bool fine = loop_run(&loop, error);
    loop_release(&loop);
    recording_enable(r, false);
    fine = fine && off_cpu_mark_end(r, error);
    pid_t target = r->child;
    heap_stop(r);
    if (!fine && r->heap)
        target_wait(r);
    target_end(r);
    fine = fine && recording_drain(r, error) && off_cpu_write(r, error) &&
           heap_finish(r, target, error);
    if (!fine)
        recording_drain_names(r);
    return fine;
}

static bool record_with_perf(struct recording *r, struct error *error) {
    if (!recording_begin_file(r, error) || !sink_early(&r->sink, error) ||
        (r->options->system_wide && !synthesize_all(&r->sink, error)) ||
        !sink_round(&r->sink, error))
        return false;
    interpreted_begin(r->sink.interpreted);
    r->result->started_ns = now_ns(CLOCK_REALTIME);
    if ((!r->options->command || r->options->system_wide) && !r->options->delay)
        recording_enable(r, true);
    if (r->sums && !r->options->delay)
        sums_enable(r->sums, true); /* it skips what happens before the exec */
    return perf_run(r, error);
}

/* Without BPF, only the ptrace sampler sees what an interpreter runs. */
static bool is_for_interpreter(const struct recording *r) {
    return r->method == METHOD_AUTO && r->sink.interpreted &&
           interpreted_program(r->sink.interpreted) < 0 && interpreted_is_target(r->options);
}

/* Open the events or, if all are refused, leave the recording to the ptrace sampler. */
static bool choose_method(struct recording *r, struct error *error) {
    struct error unused;
    r->method = r->sink.window ? METHOD_PERF : r->options->method;
    if (r->method == METHOD_PTRACE && !r->heap)
        return ptrace_can(r, error);
    bool is_open = recording_open(r, error);
    r->for_interpreter = is_open && !r->heap && is_for_interpreter(r) && ptrace_can(r, &unused);
    if (is_open && !r->for_interpreter) {
        r->method = METHOD_PERF;
        return true;
    }
    if (!is_open && (!r->refused || r->method == METHOD_PERF || r->heap || !ptrace_can(r, &unused)))
        return false;
    recording_close(r);
    r->sink.early.count = 0;
    notes_release(&r->result->notes); /* earlier fallbacks no longer matter */
    r->method = METHOD_PTRACE;
    return true;
}

/* The thread that drains the buffers or stops the target does little work, but must not be late: raise its priority, if permitted. Return the
   old one. */
static int priority_raise(void) {
    errno = 0;
    int before = getpriority(PRIO_PROCESS, 0);
    if (before > PRIORITY)
        setpriority(PRIO_PROCESS, 0, PRIORITY);
    return before;
}

static bool open_and_record(struct recording *r, struct error *error) {
    if (!choose_method(r, error))
        return false;
    r->result->started_ns = now_ns(CLOCK_REALTIME);
    return r->method == METHOD_PTRACE ? record_with_ptrace(r, error) : record_with_perf(r, error);
}

/* Return the CPU time of all children that exited and were waited for: the target, its reaped children, and its orphans. */
static uint64_t children_cpu_ns(void) {
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0)
        return 0;
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000u;
}

static bool record(struct recording *r, struct error *error) {
    if (r->sink.window && r->options->off_cpu && r->options->off_cpu != OFF_CPU_BPF)
        return error_set(error, ERROR_USAGE, "windows record waits only with BPF");
    if (!choose_cpus(r, error) || !choose_events(r, error) ||
        (r->options->command && !launch(r, error)))
        return false;
    uint64_t cpu_before = children_cpu_ns();
    int priority = priority_raise(); /* a launched child keeps its own */
    bool fine = open_and_record(r, error);
    target_end(r);
    if (r->options->command)
        r->result->cpu_ns = children_cpu_ns() - cpu_before;
    setpriority(PRIO_PROCESS, 0, priority);
    r->result->ended_ns = now_ns(CLOCK_REALTIME);
    bool begun = r->sink.writer;
    if (begun)
        fine = finish(r, fine ? error : NULL) && fine;
    return publish_recording(r, fine && begun, error);
}

void recording_drop_events(struct recording *r) {
    for (size_t i = 0; i < r->events.count; i++) {
        free(r->events.items[i].name);
        vector_release(&r->events.items[i].ids);
    }
    vector_release(&r->events);
}

static void recording_release(struct recording *r) {
    recording_close(r);
    target_end(r);
    sums_close(r->sums);
    heap_release(r);
    recording_drop_events(r);
    vector_release(&r->cpus);
    vector_release(&r->rings);
    vector_release(&r->descriptors);
    vector_release(&r->targets);
    vector_release(&r->other_children);
    vector_release(&r->threads);
    index_release(&r->seen);
    index_release(&r->around);
    sink_release(&r->sink);
    if (r->group >= 0)
        close(r->group);
    if (r->child_failed >= 0)
        close(r->child_failed);
}

bool record_run(const struct record_options *options, struct record_result *result,
                struct error *error) {
    *result = (struct record_result){.target_status = -1};
    struct recording r = {
        .own = *options, .result = result, .child_go = -1, .child_failed = -1, .group = -1};
    r.options = &r.own;
    for (size_t i = 0; i < options->pid_count; i++)
        vector_push(&r.targets, options->pids[i]);
    recording_find_children(&r);
    r.sink.result = result;
    r.sink.system_wide = options->system_wide;
    r.sink.paths = strings_new();
    if (options->keep != KEEP_NONE)
        r.sink.keeper = keeper_new(&r.sink, r.options);
    if (options->window)
        r.sink.window = window_new(options->window);
    if (options->keep != KEEP_NONE && !options->kernel_only && !options->heap &&
        options->call_graph != CALL_GRAPH_NONE)
        r.sink.interpreted = interpreted_new(&r.sink);
    bool is_deep = runtime_is_deep(&r);
    r.own.frame_pointers_too |= is_deep || runtime_is_go(&r);
    if (r.own.stack_size < options->deep_stack_size && is_deep)
        r.own.stack_size = options->deep_stack_size;
    bool fine = record(&r, error);
    if (!fine && !result->samples)
        notes_release(&result->notes); /* notes about other methods no longer matter */
    if (r.events.count)
        describe(&r);
    recording_release(&r);
    return fine;
}

void record_result_release(struct record_result *result) {
    free(result->events);
    free(result->left);
    notes_release(&result->notes);
}
