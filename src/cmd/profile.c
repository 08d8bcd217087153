/*
 * wick profile: record, then write a directory with the results.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/confine.h"
#include "run/run.h"
#include "cmd/recording.h"
#include "run/run.h"

struct profile_command {
    struct recording_request r;
    const char *kind; /* NULL: cpu, or as --off-cpu and --wall say */
    const char *name;
    const char *base;
    const char *load_line;
    const char *build_line;
    const char *compared;
    double warmup;
    uint64_t min_samples;
    bool allow_partial, capture;
    const struct kind *chosen;
    struct load load;
    atomic_bool recorded; /* the recording is over */
    int target_status;    /* our exit status according to the target's */
};

#define HERE(member) IN(struct profile_command, member)
static const struct option options_run[] = {
    {"kind", 0, OPTION_TEXT, HERE(kind), "KIND",
     "what to measure: cpu (default), offcpu (where threads wait), wall (cpu and offcpu), faults "
     "(page faults), syscalls (time in system calls) or heap (allocations and leaks)",
     "cpu offcpu wall faults syscalls heap"},
    {"name", 0, OPTION_TEXT, HERE(name), "NAME", "name of the run (default: the time)"},
    {"out", 'o', OPTION_TEXT, HERE(base), "DIR", "directory for runs (default: wick-out)"},
    {"min-samples", 0, OPTION_U64, HERE(min_samples), "N",
     "exit with status 4 if there are fewer samples than this (default: 200)"},
    {"allow-partial", 0, OPTION_FLAG, HERE(allow_partial), NULL,
     "publish a run even if it has too few samples"},
    {"srcline", 0, OPTION_CALL, CALL(set_source_lines), NULL,
     "add file:line to each frame in every view"},
    {"capture", 0, OPTION_FLAG, HERE(capture), NULL, "keep the target's output in target.log"},
    {"compare", 0, OPTION_TEXT, HERE(compared), "DIR",
     "compare with an earlier run: add a differential graph and a table of changes"},
    {"build", 0, OPTION_TEXT, HERE(build_line), "COMMAND",
     "run this shell command first, with -g added to compiler calls; its output goes to build.log"},
    {"load", 0, OPTION_TEXT, HERE(load_line), "COMMAND",
     "run this shell command while recording, and stop it at the end; its output goes to load.log"},
    {"warmup", 0, OPTION_DOUBLE, HERE(warmup), "SECONDS",
     "let the load run for SECONDS before recording starts"},
    {"buffer", 'm', OPTION_CALL, CALL(recording_set_buffer), "SIZE",
     "size of each CPU's ring buffer: 512K, 8M, …"},
    {"jobs", 'j', OPTION_COUNT, ASKED(context.threads), "N",
     "read with N threads (default: one per CPU)"},
    {"quiet", 'q', OPTION_FLAG, ASKED(quiet), NULL, "print only errors"},
    OPTION_NO_SANDBOX,
    {0},
};

static const struct option_group groups[] = {
    {"Run", options_run},         {"Target", options_target}, {"Sampling", options_sampling},
    {"Waiting", options_off_cpu}, {"Memory", options_heap},   {0},
};

static const struct syntax syntax = {
    "profile",
    "-- COMMAND… | -p PID | -a",
    "Record a program and write a directory with the recording, folded stacks, flame "
    "graphs,\ntables, run.json and report.txt. An existing run is replaced only when the new one "
    "is complete.",
    groups,
    .examples = "wick profile -- ./program                      # prints the directory it made\n"
                "wick profile --kind wall -p 1234 --duration 30\n"
                "wick profile --build 'make -j4' -- ./program   # with debug information\n"
                "wick profile --compare wick-out/before -- ./program",
    .common = "kind name out compare build load pid all duration frequency call-graph srcline",
    .takes_command = true,
};

/* ---- the load ---- */

/* Without a duration, an attached target is recorded for as long as the load runs. */
static void *load_watch(void *command) {
    struct profile_command *c = command;
    while (!c->recorded && !load_wait(&c->load, 100000000))
        ;
    if (!c->recorded && c->load.by_itself)
        interrupted = 1;
    return NULL;
}

static bool load_warm_up(struct profile_command *c, int log, struct error *error) {
    if (!load_wait(&c->load, c->warmup > 0 ? (uint64_t)(c->warmup * 1e9) : 0))
        return !interrupted ||
               error_set(error, ERROR_INTERRUPTED, "interrupted before the recording began");
    if (!load_failed(&c->load))
        return error_set(error, ERROR_INPUT, "--load: it was over before the recording began");
    char last[300] = "";
    run_last_line(log, last, sizeof last);
    return error_set(error, ERROR_INPUT, "--load: it failed before the recording began%s%s",
                     *last ? ": " : "", last);
}

/* A target that wick launches exists only when the recording begins, so its warm-up is a delay. */
static bool load_begin(struct profile_command *c, struct run *run, struct error *error) {
    if (!c->load_line)
        return true;
    bool launches = c->r.recording.command != NULL;
    int log = run_create(run, "load.log", error);
    bool fine = log >= 0 && load_start(&c->load, c->load_line, log, error) &&
                (launches || load_warm_up(c, log, error));
    if (log >= 0)
        close(log);
    if (fine && launches)
        c->r.recording.delay += (uint64_t)(c->warmup * 1e9);
    return fine;
}

static bool record_beside_load(struct profile_command *c, struct record_result *result,
                               struct error *error) {
    pthread_t watcher;
    sigset_t all, before;
    bool watched = c->load_line && !c->r.recording.command && !c->r.recording.duration;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the main thread handles signals */
    watched = watched && pthread_create(&watcher, NULL, load_watch, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    recording_say_cost(&c->r);
    bool fine = record_run(&c->r.recording, result, error);
    c->recorded = true;
    if (watched)
        pthread_join(watcher, NULL);
    return fine;
}

/* ---- the build ---- */

static const struct note_kind note_no_debug = {
    "built-without-debug-information",
    "# program has no debug information after --build: remove what was built before, so that it is "
    "built again"};

static void print_log(int log) {
    char bytes[4096];
    ssize_t got;
    for (off_t at = 0; (got = pread(log, bytes, sizeof bytes, at)) > 0; at += got)
        fwrite(bytes, 1, (size_t)got, stderr);
}

static bool build(struct profile_command *c, struct run *run, struct error *error) {
    if (!c->build_line)
        return true;
    int log = run_create(run, "build.log", error);
    if (log < 0)
        return false;
    if (!c->r.request.quiet)
        say_line("building: %s", c->build_line);
    bool fine = build_run(c->build_line, log, &c->r.request.context, error);
    if (!fine)
        print_log(log);
    close(log);
    struct object_facts facts = {0};
    const char *program = c->r.recording.command ? c->r.recording.command[0] : NULL;
    if (fine && program && strchr(program, '/') && object_file_facts(program, &facts, NULL) &&
        !facts.lines)
        notes_add(&run->notes, &note_no_debug, 1, 0, "%s", program);
    return fine;
}

/* ---- kinds ---- */

static void want_faults(struct recording_request *r) {
    static const char *const faults[] = {"page-faults"};
    r->recording.events = faults;
    r->recording.event_count = 1;
    r->recording.period = r->recording.period ? r->recording.period : 1;
}

enum { SYSCALLS_STACK = 8192, SYSCALLS_BUFFER = 64 << 20 };

/* Record stacks where a call begins, and its duration and result where it ends. Programs make a hundred thousand
   calls a second: copying less of the stack than usual, and larger buffers, lose fewer of them. */
static void want_syscalls(struct recording_request *r) {
    static const char *const calls[] = {SYSCALLS_ENTER, SYSCALLS_EXIT};
    r->recording.events = calls;
    r->recording.event_count = COUNT_OF(calls);
    r->recording.stacks_of = 1;
    r->recording.period = 1;
    r->recording.method = METHOD_PERF;
    if (!r->call_graph_chosen)
        r->recording.stack_size = SYSCALLS_STACK;
    r->recording.deep_stack_size = 0;
    if (!r->recording.buffer_size)
        r->recording.buffer_size = SYSCALLS_BUFFER;
}

static void want_heap(struct recording_request *r) {
    r->recording.heap = true;
}

/* Record on-CPU samples as well, so that waits can be seen beside them. */
static void want_waits(struct recording_request *r) {
    r->recording.off_cpu = r->recording.off_cpu ? r->recording.off_cpu : OFF_CPU_AUTO;
    r->recording.wall = true;
}

static const struct kind {
    const char *name;
    void (*want)(struct recording_request *r);
    bool own_events; /* it can't be combined with other kinds, and ptrace does not support it */
    const struct run_view *views[3];
} kinds[] = {
    {"cpu", NULL, false, {&run_running}},
    {"offcpu", want_waits, false, {&run_running, &run_waiting}},
    {"wall", want_waits, false, {&run_running, &run_waiting, &run_wall}},
    {"faults", want_faults, true, {&run_running}},
    {"syscalls", want_syscalls, true, {&run_running}},
    {"heap", want_heap, true, {&run_live, &run_peak, &run_allocated}},
};

/* --off-cpu and --wall, as in wick record, are kinds, too. */
static int choose_kind(struct profile_command *c) {
    struct record_options *recording = &c->r.recording;
    const char *wanted = c->kind              ? c->kind
                         : recording->heap    ? "heap"
                         : recording->wall    ? "wall"
                         : recording->off_cpu ? "offcpu"
                                              : "cpu";
    const struct kind *chosen = NULL;
    for (size_t i = 0; i < COUNT_OF(kinds) && !chosen; i++)
        if (strcmp(wanted, kinds[i].name) == 0)
            chosen = &kinds[i];
    c->chosen = chosen;
    if (!chosen)
        return fail_usage(
            "profile", "--kind %s: cpu, offcpu, wall, faults, syscalls and heap are known", wanted);
    if (recording->off_cpu && chosen->want != want_waits)
        return fail_usage(
            "profile", "--kind %s cannot be combined with --off-cpu, --wall or --wakers", wanted);
    if (chosen->own_events && recording->event_count)
        return fail_usage("profile", "--kind %s cannot be combined with -e", wanted);
    if (chosen->own_events && recording->method == METHOD_PTRACE)
        return fail_usage("profile", "--kind %s cannot be recorded with ptrace", wanted);
    if (c->r.every_chosen && chosen->want != want_heap)
        return fail_usage("profile", "--every needs --kind heap");
    recording->keep_own = !recording->system_wide;
    if (chosen->want)
        chosen->want(&c->r);
    return 0;
}

static size_t view_count(const struct kind *kind) {
    size_t count = 0;
    while (count < COUNT_OF(kind->views) && kind->views[count])
        count++;
    return count;
}

/* ---- the run ---- */

static const char *target_kind(const struct record_options *recording) {
    return recording->command       ? "command"
           : recording->system_wide ? "system"
           : recording->pid_count   ? "process"
                                    : "threads";
}

static void tell_answer(const struct run *run, const char *path) {
    struct buffer text = {0};
    run_add_answer(run, path, &text);
    fprintf(stderr, "%.*s", TEXT_ARGS(buffer_text(&text)));
    buffer_release(&text);
}

/* Report the target's own failure first, then what is wrong with the run. */
static int end_run(const struct profile_command *c, struct run *run) {
    struct error error;
    struct buffer why = {0};
    char *path = NULL;
    bool good = !run_shortcoming(run, &why);
    bool publish = good || c->allow_partial;
    int status = c->target_status;
    if (!(publish ? run_publish(run, &path, &error) : run_reject(run, &path, &error))) {
        buffer_release(&why);
        return fail(&error);
    }
    progress_wipe();
    if (!good)
        say_line("%.*s; %s%s", TEXT_ARGS(buffer_text(&why)),
                 publish ? "published all the same in " : "kept in ", path);
    if (!publish && !status)
        status = run_has_enough(run) ? ERROR_INPUT : ERROR_FEW;
    if (!c->r.request.quiet)
        tell_answer(run, path);
    printf("%s\n", path);
    free(path);
    buffer_release(&why);
    return status;
}

static bool record_into(struct profile_command *c, struct run *run, struct record_result *result,
                        struct error *error) {
    struct record_options *recording = &c->r.recording;
    bool capture = c->capture && recording->command;
    int log = capture ? run_create(run, "target.log", error) : -1;
    bool fine = (log >= 0 || !capture) && load_begin(c, run, error);
    recording->output = "profile.data";
    recording->output_directory = run->directory + 1;
    recording->target_output = log + 1;
    fine = fine && record_beside_load(c, result, error);
    load_end(&c->load);
    if (log >= 0)
        close(log);
    if (fine)
        run_wrote(run, recording->output);
    return fine;
}

/* The recording is over; now read it, and write to the directory of runs. */
static bool confine_profile(struct profile_command *c, const struct run *run, struct error *error) {
    char base[64];
    const char *program = run->program;
    snprintf(base, sizeof base, "/proc/self/fd/%d", run->base_directory);
    struct confine_more more = {
        .read = &program, .read_count = program != NULL, .manage = base, .network = true};
    return confine(&c->r.request, NULL, &more, error);
}

static bool make_run(struct profile_command *c, struct run *run, struct record_result *result,
                     struct error *error) {
    if (!record_into(c, run, result, error))
        return false;
    c->target_status = recording_target_status(&c->r.recording, result);
    interrupted = 0;           /* Ctrl-C ended the recording, but it must still be written */
    interrupts_understood = 1; /* no target is left to hurry */
    run_find_program(run);
    if (!confine_profile(c, run, error))
        return false;
    if (!request_start_net(&c->r.request, error))
        return false;
    char *data = run_reading_path(run, c->r.recording.output);
    struct request *request = &c->r.request;
    struct run_reading reading = {request->import, request->naming, request->flame};
    bool fine =
        run_write_files(run, &reading, data, c->chosen->views, view_count(c->chosen), error) &&
        !interrupted;
    if (interrupted)
        error_set(error, ERROR_INTERRUPTED, "interrupted; nothing was published");
    free(data);
    return fine;
}

static int profile_run(struct profile_command *c, struct run *run, struct record_result *result) {
    struct error error;
    if (!build(c, run, &error) || !make_run(c, run, result, &error)) {
        run_discard(run);
        return fail(&error);
    }
    print_notes(&c->r.request, &result->notes);
    print_notes(&c->r.request, &run->notes);
    return end_run(c, run);
}

static int profile(void *command, int argc, char **argv) {
    struct profile_command *c = command;
    recording_begin(&c->r);
    c->base = "wick-out";
    c->min_samples = 200;
    c->load = (struct load){.lives = -1, .told = -1};
    int status = 0;
    if (!options_parse(&syntax, c, argc, argv, &status))
        return status;
    if ((status = recording_settle(&c->r, argv)) || (status = choose_kind(c)))
        return status;
    if (c->warmup < 0 || (c->warmup > 0 && !c->load_line))
        return fail_usage("profile", "--warmup %g: --warmup needs --load", c->warmup);
    struct record_result result = {.target_status = -1};
    struct run run = {.kind = c->chosen->name,
                      .folded = c->chosen->views[view_count(c->chosen) - 1]->folded,
                      .recording = &c->r.recording,
                      .result = &result,
                      .command = c->r.recording.command,
                      .load = &c->load,
                      .warmup = c->warmup,
                      .build = c->build_line,
                      .compared = c->compared,
                      .record_target = target_kind(&c->r.recording),
                      .width = terminal_width(STDERR_FILENO, 100),
                      .min_samples = c->min_samples};
    struct error error;
    bool fine = (!c->compared || run_can_compare(&run, &error)) &&
                run_begin(&run, c->base, c->name, &error);
    status = fine ? profile_run(c, &run, &result) : fail(&error);
    run_release(&run);
    record_result_release(&result);
    return status;
}

const struct command command_profile = {
    "profile",
    "record, and write a directory with flame graphs, tables and a report",
    sizeof(struct profile_command),
    profile,
    .gentle = 2,
    .group = GROUP_RECORD};
