#include "cmd/cmd.h"

#include <stdio.h>
#include <sys/wait.h>

#include "record/record.h"

static struct record_options record = {
    .frequency = 997, .call_graph = CALL_GRAPH_DWARF, .stack_size = 16384};
static text_list events;
static double duration, delay;
static uint32_t compress_level;

static bool set_call_graph(const char *value, struct error *error) {
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
    record.stack_size = (uint32_t)(size & ~7ull);
    static const struct {
        const char *name;
        enum record_call_graph kind;
    } kinds[] = {{"dwarf", CALL_GRAPH_DWARF},
                 {"fp", CALL_GRAPH_FP},
                 {"lbr", CALL_GRAPH_LBR},
                 {"none", CALL_GRAPH_NONE}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (text_equal(kind, text_of(kinds[i].name))) {
            record.call_graph = kinds[i].kind;
            return true;
        }
    }
    return error_set(error, ERROR_USAGE, "'%s' is none of dwarf, dwarf,SIZE, fp, lbr and none",
                     value);
}

/* 8M, 512K or bytes. */
static bool set_buffer(const char *value, struct error *error) {
    struct text t = text_of(value);
    uint64_t unit = 1, size;
    if (t.length && (t.data[t.length - 1] == 'M' || t.data[t.length - 1] == 'K')) {
        unit = t.data[t.length - 1] == 'M' ? 1 << 20 : 1 << 10;
        t.length--;
    }
    if (!text_to_u64(t, &size) || !checked_multiply(size, unit, &size) || size == 0 ||
        size > 1u << 30)
        return error_set(error, ERROR_USAGE, "'%s' is not a size up to 1024M", value);
    record.buffer_size = (uint32_t)size;
    return true;
}

static bool add_event_names(const char *value, struct error *error) {
    vector_push(&events, value);
    return true;
}

static const struct option options_target[] = {
    {"pid", 'p', OPTION_CALL, set_pids, "PID,…",
     "attach to these processes, with all their threads and children"},
    {"tid", 't', OPTION_CALL, set_tids, "TID,…", "attach to these threads"},
    {"all", 'a', OPTION_FLAG, &record.system_wide, NULL, "the whole system"},
    {"cpu", 'C', OPTION_CALL, set_cpus, "CPU,…", "only on these CPUs"},
    {"duration", 0, OPTION_DOUBLE, &duration, "SECONDS", "stop after so long"},
    {"delay", 'D', OPTION_DOUBLE, &delay, "SECONDS", "begin to sample after so long"},
    {0},
};

static const struct option options_sampling[] = {
    {"event", 'e', OPTION_CALL, add_event_names, "EVENT",
     "what to sample, as perf names it; may be repeated; cycles by default, cpu-clock where there "
     "is no counter"},
    {"frequency", 'F', OPTION_U64, &record.frequency, "HZ",
     "samples a second and CPU; 997 by default"},
    {"count", 'c', OPTION_U64, &record.period, "N",
     "a sample every N events, instead of a frequency"},
    {"call-graph", 'g', OPTION_CALL, set_call_graph, "HOW",
     "dwarf[,SIZE], fp, lbr or none; dwarf,16384 by default"},
    {"user", 'u', OPTION_FLAG, &record.user_only, NULL, "only user code"},
    {"kernel", 'k', OPTION_FLAG, &record.kernel_only, NULL, "only the kernel"},
    {"no-inherit", 'i', OPTION_FLAG, &record.no_inherit, NULL, "not the children of the target"},
    {0},
};

static const struct option options_recording[] = {
    {"output", 'o', OPTION_TEXT, &request.output, "FILE",
     "perf.data by default; - is a stream on standard output"},
    {"compress", 'z', OPTION_U32, &compress_level, "LEVEL", "compress with zstd, 1 (quick) to 19"},
    {"buffer", 'm', OPTION_CALL, set_buffer, "SIZE", "ring buffer of each CPU: 512K, 8M, …"},
    {"quiet", 'q', OPTION_FLAG, &request.quiet, NULL, "say nothing but errors"},
    {0},
};

static const struct option_group groups[] = {
    {"Target", options_target},
    {"Sampling", options_sampling},
    {"Output", options_recording},
    {0},
};

static const struct syntax syntax = {
    "record",
    "-- COMMAND… | -p PID | -a",
    "Records a program into a perf.data that wick, perf and hotspot read. Ctrl-C ends it and "
    "keeps\n"
    "what was recorded.",
    groups,
};

static char *join_command(int argc, char **argv) {
    struct buffer line = {0};
    buffer_add(&line, TEXT("wick"));
    for (int i = 0; i < argc; i++)
        buffer_printf(&line, " %s", argv[i]);
    buffer_add_char(&line, 0);
    return line.items;
}

static bool target_is_one(int *status) {
    int kinds =
        (record.command != NULL) + (record.pid_count || record.tid_count) + record.system_wide;
    if (kinds == 1 || (kinds == 2 && record.system_wide && record.command))
        return true;
    *status = fail_usage("record", kinds ? "a command, -p/-t or -a: one of them"
                                         : "record what? -- COMMAND, -p PID or -a");
    return false;
}

static int settle(int argc, char **argv) {
    int status = 0;
    request_settle();
    if (request.operands.count) {
        vector_push(&request.operands, NULL);
        record.command = (char *const *)request.operands.items;
    }
    record.pids = request.pids.items;
    record.pid_count = request.pids.count;
    record.tids = request.tids.items;
    record.tid_count = request.tids.count;
    record.cpus = request.cpus.items;
    record.cpu_count = request.cpus.count;
    record.events = events.items;
    record.event_count = events.count;
    record.duration = duration > 0 ? (uint64_t)(duration * 1e9) : 0;
    record.delay = delay > 0 ? (uint64_t)(delay * 1e9) : 0;
    record.compress_level = (int)compress_level;
    record.output = request.output ? request.output : "perf.data";
    record.command_line = join_command(argc, argv);
    if (record.user_only && record.kernel_only)
        return fail_usage("record", "--user or --kernel, not both");
    if (!record.frequency && !record.period)
        return fail_usage("record", "a frequency of 0 samples nothing");
    if (compress_level > 19)
        return fail_usage("record", "--compress goes up to 19");
    target_is_one(&status);
    return status;
}

/* A target's own failure is said and passed on. */
static int target_status(const struct record_result *result) {
    if (result->target_status == -1 || result->target_status == 0)
        return 0;
    if (WIFSIGNALED(result->target_status)) {
        int signal = WTERMSIG(result->target_status);
        if (interrupted || record.duration)
            return 0;
        fprintf(stderr, "wick: %s was ended by signal %d\n", record.command[0], signal);
        return 128 + signal;
    }
    fprintf(stderr, "wick: %s ended with status %d\n", record.command[0],
            WEXITSTATUS(result->target_status));
    return WEXITSTATUS(result->target_status);
}

int command_record(int argc, char **argv) {
    int status = 0;
    if (!options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    if ((status = settle(argc, argv)))
        return status;
    struct record_result result;
    struct error error;
    bool fine = record_run(&record, &result, &error);
    status = fine ? target_status(&result) : fail(&error);
    if (fine && !request.quiet)
        fprintf(stderr, "wick: %llu samples of %s in %s (%.1f MB)\n",
                (unsigned long long)result.samples, result.events, record.output,
                (double)result.bytes / 1e6);
    print_notes(&result.notes);
    record_result_release(&result);
    return status;
}
