/*
 * Intel VTune's CSV of function stacks: depth is the number of leading spaces; the weight is each line's self CPU
 * time, here in milliseconds.
 */
#include "import/reader.h"

#include <math.h>

static const struct note_kind note_no_header = {"no-header", "File ended before header"};

#define VTUNE_HEADER TEXT("Function Stack,CPU Time:Self,Module")

struct vtune_line {
    struct text function;
    struct text time;
    struct text module;
};

/* function,time,module; the function in quotes if it has a comma or a space. */
static bool vtune_parts(struct text line, bool no_modules, struct vtune_line *parts) {
    bool quoted = text_starts(line, TEXT("\""));
    struct text rest = quoted ? text_from(line, 1) : line;
    size_t end = quoted ? text_search(rest, TEXT("\",")) : text_find(rest, ',');
    if (end == SIZE_MAX)
        return false;
    parts->function = text_upto(rest, end);
    rest = text_from(rest, end + (quoted ? 2 : 1));
    size_t comma = text_find(rest, ',');
    parts->time = comma == SIZE_MAX ? rest : text_upto(rest, comma);
    parts->module = TEXT("");
    if (no_modules)
        return true;
    if (comma == SIZE_MAX)
        return false;
    parts->module = text_from(rest, comma + 1);
    return true;
}

static bool vtune_line(struct reader *r) {
    size_t depth = 0;
    while (depth < r->line.length && r->line.data[depth] == ' ')
        depth++;
    if (depth > r->stack.locations.count)
        return reader_bad(r, "Skipped indentation level at line");
    struct vtune_line parts;
    double seconds;
    if (!vtune_parts(text_from(r->line, depth), r->options->no_modules, &parts))
        return reader_bad(r, "Unable to parse stack line");
    if (!text_to_double(parts.time, &seconds))
        return reader_bad(r, "Invalid `CPU Time:Self` field in line");
    r->stack.locations.count = depth;
    r->scratch.count = 0;
    if (parts.module.length) {
        buffer_add(&r->scratch, parts.module);
        buffer_add_char(&r->scratch, '`');
    }
    buffer_add(&r->scratch, parts.function);
    stack_push(&r->stack, buffer_text(&r->scratch));
    uint64_t weight = double_to_u64(round(seconds * 1000));
    if (weight && r->options->profile.quirks.last_count_wins)
        stack_replace(&r->stack, 1, weight);
    else if (weight)
        stack_count(&r->stack, 1, weight);
    return true;
}

static bool vtune_read(struct text content, const char *path, const struct import_options *options,
                       struct tree *tree, struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("ms"), error);
    bool fine = true, found = false;
    while (!found && reader_next(&r))
        found = text_starts(r.line, VTUNE_HEADER);
    if (!found)
        reader_warn(&r, &note_no_header);
    while (fine && reader_next(&r))
        fine = r.line.length == 0 || vtune_line(&r);
    reader_release(&r);
    return fine;
}

enum applicable vtune_applicable(struct text text) {
    struct lines lines = {.rest = text};
    struct text line;
    while (lines_next(&lines, &line))
        if (text_starts(line, VTUNE_HEADER))
            return APPLICABLE_YES;
    return APPLICABLE_UNSURE;
}

static int vtune_score(struct text beginning) {
    return vtune_applicable(beginning) == APPLICABLE_YES ? 95 : 0;
}

const struct import_format format_vtune = {"vtune", "Intel VTune's CSV", vtune_score, vtune_read};
