/* wick annotate: one function of a profile, with the cost of each of its lines and instructions. */
#include "cmd/confine.h"

#include <stdlib.h>

#include "saved/saved.h"

struct annotate_command {
    struct request request;
    struct annotate_options options;
    const char *source;
};

#define HERE(member) IN(struct annotate_command, member)
static const struct option options_annotate[] = {
    {"source", 0, OPTION_TEXT, HERE(source), "DIR",
     "look for source files below DIR (default: the current directory)"},
    {"no-source", 0, OPTION_FLAG, HERE(options.no_source), NULL, "show only machine code"},
    {"no-code", 0, OPTION_FLAG, HERE(options.no_code), NULL, "show only source lines"},
    {0},
};

static const struct option_group groups[] = {
    {"What to show", options_annotate}, {"Which stacks", options_stacks},
    OPTION_GROUPS_OF_SAMPLES,           {"Weights and shape", options_shape},
    {"Symbols", options_symbols},       {"Formats", options_formats},
    {"General", options_common},        {0},
};

static const struct syntax syntax = {
    "annotate",
    "FILE… FUNCTION",
    "Show one function line by line: the cost of each line and instruction itself (self) "
    "and\nincluding its callees (total), in per cent of the profile. Source comes from --source "
    "DIR or\nfrom the profile (wick save --source), machine code from the program's file.",
    groups,
    .common = "source no-source no-code event comm time focus off-cpu output",
    .examples = "wick annotate perf.data main               # source lines and instructions\n"
                "wick annotate --no-code wick-out/x parse",
};

/* The view has listed the functions that contain the word; suggest a similar name, too. */
static void guess_function(const struct annotate_command *c, const struct naming *naming,
                           struct error *error) {
    struct guess guess = {.typed = c->options.function};
    struct buffer meant = {0};
    for (size_t i = 0; i < naming->labels.count; i++)
        guess_offer_function(&guess,
                             strings_get(naming->strings, naming->labels.items[i].name).data);
    if (guess.best && !strcasestr(guess.best, guess.typed.data))
        guess_add(&guess, &meant);
    if (meant.count) {
        struct error plain = *error;
        error_set(error, plain.kind, "%s%.*s", plain.message, TEXT_ARGS(buffer_text(&meant)));
    }
    buffer_release(&meant);
}

static bool annotate(struct annotate_command *c, struct source *source, struct notes *notes,
                     struct error *error) {
    struct request *request = &c->request;
    struct out out;
    if (!c->options.no_source &&
        !saved_attach_sources(source->tree, c->source ? c->source : ".", error))
        return false;
    if (!c->options.no_code)
        saved_attach_code(source->tree, c->options.function);
    notes_drop(&source->tree->notes, "sources-kept"); /* these notes are about saved files */
    notes_drop(&source->tree->notes, "sources-missing");
    struct naming *naming = make_naming(request, source, notes);
    bool fine = output_open(request, &out, error);
    if (fine && annotate_write(&out, source->tree, naming, &c->options, error))
        fine = out_commit(&out, error);
    else if (fine)
        out_discard(&out), guess_function(c, naming, error), fine = false;
    naming_free(naming);
    return fine;
}

static int run(void *command, int argc, char **argv) {
    struct annotate_command *c = command;
    struct request *request = &c->request;
    int status = 0;
    if (!request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (request->operands.count < 2)
        return fail_usage("annotate", "a profile and the name of a function are needed");
    c->options.function = text_of(request->operands.items[--request->operands.count]);
    c->options.shape = &request->flame;
    request->import.profile.source_lines = true;
    request->naming.no_comm = true;
    struct source source;
    struct error error;
    struct notes notes = {0};
    if (!confine_reader(request, NULL, &status) || !open_source(request, &source, &status))
        return status;
    status = annotate(c, &source, &notes, &error) ? 0 : fail(&error);
    print_notes(request, &notes);
    notes_release(&notes);
    source_close(&source);
    return status;
}

const struct command command_annotate = {"annotate", "show one function by line and instruction",
                                         sizeof(struct annotate_command), run, .group = GROUP_LOOK};
