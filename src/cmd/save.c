/* wick save: write sources as one tree to a file that has everything views need. */
#include "cmd/confine.h"

#include <unistd.h>

#include "saved/saved.h"

struct save_command {
    struct request request;
    bool no_times;
    const char *source;
    bool code;
};

static const struct option options_save[] = {
    {"set-label", 0, OPTION_CALL, CALL(assign_label), "KEY=VALUE",
     "add this label to the output, such as service=web; may be repeated"},
    {"no-times", 0, OPTION_FLAG, IN(struct save_command, no_times), NULL,
     "do not store sample times: a smaller file, but without timelines, charts and --time"},
    {"source", 0, OPTION_TEXT, IN(struct save_command, source), "DIR",
     "store source files below DIR of functions that were hit, for wick annotate"},
    {"code", 0, OPTION_FLAG, IN(struct save_command, code), NULL,
     "store the machine code of functions that were hit, for wick annotate"},
    {0},
};

static const struct option_group groups[] = {
    {"What to keep", options_save}, OPTION_GROUPS_OF_SAMPLES,    {"Symbols", options_symbols},
    {"Formats", options_formats},   {"General", options_common}, {0},
};

static const struct syntax syntax = {
    "save",
    "FILE… -o PROFILE.wick",
    "Save a profile, with all names and lines, in one file that every wick command reads on "
    "any\nmachine, many times faster than the recording. Several files are added up. The file "
    "holds no\nstack bytes, registers or environment.",
    groups,
    .common = "output source code set-label event comm time off-cpu debuginfod",
    .examples = "wick save perf.data -o profile.wick\n"
                "wick save wick-out/x --set-label service=web -o web.wick",
};

static bool save_to_output(const struct save_command *save, struct tree *tree,
                           struct error *error) {
    const char *path = save->request.output;
    struct out out;
    if (save->source && !saved_attach_sources(tree, save->source, error))
        return false;
    if (save->code)
        saved_attach_code(tree, TEXT(""));
    if (!out_open(&out, path, error))
        return false;
    if (saved_write(&out, tree, error))
        return out_commit(&out, error);
    out_discard(&out);
    return false;
}

static int run(void *command, int argc, char **argv) {
    struct save_command *save = command;
    struct request *request = &save->request;
    int status = 0;
    if (!request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (!request->output)
        return fail_usage("save", "-o PROFILE.wick is needed");
    if (strcmp(request->output, "-") == 0 && isatty(STDOUT_FILENO))
        return fail_usage("save", "a saved profile is binary: use -o PROFILE.wick");
    request->import.profile.keep_samples = !save->no_times;
    request->import.timed_only = true;
    request->import.profile.each = request->import.profile.times == TIMES_RUNNING;
    request->import.keep_all = request->import.profile.all_values = true;
    request->import.profile.source_lines = request->import.profile.lifetimes = true;
    struct source source;
    struct error error;
    if (!confine_reader(request, NULL, &status) || !open_source(request, &source, &status))
        return status;
    /* The file has all times, and its readers choose one and say so. */
    notes_drop(&source.tree->notes, "natural-time");
    notes_drop(&source.tree->notes, "only-waits");
    notes_sort(&source.tree->notes);
    status = save_to_output(save, source.tree, &error) ? 0 : fail(&error);
    tree_choose_notes(source.tree, true);
    print_notes(request, &source.tree->notes);
    source_close(&source);
    return status;
}

const struct command command_save = {"save", "save a profile in one file that needs nothing else",
                                     sizeof(struct save_command), run, .group = GROUP_CONVERT};
