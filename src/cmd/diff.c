#include "cmd/cmd.h"

#include <stdio.h>

static struct diff_options diff;
static struct svg_options svg = {.min_width = SVG_MIN_WIDTH};
static bool as_text;

static const struct option options_diff[] = {
    {"normalize", 'n', OPTION_FLAG, &diff.normalize, NULL,
     "scale BEFORE so that both add up to the same"},
    {"strip-hex", 's', OPTION_FLAG, &diff.strip_hex, NULL, "0x45ef2173 in a name is 0x..."},
    {"folded", 0, OPTION_FLAG, &as_text, NULL, "write text, `stack BEFORE AFTER`, not a picture"},
    {"negate", 0, OPTION_FLAG, &svg.negate, NULL, "blue is what grew, red what shrank"},
    {"title", 0, OPTION_TEXT, &svg.title, "TEXT", "the picture's title"},
    {0},
};

static const struct option_group groups[] = {
    {"What to show", options_diff},
    {"Which samples", options_filter},
    {"Names", options_names},
    {"Weights and shape", options_shape},
    {"Symbols", options_symbols},
    {"General", options_common},
    {0},
};

static const struct syntax syntax = {
    "diff",
    "BEFORE AFTER",
    "What changed between two profiles of any kind that wick reads: a flame graph in which red\n"
    "grew and blue shrank, or with --folded text. With --compat=inferno --folded, what\n"
    "inferno-diff-folded writes of two folded texts, in order.",
    groups,
};

static bool write_inferno(struct notes *notes, struct error *error) {
    struct file before = {0}, after = {0};
    struct out out;
    bool fine = file_open(&before, request.operands.items[0], error) &&
                file_open(&after, request.operands.items[1], error) &&
                out_open(&out, request.output ? request.output : "-", error);
    if (fine) {
        diff_folded_inferno(&out, file_text(&before), file_text(&after), &diff, notes);
        fine = out_commit(&out, error);
    }
    if (after.path)
        file_close(&after);
    if (before.path)
        file_close(&before);
    return fine;
}

static struct flame *flame_of(size_t operand, struct notes *notes, struct error *error) {
    struct source source;
    if (!source_open(&source, &request.operands.items[operand], 1, &request.import, error))
        return NULL;
    struct flame *flame = make_flame(&source, notes, error);
    source_close(&source);
    return flame;
}

static bool write_diff(const struct flame *flame, struct error *error) {
    const char *path = request.output ? request.output : as_text ? "-" : "flamegraph.svg";
    struct out out;
    if (!as_text && flame->nodes.items[0].total == 0 && flame->nodes.items[0].total_before == 0)
        return error_set(error, ERROR_INPUT, "there are no stacks to draw");
    if (!out_open(&out, path, error))
        return false;
    if (as_text)
        fold_write(&out, flame, &(struct fold_options){0});
    else
        svg_write(&out, flame, &svg);
    if (!out_commit(&out, error))
        return false;
    if (!as_text && !request.output)
        puts(path);
    return true;
}

static bool write_own(struct notes *notes, struct error *error) {
    struct flame *before = flame_of(0, notes, error);
    struct flame *after = before ? flame_of(1, notes, error) : NULL;
    struct flame *both = after ? flame_diff(before, after, &diff, error) : NULL;
    bool fine = both && write_diff(both, error);
    flame_free(both);
    flame_free(after);
    flame_free(before);
    return fine;
}

int command_diff(int argc, char **argv) {
    int status = 0;
    if (!request_find_compat(argc, argv, &status) ||
        !options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    request_settle();
    if (request.operands.count != 2)
        return fail_usage("diff", "wants two files, BEFORE and AFTER");
    struct error error;
    struct notes notes = {0};
    bool fine = request.import.compat_inferno && as_text ? write_inferno(&notes, &error)
                                                         : write_own(&notes, &error);
    status = fine ? 0 : fail(&error);
    print_notes(&notes);
    notes_release(&notes);
    return status;
}
