/*
 * Opening events, with every fallback that keeps a recording possible. What has to be given up is noted:
 *
 *     the kernel does not know a flag     → without it (build ids in mmaps, BPF symbols, a chosen clock)
 *     no hardware counter, by default     → cpu-clock
 *     the kernel's part is not permitted  → user only
 *     an event can't be that precise (:P) → less precise
 *     too few file descriptors            → the limit is raised; then one event a thread instead of one a thread and CPU
 *     the buffers may not be that large   → half as large, down to 32 kB
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

static const struct note_kind note_software = {
    "software-clock",
    "no hardware counter on this machine: recorded with cpu-clock, a software clock"};
static const struct note_kind note_user_only = {
    "user-only",
    "recording the kernel was not permitted (perf_event_paranoid): only user code was recorded"};
static const struct note_kind note_small_buffer = {
    "small-buffer", "the buffers had to be smaller than requested; root, or a larger "
                    "kernel.perf_event_mlock_kb, allows more"};
static const struct note_kind note_old_kernel = {
    "old-kernel", "this kernel does not support everything that was requested: omitted"};
static const struct note_kind note_few_files = {
    "few-files",
    "too few open files are allowed (ulimit -n) for an event on every CPU: threads that the target "
    "starts from now on are not recorded"};

enum { RING_LEAST = 32 << 10, RING_ROOT = 8 << 20, RING_USER = 512 << 10 };

static int event_open(struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags) {
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, flags | PERF_FLAG_FD_CLOEXEC);
}

/* ---- what is asked of the kernel ---- */

static void set_call_graph(struct perf_event_attr *attr, const struct record_options *options) {
    switch (options->call_graph) {
    case CALL_GRAPH_NONE:
        return;
    case CALL_GRAPH_DWARF:
        attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr->sample_regs_user = USER_REGISTERS;
        attr->sample_stack_user = options->stack_size;
        attr->exclude_callchain_user = !options->frame_pointers_too;
        break;
    case CALL_GRAPH_LBR:
        attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
        attr->branch_sample_type = PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_USER |
                                   PERF_SAMPLE_BRANCH_NO_CYCLES | PERF_SAMPLE_BRANCH_NO_FLAGS;
        attr->exclude_callchain_user = 1;
        break;
    case CALL_GRAPH_FP:
        if (LINK_REGISTER && !options->kernel_only) {
            attr->sample_type |= PERF_SAMPLE_REGS_USER;
            attr->sample_regs_user = LINK_REGISTER;
        }
        break;
    }
    attr->sample_type |= PERF_SAMPLE_CALLCHAIN;
}

static void set_rate(struct asked_event *asked, const struct record_options *options) {
    struct perf_event_attr *attr = &asked->attr;
    bool countable =
        attr->type == PERF_TYPE_TRACEPOINT ||
        (attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_CONTEXT_SWITCHES);
    if (options->period || countable) { /* each one, unless a period is requested */
        bool all = !options->period || asked->role != ROLE_SAMPLE;
        attr->sample_period = all ? 1 : options->period;
        /* For software events and tracepoints that record their period, the kernel samples every event. The period is known anyway. */
        if (attr->sample_period > 1)
            attr->sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
    } else {
        attr->freq = 1;
        attr->sample_freq = options->frequency;
    }
}

/* Switches and wakeups happen in the kernel: without it there is no such event, so exclude only its part of the stack. */
static void set_modes(struct asked_event *asked, const struct record_options *options) {
    struct perf_event_attr *attr = &asked->attr;
    if (asked->role == ROLE_SAMPLE) {
        attr->exclude_kernel |= options->user_only;
        attr->exclude_hv |= options->user_only;
        attr->exclude_user |= options->kernel_only;
    } else {
        attr->exclude_callchain_kernel |= options->user_only;
        attr->exclude_callchain_user |= options->kernel_only;
    }
}

/* Side records have no stack; stacks_of may limit the requested events that have one. */
static bool has_stack(const struct recording *r, const struct asked_event *asked) {
    size_t before = 0;
    for (const struct asked_event *other = r->events.items; other < asked; other++)
        before += other->role == ROLE_SAMPLE;
    if (asked->role == ROLE_SAMPLE && r->options->stacks_of)
        return before < r->options->stacks_of;
    return asked->role != ROLE_SIDE;
}

/* Return the first event after the one for side records, if there is one. */
static struct asked_event *first_sampled(struct recording *r) {
    bool side = r->events.items[0].role == ROLE_SIDE && r->events.count > 1;
    return &r->events.items[side];
}

/* The first event carries the side records for all events. */
static void set_attr(struct recording *r, struct asked_event *asked, bool first) {
    const struct record_options *options = r->options;
    struct perf_event_attr *attr = &asked->attr;
    attr->size = sizeof *attr;
    attr->sample_type |=
        PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
    if (r->events.count > 1)
        attr->sample_type |= PERF_SAMPLE_IDENTIFIER;
    if (attr->type == PERF_TYPE_TRACEPOINT)
        attr->sample_type |= PERF_SAMPLE_RAW;
    if (has_stack(r, asked))
        set_call_graph(attr, options);
    set_rate(asked, options);
    bool at_once = asked->role == ROLE_SIDE || !options->delay;
    attr->enable_on_exec = options->command && at_once && !options->system_wide;
    attr->disabled = asked->role != ROLE_SIDE || attr->enable_on_exec;
    attr->inherit = !options->no_inherit && !options->system_wide;
    attr->sample_id_all = 1;
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC;
    set_modes(asked, options);
    attr->watermark = 1;
    attr->wakeup_watermark = (uint32_t)(r->ring_size / 4);
    attr->context_switch = r->off_cpu == OFF_CPU_PERF && asked == first_sampled(r);
    if (!first)
        return;
    attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
    attr->mmap_data =
        options->call_graph == CALL_GRAPH_DWARF; /* perf reads unwind tables through them */
    /* If a system-wide listener asks for build ids, kernels up to at least 6.18 also mark the records of listeners that did not ask as having
       one; perf then takes a device number for a size, and crashes. */
    attr->build_id = !options->system_wide;
    attr->ksymbol = attr->bpf_event = !attr->exclude_kernel;
    attr->namespaces = options->keep != KEEP_NONE;
}

/* ---- fallbacks ---- */

/* Only a user who may see the whole system gets namespace records. */
static bool give_up_namespaces(struct recording *r) {
    struct perf_event_attr *first = &r->events.items[0].attr;
    bool asked = first->namespaces;
    first->namespaces = 0;
    return asked;
}

/* Take one step back for all events; return false if there is none left. */
static bool give_up_flag(struct recording *r) {
    struct perf_event_attr *first = &r->events.items[0].attr;
    bool changed = false;
    if (first->build_id) {
        first->build_id = 0; /* they are read from the files instead */
        return true;
    }
    if (give_up_namespaces(r))
        return true;
    if (first->ksymbol) {
        first->ksymbol = first->bpf_event = 0;
        notes_add(&r->result->notes, &note_old_kernel, 1, 0, "names of BPF programs");
        return true;
    }
    for (size_t i = 0; i < r->events.count; i++) {
        struct perf_event_attr *attr = &r->events.items[i].attr;
        changed |= attr->use_clockid;
        attr->use_clockid = 0;
        attr->clockid = 0;
    }
    if (changed)
        notes_add(&r->result->notes, &note_old_kernel, 1, 0, "the monotonic clock");
    return changed;
}

static void rename_event(struct asked_event *asked, const char *name) {
    free(asked->name);
    asked->name = memory_copy(name, strlen(name));
}

static bool give_up_hardware(struct recording *r) {
    struct asked_event *asked = first_sampled(r);
    if (!asked->by_default || asked->attr.type != PERF_TYPE_HARDWARE)
        return false;
    asked->attr.type = PERF_TYPE_SOFTWARE;
    asked->attr.config = PERF_COUNT_SW_CPU_CLOCK;
    rename_event(asked, asked->attr.exclude_kernel ? "cpu-clock:u" : "cpu-clock");
    notes_add(&r->result->notes, &note_software, 1, 0, NULL);
    return true;
}

/* A tracepoint may be visible and yet refused; the software event needs fewer permissions. */
static bool give_up_tracepoint(struct recording *r) {
    for (size_t i = 0; i < r->events.count; i++) {
        struct asked_event *asked = &r->events.items[i];
        if (asked->role != ROLE_SWITCH || asked->attr.type != PERF_TYPE_TRACEPOINT)
            continue;
        asked->attr.type = PERF_TYPE_SOFTWARE;
        asked->attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
        asked->attr.sample_type &= ~(uint64_t)PERF_SAMPLE_RAW;
        rename_event(asked, "context-switches");
        return true;
    }
    return false;
}

static bool give_up_kernel(struct recording *r) {
    bool changed = false;
    if (r->off_cpu)
        return give_up_tracepoint(r); /* without the kernel there is no off-CPU time */
    for (size_t i = 0; i < r->events.count; i++) {
        struct asked_event *asked = &r->events.items[i];
        if (asked->attr.exclude_kernel || r->options->kernel_only ||
            asked->attr.type == PERF_TYPE_TRACEPOINT) /* without the kernel it never occurs */
            continue;
        asked->attr.exclude_kernel = asked->attr.exclude_hv = 1;
        asked->attr.ksymbol = asked->attr.bpf_event = 0;
        struct buffer name = {0};
        buffer_printf(&name, strchr(asked->name, ':') ? "%su" : "%s:u", asked->name);
        buffer_add_char(&name, 0);
        rename_event(asked, name.items);
        buffer_release(&name);
        changed = true;
    }
    if (changed)
        notes_add(&r->result->notes, &note_user_only, 1, 0, NULL);
    return changed;
}

bool raise_file_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

/* :P means as precise as possible. */
static bool give_up_precision(struct asked_event *asked, int why) {
    if (!asked->attr.precise_ip || why == EACCES || why == EPERM || why == EMFILE ||
        !event_wants_most_precise(asked->name))
        return false;
    asked->attr.precise_ip--;
    return true;
}

/* Return whether another attempt after `why` is worthwhile. */
static bool fall_back(struct recording *r, int why) {
    switch (why) {
    case EINVAL:
    case E2BIG:
        return give_up_flag(r);
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
        return give_up_hardware(r);
    case EACCES:
    case EPERM:
        return give_up_namespaces(r) || give_up_kernel(r);
    case EMFILE:
        return raise_file_limit();
    default:
        return false;
    }
}

/* Whether at least user code may be sampled. */
static bool user_is_allowed(void) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr};
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.exclude_kernel = attr.exclude_hv = attr.disabled = 1;
    int descriptor = event_open(&attr, 0, -1, 0);
    if (descriptor >= 0)
        close(descriptor);
    return descriptor >= 0;
}

/* The kernel reports "Invalid argument" for this, too. */
static bool frequency_is_allowed(const struct asked_event *asked, struct error *error) {
    char text[40];
    if (!asked->attr.freq ||
        !file_read_small("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof text))
        return true;
    unsigned long long most = strtoull(text, NULL, 10), frequency = asked->attr.sample_freq;
    return frequency <= most || error_set(error, ERROR_INPUT,
                                          "-F %llu: the kernel allows up to %llu (sysctl "
                                          "kernel.perf_event_max_sample_rate)",
                                          frequency, most);
}

/* An event can't be opened, with errno `why`: report what to do instead. */
static bool refuse_event(struct recording *r, const struct asked_event *asked, int why,
                         struct error *error) {
    bool missing = why == ENOENT || why == ENODEV || why == EOPNOTSUPP;
    if (why == EINVAL && !frequency_is_allowed(asked, error))
        return false;
    r->refused = why == EACCES || why == EPERM || why == ENOSYS || why == EMFILE;
    r->refused_waits = r->refused && r->off_cpu && user_is_allowed();
    if (missing && r->options->call_graph == CALL_GRAPH_LBR)
        return error_set(error, ERROR_DENIED,
                         "-g lbr needs a hardware counter with branch records, which this machine "
                         "does not have; use -g dwarf or -g fp");
    if (missing)
        return error_set(error, ERROR_DENIED,
                         "event %s: this machine has no such counter (%s); see `wick doctor`",
                         asked->name, strerror(why));
    if ((why == EACCES || why == EPERM) && r->options->system_wide)
        return error_set(error, ERROR_DENIED,
                         "-a: not permitted to record the whole system: %s; run as root, or "
                         "`sysctl kernel.perf_event_paranoid=%d`",
                         strerror(why),
                         asked->attr.type == PERF_TYPE_TRACEPOINT ? PARANOID_TRACEPOINTS
                                                                  : PARANOID_SYSTEM_WIDE);
    return error_set(error, r->refused ? ERROR_DENIED : ERROR_INPUT,
                     "event %s can't be opened: %s; see `wick doctor` for what this machine allows",
                     asked->name, strerror(why));
}

/* Try the events once on wick itself before opening any for the target, so that all threads get the same events. */
static bool try_events(struct recording *r, struct error *error) {
    pid_t pid = r->options->system_wide ? -1 : r->child ? r->child : 0;
    for (size_t i = 0; i < r->events.count;) {
        struct asked_event *asked = &r->events.items[i];
        if (asked->role == ROLE_MADE) {
            i++;
            continue;
        }
        int descriptor = event_open(&asked->attr, pid, (int)r->cpus.items[0], 0), why = errno;
        if (descriptor >= 0) {
            close(descriptor);
            i++;
        } else if (!give_up_precision(asked, why) && !fall_back(r, why)) {
            return refuse_event(r, asked, why, error);
        }
    }
    return true;
}

/* ---- opening for good ---- */

static size_t ring_least(void) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return page > RING_LEAST ? page : RING_LEAST;
}

static bool ring_map(struct recording *r, struct ring *ring, struct error *error) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    while (true) {
        void *pages = mmap(NULL, page + r->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                           ring->descriptor, 0);
        if (pages != MAP_FAILED) {
            ring->pages = pages;
            ring->size = r->ring_size;
            return true;
        }
        if ((errno != EPERM && errno != ENOMEM) || r->ring_size <= ring_least())
            return error_set(error, ERROR_DENIED, "ring buffer of %zu bytes: %s", r->ring_size,
                             strerror(errno));
        r->ring_size /= 2;
        notes_add(&r->result->notes, &note_small_buffer, 1, 0, NULL);
    }
}

static bool keep_id(struct asked_event *asked, int descriptor) {
    uint64_t id;
    if (ioctl(descriptor, PERF_EVENT_IOC_ID, &id) != 0)
        return false;
    vector_push(&asked->ids, id);
    return true;
}

/* Take stacks of interpreters with the event's samples. Events that count elsewhere (a tracepoint) can't have such a program. */
static void set_program(const struct recording *r, const struct asked_event *asked,
                        int descriptor) {
    int program = interpreted_program(r->sink.interpreted);
    if (program >= 0 && asked->role == ROLE_SAMPLE && asked->attr.type != PERF_TYPE_TRACEPOINT)
        ioctl(descriptor, PERF_EVENT_IOC_SET_BPF, program);
}

/* Take stacks of interpreters when a thread leaves the CPU, with an event beside the tracepoint that writes nothing. */
static void open_switch_program(struct recording *r, const struct asked_event *asked, pid_t target,
                                int cpu, unsigned long flags) {
    int program = interpreted_switch_program(r->sink.interpreted);
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
                                   .sample_type = PERF_SAMPLE_TIME,
                                   .sample_period = 1,
                                   .disabled = asked->attr.disabled,
                                   .enable_on_exec = asked->attr.enable_on_exec,
                                   .inherit = asked->attr.inherit};
    if (program < 0 || asked->role != ROLE_SWITCH)
        return;
    int descriptor = event_open(&attr, target, cpu, flags);
    if (descriptor < 0 && errno == EMFILE && raise_file_limit())
        descriptor = event_open(&attr, target, cpu, flags);
    if (descriptor < 0)
        return; /* the waits are recorded anyway */
    vector_push(&r->descriptors, descriptor);
    ioctl(descriptor, PERF_EVENT_IOC_SET_BPF, program);
}

static bool open_one(struct recording *r, struct asked_event *asked, struct ring *ring, pid_t tid,
                     struct error *error) {
    unsigned long flags = r->group >= 0 ? PERF_FLAG_PID_CGROUP : 0;
    pid_t target = r->group >= 0 ? r->group : tid;
    int descriptor = event_open(&asked->attr, target, (int)ring->cpu, flags);
    if (descriptor < 0 && errno == EMFILE && raise_file_limit())
        descriptor = event_open(&asked->attr, target, (int)ring->cpu, flags);
    if (descriptor < 0 && errno == ESRCH)
        return true; /* it has already exited */
    r->no_files |= descriptor < 0 && errno == EMFILE;
    bool denied = descriptor < 0 && (errno == EACCES || errno == EPERM);
    if (denied && tid > 0)
        return error_set(error, ERROR_DENIED,
                         "thread %d: not permitted to record it: %s; it belongs to another user or "
                         "forbids it: run as root",
                         tid, strerror(errno));
    if (descriptor < 0)
        return error_set(error, denied ? ERROR_DENIED : ERROR_INPUT, "event %s can't be opened: %s",
                         asked->name, strerror(errno));
    vector_push(&r->descriptors, descriptor);
    if (!keep_id(asked, descriptor))
        return error_errno(error, asked->name);
    set_program(r, asked, descriptor);
    open_switch_program(r, asked, target, (int)ring->cpu, flags);
    if (!ring->pages) {
        ring->descriptor = descriptor;
        return ring_map(r, ring, error);
    }
    if (ioctl(descriptor, PERF_EVENT_IOC_SET_OUTPUT, ring->descriptor) != 0)
        return error_errno(error, asked->name);
    return true;
}

static bool open_on_ring(struct recording *r, struct ring *ring, pid_t tid, struct error *error) {
    for (size_t i = 0; i < r->events.count; i++)
        if (r->events.items[i].role != ROLE_MADE &&
            !open_one(r, &r->events.items[i], ring, tid, error))
            return false;
    return true;
}

/* Open it on any CPU. The thread has its own buffer, because events of several threads can share one only on a single CPU. */
static bool open_thread_alone(struct recording *r, pid_t tid, struct error *error) {
    vector_push(&r->rings, ((struct ring){.cpu = UINT32_MAX, .descriptor = -1}));
    if (!open_on_ring(r, &r->rings.items[r->rings.count - 1], tid, error))
        return false;
    if (!r->rings.items[r->rings.count - 1].pages)
        r->rings.count--; /* it has already exited */
    return true;
}

bool recording_open_thread(struct recording *r, pid_t tid, struct error *error) {
    if (r->sums)
        sums_add_thread(r->sums, tid, tid == r->child && !r->options->delay);
    if (r->few_files)
        return open_thread_alone(r, tid, error);
    for (size_t cpu = 0; cpu < r->rings.count; cpu++)
        if (!open_on_ring(r, &r->rings.items[cpu], tid, error))
            return false;
    return true;
}

static bool is_cgroup(int directory) {
    struct statfs system;
    return fstatfs(directory, &system) == 0 &&
           (system.f_type == CGROUP2_SUPER_MAGIC || system.f_type == CGROUP_SUPER_MAGIC);
}

/* Open it by its path, or by its name below the cgroup mount point. */
bool recording_open_group(struct recording *r, struct error *error) {
    static const char *const roots[] = {"", "/sys/fs/cgroup/", "/sys/fs/cgroup/unified/",
                                        "/sys/fs/cgroup/perf_event/"};
    bool ordinary = false;
    for (size_t i = 0; i < COUNT_OF(roots) && r->group < 0; i++) {
        char path[500];
        snprintf(path, sizeof path, "%s%s", roots[i], r->options->cgroup);
        r->group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r->group >= 0 && !is_cgroup(r->group)) {
            ordinary = true;
            close(r->group);
            r->group = -1;
        }
    }
    if (r->group < 0 && ordinary)
        return error_set(
            error, ERROR_INPUT,
            "cgroup %s: a directory, but not a cgroup; cgroups are below /sys/fs/cgroup",
            r->options->cgroup);
    return r->group >= 0 ||
           error_set(error, ERROR_INPUT, "cgroup %s: %s", r->options->cgroup, strerror(errno));
}

static bool open_targets(struct recording *r, struct error *error) {
    const struct record_options *options = r->options;
    if (options->cgroup && r->group < 0 && !recording_open_group(r, error))
        return false;
    if (options->system_wide)
        return recording_open_thread(r, -1, error);
    if (r->child)
        return recording_open_thread(r, r->child, error);
    return attach_open(r, error);
}

static size_t power_of_two(size_t size) {
    size_t power = ring_least();
    while (power < size && power < (size_t)1 << 30)
        power *= 2;
    return power;
}

void recording_close(struct recording *r) {
    for (size_t i = 0; i < r->rings.count; i++) {
        struct ring *ring = &r->rings.items[i];
        if (ring->pages)
            munmap(ring->pages, (size_t)sysconf(_SC_PAGESIZE) + ring->size);
        ring->pages = NULL;
    }
    for (size_t i = 0; i < r->descriptors.count; i++)
        close(r->descriptors.items[i]);
    r->descriptors.count = 0;
    for (size_t i = 0; i < r->events.count; i++)
        if (r->events.items[i].role != ROLE_MADE)
            r->events.items[i].ids.count = 0;
}

/* With too few descriptors for (threads × CPUs), open one event for each thread: such events can't be inherited, which is noted. If there are
   too few even for that, use the ptrace sampler, which needs none. */
static bool open_with_few_files(struct recording *r, struct error *error) {
    recording_close(r);
    for (size_t i = 0; i < r->events.count; i++)
        r->events.items[i].attr.inherit = 0;
    r->rings.count = 0;
    r->few_files = true;
    r->ring_size = r->ring_size < RING_USER ? r->ring_size : RING_USER;
    notes_add(&r->result->notes, &note_few_files, 1, 0, NULL);
    r->no_files = false;
    bool fine = open_targets(r, error);
    r->refused |= !fine && r->no_files;
    return fine;
}

/* Call before any event is enabled: reading the kernel's symbols takes as long as a small buffer takes to fill. */
static bool tell_of_kernel(struct recording *r, struct error *error) {
    recording_shape_records(r);
    if (!r->events.items[0].attr.exclude_kernel && !synthesize_kernel(&r->sink, error))
        return false;
    r->sink.kernel_size = r->sink.early.count;
    return true;
}

bool recording_open(struct recording *r, struct error *error) {
    size_t size = r->options->buffer_size ? r->options->buffer_size
                  : geteuid() == 0        ? RING_ROOT
                                          : RING_USER;
    r->ring_size = power_of_two(size);
    for (size_t i = 0; i < r->events.count; i++) {
        struct asked_event *event = &r->events.items[i];
        if (event->role != ROLE_MADE)
            set_attr(r, event, i == 0);
        if (event->role == ROLE_SAMPLE && event->attr.exclude_user && event->attr.exclude_kernel &&
            event->attr.exclude_hv)
            return error_set(error, ERROR_USAGE, "event %s: with -%c nothing is left to sample",
                             event->name, r->options->user_only ? 'u' : 'k');
    }
    if (!try_events(r, error) || !tell_of_kernel(r, error))
        return false;
    struct error unused;
    if (r->sink.interpreted && r->events.items[0].attr.use_clockid)
        interpreted_open(r->sink.interpreted, false, &unused);
    if (r->options->call_graph == CALL_GRAPH_DWARF)
        interpreted_set_copied(r->sink.interpreted, r->options->stack_size);
    for (size_t i = 0; i < r->cpus.count; i++)
        vector_push(&r->rings, ((struct ring){.cpu = r->cpus.items[i], .descriptor = -1}));
    r->no_files = false;
    if (open_targets(r, error))
        return r->descriptors.count ||
               error_set(error, ERROR_INPUT, "the target has ended before it could be recorded");
    return r->no_files && !r->options->system_wide && open_with_few_files(r, error);
}

void recording_enable_events(struct recording *r, bool on) {
    for (size_t i = 0; i < r->descriptors.count; i++)
        ioctl(r->descriptors.items[i], on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void recording_enable(struct recording *r, bool on) {
    if (r->sums)
        sums_enable(r->sums, on);
    heap_enable(r, on);
    recording_enable_events(r, on);
}
