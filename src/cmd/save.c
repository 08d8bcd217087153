/* wick save: sources to one tree, and that to a file which holds all that views need. */
#include "cmd/cmd.h"

#include <unistd.h>

#include "saved/saved.h"

static bool no_times;

static const struct option options_save[] = {
    {"no-times", 0, OPTION_FLAG, &no_times, NULL,
     "leave out when each sample was taken: a smaller file, without timelines, charts and --time"},
    {0},
};

static const struct option_group groups[] = {
    {"What to keep", options_save}, OPTION_GROUPS_OF_SAMPLES,    {"Symbols", options_symbols},
    {"Formats", options_formats},   {"General", options_common}, {0},
};

static const struct syntax syntax = {
    "save",
    "FILE… -o PROFILE.wick",
    "Save a profile, with all names and lines, in one file that every wick command reads on any\n"
    "machine, many times faster than the recording. Several files add up. It holds no stack\n"
    "bytes, registers or environment.",
    groups,
};

static bool save_to_output(const struct tree *tree, struct error *error) {
    struct out out;
    if (!out_open(&out, request.output, error))
        return false;
    if (saved_write(&out, tree, error))
        return out_commit(&out, error);
    out_discard(&out);
    return false;
}

int command_save(int argc, char **argv) {
    int status = 0;
    if (!request_parse(&syntax, argc, argv, &status))
        return status;
    if (!request.output)
        return fail_usage("save", "-o PROFILE.wick is missing");
    if (strcmp(request.output, "-") == 0 && isatty(STDOUT_FILENO))
        return fail_usage("save", "a saved profile is not text: -o PROFILE.wick");
    request.import.profile.keep_samples = !no_times;
    request.import.timed_only = true;
    request.import.profile.source_lines = true;
    struct source source;
    struct error error;
    if (!open_source(&source, "save", &status))
        return status;
    status = save_to_output(source.tree, &error) ? 0 : fail(&error);
    print_notes(&source.tree->notes);
    source_close(&source);
    return status;
}
