/* Filters are lists of a few items: a linear search costs less than anything cleverer. */
#include "tree/tree.h"

/* What is spelled out matches itself, whatever is in it. */
static bool fits(struct text name, const char *pattern) {
    return text_equal(name, text_of(pattern)) || text_matches(name, text_of(pattern));
}

bool filter_event(const struct filter *filter, struct text name) {
    for (size_t i = 0; i < filter->event_count; i++)
        if (strcmp(filter->events[i], "all") == 0 || fits(name, filter->events[i]))
            return true;
    return false;
}

/* What follows the PMU of one kind of core, or all of the name. */
static struct text event_without_core(struct text name, bool *hybrid) {
    static const struct text cores[] = {{"cpu_core/", 9}, {"cpu_atom/", 9}, {"cpu_lowpower/", 13}};
    for (size_t i = 0; i < COUNT_OF(cores); i++)
        if (text_starts(name, cores[i])) {
            *hybrid = true;
            return text_from(name, cores[i].length);
        }
    *hybrid = false;
    return name;
}

bool event_same(struct text a, struct text b) {
    bool of_core_a, of_core_b;
    struct text rest_a = event_without_core(a, &of_core_a),
                rest_b = event_without_core(b, &of_core_b);
    return text_equal(a, b) || (of_core_a && of_core_b && text_equal(rest_a, rest_b));
}

static bool filter_id(const int32_t *ids, size_t count, int32_t id) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return count == 0;
}

static bool filter_comm(const struct filter *filter, struct text comm) {
    for (size_t i = 0; i < filter->comm_count; i++)
        if (fits(comm, filter->comms[i]))
            return true;
    return filter->comm_count == 0;
}

static bool filter_cpu(const struct filter *filter, uint32_t cpu) {
    for (size_t i = 0; i < filter->cpu_count; i++)
        if (filter->cpus[i] == cpu)
            return true;
    return filter->cpu_count == 0;
}

bool filter_sample(const struct filter *filter, int32_t pid, int32_t tid, struct text comm,
                   uint32_t cpu, uint64_t time) {
    if (filter->has_time && (time < filter->time_from || time > filter->time_to))
        return false;
    return filter_id(filter->pids, filter->pid_count, pid) &&
           filter_id(filter->tids, filter->tid_count, tid) && filter_cpu(filter, cpu) &&
           filter_comm(filter, comm);
}
