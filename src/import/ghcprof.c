/*
 * GHC's time and allocation profiles (.prof): a table whose columns are where its header says, counted in characters.
 * Depth is the number of leading spaces; every cost is the line's own. ghcjson.c reads the JSON form.
 */
#include "import/ghcprof.h"

/* The text before the cost centres is short, except for the program's arguments. */
enum { JSON_HEAD = 64 << 10 };

static const struct note_kind note_no_graph = {"no-call-graph",
                                               "File ended before start of call graph"};

static const char *const header_words[] = {"COST",    "CENTRE", "MODULE", "SRC",   "no.",
                                           "entries", "%time",  "%alloc", "%time", "%alloc"};

static struct text next_word(struct text *rest) {
    *rest = text_trim_start(*rest);
    size_t end = 0;
    while (end < rest->length &&
           text_trim_start(text_from(*rest, end)).length == rest->length - end)
        end++;
    struct text word = text_upto(*rest, end);
    *rest = text_from(*rest, end);
    return word;
}

static bool is_header(struct text line) {
    for (size_t i = 0; i < COUNT_OF(header_words); i++)
        if (!text_equal(next_word(&line), text_of(header_words[i])))
            return false;
    return true;
}

/* Return the word at or after column `column`; costs are right-aligned, names are not. */
static struct text word_at(struct text line, size_t column) {
    size_t at = 0;
    for (; at < line.length && column; column--)
        do
            at++;
        while (at < line.length && ((unsigned char)line.data[at] & 0xc0) == 0x80);
    struct text rest = text_from(line, at);
    return next_word(&rest);
}

/* Return where the costs begin: directly after the previous column, because values may be wider than their heading. */
static bool cost_column(struct reader *r, const char *heading, size_t *column) {
    size_t at = text_search(r->line, text_of(heading));
    if (at == SIZE_MAX)
        return error_set(r->error, ERROR_INPUT, "%s: Expected '%s' column but it was not present",
                         r->path, heading);
    *column = text_trim_end(text_upto(r->line, at)).length;
    return true;
}

struct columns {
    size_t module;
    size_t cost;
};

static bool find_columns(struct reader *r, struct columns *columns) {
    size_t module = text_search(r->line, TEXT("MODULE"));
    columns->module = module == SIZE_MAX ? 0 : module;
    if (r->options->ghc_column == 1)
        return cost_column(r, "ticks", &columns->cost);
    if (r->options->ghc_column == 2)
        return cost_column(r, "bytes", &columns->cost);
    columns->cost = text_search(r->line, TEXT("%time"));
    return true;
}

/* %time has one decimal, so tenths of a per cent are integers. */
static bool ghc_line(struct reader *r, const struct columns *columns) {
    size_t depth = 0;
    while (depth < r->line.length && r->line.data[depth] == ' ')
        depth++;
    if (depth > r->stack.locations.count)
        return reader_bad(r, "Skipped indentation level at line");
    double cost;
    if (!text_to_double(word_at(r->line, columns->cost), &cost))
        return reader_bad(r, "Invalid cost field in line");
    r->scratch.count = 0;
    buffer_add(&r->scratch, word_at(r->line, columns->module));
    buffer_add_char(&r->scratch, '.');
    buffer_add(&r->scratch, word_at(r->line, 0));
    r->stack.locations.count = depth;
    stack_push(&r->stack, buffer_text(&r->scratch));
    uint64_t weight = double_to_u64(r->options->ghc_column == 0 ? cost * 10.0 : cost);
    stack_count(&r->stack, 1, weight);
    return true;
}

static bool ghc_table(struct reader *r) {
    struct columns columns = {0};
    if (!find_columns(r, &columns))
        return false;
    reader_next(r);
    while (reader_next(r) && r->line.length)
        if (!ghc_line(r, &columns))
            return false;
    return true;
}

static bool ghcprof_read(struct text content, const char *path,
                         const struct import_options *options, struct tree *tree,
                         struct error *error) {
    static const char *const units[] = {"‰", "ticks", "bytes"};
    struct reader r;
    if (ghcjson_is(content.length < JSON_HEAD ? content : text_upto(content, JSON_HEAD)))
        return ghcjson_read(content, path, options, tree, error);
    int column = options->ghc_column >= 0 && options->ghc_column <= 2 ? options->ghc_column : 0;
    reader_init(&r, content, path, options, tree, text_of(units[column]), error);
    bool fine = true, found = false;
    while (!found && reader_next(&r))
        found = is_header(r.line);
    if (found)
        fine = ghc_table(&r);
    else
        reader_warn(&r, &note_no_graph);
    reader_release(&r);
    return fine;
}

enum applicable ghcprof_applicable(struct text text) {
    struct lines lines = {.rest = text};
    struct text line;
    while (lines_next(&lines, &line))
        if (is_header(line))
            return APPLICABLE_YES;
    return APPLICABLE_UNSURE;
}

static int ghcprof_score(struct text beginning) {
    return ghcjson_is(beginning) ? 98 : ghcprof_applicable(beginning) == APPLICABLE_YES ? 95 : 0;
}

const struct import_format format_ghcprof = {"ghcprof", "GHC's .prof", ghcprof_score, ghcprof_read};
