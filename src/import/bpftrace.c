/*
 * bpftrace's maps keyed by stacks:
 *
 *     @[
 *         do_sys_open+12
 *         main+30
 *     , bash, 1234]: 7
 *
 * Indented lines are frames, leaf first; anything else in the key (comm, pid) becomes the root. A kernel and a user
 * stack in one key follow each other, as in the call.
 */
#include "import/reader.h"

/* Parse `@name[`, which begins a map's entry; *rest is what follows the bracket. */
static bool entry_start(struct text line, struct text *rest) {
    if (!text_starts(line, TEXT("@")))
        return false;
    size_t open = text_find(line, '[');
    if (open == SIZE_MAX)
        return false;
    *rest = text_from(line, open + 1);
    return true;
}

/* Parse `…]: 12`, which ends it; *rest is what precedes the bracket. */
static bool entry_end(struct text line, struct text *rest, uint64_t *count) {
    size_t colon = text_find_last(line, ' ');
    if (colon == SIZE_MAX || !text_to_u64(text_from(line, colon + 1), count))
        return false;
    struct text before = text_upto(line, colon);
    if (!text_ends(before, TEXT("]:")))
        return false;
    *rest = text_upto(before, before.length - 2);
    return true;
}

static struct text without_offset(struct text name) {
    size_t plus = text_find_last(name, '+');
    uint64_t offset;
    bool digits = plus != SIZE_MAX && (text_to_u64(text_from(name, plus + 1), &offset) ||
                                       (text_starts(text_from(name, plus + 1), TEXT("0x")) &&
                                        text_hex_to_u64(text_from(name, plus + 3), &offset)));
    return digits ? text_upto(name, plus) : name;
}

static void push_frame(struct reader *r, struct text line) {
    struct script_frame frame;
    line = text_trim(line);
    if (text_ends(line, TEXT(","))) /* last frame of a stack that is followed by another */
        line.length--;
    if (line.length == 0)
        return;
    if (script_frame_parse(line, &frame) && frame.object.data) /* stack(perf) */
        stack_push(&r->stack, frame.symbol);
    else
        stack_push(&r->stack, without_offset(line));
}

/* Join everything in the key that is neither frame nor stack by commas. */
static void add_key(struct buffer *key, struct text piece) {
    piece = text_trim(piece);
    while (piece.length && (piece.data[0] == ',' || piece.data[0] == ' '))
        piece = text_from(piece, 1);
    while (piece.length &&
           (piece.data[piece.length - 1] == ',' || piece.data[piece.length - 1] == ' '))
        piece.length--;
    if (!piece.length)
        return;
    if (key->count)
        buffer_add(key, TEXT(", "));
    buffer_add(key, piece);
}

static void entry_count(struct reader *r, struct buffer *key, uint64_t count) {
    if (key->count)
        stack_push(&r->stack, buffer_text(key));
    stack_end(&r->stack, count);
    key->count = 0;
}

static bool bpftrace_read(struct text content, const char *path,
                          const struct import_options *options, struct tree *tree,
                          struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("samples"), error);
    struct buffer key = {0};
    bool inside = false;
    while (reader_next(&r)) {
        struct text rest = r.line, before;
        uint64_t count;
        bool starts = !inside && entry_start(r.line, &rest);
        inside |= starts;
        if (!inside)
            continue; /* "Attaching 1 probe...", other maps */
        bool ends = entry_end(rest, &before, &count);
        if (ends)
            rest = before;
        if (!starts && rest.length && (rest.data[0] == ' ' || rest.data[0] == '\t'))
            push_frame(&r, rest);
        else
            add_key(&key, rest);
        if (ends)
            entry_count(&r, &key, count);
        inside = !ends;
    }
    if (inside)
        reader_bad(&r, "the text ends inside a stack: line");
    buffer_release(&key);
    reader_release(&r);
    return true;
}

static int bpftrace_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line, rest;
    bool open = false;
    while (lines_next(&lines, &line)) {
        uint64_t count;
        if (entry_start(line, &rest)) {
            open = true;
            line = rest;
        }
        if (open && entry_end(text_trim(line), &rest, &count))
            return 90;
    }
    return 0;
}

const struct import_format format_bpftrace = {"bpftrace", "bpftrace's maps of stacks",
                                              bpftrace_score, bpftrace_read};
