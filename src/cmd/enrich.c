/* wick enrich: what `wick trace --raw` wrote, with names and lines. */
#include "cmd/cmd.h"
#include "trace/trace.h"

static const char *elf_path;

static const struct option options_elf[] = {
    {"elf", 0, OPTION_TEXT, &elf_path, "FILE",
     "the program the addresses are in; with DWARF, for inlines and lines"},
    {"output", 'o', OPTION_TEXT, &request.output, "FILE", "write to FILE; - is standard output"},
    {"quiet", 'q', OPTION_FLAG, &request.quiet, NULL, "no notes"},
    {0},
};

static const struct option_group groups[] = {{"Options", options_elf}, {0}};

static const struct syntax syntax = {
    "enrich",
    "RAW --elf FILE",
    "Turns the addresses of `wick trace --raw` into functions, those inlined into them, and their\n"
    "file:line. Lines that were torn are skipped, and said.",
    groups,
};

int command_enrich(int argc, char **argv) {
    int status = 0;
    struct error error;
    struct file raw;
    struct notes notes = {0};
    if (!options_parse(&syntax, argc, argv, &request.operands, &status))
        return status;
    if (request.operands.count != 1 || !elf_path)
        return fail_usage("enrich", "one RAW file and --elf FILE are needed");
    if (!file_open(&raw, request.operands.items[0], &request.context, &error))
        return fail(&error);
    struct flame *flame = trace_enrich(file_text(&raw), request.operands.items[0], elf_path,
                                       &request.context, &notes, &error);
    status = flame && folded_write(flame, &error) ? 0 : fail(&error);
    print_notes(&notes);
    notes_release(&notes);
    flame_free(flame);
    file_close(&raw);
    return status;
}
