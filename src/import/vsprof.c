/*
 * Visual Studio's profiler, "call tree" CSV: level, function, number of calls, and columns that are not used here.
 *
 * A function's number of calls includes its callees'; on the way back up the tree, a callee's number is subtracted
 * from its caller's.
 */
#include "import/reader.h"

#include <stdlib.h>

static const struct note_kind note_no_graph = {"no-call-graph",
                                               "File ended before start of call graph"};

#define VSPROF_HEADER                                                                              \
    TEXT("Level,Function Name,Number of Calls,Elapsed Inclusive Time %,Elapsed Exclusive Time %,"  \
         "Avg Elapsed Inclusive Time,Avg Elapsed Exclusive Time,Module Name,")

struct vsprof {
    struct reader r;
    VECTOR(uint64_t) calls; /* of each frame on the stack */
};

static bool is_header(struct text line) {
    line = text_trim_both(line);
    while (text_starts(line, TEXT("\xef\xbb\xbf")))
        line = text_from(line, 3);
    return text_starts(line, VSPROF_HEADER);
}

/* Parse digits in groups of three, separated by `,`, `.` or a space; a single group needs no separator. */
static bool grouped_number(struct text t, uint64_t *value) {
    size_t group = 0;
    bool initial = true;
    char separator = 0;
    *value = 0;
    for (size_t i = 0; i < t.length; i++) {
        char c = t.data[i];
        if (c >= '0' && c <= '9') {
            if (++group > 3 || !checked_multiply(*value, 10, value) ||
                !checked_add(*value, (uint64_t)(c - '0'), value))
                return false;
            continue;
        }
        if ((c != ',' && c != '.' && c != ' ') || (!initial && group < 3) ||
            (separator && separator != c))
            return false;
        separator = c;
        initial = false;
        group = 0;
    }
    return true;
}

/* Take a number from `rest`; it is quoted if it has separators. */
static bool next_number(struct text *rest, uint64_t *value) {
    if (text_starts(*rest, TEXT(",")))
        *rest = text_from(*rest, 1);
    bool quoted = text_starts(*rest, TEXT("\""));
    if (quoted)
        *rest = text_from(*rest, 1);
    size_t end = text_find(*rest, quoted ? '"' : ',');
    if (end == SIZE_MAX && quoted)
        return false;
    struct text number = end == SIZE_MAX ? *rest : text_upto(*rest, end);
    *rest = end == SIZE_MAX ? TEXT("") : text_from(*rest, end + 1);
    if (quoted && text_starts(*rest, TEXT(",")))
        *rest = text_from(*rest, 1);
    return grouped_number(number, value);
}

static void count_stack(struct vsprof *v) {
    uint64_t calls = v->calls.count ? v->calls.items[v->calls.count - 1] : 0;
    if (!calls)
        return;
    if (v->r.options->profile.quirks.last_count_wins)
        stack_replace(&v->r.stack, calls, calls);
    else
        stack_count(&v->r.stack, calls, calls);
}

static void pop(struct vsprof *v) {
    v->r.stack.locations.count--;
    v->calls.count--;
}

/* Go back up to `depth` frames. A caller with exactly its callee's calls has none of its own to count. */
static void climb(struct vsprof *v, size_t depth) {
    uint64_t below = 0;
    while (v->calls.count > depth) {
        uint64_t calls = v->calls.items[v->calls.count - 1];
        if (below != calls)
            count_stack(v);
        below = calls;
        pop(v);
        if (v->calls.count && below < v->calls.items[v->calls.count - 1])
            v->calls.items[v->calls.count - 1] -= below;
    }
}

static bool vsprof_line(struct vsprof *v) {
    struct reader *r = &v->r;
    struct text rest = r->line;
    uint64_t level, calls;
    if (!next_number(&rest, &level))
        return reader_bad(r, "Unable to parse integer in line");
    if (rest.length == 0)
        return reader_bad(r, "Missing function name in line:");
    size_t close = text_starts(rest, TEXT("\"")) ? text_find(text_from(rest, 1), '"') : SIZE_MAX;
    if (close == SIZE_MAX)
        return reader_bad(r, "Unable to parse function name from line:");
    struct text function = {rest.data + 1, close};
    rest = text_from(rest, close + 2);
    if (!next_number(&rest, &calls))
        return reader_bad(r, "Unable to parse integer in line");
    if (level > v->calls.count + 1)
        return reader_bad(r, "Skipped level at line");
    if (level == v->calls.count && level) {
        count_stack(v);
        pop(v);
    } else if (level < v->calls.count) {
        climb(v, level ? level - 1 : 0);
    }
    stack_push(&r->stack, function);
    vector_push(&v->calls, calls);
    return true;
}

static bool vsprof_lines(struct vsprof *v) {
    if (!reader_next(&v->r)) {
        reader_warn(&v->r, &note_no_graph);
        return true;
    }
    if (!is_header(v->r.line) && !reader_bad(&v->r, "Expected the header of a call tree in line"))
        return false;
    while (reader_next(&v->r))
        if (v->r.line.length && !vsprof_line(v))
            return false;
    if (v->r.options->profile.quirks.last_count_wins)
        count_stack(v); /* what is left on the stack above it is dropped */
    else
        climb(v, 0);
    return true;
}

static bool vsprof_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct vsprof v = {0};
    reader_init(&v.r, content, path, options, tree, TEXT("calls"), error);
    bool fine = vsprof_lines(&v);
    reader_release(&v.r);
    vector_release(&v.calls);
    return fine;
}

enum applicable vsprof_applicable(struct text text) {
    struct lines lines = {.rest = text};
    struct text line = {0};
    lines_next(&lines, &line);
    return is_header(line) ? APPLICABLE_YES : APPLICABLE_NO;
}

static int vsprof_score(struct text beginning) {
    return vsprof_applicable(beginning) == APPLICABLE_YES ? 95 : 0;
}

const struct import_format format_vsprof = {"vsprof", "Visual Studio profiler's call tree CSV",
                                            vsprof_score, vsprof_read};
