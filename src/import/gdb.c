/*
 * Backtraces of gdb (`thread apply all bt`) and of elfutils' eu-stack: frames numbered from the leaf, one stack a thread, each worth
 * one sample.
 *
 *     Thread 2 (Thread 0x7f1 (LWP 77) "worker"):
 *     #0  0x00007f3a in poll () from /lib/libc.so.6
 *     #1  main (argc=1) at x.c:12
 *
 *     TID 77:
 *     #0  0x00007f3a8f0 poll - /lib/libc.so.6
 */
#include "import/reader.h"

/* Parse "#12  rest": the number, and what follows it. */
static bool frame_number(struct text line, uint64_t *number, struct text *rest) {
    if (!text_starts(line, TEXT("#")))
        return false;
    size_t end = 1;
    while (end < line.length && line.data[end] >= '0' && line.data[end] <= '9')
        end++;
    *rest = text_trim(text_from(line, end));
    return text_to_u64((struct text){line.data + 1, end - 1}, number);
}

/* Skip "0x7f3a" if `t` begins with it. */
static bool take_address(struct text *rest) {
    if (!text_starts(*rest, TEXT("0x")))
        return false;
    size_t end = text_find(*rest, ' ');
    *rest = end == SIZE_MAX ? TEXT("") : text_trim(text_from(*rest, end));
    return true;
}

/* gdb: arguments follow the name and a space. Template arguments may contain both. */
static size_t name_end(struct text t) {
    size_t depth = 0;
    for (size_t i = 0; i < t.length; i++) {
        char c = t.data[i];
        if (depth == 0 && c == ' ' && i + 1 < t.length && t.data[i + 1] == '(' &&
            !text_starts(text_from(t, i + 1), TEXT("(anonymous namespace)")))
            return i;
        if (c == '<')
            depth++;
        else if (c == '>' && depth && !(i && t.data[i - 1] == '-'))
            depth--;
    }
    return t.length;
}

/* Parse gdb's "in poll () from /lib/libc.so.6" or "main () at /x.c:12"; "?? ()" has no symbol. */
static struct text_frame gdb_frame(struct text rest) {
    struct text_frame frame = {0};
    if (take_address(&rest) && text_starts(rest, TEXT("in ")))
        rest = text_from(rest, 3);
    struct text left = rest;
    for (size_t at; (at = text_search(left, TEXT(") from "))) != SIZE_MAX;)
        left = frame.object = text_from(left, at + 7);
    left = rest;
    struct text source = TEXT("");
    for (size_t at; (at = text_search(left, TEXT(") at "))) != SIZE_MAX;)
        left = source = text_from(left, at + 5);
    text_to_source(source, &frame.file, &frame.line);
    bool whole = text_starts(rest, TEXT("<")) && text_ends(rest, TEXT(">"));
    frame.name = text_trim(whole ? rest : text_upto(rest, name_end(rest)));
    if (text_equal(frame.name, TEXT("??")))
        frame.name = TEXT("");
    return frame;
}

/* eu-stack: "- 1" marks a return address, " - file" the module, and " file:line" may follow on a line of its own. */
static struct text_frame eu_frame(struct text rest) {
    take_address(&rest);
    if (text_starts(rest, TEXT("- 1")) && (rest.length == 3 || rest.data[3] == ' '))
        rest = text_trim(text_from(rest, 3));
    size_t module = text_starts(rest, TEXT("- ")) ? 0 : text_search(rest, TEXT(" - "));
    if (module == SIZE_MAX)
        return (struct text_frame){.name = rest};
    size_t dash = module + (module ? 3 : 2);
    return (struct text_frame){.name = text_trim(text_upto(rest, module)),
                               .object = text_trim(text_from(rest, dash))};
}

static int32_t number_after(struct text line, struct text word) {
    size_t at = text_search(line, word);
    uint64_t value = 0;
    if (at == SIZE_MAX)
        return -1;
    struct text rest = text_from(line, at + word.length);
    size_t end = 0;
    while (end < rest.length && rest.data[end] >= '0' && rest.data[end] <= '9')
        end++;
    return text_to_u64(text_upto(rest, end), &value) && value <= INT32_MAX ? (int32_t)value : -1;
}

/* Return a thread's name, which is quoted at the end of gdb's line. */
static struct text thread_name(struct text line) {
    size_t close = text_find_last(line, '"');
    if (close == SIZE_MAX || close == 0)
        return TEXT("");
    size_t open = text_find_last(text_upto(line, close), '"');
    return open == SIZE_MAX ? TEXT("") : (struct text){line.data + open + 1, close - open - 1};
}

static bool read_backtraces(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree, bool eu,
                            struct error *error) {
    struct reader r;
    reader_init(&r, content, path, options, tree, TEXT("samples"), error);
    int32_t pid = -1;
    struct text frame_file;
    uint32_t frame_line;
    while (reader_next(&r)) {
        uint64_t number;
        struct text rest;
        if (frame_number(r.line, &number, &rest)) {
            if (number == 0)
                stack_end(&r.stack, 1);
            struct text_frame frame = eu ? eu_frame(rest) : gdb_frame(rest);
            frame.kinds = script_object_kinds(frame.object, false);
            stack_push_frame(&r.stack, &frame);
        } else if (eu && r.stack.locations.count && text_starts(r.line, TEXT("    ")) &&
                   text_to_source(text_trim(r.line), &frame_file, &frame_line)) {
            stack_locate(&r.stack, frame_file, frame_line);
        } else if (text_starts(r.line, TEXT("PID "))) {
            stack_end(&r.stack, 1);
            pid = number_after(r.line, TEXT("PID "));
        } else if (text_starts(r.line, TEXT("TID "))) {
            stack_end(&r.stack, 1);
            stack_set_thread(&r.stack, TEXT(""), pid, number_after(r.line, TEXT("TID ")));
        } else if (text_starts(r.line, TEXT("Thread "))) {
            stack_end(&r.stack, 1);
            stack_set_thread(&r.stack, thread_name(r.line), -1,
                             number_after(r.line, TEXT("(LWP ")));
        } else if (r.line.length == 0) {
            stack_end(&r.stack, 1);
        }
    }
    stack_end(&r.stack, 1);
    reader_release(&r);
    return true;
}

static bool gdb_read(struct text content, const char *path, const struct import_options *options,
                     struct tree *tree, struct error *error) {
    return read_backtraces(content, path, options, tree, false, error);
}

static bool eu_stack_read(struct text content, const char *path,
                          const struct import_options *options, struct tree *tree,
                          struct error *error) {
    return read_backtraces(content, path, options, tree, true, error);
}

static int score(struct text beginning, bool eu) {
    struct lines lines = {.rest = beginning};
    struct text line, rest;
    bool threads = false;
    while (lines_next(&lines, &line)) {
        uint64_t number;
        threads |= text_starts(line, TEXT("TID ")) && text_ends(text_trim(line), TEXT(":"));
        if (frame_number(line, &number, &rest) && number == 0)
            return threads == eu ? 70 : 0;
    }
    return 0;
}

static int gdb_score(struct text beginning) {
    return score(beginning, false);
}

static int eu_stack_score(struct text beginning) {
    return score(beginning, true);
}

const struct import_format format_gdb = {"gdb", "gdb's backtraces", gdb_score, gdb_read};
const struct import_format format_eu_stack = {"eu-stack", "elfutils' eu-stack", eu_stack_score,
                                              eu_stack_read};
