/*
 * Shared by `wick record` and `wick profile`: the target, how to sample it, and how its failure is passed on.
 */
#include "cmd/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { STACK_SIZE = 16384, DEEP_STACK_SIZE = 32768, HEAP_EVERY = 64 << 10 };

void recording_begin(struct recording_request *r) {
    r->recording = (struct record_options){.heap_every = HEAP_EVERY,
                                           .frequency = 997,
                                           .call_graph = CALL_GRAPH_DWARF,
                                           .stack_size = STACK_SIZE,
                                           .deep_stack_size = DEEP_STACK_SIZE};
}

static bool set_call_graph(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    r->call_graph_chosen = true;
    struct text t = text_of(value);
    uint64_t size = STACK_SIZE;
    size_t comma = text_find(t, ',');
    struct text kind = comma == SIZE_MAX ? t : text_upto(t, comma);
    if (comma != SIZE_MAX &&
        (!text_equal(kind, TEXT("dwarf")) || !text_to_u64(text_from(t, comma + 1), &size) ||
         size < 8 || size > 65528))
        return error_set(error, ERROR_USAGE,
                         "'%s': the stack's size is from 8 to 65528 bytes, and only dwarf has one",
                         value);
    r->recording.stack_size = (uint32_t)(size & ~7ull);
    r->recording.deep_stack_size = comma == SIZE_MAX ? DEEP_STACK_SIZE : 0;
    static const struct {
        const char *name;
        enum record_call_graph kind;
    } kinds[] = {{"dwarf", CALL_GRAPH_DWARF},
                 {"fp", CALL_GRAPH_FP},
                 {"lbr", CALL_GRAPH_LBR},
                 {"none", CALL_GRAPH_NONE}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (text_equal(kind, text_of(kinds[i].name))) {
            r->recording.call_graph = kinds[i].kind;
            return true;
        }
    }
    return error_set(error, ERROR_USAGE, "'%s' is none of dwarf, dwarf,SIZE, fp, lbr and none",
                     value);
}

/* Parse 8M, 512K or bytes. */
static bool parse_size(const char *value, uint64_t *size) {
    struct text t = text_of(value);
    uint64_t unit = 1;
    if (t.length && (t.data[t.length - 1] == 'M' || t.data[t.length - 1] == 'K')) {
        unit = t.data[t.length - 1] == 'M' ? 1 << 20 : 1 << 10;
        t.length--;
    }
    return text_to_u64(t, size) && checked_multiply(*size, unit, size) && *size > 0 &&
           *size <= 1u << 30;
}

static bool set_every(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    r->every_chosen = true;
    return parse_size(value, &r->recording.heap_every) ||
           error_set(error, ERROR_USAGE, "'%s' is not a size up to 1024M", value);
}

static bool set_heap(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    r->recording.heap = true;
    r->recording.heap_maps = value && text_equal(text_of(value), TEXT("mmap"));
    return !value || r->recording.heap_maps ||
           error_set(error, ERROR_USAGE, "--heap=%s: only --heap and --heap=mmap are known", value);
}

bool recording_set_buffer(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    uint64_t size;
    if (!parse_size(value, &size))
        return error_set(error, ERROR_USAGE, "'%s' is not a size up to 1024M", value);
    r->recording.buffer_size = (uint32_t)size;
    return true;
}

/* Parse one event or several: a comma between a PMU's slashes belongs to the PMU. */
static bool add_event_names(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    bool inside = false;
    for (const char *start = value, *at = value;; at++) {
        inside ^= *at == '/';
        if (*at && (*at != ',' || inside))
            continue;
        if (at == start)
            return error_set(error, ERROR_USAGE, "'%s': an event without a name", value);
        vector_push(&r->request.events,
                    arena_copy(&r->request.arena, (struct text){start, (size_t)(at - start)}).data);
        if (!*at)
            return true;
        start = at + 1;
    }
}

static bool set_off_cpu(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    struct text how = value ? text_of(value) : TEXT("auto");
    if (text_equal(how, TEXT("perf")))
        r->recording.off_cpu = OFF_CPU_PERF;
    else if (text_equal(how, TEXT("bpf")))
        r->recording.off_cpu = OFF_CPU_BPF;
    else if (text_equal(how, TEXT("auto")))
        r->recording.off_cpu = OFF_CPU_AUTO;
    else
        return error_set(error, ERROR_USAGE, "'%s' is neither perf nor bpf", value);
    return true;
}

static bool set_least(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    return parse_length(value, &r->recording.least_wait, error);
}

static bool set_most(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    return parse_length(value, &r->recording.most_wait, error);
}

#define HERE(member) IN(struct recording_request, member)
const struct option options_off_cpu[] = {
    {"off-cpu", 0, OPTION_MAYBE, CALL(set_off_cpu), "[=perf|bpf]",
     "record where threads wait: each switch as an event (perf), or summed in the kernel (bpf; the "
     "default for -a and --wakers)",
     "perf bpf"},
    {"wall", 0, OPTION_FLAG, HERE(recording.wall), NULL,
     "record both where threads run and where they wait"},
    {"wakers", 0, OPTION_FLAG, HERE(recording.wakers), NULL,
     "also record which thread ended each wait"},
    {"min", 0, OPTION_CALL, CALL(set_least), "TIME",
     "with bpf: only waits of at least this length, such as 20us or 5ms"},
    {"max", 0, OPTION_CALL, CALL(set_most), "TIME", "with bpf: only waits of at most this length"},
    {0},
};

const struct option options_heap[] = {
    {"heap", 0, OPTION_MAYBE, CALL(set_heap), "[=mmap]",
     "record memory allocations and frees instead of CPU time; with =mmap also memory that the "
     "program maps itself",
     "mmap"},
    {"every", 0, OPTION_CALL, CALL(set_every), "BYTES",
     "with --heap: sample one allocation per BYTES on average (default: 64K; 1 records all)"},
    {0},
};

const struct option options_target[] = {
    {"pid", 'p', OPTION_CALL, CALL(set_pids), "PID,…",
     "attach to these processes, their threads and their future children"},
    {"tid", 't', OPTION_CALL, CALL(set_tids), "TID,…", "attach to these threads"},
    {"all", 'a', OPTION_FLAG, HERE(recording.system_wide), NULL, "record the whole system"},
    {"cpu", 'C', OPTION_CALL, CALL(set_cpus), "CPU,…", "record only these CPUs"},
    {"cgroup", 0, OPTION_TEXT, HERE(recording.cgroup), "NAME", "with -a: record only this cgroup"},
    {"duration", 0, OPTION_AMOUNT, HERE(duration), "SECONDS", "stop after SECONDS"},
    {"delay", 'D', OPTION_AMOUNT, HERE(delay), "SECONDS", "start sampling after SECONDS"},
    {0},
};

static bool set_method(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    static const char *const names[] = {"auto", "perf", "ptrace"};
    return choose(value, names, COUNT_OF(names), &r->recording.method, error);
}

static bool set_keep(void *command, const char *value, struct error *error) {
    struct recording_request *r = command;
    static const char *const names[] = {"default", "none", "all"};
    return choose(value, names, COUNT_OF(names), &r->recording.keep, error);
}

const struct option options_sampling[] = {
    {"event", 'e', OPTION_CALL, CALL(add_event_names), "EVENT",
     "event to sample, by perf's name; separate several with commas or repeat (default: cycles, or "
     "cpu-clock if the CPU has no counter)",
     "cycles instructions cpu-clock task-clock page-faults cache-misses branch-misses "
     "context-switches"},
    {"frequency", 'F', OPTION_COUNT64, HERE(frequency), "HZ",
     "samples per second and CPU (default: 997)"},
    {"count", 'c', OPTION_COUNT64, HERE(recording.period), "N",
     "take a sample every N events instead of at a frequency"},
    {"call-graph", 'g', OPTION_CALL, CALL(set_call_graph), "HOW",
     "how to record stacks: dwarf[,SIZE], fp, lbr or none (default: dwarf,16384; for Java and node "
     "dwarf,32768)",
     "dwarf fp lbr none"},
    {"user", 'u', OPTION_FLAG, HERE(recording.user_only), NULL, "sample only user code"},
    {"kernel", 'k', OPTION_FLAG, HERE(recording.kernel_only), NULL, "sample only the kernel"},
    {"method", 0, OPTION_CALL, CALL(set_method), "HOW",
     "perf, ptrace (which stops threads briefly to read their stacks) or auto: ptrace if perf "
     "events are not permitted",
     "auto perf ptrace"},
    {"no-inherit", 'i', OPTION_FLAG, HERE(recording.no_inherit), NULL,
     "do not record child processes"},
    {"keep", 0, OPTION_CALL, CALL(set_keep), "WHAT",
     "default: keep what may be gone later (perf maps, names of kernel functions, deleted "
     "programs, programs of containers), "
     "up to 64 MB; all: keep every file that is needed to read the recording elsewhere, up to 1 "
     "GiB; none: keep nothing",
     "default all none"},
    {"no-runtime-setup", 0, OPTION_FLAG, HERE(recording.no_runtime_setup), NULL,
     "do not set the variables that make a runtime name its JIT code (node: NODE_OPTIONS, .NET: "
     "DOTNET_PerfMapEnabled, Erlang: ERL_FLAGS)"},
    {0},
};

static bool target_is_one(const struct recording_request *r, const char *command, int *status) {
    int kinds = (r->recording.command != NULL) +
                (r->recording.pid_count || r->recording.tid_count) + r->recording.system_wide;
    if (kinds == 1 || (kinds == 2 && r->recording.system_wide && r->recording.command))
        return true;
    *status = kinds ? fail_usage(command, "choose one of a command, -p/-t and -a")
                    : fail_usage(command, "nothing to %s: add -- COMMAND, -p PID or -a", command);
    return false;
}

/* The kernel lowers its limit if samples take long. That is an error only if a frequency was requested. */
static void lower_frequency(struct recording_request *r) {
    char text[40];
    if (r->frequency || r->recording.period || r->recording.method == METHOD_PTRACE ||
        !file_read_small("/proc/sys/kernel/perf_event_max_sample_rate", text, sizeof text))
        return;
    unsigned long long most = strtoull(text, NULL, 10);
    if (!most || most >= r->recording.frequency)
        return;
    if (!r->request.quiet &&
        (!r->recording.off_cpu || r->recording.wall)) /* waits are not sampled */
        fprintf(stderr,
                "wick: %llu samples a second instead of %llu: the kernel allows no more (sysctl "
                "kernel.perf_event_max_sample_rate)\n",
                most, (unsigned long long)r->recording.frequency);
    r->recording.frequency = most;
}

int recording_settle(struct recording_request *r, char **argv) {
    int status = 0;
    request_settle(&r->request);
    r->recording.context = &r->request.context;
    r->recording.cache = r->request.import.profile.objects.cache;
    if (r->request.operands.count) {
        vector_push(&r->request.operands, NULL);
        r->recording.command = (char *const *)r->request.operands.items;
    }
    r->recording.pids = r->request.pids.items;
    r->recording.pid_count = r->request.pids.count;
    r->recording.tids = r->request.tids.items;
    r->recording.tid_count = r->request.tids.count;
    r->recording.cpus = r->request.cpus.items;
    r->recording.cpu_count = r->request.cpus.count;
    r->recording.events = r->request.events.items;
    r->recording.event_count = r->request.events.count;
    r->recording.duration = (uint64_t)(r->duration * 1e9);
    r->recording.delay = (uint64_t)(r->delay * 1e9);
    if (r->recording.period > INT64_MAX) /* the kernel takes the highest bit for a sign */
        return fail_usage(argv[0], "-c goes up to %lld", (long long)INT64_MAX);
    r->recording.arguments = argv;
    if (r->recording.user_only && r->recording.kernel_only)
        return fail_usage(argv[0], "--user or --kernel, not both");
    if (r->recording.wall && !r->recording.off_cpu)
        r->recording.off_cpu = OFF_CPU_AUTO;
    bool bounded = r->recording.least_wait || r->recording.most_wait;
    if (bounded && r->recording.system_wide && r->recording.off_cpu == OFF_CPU_AUTO)
        r->recording.off_cpu = OFF_CPU_BPF;
    if (bounded && r->recording.off_cpu != OFF_CPU_BPF)
        return fail_usage(argv[0], "--min and --max are for --off-cpu=bpf; else `wick fold` and "
                                   "others take them when the recording is read");
    if (r->recording.most_wait && r->recording.least_wait > r->recording.most_wait)
        return fail_usage(argv[0], "--min is more than --max");
    if (r->every_chosen && !r->recording.heap && strcmp(argv[0], "profile") != 0)
        return fail_usage(argv[0], "--every needs --heap");
    if (r->recording.heap && (r->recording.off_cpu || r->recording.event_count))
        return fail_usage(argv[0], "--heap cannot be combined with -e, --off-cpu or --wall");
    if (r->recording.wakers && !r->recording.off_cpu)
        return fail_usage(argv[0], "--wakers needs --off-cpu or --wall");
    if (r->frequency && r->recording.period)
        return fail_usage(argv[0], "--frequency or --count, not both");
    if (r->frequency)
        r->recording.frequency = r->frequency;
    if (r->recording.cgroup && !r->recording.system_wide)
        return fail_usage(argv[0], "--cgroup is a part of the whole system: -a --cgroup NAME");
    if (target_is_one(r, argv[0], &status))
        lower_frequency(r);
    return status;
}

void recording_say_cost(const struct recording_request *r) {
    if (r->recording.heap && r->recording.pid_count && !r->request.quiet)
        fprintf(stderr,
                "wick: while it is recorded, each call of malloc, free and their like costs "
                "the process 1 to 2 microseconds more\n");
}

/* Report a target's own failure and pass on its status, except for those that wick uses itself: these are increased
   by a hundred, so that a target that ended with 3 is not taken for a machine that does not allow something. */
int recording_target_status(const struct record_options *recording,
                            const struct record_result *result) {
    progress_wipe();
    int status = result->target_status;
    if (status == -1 || status == 0 || result->target_ended || interrupted)
        return 0;
    if (WIFSIGNALED(status)) {
        say_line("%s was ended by signal %d", recording->command[0], WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    say_line("%s ended with status %d", recording->command[0], WEXITSTATUS(status));
    return WEXITSTATUS(status) + (WEXITSTATUS(status) <= ERROR_INTERNAL ? 100 : 0);
}
