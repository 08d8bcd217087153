/*
 * Off-CPU time with perf events: a sample with its stack whenever a thread leaves the CPU, and a SWITCH record when it comes back. Whoever
 * reads the file pairs them.
 *
 * sched:sched_switch says why the thread left (asleep, waiting for a disk, or preempted); where tracepoints are not to be seen, the
 * software event context-switches stands in, and only preemption is told from the rest. Both cost the target about 7 microseconds and,
 * with DWARF stacks, up to the stack's size in the file for each switch: BPF (bpf.c) is for high rates.
 */
#include "record/internal.h"

static void add_event(struct recording *r, enum role role, const struct perf_event_attr *attr,
                      const char *name) {
    struct wanted wanted = {.attr = *attr, .role = role, .name = memory_copy(name, strlen(name))};
    vector_push(&r->events, wanted);
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

/* A waking is seen by the events of the woken thread, too, whoever wakes it: no need to record the whole system. */
static bool add_wakings(struct recording *r, struct error *error) {
    struct perf_event_attr attr;
    if (!record_parse_event("sched:sched_waking", &attr, error))
        return false;
    add_event(r, ROLE_WAKING, &attr, "sched:sched_waking");
    return true;
}

bool off_cpu_choose_events(struct recording *r, struct error *error) {
    r->off_cpu = OFF_CPU_PERF;
    return add_switches(r, error) && (!r->options->wakers || add_wakings(r, error));
}
