/*
 * Java's stacks in text: thread dumps of jstack, and exceptions in logs. Both have a line `at
 * package.Class.method(File.java:12)` for each frame, leaf first.
 *
 * In a thread dump only running threads count: those that are RUNNABLE, except for the virtual machine's own and
 * those that are in fact waiting for the network. Pools number their threads; the number is dropped, so that they add
 * up.
 */
#include "import/reader.h"

#include <stdlib.h>

static bool java_frame(struct text line, struct text_frame *frame) {
    line = text_trim(line);
    if (!text_starts(line, TEXT("at ")))
        return false;
    line = text_from(line, 3);
    size_t open = text_find(line, '('), close = text_find(line, ')');
    *frame = (struct text_frame){.language = TEXT("java")};
    frame->name = text_trim(open == SIZE_MAX ? line : text_upto(line, open));
    size_t dot = text_find_last(frame->name, '.');
    if (dot != SIZE_MAX)
        frame->module = text_upto(frame->name, dot);
    if (open != SIZE_MAX && close != SIZE_MAX && close > open)
        text_to_source((struct text){line.data + open + 1, close - open - 1}, &frame->file,
                       &frame->line);
    return frame->name.length > 0 && text_find(frame->name, ' ') == SIZE_MAX;
}

/* ---- jstack ------------------------------------------------------------------------------- */

static const char *const waiting[] = {
    "epollWait",    "EPoll.wait",    "EPollArrayWrapper.poll",
    "socketAccept", "Socket.accept", "Net.accept",
    "accept0",      "socketRead0",   "Net.poll",
    "KQueue.poll",
};
static const char *const own_threads[] = {"C1 CompilerThread", "C2 CompilerThread",
                                          "Signal Dispatcher", "Service Thread", "Attach Listener"};

static bool has_any(struct text name, const char *const *list, size_t count, bool at_start) {
    for (size_t i = 0; i < count; i++)
        if (at_start ? text_starts(name, text_of(list[i])) : text_ends(name, text_of(list[i])))
            return true;
    return false;
}

/* "pool-1-thread-12" is "pool-1-thread". */
static struct text without_number(struct text name) {
    size_t end = name.length;
    while (end && name.data[end - 1] >= '0' && name.data[end - 1] <= '9')
        end--;
    return end && end < name.length && name.data[end - 1] == '-' ? text_upto(name, end - 1) : name;
}

struct dump {
    struct reader r;
    bool runs;
    bool waits; /* its leaf waits, even if its state is RUNNABLE */
};

static void thread_end(struct dump *d) {
    stack_reverse(&d->r.stack);
    if (d->runs && !d->waits && d->r.stack.locations.count)
        stack_count(&d->r.stack, 1, 1);
    d->r.stack.locations.count = 0;
    d->runs = d->waits = false;
}

static void thread_start(struct dump *d) {
    thread_end(d);
    size_t close = text_find(text_from(d->r.line, 1), '"');
    struct text name = {d->r.line.data + 1, close == SIZE_MAX ? d->r.line.length - 1 : close};
    d->waits = has_any(name, own_threads, COUNT_OF(own_threads), true) ||
               text_search(d->r.line, TEXT(" waiting on condition ")) != SIZE_MAX;
    stack_set_thread(&d->r.stack, without_number(name), -1, -1);
}

static bool jstack_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct dump d = {0};
    reader_init(&d.r, content, path, options, tree, TEXT("samples"), error);
    while (reader_next(&d.r)) {
        struct text_frame frame;
        if (text_starts(d.r.line, TEXT("\""))) {
            thread_start(&d);
        } else if (text_search(d.r.line, TEXT("java.lang.Thread.State: ")) != SIZE_MAX) {
            d.runs = text_search(d.r.line, TEXT("State: RUNNABLE")) != SIZE_MAX;
        } else if (java_frame(d.r.line, &frame)) {
            if (d.r.stack.locations.count == 0)
                d.waits |= has_any(frame.name, waiting, COUNT_OF(waiting), false);
            stack_push_frame(&d.r.stack, &frame);
        } else if (d.r.line.length == 0) {
            thread_end(&d);
        }
    }
    thread_end(&d);
    reader_release(&d.r);
    return true;
}

static int jstack_score(struct text beginning) {
    return text_search(beginning, TEXT("java.lang.Thread.State: ")) != SIZE_MAX ? 90 : 0;
}

const struct import_format format_jstack = {"jstack", "Java thread dumps", jstack_score,
                                            jstack_read};

/* ---- exceptions --------------------------------------------------------------------------- */

/* Return the class in "… Caused by: java.io.IOException: why", or nothing. Logs may have a time and a level before
   it. */
static struct text exception_class(struct text line) {
    struct text found = TEXT("");
    for (struct text rest = text_trim(line); rest.length;) {
        size_t end = text_find(rest, ' ');
        struct text word = end == SIZE_MAX ? rest : text_upto(rest, end);
        rest = end == SIZE_MAX ? TEXT("") : text_trim(text_from(rest, end));
        if (text_ends(word, TEXT(":")))
            word.length--;
        bool named = text_ends(word, TEXT("Exception")) || text_ends(word, TEXT("Error")) ||
                     text_ends(word, TEXT("Throwable"));
        if (named && text_find(word, '.') != SIZE_MAX) {
            found = word;
            break;
        }
    }
    return found;
}

struct exceptions {
    struct reader r;
    uint32_t thrown; /* location of its class, or 0 */
    /* The previous stack, leaf first: a cause omits the frames that it shares with it. */
    VECTOR(uint32_t) enclosing;
};

/* The leaf is what was thrown. */
static void exception_end(struct exceptions *e) {
    struct stack *stack = &e->r.stack;
    if (stack->locations.count) {
        e->enclosing.count = 0;
        for (size_t i = 0; i < stack->locations.count; i++)
            vector_push(&e->enclosing, stack->locations.items[i]);
        stack_reverse(stack);
        if (e->thrown)
            vector_push(&stack->locations, e->thrown);
        stack_count(stack, 1, 1);
    }
    stack->locations.count = 0;
    e->thrown = 0;
}

/* "... 12 more": the outermost twelve frames are those of the enclosing exception. */
static void exception_rest(struct exceptions *e, struct text line) {
    struct text words = text_trim(text_from(text_trim(line), 4));
    size_t space = text_find(words, ' ');
    uint64_t count;
    if (!text_to_u64(space == SIZE_MAX ? words : text_upto(words, space), &count) ||
        count > e->enclosing.count)
        return;
    for (size_t i = e->enclosing.count - (size_t)count; i < e->enclosing.count; i++)
        vector_push(&e->r.stack.locations, e->enclosing.items[i]);
}

static bool exceptions_read(struct text content, const char *path,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct exceptions e = {0};
    struct stack *stack = &e.r.stack;
    reader_init(&e.r, content, path, options, tree, TEXT("exceptions"), error);
    while (reader_next(&e.r)) {
        struct text_frame frame;
        if (java_frame(e.r.line, &frame)) {
            stack_push_frame(stack, &frame);
            continue;
        }
        if (text_starts(text_trim(e.r.line), TEXT("... "))) {
            exception_rest(&e, e.r.line);
            continue;
        }
        exception_end(&e);
        struct text name = exception_class(e.r.line);
        if (!text_starts(text_trim(e.r.line), TEXT("Caused by: ")))
            e.enclosing.count = 0;
        if (name.length) {
            stack_push(stack, name);
            e.thrown = stack->locations.items[0];
            stack->locations.count = 0;
        }
    }
    exception_end(&e);
    vector_release(&e.enclosing);
    reader_release(&e.r);
    return true;
}

/* Return true for a frame directly after a line that names an exception. */
static int exceptions_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line;
    struct text_frame frame;
    bool thrown = false;
    while (lines_next(&lines, &line)) {
        if (thrown && java_frame(line, &frame) && text_find(line, '(') != SIZE_MAX)
            return 65;
        thrown = exception_class(line).length > 0;
    }
    return 0;
}

const struct import_format format_java_exceptions = {"java-exceptions", "Java exceptions in a log",
                                                     exceptions_score, exceptions_read};
