/*
 * The output of bcc's and libbpf-tools' offcputime: off-CPU time, in microseconds, by stack. Folded (-f),
 *
 *     comm;root;…;leaf;-;kernel's root;…;kernel's leaf 1234
 *
 * or as text, leaf first, the kernel's part above:
 *
 *     __schedule
 *     --
 *     wait_sleep
 *     -                comm (4711)
 *         1234
 *
 * The delimiter between the two parts is only there with -d; without it they can't be told apart. The folded text
 * looks like any other, and so does the text of bcc's other tools: only the heading identifies it.
 */
#include "import/reader.h"

#define HEADLINE TEXT("off-CPU time (us)")

static void count_waits(struct reader *r, uint64_t microseconds) {
    uint64_t nanoseconds;
    if (r->stack.locations.count && checked_multiply(microseconds, 1000, &nanoseconds))
        stack_count(&r->stack, 1, nanoseconds);
    else
        reader_bad(r, "a time without a stack, or too long: line");
    r->stack.locations.count = 0;
}

/* ---- folded ---- */

/* A function may also be called "-": the last one is the delimiter. */
static size_t find_delimiter(struct text stack) {
    if (text_ends(stack, TEXT(";-")))
        return stack.length - 2;
    for (size_t i = stack.length; i-- > 2;)
        if (stack.data[i] == ';' && stack.data[i - 1] == '-' && stack.data[i - 2] == ';')
            return i - 2;
    return SIZE_MAX;
}

static void push_frames(struct reader *r, struct text frames, uint32_t kinds) {
    while (frames.length) {
        size_t end = text_find(frames, ';');
        struct text name = end == SIZE_MAX ? frames : text_upto(frames, end);
        if (name.length)
            stack_push_kinds(&r->stack, name, kinds);
        frames = end == SIZE_MAX ? TEXT("") : text_from(frames, end + 1);
    }
}

static bool folded_line(struct reader *r) {
    size_t space = text_find_last(r->line, ' '), comm = text_find(r->line, ';');
    uint64_t count;
    if (space == SIZE_MAX || comm == SIZE_MAX || comm > space ||
        !text_to_u64(text_from(r->line, space + 1), &count))
        return false;
    struct text stack = text_from(text_upto(r->line, space), comm + 1);
    size_t delimiter = find_delimiter(stack);
    stack_set_thread(&r->stack, text_upto(r->line, comm), -1, -1);
    push_frames(r, delimiter == SIZE_MAX ? stack : text_upto(stack, delimiter), 0);
    if (delimiter != SIZE_MAX && delimiter + 3 < stack.length)
        push_frames(r, text_from(stack, delimiter + 3), KIND_KERNEL);
    count_waits(r, count);
    return true;
}

/* ---- text ---- */

/* Parse "-                comm (4711)": the comm may contain anything. */
static bool thread_line(struct text line, struct text *comm, uint64_t *tid) {
    size_t open = text_find_last(line, '(');
    if (!text_starts(line, TEXT("- ")) || open == SIZE_MAX || !text_ends(line, TEXT(")")) ||
        !text_to_u64(text_upto(text_from(line, open + 1), line.length - open - 2), tid) ||
        *tid > INT32_MAX)
        return false;
    *comm = text_trim(text_upto(text_from(line, 1), open - 1));
    return true;
}

/* The frames pushed so far are the kernel's, leaf first. */
static void mark_kernel(struct reader *r) {
    for (size_t i = 0; i < r->stack.locations.count; i++) {
        struct location location = r->tree->locations.items[r->stack.locations.items[i]];
        location.kinds |= KIND_KERNEL;
        r->stack.locations.items[i] = tree_add_location(r->tree, &location);
    }
}

static bool text_line(struct reader *r) {
    struct text line = text_trim(r->line), comm;
    uint64_t number;
    if (!text_starts(r->line, TEXT("    ")))
        return false;
    if (thread_line(line, &comm, &number)) {
        stack_reverse(&r->stack);
        stack_set_thread(&r->stack, comm, -1, (int32_t)number);
    } else if (text_starts(r->line, TEXT("        ")) && text_to_u64(line, &number))
        count_waits(r, number);
    else if (text_equal(line, TEXT("--")))
        mark_kernel(r);
    else
        stack_push(&r->stack, line);
    return true;
}

/* ---- */

static bool offcputime_read(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct reader r;
    bool fine = true;
    reader_init(&r, content, path, options, tree, TEXT("off-cpu"), error);
    uint32_t event = tree->series.items[r.stack.series].event;
    tree->events.items[event].unit = strings_add(tree->strings, TEXT("ns"));
    while (fine && reader_next(&r))
        if (r.line.length && text_search(r.line, HEADLINE) == SIZE_MAX && !text_line(&r) &&
            !folded_line(&r))
            fine = reader_bad(&r, "neither a stack nor a time: line");
    if (fine && r.stack.locations.count)
        fine = reader_bad(&r, "the text ends inside a stack: line");
    reader_release(&r);
    return fine;
}

static int offcputime_score(struct text beginning) {
    return text_starts(beginning, TEXT("Tracing ")) &&
                   text_search(
                       text_upto(beginning, beginning.length < 200 ? beginning.length : 200),
                       HEADLINE) != SIZE_MAX
               ? 95
               : 0;
}

const struct import_format format_offcputime = {"offcputime",
                                                "time off the CPU, as bcc's offcputime prints it",
                                                offcputime_score, offcputime_read};
