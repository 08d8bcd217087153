/* wick script: the samples of one perf.data in order, as text. */
#include "cmd/confine.h"

static const struct option options_perf[] = {
    {"srcline", 0, OPTION_CALL, CALL(set_source_lines), NULL, "print file:line below each frame"},
    {"mark-incomplete", 0, OPTION_FLAG, ASKED(naming.mark_incomplete), NULL,
     "mark incomplete stacks with a frame [truncated] or [broken]"},
    {"input", 'i', OPTION_LIST, ASKED(operands), "FILE", "the recording (perf script's option)"},
    {0},
};

static bool refuse_waits(void *command, const char *value, struct error *error) {
    return error_set(error, ERROR_USAGE,
                     "wick script prints single samples; use wick fold, flame or report for waits");
}

/* Not in the help: they only explain the error. */
static const struct option options_no_waits[] = {
    {"off-cpu", 0, OPTION_CALL, CALL(refuse_waits), NULL, NULL},
    {"wall", 0, OPTION_CALL, CALL(refuse_waits), NULL, NULL},
    {0},
};

static const struct option_group groups[] = {
    {"Which samples", options_filter},
    {"Symbols", options_symbols},
    {"As perf script has them", options_perf},
    {"General", options_common},
    {"", options_no_waits},
    {0},
};

static const struct syntax syntax = {
    "script",
    "FILE",
    "Print the samples of a perf.data as `perf script` does. With --compat=perf the output "
    "is\nexactly that of perf 6.1.",
    groups,
    .examples = "wick script perf.data | less\n"
                "wick script --compat=perf -i perf.data         # exactly perf's text",
};

static int write_script(struct request *request, const struct profile *profile) {
    struct error error;
    struct out out;
    struct script_options options = {
        .context = &request->context,
        .source_lines = request->naming.source_lines,
        .mark_incomplete = request->naming.mark_incomplete,
        .quirks = request->import.profile.quirks,
    };
    if (!output_open(request, &out, &error))
        return fail(&error);
    if (!script_write(&out, profile, &options, &error)) {
        out_discard(&out);
        return fail(&error);
    }
    return out_commit(&out, &error) ? 0 : fail(&error);
}

static int run(void *command, int argc, char **argv) {
    struct request *request = command;
    int status = 0;
    if (!request_find_compat(request, argc, argv, &status) ||
        !options_parse(&syntax, request, argc, argv, &status))
        return status;
    request_settle(request);
    if (request->operands.count > 1)
        return fail_usage("script", "one FILE at a time");
    struct profile_options *profile = &request->import.profile;
    profile->keep_samples = profile->all_events = true;
    struct source source;
    if (!confine_reader(request, NULL, &status) || !open_source(request, &source, &status))
        return status;
    if (source.profile) {
        status = write_script(request, source.profile);
        print_notes(request, &source.tree->notes);
    } else {
        struct error error;
        error_set(&error, ERROR_INPUT, "%s: not a perf.data, and wick script prints only these",
                  source.files[0].path);
        status = fail(&error);
    }
    source_leave(&source);
    return status;
}

const struct command command_script = {"script", "print samples as `perf script` does",
                                       sizeof(struct request), run, .group = GROUP_CONVERT};
