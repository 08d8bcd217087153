/*
 * SystemTap's stacks with a count behind each, from print_stack() or print_ustack():
 *
 *      0xffffffff8103ce3b : native_safe_halt+0xb/0x10 [kernel]
 *      0xffffffff8101c6a3 : default_idle+0x53/0x1d0 [kernel]
 *     	2404
 */
#include "import/reader.h"

/* Frames that were guessed from the stack's bytes say so at the end. */
static struct text stap_frame(struct text line) {
    static const struct text guessed = {" (inexact)", 10};
    return text_ends(line, guessed) ? text_upto(line, line.length - guessed.length) : line;
}

/* " 0x… : name+0xb/0x10 [module]", or " name+0xb/0x10 [module]" where addresses were left out. */
static struct text stap_name(struct text line) {
    size_t colon = text_search(line, TEXT(" : "));
    if (text_starts(line, TEXT("0x")) && colon != SIZE_MAX)
        line = text_from(line, colon + 3);
    size_t module = text_search(line, TEXT(" [")); /* which may have an offset of its own */
    line = module == SIZE_MAX ? line : text_upto(line, module);
    size_t plus = text_search(line, TEXT("+0x"));
    return text_trim(plus == SIZE_MAX ? line : text_upto(line, plus));
}

static bool stap_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("samples"), error);
    while (reader_next(&r)) {
        struct text line = text_trim(r.line);
        uint64_t count;
        if (line.length == 0)
            continue;
        if (!text_to_u64(line, &count)) {
            line = stap_frame(line);
            struct text name = stap_name(line);
            stack_push_kinds(&r.stack, name.length ? name : TEXT("[unknown]"),
                             text_ends(line, TEXT("[kernel]")) ? KIND_KERNEL : 0);
            continue;
        }
        stack_end(&r.stack, count);
    }
    if (r.stack.locations.count)
        reader_bad(&r, "the text ends inside a stack: line");
    reader_release(&r);
    return true;
}

static int stap_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line;
    int frames = 0;
    while (lines_next(&lines, &line)) {
        uint64_t count;
        line = text_trim(line);
        if (text_starts(line, TEXT("0x")) && text_search(line, TEXT(" : ")) != SIZE_MAX)
            frames++;
        else if (frames && text_to_u64(line, &count))
            return 90;
        else if (line.length && frames == 0)
            return 0;
    }
    return 0;
}

const struct import_format format_stap = {"stap", "SystemTap's stacks", stap_score, stap_read};
