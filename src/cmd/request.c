/*
 * The option tables that commands share, and what their values mean. steps.c carries them out.
 */
#include "cmd/confine.h"

/* ---- values that need parsing ---- */

static bool add_ids(id_list *ids, const char *value, struct error *error) {
    struct text rest = text_of(value);
    while (true) {
        size_t comma = text_find(rest, ',');
        struct text word = comma == SIZE_MAX ? rest : text_upto(rest, comma);
        uint64_t id;
        if (!text_to_u64(word, &id) || id > INT32_MAX)
            return error_set(error, ERROR_USAGE, "'%s' is not a list of numbers", value);
        vector_push(ids, (int32_t)id);
        if (comma == SIZE_MAX)
            return true;
        rest = text_from(rest, comma + 1);
    }
}

bool set_pids(void *command, const char *value, struct error *error) {
    return add_ids(&((struct request *)command)->pids, value, error);
}
bool set_tids(void *command, const char *value, struct error *error) {
    return add_ids(&((struct request *)command)->tids, value, error);
}

enum { MOST_CPUS = 1 << 20 };

/* "0,4-7" */
bool set_cpus(void *command, const char *value, struct error *error) {
    struct request *request = command;
    struct text rest = text_of(value);
    while (true) {
        size_t comma = text_find(rest, ',');
        struct text word = comma == SIZE_MAX ? rest : text_upto(rest, comma);
        size_t dash = text_find(word, '-');
        uint64_t low, high;
        bool good = text_to_u64(dash == SIZE_MAX ? word : text_upto(word, dash), &low) &&
                    text_to_u64(dash == SIZE_MAX ? word : text_from(word, dash + 1), &high);
        if (!good || low > high || high >= MOST_CPUS)
            return error_set(error, ERROR_USAGE, "'%s' is not a list of CPUs, like 0,4-7", value);
        for (; low <= high; low++)
            vector_push(&request->cpus, (uint32_t)low);
        if (comma == SIZE_MAX)
            return true;
        rest = text_from(rest, comma + 1);
    }
}

bool parse_decimal(struct text t, uint64_t each, unsigned digits, uint64_t *result) {
    size_t dot = text_find(t, '.');
    struct text whole = dot == SIZE_MAX ? t : text_upto(t, dot);
    struct text part = dot == SIZE_MAX ? TEXT("") : text_from(t, dot + 1);
    uint64_t fraction = 0;
    *result = 0;
    if (whole.length + part.length == 0 || part.length > digits ||
        (whole.length && !text_to_u64(whole, result)) ||
        (part.length && !text_to_u64(part, &fraction)))
        return false;
    for (size_t i = part.length; i < digits; i++)
        fraction *= 10;
    return checked_multiply(*result, each, result) && checked_add(*result, fraction, result);
}

bool parse_length(const char *value, uint64_t *nanoseconds, struct error *error) {
    static const struct {
        const char *name;
        uint64_t each;
        unsigned digits;
    } units[] = {{"ns", 1, 0}, {"us", 1000, 3}, {"ms", 1000000, 6}, {"s", 1000000000, 9}};
    struct text t = text_of(value);
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (text_ends(t, text_of(units[i].name)) &&
            parse_decimal(text_upto(t, t.length - strlen(units[i].name)), units[i].each,
                          units[i].digits, nanoseconds))
            return true;
    return error_set(error, ERROR_USAGE, "'%s' is not a length of time such as 250us, 1.5ms or 2s",
                     value);
}

static bool set_least_wait(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return parse_length(value, &request->import.profile.least_wait, error);
}
static bool set_most_wait(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return parse_length(value, &request->import.profile.most_wait, error);
}
static bool set_off_cpu(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->import.profile.times = TIMES_WAITING;
    request->times_asked = true;
    return true;
}
static bool set_wall(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->import.profile.times = TIMES_BOTH;
    request->times_asked = true;
    return true;
}
static bool set_on_cpu(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->import.profile.times = TIMES_RUNNING;
    request->times_asked = true;
    return true;
}

static bool set_value(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->value = value_is_common(text_of(value), &request->flame.by_samples) ? NULL : value;
    return true;
}

static bool set_weight(void *command, const char *value, struct error *error) {
    if (strcmp(value, "samples") == 0 || strcmp(value, "period") == 0)
        return set_value(command, value, error);
    return error_set(error, ERROR_USAGE, "'%s' is neither samples nor period", value);
}

static bool add_pattern(pattern_list *list, struct pattern *pattern) {
    if (pattern)
        vector_push(list, pattern);
    return pattern != NULL;
}

static bool set_focus(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return add_pattern(&request->rules.focus, pattern_new(value, error));
}
static bool set_ignore(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return add_pattern(&request->rules.ignore, pattern_new(value, error));
}
static bool set_hide(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return add_pattern(&request->rules.hide, pattern_new(value, error));
}
static bool set_root(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return add_pattern(&request->rules.root, pattern_new(value, error));
}
static bool set_with(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return add_pattern(&request->rules.focus, pattern_exact_new(value));
}
static bool set_without(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return add_pattern(&request->rules.ignore, pattern_exact_new(value));
}
static bool set_base(void *command, const char *value, struct error *error) {
    struct request *request = command;
    return add_pattern(&request->rules.root, pattern_exact_new(value));
}

static bool set_ghc_column(void *command, const char *value, struct error *error) {
    struct request *request = command;
    static const char *const columns[] = {"time", "ticks", "bytes"};
    unsigned column = 0;
    bool fine = choose(value, columns, COUNT_OF(columns), &column, error);
    request->import.ghc_column = (int)column;
    return fine;
}

static bool set_from(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->import.from = value;
    if (strcmp(value, "guess") == 0 || import_format_named(value))
        return true;
    struct buffer names = {0};
    for (size_t i = 0; import_formats[i]; i++)
        buffer_printf(&names, " %s", import_formats[i]->name);
    error_set(error, ERROR_USAGE, "'%s' is none of:%.*s", value, (int)names.count, names.items);
    buffer_release(&names);
    return false;
}

static bool set_mark_all(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->naming.mark_kernel = request->naming.mark_jit = request->naming.mark_inline = true;
    return true;
}

bool set_source_lines(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->import.profile.source_lines = request->naming.source_lines = true;
    return true;
}

static bool set_compat(void *command, const char *value, struct error *error) {
    return true; /* request_find_compat() has already handled it */
}

/* ---- tables ---- */

const struct option options_filter[] = {
    {"event", 'e', OPTION_LIST, ASKED(events), "NAME",
     "count only this event; repeat for more; 'all' sums every event"},
    {"comm", 0, OPTION_LIST, ASKED(comms), "NAME",
     "only threads with this name; * and ? are wildcards; may be repeated"},
    {"pid", 'p', OPTION_CALL, CALL(set_pids), "PID,…", "only these processes"},
    {"tid", 't', OPTION_CALL, CALL(set_tids), "TID,…", "only these threads"},
    {"cpu", 0, OPTION_CALL, CALL(set_cpus), "CPU,…", "only samples taken on these CPUs"},
    {"time", 0, OPTION_CALL, CALL(set_time), "FROM,TO",
     "only samples in this range: seconds as `wick script` prints them, seconds from the start "
     "(+2,+4), or per cent (10%-20%); either end may be empty"},
    {"label", 0, OPTION_CALL, CALL(set_label), "KEY=VALUE",
     "only samples with this label: event, comm, pid, tid, cpu, state, ending or any other label "
     "in the source; * and ? are wildcards; repeat a key to allow several values"},
    {0},
};

const struct option options_waits[] = {
    {"on-cpu", 0, OPTION_CALL, CALL(set_on_cpu), NULL,
     "show CPU time (the default, unless `wick record` or `wick profile` recorded waits)"},
    {"off-cpu", 0, OPTION_CALL, CALL(set_off_cpu), NULL,
     "show off-CPU time in nanoseconds (the recording must contain scheduling events)"},
    {"wall", 0, OPTION_CALL, CALL(set_wall), NULL,
     "show on-CPU and off-CPU time together; they add up to each thread's wall time"},
    {"wakers", 0, OPTION_FLAG, ASKED(import.profile.wakers), NULL,
     "with --off-cpu or --wall: after each wait, append `--` and the waker's stack, leaf first"},
    {"min", 0, OPTION_CALL, CALL(set_least_wait), "LENGTH",
     "only waits of at least this length, such as 1ms"},
    {"max", 0, OPTION_CALL, CALL(set_most_wait), "LENGTH",
     "only waits of at most this length, such as 2s"},
    {0},
};

const struct option options_symbols[] = {
    {"symfs", 0, OPTION_TEXT, ASKED(import.profile.objects.symfs), "DIR",
     "look up every file below DIR"},
    {"kallsyms", 0, OPTION_TEXT, ASKED(import.profile.objects.kallsyms), "FILE",
     "read kernel symbols from FILE"},
    {"vmlinux", 0, OPTION_TEXT, ASKED(import.profile.objects.vmlinux), "FILE",
     "read kernel symbols from this ELF file"},
    {"debug-dir", 0, OPTION_TEXT, ASKED(import.profile.objects.debug_directories), "DIR[:DIR…]",
     "search these directories for debug files before /usr/lib/debug"},
    OPTIONS_DEBUGINFOD,
    {"no-demangle", 0, OPTION_FLAG, ASKED(import.profile.objects.no_demangle), NULL,
     "do not demangle C++, Rust and D names"},
    {"no-inline", 0, OPTION_FLAG, ASKED(import.profile.no_inline), NULL,
     "do not expand inlined functions"},
    {"native-frames", 0, OPTION_FLAG, ASKED(import.profile.native_frames), NULL,
     "show the interpreter's own native frames, which are hidden by default"},
    {0},
};

const struct option options_by[] = {
    {"by", 0, OPTION_CALL, CALL(set_by), "DIMENSION,…",
     "choose the root frames: process, thread or a label such as event, comm, pid, tid, cpu, state "
     "(label:KEY if the name is ambiguous); or what each frame shows: function (default), line, "
     "address, object or module",
     "function line address object module process thread comm pid tid cpu event state"},
    {0},
};

/* Not for tables, which have no rows for the frames below the first function. */
const struct option options_root[] = {
    {"no-comm", 0, OPTION_FLAG, ASKED(naming.no_comm), NULL,
     "do not use the comm as the root frame"},
    {"show-pid", 0, OPTION_FLAG, ASKED(naming.show_pid), NULL, "use comm-PID as the root frame"},
    {"show-tid", 0, OPTION_FLAG, ASKED(naming.show_tid), NULL,
     "use comm-PID/TID as the root frame"},
    {"show-state", 0, OPTION_FLAG, ASKED(naming.show_state), NULL,
     "add a frame for the thread's state: [sleep], [disk], [preempted]; with --wall also [on-cpu]"},
    {0},
};

const struct option options_names[] = {
    {"set-label", 0, OPTION_CALL, CALL(assign_label), "KEY=VALUE",
     "add this label to the output, such as service=web; may be repeated"},
    {"srcline", 0, OPTION_CALL, CALL(set_source_lines), NULL, "add file:line to each frame"},
    {"mark-kernel", 0, OPTION_FLAG, ASKED(naming.mark_kernel), NULL,
     "append _[k] to kernel frames"},
    {"mark-jit", 0, OPTION_FLAG, ASKED(naming.mark_jit), NULL,
     "append _[j] to JIT-compiled frames"},
    {"mark-inline", 0, OPTION_FLAG, ASKED(naming.mark_inline), NULL,
     "append _[i] to inlined frames"},
    {"mark-all", 0, OPTION_CALL, CALL(set_mark_all), NULL, "append all three marks"},
    {"mark-incomplete", 0, OPTION_FLAG, ASKED(naming.mark_incomplete), NULL,
     "mark incomplete stacks with a root frame [truncated] or [broken]"},
    {"addrs", 0, OPTION_FLAG, ASKED(naming.addresses), NULL,
     "show the address of frames without a symbol"},
    {"strip-templates", 0, OPTION_FLAG, ASKED(naming.strip_templates), NULL,
     "remove template arguments, so that all instances of a template count as one function"},
    {"strip-arguments", 0, OPTION_FLAG, ASKED(naming.strip_arguments), NULL,
     "remove function arguments, also from names in text input"},
    {"skip-after", 0, OPTION_LIST, ASKED(skip_after), "FUNCTION",
     "drop the callers of this function and the comm; may be repeated"},
    {"keep-unknown", 0, OPTION_FLAG, ASKED(naming.keep_unknown), NULL,
     "keep frames without symbol and object as [unknown]"},
    {0},
};

const struct option options_stacks[] = {
    {"focus", 0, OPTION_CALL, CALL(set_focus), "PATTERN",
     "keep only stacks in which a function matches this regular expression; may be repeated"},
    {"ignore", 0, OPTION_CALL, CALL(set_ignore), "PATTERN",
     "drop stacks in which a function matches; may be repeated"},
    {"hide", 0, OPTION_CALL, CALL(set_hide), "PATTERN",
     "remove matching frames and join their callees to their callers; may be repeated"},
    {"root", 0, OPTION_CALL, CALL(set_root), "PATTERN",
     "make the matching function the root; drop its callers and all other stacks; may be repeated"},
    {"with", 0, OPTION_CALL, CALL(set_with), "FUNCTION", "like --focus, for exactly this name"},
    {"without", 0, OPTION_CALL, CALL(set_without), "FUNCTION",
     "like --ignore, for exactly this name"},
    {"base", 0, OPTION_CALL, CALL(set_base), "FUNCTION", "like --root, for exactly this name"},
    {"kernel-only", 0, OPTION_FLAG, ASKED(rules.kernel_only), NULL,
     "keep only kernel frames; drop stacks without any"},
    {"user-only", 0, OPTION_FLAG, ASKED(rules.user_only), NULL,
     "keep only user frames; drop stacks without any"},
    {0},
};

bool stacks_are_chosen(const struct request *request) {
    return stack_rules_set(&request->rules);
}

const struct option options_shape[] = {
    {"weight", 0, OPTION_CALL, CALL(set_weight), "WHAT",
     "sum periods (the default if the source has them) or samples", "samples period"},
    {"value", 0, OPTION_CALL, CALL(set_value), "NAME",
     "choose what to sum: samples, or the value of an event such as cpu, cycles or "
     "alloc_space/bytes; --verbose lists what a profile has",
     "samples period"},
    {"fold-recursion", 0, OPTION_FLAG, ASKED(flame.fold_recursion), NULL,
     "merge a function's direct recursion into one frame"},
    {"max-depth", 0, OPTION_COUNT, ASKED(flame.max_depth), "N",
     "cut stacks after N frames and keep their weight"},
    {0},
};

/* Every command detects formats, except those that only read recordings. */
#define OPTION_FROM                                                                                \
    {                                                                                              \
        "from", 0, OPTION_CALL, CALL(set_from), "FORMAT",                                          \
            "read the input as FORMAT instead of looking at it: perf (text of perf script), "      \
            "folded, "                                                                             \
            "dtrace, sample, vtune, vsprof, ghcprof, xctrace, bpftrace, go, gdb, eu-stack, stap, " \
            "pmcstat, "                                                                            \
            "jstack, java-exceptions, async-profiler, faulthandler, chrome, perf-sched, "          \
            "offcputime, "                                                                         \
            "recursive, svg, pprof, speedscope, cpuprofile, heapprofile, firefox, otlp, jfr, "     \
            "heap, gecko, callgrind, gperftools, stackprof, pprof-text, dhat, massif, v8log, "     \
            "wick (profiles saved by wick save)",                                                  \
            "perf folded dtrace sample vtune vsprof ghcprof xctrace bpftrace go gdb eu-stack "     \
            "stap "                                                                                \
            "pmcstat jstack java-exceptions async-profiler faulthandler chrome perf-sched "        \
            "offcputime recursive svg pprof speedscope cpuprofile heapprofile firefox otlp jfr "   \
            "heap gecko callgrind gperftools stackprof pprof-text dhat massif v8log "              \
            "wick guess"                                                                           \
    }

const struct option options_from[] = {
    OPTION_FROM, OPTION_CREDENTIALS, OPTION_ALLOW_PARTIAL, OPTION_STORE_TIMEOUT, {0}};

const struct option options_formats[] = {
    OPTION_FROM,
    {"comm-first", 0, OPTION_FLAG, ASKED(import.comm_first), NULL,
     "folded: read the first frame as the comm, not as a function"},
    {"no-modules", 0, OPTION_FLAG, ASKED(import.no_modules), NULL,
     "sample, vtune: remove module names"},
    {"keep-offsets", 0, OPTION_FLAG, ASKED(import.include_offset), NULL,
     "dtrace: keep offsets in names"},
    {"ghc", 0, OPTION_CALL, CALL(set_ghc_column), "COLUMN",
     "ghcprof: weigh by time (default), ticks or bytes", "time ticks bytes"},
    OPTION_CREDENTIALS,
    OPTION_ALLOW_PARTIAL,
    OPTION_STORE_TIMEOUT,
    {0},
};

const struct option options_common[] = {
    {"output", 'o', OPTION_TEXT, ASKED(output), "FILE", "write to FILE (- for standard output)"},
    {"jobs", 'j', OPTION_COUNT, ASKED(context.threads), "N",
     "use N threads (default: one per CPU)"},
    {"strict", 0, OPTION_FLAG, ASKED(import.profile.strict), NULL,
     "fail if the recording is cut short"},
    {"compat", 0, OPTION_CALL, CALL(set_compat), "PEER",
     "behave exactly like PEER, inferno or perf, including its options and bugs", "inferno perf"},
    {"quiet", 'q', OPTION_FLAG, ASKED(quiet), NULL, "print no notes and no progress"},
    {"verbose", 'v', OPTION_FLAG, ASKED(verbose), NULL,
     "print what was read, the recording's metadata and the state of the sandbox"},
    OPTION_NO_SANDBOX,
    {0},
};

bool request_find_compat(struct request *request, int argc, char **argv, int *status) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--compat=", 9) == 0)
            request->compat = argv[i] + 9;
        else if (strcmp(argv[i], "--compat") == 0 && i + 1 < argc)
            request->compat = argv[i + 1];
    }
    if (!request->compat)
        return true;
    const struct quirks *quirks = quirks_named(request->compat);
    if (quirks) {
        request->import.profile.quirks = *quirks;
        return true;
    }
    *status = fail_usage(argv[0], "--compat %s: only inferno and perf are known", request->compat);
    return false;
}

/* Return true and set *status if the options about waits contradict each other. */
static bool waits_are_wrong(const struct request *request, int *status) {
    const char *command = request->syntax->command;
    const struct profile_options *profile = &request->import.profile;
    bool limits = profile->least_wait || profile->most_wait;
    if (profile->times != TIMES_RUNNING && request->compat)
        *status = fail_usage(command, "%s does not have --off-cpu and --wall", request->compat);
    else if (profile->times == TIMES_RUNNING && (profile->wakers || limits))
        *status = fail_usage(command, "--wakers, --min and --max need --off-cpu or --wall");
    else if (profile->most_wait && profile->least_wait > profile->most_wait)
        *status = fail_usage(command, "--min is more than --max");
    else
        return false;
    return true;
}

static bool print_script(struct out *out, const struct profile *profile,
                         const struct context *context, struct error *error) {
    struct script_options options = {.context = context, .quirks = quirks_perf};
    return script_write(out, profile, &options, error);
}

void request_settle(struct request *request) {
    struct profile_options *profile = &request->import.profile;
    struct filter *filter = &profile->filter;
    filter->events = request->events.items;
    filter->event_count = request->events.count;
    profile->value = request->value;
    if (request->value && !request->events.count) { /* its event is not known yet */
        static const char *all[] = {"all"};
        filter->events = all;
        filter->event_count = 1;
    }
    filter->comms = request->comms.items;
    filter->comm_count = request->comms.count;
    filter->pids = request->pids.items;
    filter->pid_count = request->pids.count;
    filter->tids = request->tids.items;
    filter->tid_count = request->tids.count;
    filter->cpus = request->cpus.items;
    filter->cpu_count = request->cpus.count;
    filter->labels = request->labels.items;
    filter->label_count = request->labels.count;
    profile->context = &request->context;
    profile->objects.quirks = request->naming.quirks = profile->quirks;
    request->flame.keep_zero = profile->quirks.keeps_weightless;
    request->flame.keep_empty =
        !profile->quirks.samples_need_frames; /* show every measurement, with or without a stack */
    profile->raw_addresses |= request->naming.addresses;
    request->import.print = print_script;
    request->flame.rules = &request->rules;
    request->naming.skip_after = request->skip_after.items;
    request->naming.skip_after_count = request->skip_after.count;
}

void request_names_only(struct request *request) {
    struct profile_options *profile = &request->import.profile;
    profile->names_only = !request->compat && !profile->source_lines && !profile->raw_addresses &&
                          request->naming.frames != FRAME_ADDRESS;
}

void group_threads(struct request *request) {
    request->naming.group_threads = !request->each_thread && !request->compat;
}

bool request_parse(struct request *request, const struct syntax *syntax, int argc, char **argv,
                   int *status) {
    if (!options_parse(syntax, request, argc, argv, status) || waits_are_wrong(request, status))
        return false;
    request_settle(request);
    return true;
}
