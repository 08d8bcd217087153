#include "cmd/cmd.h"

#include <stdio.h>

static struct svg_options svg = {.min_width = 0.01};

static const struct option options_picture[] = {
    {"title", 0, OPTION_TEXT, &svg.title, "TEXT", "the title; Flame Graph by default"},
    {"subtitle", 0, OPTION_TEXT, &svg.subtitle, "TEXT", "a line below the title"},
    {"width", 0, OPTION_U32, &svg.width, "PIXELS",
     "a fixed width; as wide as the window by default"},
    {"minwidth", 0, OPTION_DOUBLE, &svg.min_width, "PERCENT",
     "leave out frames narrower than this; 0.01 by default"},
    {"notes", 0, OPTION_TEXT, &svg.notes, "TEXT", "a comment inside the file"},
    {0},
};

static const struct option_group groups[] = {
    {"Picture", options_picture},
    {"Which samples", options_filter},
    {"Names", options_names},
    {"Weights and shape", options_shape},
    {"Symbols", options_symbols},
    {"General", options_common},
    {0},
};

static const struct syntax syntax = {
    "flame",
    "FILE…",
    "A flame graph of anything wick can read, as one SVG file with zoom and search.\n"
    "Without -o it is flamegraph.svg.",
    groups,
};

static int write_svg(const struct flame *flame) {
    const char *path = request.output ? request.output : "flamegraph.svg";
    struct error error;
    struct out out;
    if (flame->nodes.items[0].total == 0) {
        error_set(&error, ERROR_INPUT, "there are no stacks to draw");
        return fail(&error);
    }
    if (!out_open(&out, path, &error))
        return fail(&error);
    svg_write(&out, flame, &svg);
    if (!out_commit(&out, &error))
        return fail(&error);
    if (!request.output)
        puts(path);
    return 0;
}

int command_flame(int argc, char **argv) {
    int status = 0;
    if (!request_find_compat(argc, argv, &status) ||
        !options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    request_settle();
    struct source source;
    if (!open_source(&source, "flame", &status))
        return status;
    struct error error;
    struct notes notes = {0};
    struct flame *flame = make_flame(&source, &notes, &error);
    status = flame ? write_svg(flame) : fail(&error);
    if (flame)
        print_notes(&notes);
    flame_free(flame);
    notes_release(&notes);
    source_close(&source);
    return status;
}
