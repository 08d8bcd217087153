/*
 * What `wick record` and `wick profile` share: the target, how to sample it, and how its failure is passed on.
 */
#include "cmd/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

struct record_options recording = {
    .frequency = 997, .call_graph = CALL_GRAPH_DWARF, .stack_size = 16384};
static text_list events;
static double duration, delay;
static uint64_t frequency; /* 0: nobody asked for one */

static bool call_graph_chosen;

bool recording_has_call_graph(void) {
    return call_graph_chosen;
}

static bool set_call_graph(const char *value, struct error *error) {
    call_graph_chosen = true;
    struct text t = text_of(value);
    uint64_t size = 16384;
    size_t comma = text_find(t, ',');
    struct text kind = comma == SIZE_MAX ? t : text_upto(t, comma);
    if (comma != SIZE_MAX &&
        (!text_equal(kind, TEXT("dwarf")) || !text_to_u64(text_from(t, comma + 1), &size) ||
         size < 8 || size > 65528))
        return error_set(error, ERROR_USAGE,
                         "'%s': the stack's size is from 8 to 65528 bytes, and only dwarf has one",
                         value);
    recording.stack_size = (uint32_t)(size & ~7ull);
    static const struct {
        const char *name;
        enum record_call_graph kind;
    } kinds[] = {{"dwarf", CALL_GRAPH_DWARF},
                 {"fp", CALL_GRAPH_FP},
                 {"lbr", CALL_GRAPH_LBR},
                 {"none", CALL_GRAPH_NONE}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (text_equal(kind, text_of(kinds[i].name))) {
            recording.call_graph = kinds[i].kind;
            return true;
        }
    }
    return error_set(error, ERROR_USAGE, "'%s' is none of dwarf, dwarf,SIZE, fp, lbr and none",
                     value);
}

/* 8M, 512K or bytes. */
bool recording_set_buffer(const char *value, struct error *error) {
    struct text t = text_of(value);
    uint64_t unit = 1, size;
    if (t.length && (t.data[t.length - 1] == 'M' || t.data[t.length - 1] == 'K')) {
        unit = t.data[t.length - 1] == 'M' ? 1 << 20 : 1 << 10;
        t.length--;
    }
    if (!text_to_u64(t, &size) || !checked_multiply(size, unit, &size) || size == 0 ||
        size > 1u << 30)
        return error_set(error, ERROR_USAGE, "'%s' is not a size up to 1024M", value);
    recording.buffer_size = (uint32_t)size;
    return true;
}

/* One or several: a comma inside a PMU's slashes is the PMU's. */
static bool add_event_names(const char *value, struct error *error) {
    bool inside = false;
    for (const char *start = value, *at = value;; at++) {
        inside ^= *at == '/';
        if (*at && (*at != ',' || inside))
            continue;
        if (at == start)
            return error_set(error, ERROR_USAGE, "'%s': an event without a name", value);
        vector_push(&events, memory_copy(start, (size_t)(at - start)));
        if (!*at)
            return true;
        start = at + 1;
    }
}

static bool set_off_cpu(const char *value, struct error *error) {
    struct text how = value ? text_of(value) : TEXT("auto");
    if (text_equal(how, TEXT("perf")))
        recording.off_cpu = OFF_CPU_PERF;
    else if (text_equal(how, TEXT("bpf")))
        recording.off_cpu = OFF_CPU_BPF;
    else if (text_equal(how, TEXT("auto")))
        recording.off_cpu = OFF_CPU_AUTO;
    else
        return error_set(error, ERROR_USAGE, "'%s' is neither perf nor bpf", value);
    return true;
}

static bool set_least(const char *value, struct error *error) {
    return parse_length(value, &recording.least_wait, error);
}

static bool set_most(const char *value, struct error *error) {
    return parse_length(value, &recording.most_wait, error);
}

const struct option options_off_cpu[] = {
    {"off-cpu", 0, OPTION_MAYBE, set_off_cpu, "[=perf|bpf]",
     "where threads wait instead: every switch as an event (perf), or summed up in the kernel "
     "(bpf; by default for -a and --wakers)"},
    {"wall", 0, OPTION_FLAG, &recording.wall, NULL, "both: where they run and where they wait"},
    {"wakers", 0, OPTION_FLAG, &recording.wakers, NULL, "and who ended the waits"},
    {"min", 0, OPTION_CALL, set_least, "TIME",
     "with bpf: only waits of at least so long: 20us, 5ms"},
    {"max", 0, OPTION_CALL, set_most, "TIME", "with bpf: only waits of at most so long"},
    {0},
};

const struct option options_target[] = {
    {"pid", 'p', OPTION_CALL, set_pids, "PID,…",
     "attach to these processes, with all their threads and children"},
    {"tid", 't', OPTION_CALL, set_tids, "TID,…", "attach to these threads"},
    {"all", 'a', OPTION_FLAG, &recording.system_wide, NULL, "the whole system"},
    {"cpu", 'C', OPTION_CALL, set_cpus, "CPU,…", "only on these CPUs"},
    {"cgroup", 0, OPTION_TEXT, &recording.cgroup, "NAME", "with -a: only what runs in this cgroup"},
    {"duration", 0, OPTION_AMOUNT, &duration, "SECONDS", "stop after so long"},
    {"delay", 'D', OPTION_AMOUNT, &delay, "SECONDS", "begin to sample after so long"},
    {0},
};

static bool set_method(const char *value, struct error *error) {
    static const char *const names[] = {"auto", "perf", "ptrace"};
    return choose(value, names, COUNT_OF(names), &recording.method, error);
}

const struct option options_sampling[] = {
    {"event", 'e', OPTION_CALL, add_event_names, "EVENT",
     "what to sample, as perf names it; several with commas or again; cycles by default, cpu-clock "
     "where there "
     "is no counter"},
    {"frequency", 'F', OPTION_COUNT64, &frequency, "HZ",
     "samples a second and CPU; 997 by default"},
    {"count", 'c', OPTION_COUNT64, &recording.period, "N",
     "a sample every N events, instead of a frequency"},
    {"call-graph", 'g', OPTION_CALL, set_call_graph, "HOW",
     "dwarf[,SIZE], fp, lbr or none; dwarf,16384 by default"},
    {"user", 'u', OPTION_FLAG, &recording.user_only, NULL, "only user code"},
    {"kernel", 'k', OPTION_FLAG, &recording.kernel_only, NULL, "only the kernel"},
    {"method", 0, OPTION_CALL, set_method, "HOW",
     "perf, or ptrace, which stops threads to look at them; auto: ptrace where perf events are "
     "refused"},
    {"no-inherit", 'i', OPTION_FLAG, &recording.no_inherit, NULL, "not the children of the target"},
    {0},
};

static bool target_is_one(const char *command, int *status) {
    int kinds = (recording.command != NULL) + (recording.pid_count || recording.tid_count) +
                recording.system_wide;
    if (kinds == 1 || (kinds == 2 && recording.system_wide && recording.command))
        return true;
    *status = kinds ? fail_usage(command, "a command, -p/-t or -a: one of them")
                    : fail_usage(command, "%s what? -- COMMAND, -p PID or -a", command);
    return false;
}

/* The kernel lowers its limit by itself where samples take long. Only a frequency that somebody asked for is worth an error then. */
static void lower_frequency(void) {
    char text[40];
    if (frequency || recording.period || recording.method == METHOD_PTRACE ||
        !file_read_small("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof text))
        return;
    unsigned long long most = strtoull(text, NULL, 10);
    if (!most || most >= recording.frequency)
        return;
    if (!request.quiet && (!recording.off_cpu || recording.wall)) /* waits are not sampled */
        fprintf(stderr,
                "wick: %llu samples a second instead of %llu: the kernel allows no more (sysctl "
                "kernel.perf_event_max_sample_rate)\n",
                most, (unsigned long long)recording.frequency);
    recording.frequency = most;
}

int recording_settle(char **argv) {
    int status = 0;
    request_settle();
    recording.context = &request.context;
    if (request.operands.count) {
        vector_push(&request.operands, NULL);
        recording.command = (char *const *)request.operands.items;
    }
    recording.pids = request.pids.items;
    recording.pid_count = request.pids.count;
    recording.tids = request.tids.items;
    recording.tid_count = request.tids.count;
    recording.cpus = request.cpus.items;
    recording.cpu_count = request.cpus.count;
    recording.events = events.items;
    recording.event_count = events.count;
    recording.duration = (uint64_t)(duration * 1e9);
    recording.delay = (uint64_t)(delay * 1e9);
    if (recording.period > INT64_MAX) /* the kernel takes the highest bit for a sign */
        return fail_usage(argv[0], "-c goes up to %lld", (long long)INT64_MAX);
    recording.arguments = argv;
    if (recording.user_only && recording.kernel_only)
        return fail_usage(argv[0], "--user or --kernel, not both");
    if (recording.wall && !recording.off_cpu)
        recording.off_cpu = OFF_CPU_AUTO;
    bool bounded = recording.least_wait || recording.most_wait;
    if (bounded && recording.system_wide && recording.off_cpu == OFF_CPU_AUTO)
        recording.off_cpu = OFF_CPU_BPF;
    if (bounded && recording.off_cpu != OFF_CPU_BPF)
        return fail_usage(argv[0], "--min and --max are for --off-cpu=bpf; else `wick fold` and "
                                   "others take them when the recording is read");
    if (recording.most_wait && recording.least_wait > recording.most_wait)
        return fail_usage(argv[0], "--min is more than --max");
    if (recording.wakers && !recording.off_cpu)
        return fail_usage(argv[0], "--wakers of what? --off-cpu or --wall");
    if (frequency && recording.period)
        return fail_usage(argv[0], "--frequency or --count, not both");
    if (frequency)
        recording.frequency = frequency;
    if (recording.cgroup && !recording.system_wide)
        return fail_usage(argv[0], "--cgroup is a part of the whole system: -a --cgroup NAME");
    if (target_is_one(argv[0], &status))
        lower_frequency();
    return status;
}

/* A target's own failure is said and passed on, but for the statuses that are wick's own: those are a hundred more, so that nobody takes a
   target that ended with 3 for a machine that does not allow something. */
int recording_target_status(const struct record_result *result) {
    progress_wipe();
    int status = result->target_status;
    if (status == -1 || status == 0 || result->target_ended || interrupted)
        return 0;
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "wick: %s was ended by signal %d\n", recording.command[0],
                WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    fprintf(stderr, "wick: %s ended with status %d\n", recording.command[0], WEXITSTATUS(status));
    return WEXITSTATUS(status) + (WEXITSTATUS(status) <= ERROR_INTERNAL ? 100 : 0);
}
