/*
 * SystemTap's stacks, each followed by a count, from print_stack() or print_ustack():
 *
 *      0xffffffff8103ce3b : native_safe_halt+0xb/0x10 [kernel]
 *      0x7f3a8f0010 : work+0x10/0x40 at work.c:12 [/usr/lib/libwork.so.1]
 *      0x55d0e1a2 [/usr/bin/prog+0x11a2/0x4000]
 *      0x7ffc0010
 *     	2404
 *
 * print_syms() omits addresses and sizes. Kernel modules are named without a path, objects of processes with one.
 */
#include "import/reader.h"

struct stap_frame {
    struct text name, module; /* either may be empty */
};

/* Remove the mark of frames that were guessed from the stack's bytes, and the prefix of a return probe's first two. */
static struct text stap_bare(struct text line) {
    static const struct text words[] = {{"Returning from: ", 16}, {"Returning to  : ", 16}};
    static const struct text guessed = {" (inexact)", 10};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (text_starts(line, words[i]))
            line = text_from(line, words[i].length);
    line = text_trim(line);
    return text_ends(line, guessed) ? text_upto(line, line.length - guessed.length) : line;
}

/* If there is no symbol, the module has the offset. */
static struct stap_frame stap_parse(struct text line) {
    struct stap_frame frame = {TEXT(""), TEXT("")};
    size_t open = text_search(line, TEXT(" ["));
    if (open != SIZE_MAX && text_ends(line, TEXT("]"))) {
        frame.module = (struct text){line.data + open + 2, line.length - open - 3};
        size_t offset = text_search(frame.module, TEXT("+0x"));
        frame.module = offset == SIZE_MAX ? frame.module : text_upto(frame.module, offset);
        line = text_upto(line, open);
    }
    if (text_starts(line, TEXT("0x"))) {
        size_t colon = text_search(line, TEXT(" : "));
        line = colon == SIZE_MAX ? TEXT("") : text_from(line, colon + 3);
    }
    size_t plus = text_search(line, TEXT("+0x"));
    frame.name = text_trim(plus == SIZE_MAX ? line : text_upto(line, plus));
    return frame;
}

static uint32_t stap_kinds(struct text module) {
    if (module.length && text_find(module, '/') == SIZE_MAX)
        return KIND_KERNEL;
    return script_object_kinds(module, false);
}

/* Match stap's own messages among the stacks, and those of probes without stacks. */
static bool is_remark(struct text line) {
    return text_starts(line, TEXT("WARNING: ")) || text_starts(line, TEXT("ERROR: ")) ||
           text_starts(line, TEXT("<no "));
}

static bool stap_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("samples"), error);
    while (reader_next(&r)) {
        struct text line = text_trim(r.line);
        uint64_t count;
        if (line.length == 0 || is_remark(line))
            continue;
        if (!text_to_u64(line, &count)) {
            struct stap_frame frame = stap_parse(stap_bare(line));
            stack_push_in(&r.stack, frame.name, frame.module, stap_kinds(frame.module));
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
        bool indented = text_starts(line, TEXT(" "));
        line = text_trim(line);
        bool remark = is_remark(line), number = text_to_u64(line, &count);
        line = stap_bare(line);
        if ((text_starts(line, TEXT("0x")) && text_search(line, TEXT(" : ")) != SIZE_MAX) ||
            (indented && text_search(line, TEXT("+0x")) != SIZE_MAX && text_ends(line, TEXT("]"))))
            frames++;
        else if (frames && number)
            return 90;
        else if (line.length && !remark && frames == 0)
            return 0;
    }
    return 0;
}

const struct import_format format_stap = {"stap", "SystemTap's stacks", stap_score, stap_read};
