/*
 * wick fold: write a source's flame as lines. Under --compat=inferno it has the options of inferno-collapse-perf,
 * some of which have the same names as wick's and mean something else: two tables, never mixed.
 */
#include "cmd/confine.h"

static const struct option options_fold[] = {
    {"force", 0, OPTION_FLAG, ASKED(force), NULL, "allow more than 4 GB of folded text"},
    {0},
};

static const struct option_group groups[] = {
    {"Which stacks", options_stacks}, OPTION_GROUPS_OF_SAMPLES,
    {"Grouping", options_by},         {"Root", options_root},
    OPTION_GROUPS_OF_NAMES,           {"Size", options_fold},
    {"General", options_common},      {0},
};

static const struct syntax syntax = {
    "fold",
    "FILE…",
    "Print folded stacks, sorted lines of `comm;…;leaf weight`, from anything wick can "
    "read:\nperf.data, perf script text, folded text and the formats listed under --from. Several "
    "files\nare added up.",
    groups,
    .examples = "wick fold perf.data >stacks.txt              # one line per stack\n"
                "wick fold --comm 'worker*' --time +2,+4 perf.data\n"
                "perf script | wick fold -                      # what another perf printed\n"
                "wick fold --by pid perf.data                   # processes at the root",
    .common = "output event comm pid time label by value focus srcline",
};

/* inferno-collapse-perf's own options, with its meanings: --pid and --tid annotate there. */
static bool set_all(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->naming.mark_kernel = request->naming.mark_jit = true;
    return true;
}

static bool set_ghc_time(void *command, const char *value, struct error *error) {
    struct request *request = command;
    request->import.ghc_column = 0;
    return true;
}

/* As in inferno, --ticks and --bytes exclude each other. */
static bool set_ghc(struct request *request, int column, struct error *error) {
    if (request->import.ghc_column && request->import.ghc_column != column)
        return error_set(error, ERROR_USAGE, "--ticks and --bytes exclude each other");
    request->import.ghc_column = column;
    return true;
}

static bool set_ghc_ticks(void *command, const char *value, struct error *error) {
    return set_ghc(command, 1, error);
}

static bool set_ghc_bytes(void *command, const char *value, struct error *error) {
    return set_ghc(command, 2, error);
}

static const struct option options_inferno[] = {
    {"pid", 0, OPTION_FLAG, ASKED(naming.show_pid), NULL, "use comm-PID as the root frame"},
    {"tid", 0, OPTION_FLAG, ASKED(naming.show_tid), NULL, "use comm-PID/TID as the root frame"},
    {"kernel", 0, OPTION_FLAG, ASKED(naming.mark_kernel), NULL, "append _[k] to kernel frames"},
    {"jit", 0, OPTION_FLAG, ASKED(naming.mark_jit), NULL, "append _[j] to JIT-compiled frames"},
    {"all", 0, OPTION_CALL, CALL(set_all), NULL, "both"},
    {"addrs", 0, OPTION_FLAG, ASKED(naming.addresses), NULL,
     "show the address of frames without a symbol"},
    {"event-filter", 0, OPTION_LIST, ASKED(events), "EVENT",
     "count this event instead of the first one seen"},
    {"skip-after", 0, OPTION_LIST, ASKED(skip_after), "FUNCTION",
     "drop the callers of this function, and the comm"},
    {"nthreads", 'n', OPTION_COUNT, ASKED(context.threads), "N", "use N threads"},
    {"no-modules", 0, OPTION_FLAG, ASKED(import.no_modules), NULL,
     "sample, vtune: remove module names"},
    {"includeoffset", 0, OPTION_FLAG, ASKED(import.include_offset), NULL, "dtrace: keep offsets"},
    {"time", 0, OPTION_CALL, CALL(set_ghc_time), NULL, "ghcprof: tenths of a per cent of the time"},
    {"ticks", 0, OPTION_CALL, CALL(set_ghc_ticks), NULL, "ghcprof: ticks"},
    {"bytes", 0, OPTION_CALL, CALL(set_ghc_bytes), NULL, "ghcprof: bytes allocated"},
    {0},
};

static const struct option_group groups_inferno[] = {
    {"As inferno-collapse-perf has them", options_inferno},
    {"Symbols", options_symbols},
    {"Formats", options_from},
    {"General", options_common},
    {0},
};

static const struct syntax syntax_inferno = {
    "fold",
    "--compat=inferno FILE…",
    "Fold exactly as `perf script | inferno-collapse-perf` does, quirks included. The "
    "reference\nversions are perf 6.1 and inferno 0.12.8.",
    groups_inferno,
    .examples = "wick fold --compat=inferno perf.data",
};

static int run(void *command, int argc, char **argv) {
    struct request *request = command;
    int status = 0;
    if (!request_find_compat(request, argc, argv, &status))
        return status;
    bool inferno = request->import.profile.quirks.collapse_options;
    if (!request_parse(request, inferno ? &syntax_inferno : &syntax, argc, argv, &status))
        return status;
    struct error error;
    if (!grouping_settle(request, &error))
        return fail(&error);
    request_names_only(request);
    struct source source;
    if (!confine_reader(request, NULL, &status) || !open_source(request, &source, &status))
        return status;
    struct notes notes = {0};
    struct flame *flame = make_flame(request, &source, &notes, &error);
    bool fine = flame && fold_fits(request, flame, &error) && folded_write(request, flame, &error);
    status = fine ? 0 : fail(&error);
    if (flame)
        print_notes(request, &notes);
    flame_free(flame);
    notes_release(&notes);
    source_leave(&source);
    return status;
}

const struct command command_fold = {"fold", "print folded stacks", sizeof(struct request), run,
                                     .group = GROUP_CONVERT};
