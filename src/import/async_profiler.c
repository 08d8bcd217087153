/*
 * async-profiler's text. Its collapsed output is folded text, and is read as that; what it calls `traces` is
 *
 *     --- 90160732 ns (2.21%), 18 samples
 *       [ 0] java.util.TimSort.mergeLo
 *       [ 1] java.util.Arrays.sort
 *
 * one block per stack, leaf first; the first line has the weight in the event's unit. With `threads`, the last frame
 * of each is the thread. A table of functions (`flat`) may follow; it repeats what the stacks say, and is ignored.
 */
#include "import/reader.h"

/* Return the length of the number after `tid=` if it ends the thread's name, or 0. */
static size_t tid_parse(struct text rest, int32_t *tid) {
    size_t end = 0;
    uint64_t number;
    while (end < rest.length && rest.data[end] >= '0' && rest.data[end] <= '9')
        end++;
    bool closed = end < rest.length && rest.data[end] == ']' &&
                  (end + 1 == rest.length || rest.data[end + 1] == ';');
    if (!closed || !text_to_u64(text_upto(rest, end), &number) || number > INT32_MAX)
        return 0;
    *tid = (int32_t)number;
    return end + 1;
}

/* A thread without a name is `[tid=12]`. */
size_t async_thread_parse(struct text stack, struct text *name, int32_t *tid) {
    static const struct text key = {"tid=", 4};
    for (size_t at = 1; at < stack.length;) {
        size_t found = text_search(text_from(stack, at), key);
        if (found == SIZE_MAX)
            return 0;
        at += found;
        size_t length = at == 1 || stack.data[at - 1] == ' '
                            ? tid_parse(text_from(stack, at + key.length), tid)
                            : 0;
        *name = (struct text){stack.data + 1, at > 1 ? at - 2 : 0};
        at += key.length;
        if (length)
            return at + length;
    }
    return 0;
}

struct trace_head {
    uint64_t weight;
    uint64_t samples;
    struct text unit;
};

/* "--- 90160732 ns (2.21%), 18 samples" */
static bool head_parse(struct text line, struct trace_head *head) {
    if (!text_starts(line, TEXT("--- ")))
        return false;
    line = text_from(line, 4);
    size_t space = text_find(line, ' '), open = text_search(line, TEXT(" (")),
           comma = text_search(line, TEXT("%), "));
    if (space == SIZE_MAX || open == SIZE_MAX || comma == SIZE_MAX || open <= space || comma < open)
        return false;
    head->unit = (struct text){line.data + space + 1, open - space - 1};
    struct text count = text_from(line, comma + 4);
    size_t word = text_find(count, ' ');
    return word != SIZE_MAX && text_starts(text_from(count, word), TEXT(" sample")) &&
           text_to_u64(text_upto(line, space), &head->weight) &&
           text_to_u64(text_upto(count, word), &head->samples);
}

/* "  [ 0] java.util.TimSort.mergeLo" */
static bool frame_parse(struct text line, struct text *name) {
    uint64_t number;
    line = text_trim(line);
    size_t close = text_find(line, ']');
    if (line.length == 0 || line.data[0] != '[' || close == SIZE_MAX ||
        !text_to_u64(text_trim((struct text){line.data + 1, close - 1}), &number))
        return false;
    *name = text_trim(text_from(line, close + 1));
    return name->length > 0;
}

struct traces {
    struct reader r;
    struct trace_head head;
    bool inside;
};

static void trace_end(struct traces *t) {
    if (t->inside) {
        stack_reverse(&t->r.stack);
        stack_count(&t->r.stack, t->head.samples, t->head.weight);
    }
    t->r.stack.locations.count = 0;
    t->inside = false;
}

static void trace_frame(struct traces *t, struct text name) {
    struct text thread;
    int32_t tid;
    if (name.data[0] == '[' && async_thread_parse(name, &thread, &tid) == name.length)
        stack_set_thread(&t->r.stack, thread, -1, tid);
    else
        stack_push_kinds(&t->r.stack, name, kinds_of_mark(name));
}

static void trace_line(struct traces *t) {
    struct trace_head head;
    struct text name;
    if (head_parse(t->r.line, &head)) {
        trace_end(t);
        stack_set_thread(&t->r.stack, TEXT(""), -1, -1);
        t->head = head;
        t->inside = true;
    } else if (t->inside && frame_parse(t->r.line, &name)) {
        trace_frame(t, name);
    } else {
        trace_end(t);
    }
}

static struct text unit_in(struct text content) {
    struct lines lines = {.rest = content};
    struct text line;
    struct trace_head head;
    while (lines_next(&lines, &line))
        if (head_parse(line, &head))
            return head.unit;
    return TEXT("samples");
}

static bool traces_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct traces t = {0};
    reader_init(&t.r, content, path, options, tree, unit_in(content), error);
    while (reader_next(&t.r))
        trace_line(&t);
    trace_end(&t);
    reader_release(&t.r);
    return true;
}

static int traces_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line, name;
    struct trace_head head;
    while (lines_next(&lines, &line))
        if (head_parse(line, &head) && lines_next(&lines, &line) && frame_parse(line, &name))
            return 95;
    return 0;
}

const struct import_format format_async_profiler = {
    "async-profiler", "async-profiler's traces; its collapsed text is folded text", traces_score,
    traces_read};
