/*
 * Python's faulthandler: a stack for each thread, leaf first, each worth one sample. A frame is called file:line:function.
 *
 *     Thread 0x00007f1 (most recent call first):
 *       File "/usr/lib/python3.11/threading.py", line 302 in wait
 */
#include "import/reader.h"

static bool python_frame(struct text line, struct buffer *name, struct text_frame *frame) {
    line = text_trim(line);
    size_t close = text_search(line, TEXT("\", line "));
    if (!text_starts(line, TEXT("File \"")) || close == SIZE_MAX || close < 6)
        return false;
    struct text rest = text_from(line, close + 8);
    size_t in = text_search(rest, TEXT(" in "));
    uint64_t number;
    if (in == SIZE_MAX || !text_to_u64(text_upto(rest, in), &number))
        return false;
    *frame = (struct text_frame){.file = {line.data + 6, close - 6},
                                 .language = TEXT("python"),
                                 .line = number <= UINT32_MAX ? (uint32_t)number : 0};
    name->count = 0;
    buffer_add(name, frame->file);
    buffer_printf(name, ":%llu:", (unsigned long long)number);
    buffer_add(name, text_from(rest, in + 4));
    frame->name = buffer_text(name);
    return true;
}

static bool faulthandler_read(struct text content, const char *path,
                              const struct import_options *options, struct tree *tree,
                              struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("samples"), error);
    while (reader_next(&r)) {
        struct text_frame frame;
        if (python_frame(r.line, &r.scratch, &frame))
            stack_push_frame(&r.stack, &frame);
        else
            stack_end(&r.stack, 1);
    }
    stack_end(&r.stack, 1);
    reader_release(&r);
    return true;
}

static int faulthandler_score(struct text beginning) {
    return text_search(beginning, TEXT("(most recent call first):")) != SIZE_MAX ? 90 : 0;
}

const struct import_format format_faulthandler = {"faulthandler", "Python's faulthandler",
                                                  faulthandler_score, faulthandler_read};
