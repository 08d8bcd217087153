/*
 * wick profile: record, then hand over a directory.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/profile_files.h"
#include "cmd/recording.h"
#include "run/run.h"

extern char **environ;

static const char *kind = "cpu";
static const char *name;
static const char *base = "wick-out";
static const char *load;
static double warmup;
static uint64_t min_samples = 200;
static bool allow_partial, capture;

static const struct option options_run[] = {
    {"kind", 0, OPTION_TEXT, &kind, "KIND", "cpu (default) or faults (page faults)"},
    {"name", 0, OPTION_TEXT, &name, "NAME", "the run's name; the time by default"},
    {"out", 'o', OPTION_TEXT, &base, "DIR", "where runs are kept; wick-out by default"},
    {"min-samples", 0, OPTION_U64, &min_samples, "N",
     "fewer are too few for conclusions: exit status 4; 200 by default"},
    {"allow-partial", 0, OPTION_FLAG, &allow_partial, NULL,
     "publish a run with too few samples all the same"},
    {"capture", 0, OPTION_FLAG, &capture, NULL, "keep the target's output in the run (target.log)"},
    {"load", 0, OPTION_TEXT, &load, "COMMAND",
     "run this shell command beside the recording, and end it with it"},
    {"warmup", 0, OPTION_DOUBLE, &warmup, "SECONDS",
     "let the load run so long before recording begins"},
    {"jobs", 'j', OPTION_U32, &request.threads, "N",
     "read with N threads; all there are by default"},
    {"quiet", 'q', OPTION_FLAG, &request.quiet, NULL, "say nothing but errors"},
    {0},
};

static const struct option_group groups[] = {
    {"Run", options_run},
    {"Target", options_target},
    {"Sampling", options_sampling},
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

static pid_t load_pid;

static bool load_start(struct error *error) {
    if (!load)
        return true;
    char *const words[] = {"sh", "-c", (char *)(uintptr_t)load, NULL};
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP); /* so that all of it can be ended */
    int why = posix_spawnp(&load_pid, "sh", NULL, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    if (why != 0)
        return error_set(error, ERROR_INPUT, "--load %s: %s", load, strerror(why));
    struct timespec wait = {.tv_sec = (time_t)warmup,
                            .tv_nsec = (long)((warmup - (double)(time_t)warmup) * 1e9)};
    nanosleep(&wait, NULL);
    return true;
}

static void load_end(void) {
    if (load_pid <= 0)
        return;
    kill(-load_pid, SIGTERM);
    for (int tries = 0; tries < 40; tries++) {
        if (waitpid(load_pid, NULL, WNOHANG) == load_pid) {
            load_pid = 0;
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    kill(-load_pid, SIGKILL);
    waitpid(load_pid, NULL, 0);
    load_pid = 0;
}

/* ---- the run ---- */

static const char *target_kind(void) {
    return recording.command       ? "command"
           : recording.system_wide ? "system"
           : recording.pid_count   ? "process"
                                   : "threads";
}

static bool choose_kind(int *status) {
    static const char *const faults[] = {"page-faults"};
    if (strcmp(kind, "cpu") == 0)
        return true;
    if (strcmp(kind, "faults") == 0) {
        if (!recording.event_count) {
            recording.events = faults;
            recording.event_count = 1;
            recording.period = recording.period ? recording.period : 1;
        }
        return true;
    }
    *status = fail_usage("profile", "--kind %s: only cpu and faults are known", kind);
    return false;
}

static int end_run(struct run *run, const struct record_result *result) {
    struct error error;
    char *path = NULL;
    bool enough = run_has_enough(run);
    bool publish = enough || allow_partial;
    if (!(publish ? run_publish(run, &path, &error) : run_reject(run, &path, &error)))
        return fail(&error);
    int status = recording_target_status(result);
    if (!enough)
        fprintf(stderr, "wick: %llu samples are fewer than %llu: %s%s\n",
                (unsigned long long)result->samples, (unsigned long long)min_samples,
                publish ? "published all the same in " : "kept in ", path);
    if (!enough && !publish)
        status = ERROR_FEW;
    printf("%s\n", path);
    free(path);
    return status;
}

static int profile_run(struct run *run, struct record_result *result) {
    struct error error;
    char *data = run_path(run, "profile.data"), *log = run_path(run, "target.log");
    recording.output = data;
    recording.target_output = capture && recording.command ? log : NULL;
    bool fine = load_start(&error) && record_run(&recording, result, &error);
    load_end();
    if (fine) {
        interrupted = 0; /* Ctrl-C ended the recording; what was recorded is still to be written */
        run_wrote(run, "profile.data");
        if (recording.target_output)
            run_wrote(run, "target.log");
        fine = profile_write_files(run, data, &error);
    }
    free(data);
    free(log);
    if (!fine) {
        run_discard(run);
        return fail(&error);
    }
    int status = end_run(run, result);
    print_notes(&result->notes);
    print_notes(&run->notes);
    return status;
}

int command_profile(int argc, char **argv) {
    int status = 0;
    if (!options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    if ((status = recording_settle(argc, argv)) || !choose_kind(&status))
        return status;
    struct record_result result = {.target_status = -1};
    struct run run = {.kind = kind,
                      .recording = &recording,
                      .result = &result,
                      .command = recording.command,
                      .record_target = target_kind(),
                      .min_samples = min_samples,
                      .allow_partial = allow_partial};
    struct error error;
    status = run_begin(&run, base, name, &error) ? profile_run(&run, &result) : fail(&error);
    run_release(&run);
    record_result_release(&result);
    return status;
}
