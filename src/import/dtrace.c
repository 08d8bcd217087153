/*
 * DTrace's stack() and ustack() aggregations: a header up to the first blank line, then stacks, leaf first, each ended by
 * its count on a line of its own. Kernel and user stack of one sample are two blocks with a blank line between.
 */
#include "import/reader.h"

static const struct note_kind note_no_stacks = {"no-stacks", "File ended while skipping headers"};

/* Cut `scope::name<T>(args)` after its last bracket; leave names without a scope alone. */
static struct text without_arguments(struct text frame) {
    size_t scope = text_search(frame, TEXT("::"));
    if (scope == SIZE_MAX)
        return frame;
    for (size_t i = frame.length; i-- > scope + 2;)
        if (frame.data[i] == '(' || frame.data[i] == '<')
            return text_upto(frame, i);
    return frame;
}

static struct text without_offset(struct text frame) {
    size_t plus = text_find_last(frame, '+');
    return plus == SIZE_MAX ? frame : text_upto(frame, plus);
}

/* Parse module`name+offset and repair Rust's names. The result is either `frame` or what was written to `out`. */
static struct text repaired(struct reader *r, struct text frame) {
    size_t tick = text_find(frame, '`');
    if (tick == SIZE_MAX)
        return frame;
    struct text name = text_from(frame, tick + 1), offset = {0};
    size_t plus = r->options->include_offset ? text_find_last(name, '+') : SIZE_MAX;
    if (plus != SIZE_MAX) {
        offset = text_from(name, plus);
        name = text_upto(name, plus);
    }
    r->scratch.count = 0;
    buffer_add(&r->scratch, text_upto(frame, tick + 1));
    if (!rust_repair(text_trim_end(name), &r->scratch))
        return frame;
    buffer_add(&r->scratch, offset);
    return buffer_text(&r->scratch);
}

static void add_colons(struct buffer *out, struct text piece) {
    for (size_t i = 0; i < piece.length; i++)
        buffer_add_char(out, piece.data[i] == ';' ? ':' : piece.data[i]);
}

/* Parts between arrows are inlined into each other; the last one is the innermost. */
static void push_pieces(struct reader *r, struct text frame) {
    size_t first = r->stack.locations.count;
    struct buffer name = {0};
    for (bool inlined = false;; inlined = true) {
        size_t arrow = text_search(frame, TEXT("->"));
        struct text piece = arrow == SIZE_MAX ? frame : text_upto(frame, arrow);
        while (piece.length && piece.data[0] == 'L')
            piece = text_from(piece, 1);
        name.count = 0;
        add_colons(&name, piece);
        if (inlined)
            buffer_add(&name, TEXT("_[i]"));
        stack_push_kinds(&r->stack, buffer_text(&name), inlined ? KIND_INLINED : 0);
        if (arrow == SIZE_MAX)
            break;
        frame = text_from(frame, arrow + 2);
    }
    /* Stacks are leaf first until they are counted. */
    for (size_t i = first, j = r->stack.locations.count; i + 1 < j; i++) {
        uint32_t swap = r->stack.locations.items[i];
        r->stack.locations.items[i] = r->stack.locations.items[--j];
        r->stack.locations.items[j] = swap;
    }
    buffer_release(&name);
}

static bool has_arrow(const struct reader *r, struct text line) {
    size_t arrow = text_search(line, TEXT("->"));
    if (arrow == SIZE_MAX || r->options->profile.quirks.every_arrow_splits)
        return arrow != SIZE_MAX;
    return text_search(line, TEXT("operator->")) == SIZE_MAX;
}

/* Remove the leaf's offset even if offsets are kept. */
static void push_line(struct reader *r, struct text line, bool leaf) {
    bool offsets = r->options->include_offset;
    struct text frame = offsets ? line : without_offset(line);
    if (offsets || text_search(line, TEXT("::")) != SIZE_MAX)
        frame = without_arguments(frame);
    frame = frame.length ? repaired(r, frame) : TEXT("-");
    if (leaf && offsets)
        frame = without_offset(frame);
    if (offsets || has_arrow(r, line)) {
        push_pieces(r, frame);
        return;
    }
    struct buffer name = {0};
    add_colons(&name, frame);
    stack_push(&r->stack, buffer_text(&name));
    buffer_release(&name);
}

static bool count_parse(struct text line, uint64_t *count) {
    return text_to_u64(line.length > 1 && line.data[0] == '+' ? text_from(line, 1) : line, count);
}

static bool skip_header(struct reader *r) {
    while (reader_next(r))
        if (text_trim_both(r->line).length == 0)
            return true;
    reader_warn(r, &note_no_stacks);
    return false;
}

static bool dtrace_stacks(struct reader *r) {
    while (reader_next(r)) {
        struct text line = text_trim_both(r->line);
        uint64_t count;
        if (line.length == 0)
            continue;
        if (!count_parse(line, &count)) {
            push_line(r, line, r->stack.locations.count == 0);
            continue;
        }
        stack_end(&r->stack, count);
    }
    return r->stack.locations.count == 0 ||
           reader_bad(r, "Input data ends in the middle of a stack: line");
}

static bool dtrace_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("samples"), error);
    bool fine = !skip_header(&r) || dtrace_stacks(&r);
    reader_release(&r);
    return fine;
}

enum applicable dtrace_applicable(struct text text) {
    struct lines lines = {.rest = text};
    struct text line;
    bool blank = false, frame = false;
    while (lines_next(&lines, &line)) {
        uint64_t number;
        line = text_trim_both(line);
        if (line.length == 0) {
            blank = true;
        } else if (blank) {
            if (count_parse(line, &number))
                return frame ? APPLICABLE_YES : APPLICABLE_NO;
            if (text_find(line, '`') == SIZE_MAX &&
                !(text_starts(line, TEXT("0x")) && text_hex_to_u64(text_from(line, 2), &number)))
                return APPLICABLE_NO;
            frame = true;
        }
    }
    return APPLICABLE_UNSURE;
}

static int dtrace_score(struct text beginning) {
    return dtrace_applicable(beginning) == APPLICABLE_YES ? 90 : 0;
}

const struct import_format format_dtrace = {"dtrace", "DTrace stacks", dtrace_score, dtrace_read};
