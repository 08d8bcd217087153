/* wick enrich: add names and lines to the output of `wick trace --raw`. */
#include "cmd/confine.h"
#include "trace/trace.h"

struct enrich_command {
    struct request request;
    const char *elf_path;
};

static const struct option options_elf[] = {
    {"elf", 0, OPTION_TEXT, IN(struct enrich_command, elf_path), "FILE",
     "the traced program, with DWARF for inlined functions and lines"},
    {"output", 'o', OPTION_TEXT, ASKED(output), "FILE", "write to FILE (- for standard output)"},
    {"quiet", 'q', OPTION_FLAG, ASKED(quiet), NULL, "print no notes"},
    OPTION_NO_SANDBOX,
    {0},
};

static const struct option_group groups[] = {{"Options", options_elf}, {0}};

static const struct syntax syntax = {
    "enrich",
    "RAW --elf FILE",
    "Convert the addresses of `wick trace --raw` to functions, inlined functions and "
    "file:line.\nIncomplete lines are skipped and reported.",
    groups,
    .examples = "wick trace --raw -o raw.txt ./guest && wick enrich raw.txt --elf ./guest",
};

static int run(void *command, int argc, char **argv) {
    struct enrich_command *enrich = command;
    struct request *request = &enrich->request;
    int status = 0;
    struct error error;
    struct file raw;
    struct notes notes = {0};
    if (!options_parse(&syntax, enrich, argc, argv, &status))
        return status;
    if (request->operands.count != 1 || !enrich->elf_path)
        return fail_usage("enrich", "one RAW file and --elf FILE are needed");
    if (!confine(request, NULL, NULL, &error) ||
        !file_open(&raw, request->operands.items[0], &request->context, &error))
        return fail(&error);
    struct flame *flame = trace_enrich(file_text(&raw), request->operands.items[0],
                                       enrich->elf_path, &request->context, &notes, &error);
    status = flame && folded_write(request, flame, &error) ? 0 : fail(&error);
    print_notes(request, &notes);
    notes_release(&notes);
    flame_free(flame);
    file_close(&raw);
    return status;
}

const struct command command_enrich = {
    "enrich", "add inlined functions and lines to the output of wick trace --raw",
    sizeof(struct enrich_command), run, .group = GROUP_CONVERT};
