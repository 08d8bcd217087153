/*
 * Off-CPU time with perf events: a sample with its stack whenever a thread leaves the CPU, and a SWITCH record when it comes back. The reader
 * of the file pairs them.
 *
 * sched:sched_switch says why the thread left (asleep, waiting for a disk, or preempted). If tracepoints are not accessible, the software
 * event context-switches replaces it, and only preemption is distinguished from the rest. Both cost the target about 7 microseconds per
 * switch and, with DWARF stacks, up to the stack's size in the file. For high rates, use BPF (bpf.c).
 */
#include "record/internal.h"

static const struct note_kind note_inner_wakers = {
    "inner-wakers", "wakers outside the target were not recorded: --off-cpu=bpf or -a records all"};

static const struct note_kind note_no_state = {
    "no-wait-state",
    "waits for a disk were not distinguished from others: that needs tracepoints (`wick doctor`)"};

const char *const off_cpu_names[OFF_CPU_STATES] = {
    [OFF_CPU_SLEEP] = "offcpu-time",
    [OFF_CPU_DISK] = "offcpu-time:disk",
    [OFF_CPU_PREEMPTED] = "offcpu-time:preempted",
};

static void add_event(struct recording *r, enum role role, const struct perf_event_attr *attr,
                      const char *name) {
    struct asked_event asked = {
        .attr = *attr, .role = role, .name = memory_copy(name, strlen(name))};
    vector_push(&r->events, asked);
}

void recording_add_side_event(struct recording *r) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY};
    add_event(r, ROLE_SIDE, &attr, "dummy");
}

static bool add_switches(struct recording *r, struct error *error) {
    static const char *const names[] = {"sched:sched_switch", "context-switches"};
    struct perf_event_attr attr;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!record_parse_event(names[i], &attr, error))
            continue;
        add_event(r, ROLE_SWITCH, &attr, names[i]);
        return true;
    }
    return false;
}

/* An event on a thread sees the threads that it wakes, not its wakers. */
static bool add_wakings(struct recording *r, struct error *error) {
    struct perf_event_attr attr;
    if (!record_parse_event("sched:sched_waking", &attr, error))
        return false;
    add_event(r, ROLE_WAKING, &attr, "sched:sched_waking");
    if (!r->options->system_wide)
        notes_add(&r->result->notes, &note_inner_wakers, 1, 0, NULL);
    return true;
}

static bool choose_perf(struct recording *r, struct error *error) {
    r->off_cpu = OFF_CPU_PERF;
    return add_switches(r, error) && (!r->options->wakers || add_wakings(r, error));
}

static void note_blindness(struct recording *r) {
    for (size_t i = 0; i < r->events.count; i++)
        if (r->events.items[i].role == ROLE_SWITCH &&
            r->events.items[i].attr.type != PERF_TYPE_TRACEPOINT)
            notes_add(&r->result->notes, &note_no_state, 1, 0, NULL);
}

/* The last record may be from a thread that went to sleep long before the end, so write the targets' names again now. */
bool off_cpu_mark_end(struct recording *r, struct error *error) {
    const struct record_options *options = r->options;
    note_blindness(r);
    if (r->off_cpu != OFF_CPU_PERF || !r->events.items[0].attr.use_clockid)
        return true;
    r->sink.time = monotonic();
    bool fine = !r->child || synthesize_comm(&r->sink, r->child, r->child, false, error);
    for (size_t i = 0; fine && i < options->pid_count; i++)
        fine = synthesize_comm(&r->sink, options->pids[i], options->pids[i], false, error);
    for (size_t i = 0; fine && i < options->tid_count; i++) {
        pid_t pid = proc_status_id(options->tids[i], TEXT("Tgid"));
        fine = !pid || synthesize_comm(&r->sink, pid, options->tids[i], false, error);
    }
    r->sink.time = 0;
    return fine;
}

/* ---- with BPF ---- */

static const struct note_kind note_no_bpf = {
    "no-bpf", "waits could not be added up in the kernel, so each switch was recorded"};
static const struct note_kind note_frame_pointers = {
    "bpf-frame-pointers",
    "BPF follows frame pointers on this machine: stacks of code built without them are cut short; "
    "--off-cpu=perf records DWARF stacks"};

/* Ids of events that the kernel does not know, far from those it assigns. */
enum { MADE_IDS = 0x7769636b };

static void add_made_event(struct recording *r, const char *name, bool copies) {
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_BPF_OUTPUT,
        .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
                       PERF_SAMPLE_CALLCHAIN,
        .sample_period = 1,
        .freq = 1,
        .sample_id_all = 1,
    };
    if (copies) {
        attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr.sample_regs_user = USER_REGISTERS;
        attr.sample_stack_user = r->options->stack_size;
        attr.exclude_callchain_user = 1;
    }
    add_event(r, ROLE_MADE, &attr, name);
    struct asked_event *asked = &r->events.items[r->events.count - 1];
    vector_push(&asked->ids, ((uint64_t)MADE_IDS << 32) + r->events.count);
}

/* The names carry the state. It can't be in a sample's raw data, because since 6.16 perf parses the raw data of `offcpu-time` in its own
   format. */
static bool choose_bpf(struct recording *r, struct error *error) {
    const struct record_options *options = r->options;
    if (options->call_graph == CALL_GRAPH_DWARF && options->stack_size > OFF_CPU_COPY_SIZE)
        return error_set(error, ERROR_USAGE,
                         "BPF copies up to %d bytes of a stack: --off-cpu=perf copies more",
                         OFF_CPU_COPY_SIZE);
    if (options->cgroup && r->group < 0 && !recording_open_group(r, error))
        return false;
    struct error unused;
    if (r->sink.interpreted)
        interpreted_open(r->sink.interpreted, true, &unused);
    if (!(r->sums = sums_open(options, r->group, r->sink.interpreted, error))) {
        interpreted_close(r->sink.interpreted);
        return false;
    }
    r->off_cpu = OFF_CPU_BPF;
    r->sink.no_rounds = true;
    r->sink.knows_processes = options->wakers && !options->system_wide;
    if (!r->events.count)
        recording_add_side_event(r);
    r->first_made = r->events.count;
    bool copies = sums_copies(r->sums);
    for (int i = 0; i < OFF_CPU_STATES; i++)
        add_made_event(r, off_cpu_names[i],
                       copies && !(i == OFF_CPU_PREEMPTED && options->system_wide));
    if (options->wakers)
        add_made_event(r, "offcpu-waker", copies);
    if (options->call_graph == CALL_GRAPH_DWARF && !options->kernel_only && !copies)
        notes_add(&r->result->notes, &note_frame_pointers, 1, 0, NULL);
    return true;
}

bool record_has_bpf(struct error *why) {
    struct record_options options = {.call_graph = CALL_GRAPH_DWARF, .wakers = true};
    struct sums *sums = sums_open(&options, -1, NULL, why);
    sums_close(sums);
    return sums != NULL;
}

bool off_cpu_choose_events(struct recording *r, struct error *error) {
    const struct record_options *options = r->options;
    if (options->off_cpu == OFF_CPU_BPF)
        return choose_bpf(r, error);
    bool gains = options->system_wide || options->wakers; /* many switches; wakers of any kind */
    if (options->off_cpu == OFF_CPU_PERF || !gains)
        return choose_perf(r, error);
    struct error why;
    if (choose_bpf(r, &why))
        return true;
    notes_add(&r->result->notes, &note_no_bpf, 1, 0, "%s", why.message);
    return choose_perf(r, error);
}
