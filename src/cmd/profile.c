/*
 * wick profile: record, then hand over a directory.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/profile_files.h"
#include "cmd/recording.h"
#include "run/run.h"

static const char *kind; /* NULL: cpu, or what the options on waiting say */
static const char *name;
static const char *base = "wick-out";
static const char *load_line;
static const char *compared;
static double warmup;
static uint64_t min_samples = 200;
static bool allow_partial, capture;

static const struct option options_run[] = {
    {"kind", 0, OPTION_TEXT, &kind, "KIND",
     "cpu (default), offcpu (where threads wait), wall (both in one), faults (page faults) or "
     "syscalls (time in system calls)"},
    {"name", 0, OPTION_TEXT, &name, "NAME", "the run's name; the time by default"},
    {"out", 'o', OPTION_TEXT, &base, "DIR", "where runs are kept; wick-out by default"},
    {"min-samples", 0, OPTION_U64, &min_samples, "N",
     "fewer are too few for conclusions: exit status 4; 200 by default"},
    {"allow-partial", 0, OPTION_FLAG, &allow_partial, NULL,
     "publish a run with too few samples all the same"},
    {"srcline", 0, OPTION_CALL, set_source_lines, NULL, "frames carry file:line, in every view"},
    {"capture", 0, OPTION_FLAG, &capture, NULL, "keep the target's output in the run (target.log)"},
    {"compare", 0, OPTION_TEXT, &compared, "DIR",
     "an earlier run's directory: adds what changed since, as picture, text and table"},
    {"load", 0, OPTION_TEXT, &load_line, "COMMAND",
     "run this shell command beside the recording, and end it with it; its output is load.log"},
    {"warmup", 0, OPTION_DOUBLE, &warmup, "SECONDS",
     "let the load run so long before recording begins"},
    {"buffer", 'm', OPTION_CALL, recording_set_buffer, "SIZE",
     "ring buffer of each CPU: 512K, 8M, …"},
    {"jobs", 'j', OPTION_COUNT, &request.context.threads, "N",
     "read with N threads; all there are by default"},
    {"quiet", 'q', OPTION_FLAG, &request.quiet, NULL, "say nothing but errors"},
    {0},
};

static const struct option_group groups[] = {
    {"Run", options_run},
    {"Target", options_target},
    {"Sampling", options_sampling},
    {"Waiting", options_off_cpu},
    {0},
};

static const struct syntax syntax = {
    "profile",
    "-- COMMAND… | -p PID | -a",
    "Records a program and writes a directory: the recording, folded stacks, flame graphs, "
    "tables,\n"
    "run.json and report.txt. Nothing that was there is replaced before all of it is complete.",
    groups,
};

/* ---- the load beside it ---- */

static struct load load = {.lives = -1, .told = -1};
static atomic_bool recorded; /* the recording is over */

/* Without a duration, what is attached to is recorded for as long as the load runs. */
static void *load_watch(void *unused) {
    while (!recorded && !load_wait(&load, 100000000))
        ;
    if (!recorded && load.by_itself)
        interrupted = 1;
    return unused;
}

static bool load_warm_up(const char *log, struct error *error) {
    if (!load_wait(&load, warmup > 0 ? (uint64_t)(warmup * 1e9) : 0))
        return !interrupted ||
               error_set(error, ERROR_INTERRUPTED, "interrupted before the recording began");
    if (!load_failed(&load))
        return error_set(error, ERROR_INPUT, "--load: it was over before the recording began");
    char last[300] = "";
    run_last_line(log, last, sizeof last);
    return error_set(error, ERROR_INPUT, "--load: it failed before the recording began%s%s",
                     *last ? ": " : "", last);
}

/* A target that wick launches is there only when the recording begins, so its warm-up is a delay. */
static bool load_begin(const char *log, struct error *error) {
    if (!load_line)
        return true;
    if (!load_start(&load, load_line, log, error))
        return false;
    if (!recording.command)
        return load_warm_up(log, error);
    recording.delay += (uint64_t)(warmup * 1e9);
    return true;
}

static bool record_beside_load(struct record_result *result, struct error *error) {
    pthread_t watcher;
    sigset_t all, before;
    bool watched = load_line && !recording.command && !recording.duration;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
    watched = watched && pthread_create(&watcher, NULL, load_watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    bool fine = record_run(&recording, result, error);
    recorded = true;
    if (watched)
        pthread_join(watcher, NULL);
    return fine;
}

/* ---- kinds ---- */

static void want_faults(void) {
    static const char *const faults[] = {"page-faults"};
    recording.events = faults;
    recording.event_count = 1;
    recording.period = recording.period ? recording.period : 1;
}

enum { SYSCALLS_STACK = 4096, SYSCALLS_BUFFER = 64 << 20 };

/* Stacks where a call begins; how long it took, and what came of it, where it ends. Programs make a hundred thousand calls a second: less
   of the stack than usual, and larger buffers, lose fewer of them. */
static void want_syscalls(void) {
    static const char *const calls[] = {SYSCALLS_ENTER, SYSCALLS_EXIT};
    recording.events = calls;
    recording.event_count = COUNT_OF(calls);
    recording.stacks_of = 1;
    recording.period = 1;
    recording.method = METHOD_PERF;
    if (!recording_has_call_graph())
        recording.stack_size = SYSCALLS_STACK;
    if (!recording.buffer_size)
        recording.buffer_size = SYSCALLS_BUFFER;
}

/* Where threads run as well, so that waits can be seen beside it. */
static void want_waits(void) {
    recording.off_cpu = recording.off_cpu ? recording.off_cpu : OFF_CPU_AUTO;
    recording.wall = true;
}

static const struct kind {
    const char *name;
    void (*want)(void);
    bool own_events; /* it makes no sense with others, and ptrace does not know them */
    const struct view_names *views[3];
} kinds[] = {
    {"cpu", NULL, false, {&view_running}},
    {"offcpu", want_waits, false, {&view_running, &view_waiting}},
    {"wall", want_waits, false, {&view_running, &view_waiting, &view_wall}},
    {"faults", want_faults, true, {&view_running}},
    {"syscalls", want_syscalls, true, {&view_running}},
};
static const struct kind *chosen;

/* --off-cpu and --wall, as wick record has them, are kinds, too. */
static int choose_kind(void) {
    const char *wanted = kind                ? kind
                         : recording.wall    ? "wall"
                         : recording.off_cpu ? "offcpu"
                                             : "cpu";
    for (size_t i = 0; i < COUNT_OF(kinds) && !chosen; i++)
        if (strcmp(wanted, kinds[i].name) == 0)
            chosen = &kinds[i];
    if (!chosen)
        return fail_usage("profile", "--kind %s: cpu, offcpu, wall, faults and syscalls are known",
                          wanted);
    if (recording.off_cpu && chosen->want != want_waits)
        return fail_usage("profile", "--kind %s has nothing to do with waits", wanted);
    if (chosen->own_events && recording.event_count)
        return fail_usage("profile", "--kind %s has events of its own: leave -e away", wanted);
    if (chosen->own_events && recording.method == METHOD_PTRACE)
        return fail_usage("profile", "--kind %s is nothing that ptrace can sample", wanted);
    if (chosen->want)
        chosen->want();
    return 0;
}

static size_t view_count(void) {
    size_t count = 0;
    while (count < COUNT_OF(chosen->views) && chosen->views[count])
        count++;
    return count;
}

/* ---- the run ---- */

static const char *target_kind(void) {
    return recording.command       ? "command"
           : recording.system_wide ? "system"
           : recording.pid_count   ? "process"
                                   : "threads";
}

static int target_status; /* what the target's end means for ours */

/* The target's own failure is the first thing to know; what is wrong with the run comes after it. */
static int end_run(struct run *run) {
    struct error error;
    struct buffer why = {0};
    char *path = NULL;
    bool good = !run_shortcoming(run, &why);
    bool publish = good || allow_partial;
    int status = target_status;
    if (!(publish ? run_publish(run, &path, &error) : run_reject(run, &path, &error))) {
        buffer_release(&why);
        return fail(&error);
    }
    progress_wipe();
    if (!good)
        fprintf(stderr, "wick: %.*s: %s%s\n", TEXT_ARGS(buffer_text(&why)),
                publish ? "published all the same in " : "kept in ", path);
    if (!publish && !status)
        status = run_has_enough(run) ? ERROR_INPUT : ERROR_FEW;
    printf("%s\n", path);
    free(path);
    buffer_release(&why);
    return status;
}

static bool make_run(struct run *run, struct record_result *result, struct error *error) {
    char *data = run_path(run, "profile.data"), *log = run_path(run, "target.log");
    char *load_log = run_path(run, "load.log");
    recording.output = data;
    recording.target_output = capture && recording.command ? log : NULL;
    bool fine = load_begin(load_log, error) && record_beside_load(result, error);
    load_end(&load);
    if (fine) {
        target_status = recording_target_status(result);
        interrupted = 0; /* Ctrl-C ended the recording; what was recorded is still to be written */
        run_wrote(run, "profile.data");
        if (recording.target_output)
            run_wrote(run, "target.log");
        if (load_line)
            run_wrote(run, "load.log");
        fine = profile_write_files(run, data, chosen->views, view_count(), error) && !interrupted;
        if (interrupted)
            error_set(error, ERROR_INTERRUPTED, "interrupted; nothing was published");
    }
    free(data);
    free(log);
    free(load_log);
    return fine;
}

static int profile_run(struct run *run, struct record_result *result) {
    struct error error;
    if (!make_run(run, result, &error)) {
        run_discard(run);
        return fail(&error);
    }
    int status = end_run(run);
    print_notes(&result->notes);
    print_notes(&run->notes);
    return status;
}

int command_profile(int argc, char **argv) {
    int status = 0;
    if (!options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    if ((status = recording_settle(argv)) || (status = choose_kind()))
        return status;
    if (warmup < 0 || (warmup > 0 && !load_line))
        return fail_usage("profile", "--warmup %g: of which --load?", warmup);
    struct record_result result = {.target_status = -1};
    struct run run = {.kind = chosen->name,
                      .folded = chosen->views[view_count() - 1]->folded,
                      .recording = &recording,
                      .result = &result,
                      .command = recording.command,
                      .load = &load,
                      .warmup = warmup,
                      .compared = compared,
                      .record_target = target_kind(),
                      .min_samples = min_samples};
    struct error error;
    bool fine = (!compared || run_can_compare(&run, &error)) && run_begin(&run, base, name, &error);
    status = fine ? profile_run(&run, &result) : fail(&error);
    run_release(&run);
    record_result_release(&result);
    return status;
}
