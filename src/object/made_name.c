/*
 * Parse the names that runtimes give to generated code.
 */
#include "object/made.h"

/* PATH:LINE:COLUMN, as V8 has it. */
static void place_read(struct text place, struct made_name *known) {
    uint64_t line;
    size_t column = text_find_last(place, ':');
    size_t colon = column == SIZE_MAX ? column : text_find_last(text_upto(place, column), ':');
    if (colon == SIZE_MAX ||
        !text_to_u64(text_upto(text_from(place, colon + 1), column - colon - 1), &line) ||
        line > UINT32_MAX)
        return;
    known->file = text_upto(place, colon);
    known->line = (uint32_t)line;
}

/* A function of JavaScript's: how it was compiled, a letter for by which compiler, its name, and where it stands. */
static bool is_javascript(struct text name) {
    static const struct text prefixes[] = {TEXT("JS:"), TEXT("LazyCompile:"), TEXT("Function:"),
                                           TEXT("Script:"), TEXT("Eval:")};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++)
        if (text_starts(name, prefixes[i]))
            return true;
    return false;
}

/* module:function/arity, in perf maps after a $. What stands before a function's code has a name of its own, but is found only where a return
   address is the function's beginning. */
static bool is_erlang(struct text *name) {
    static const struct text before = TEXT("-CodeInfoPrologue");
    struct text own =
        text_ends(*name, before) ? text_upto(*name, name->length - before.length) : *name;
    size_t slash = text_find_last(own, '/'), colon = text_find(own, ':');
    uint64_t arity;
    if (slash == SIZE_MAX || colon == SIZE_MAX || colon > slash || own.data[0] == '/' ||
        text_find(own, ' ') != SIZE_MAX || !text_to_u64(text_from(own, slash + 1), &arity))
        return false;
    *name = own;
    return true;
}

struct made_name made_name_read(struct text name) {
    struct made_name known = {.name = name, .language = TEXT(""), .file = TEXT("")};
    if (is_javascript(name)) {
        size_t space = text_find(name, ' ');
        known.language = TEXT("javascript");
        if (space != SIZE_MAX)
            place_read(text_from(name, space + 1), &known);
    } else if (text_starts(name, TEXT("py::"))) {
        struct text rest = text_from(name, 4);
        size_t colon = text_find(rest, ':');
        known.language = TEXT("python");
        if (colon != SIZE_MAX)
            known.file = text_from(rest, colon + 1);
    } else if (is_erlang(&known.name)) {
        known.language = TEXT("erlang");
    }
    return known;
}
