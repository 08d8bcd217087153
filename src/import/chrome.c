/*
 * Chrome's trace events, as browsers, compilers (-ftime-trace) and many libraries write them: spans of time by thread, either complete
 * ("X") or as their begin and end ("B", "E"). A span's weight is its own time, in nanoseconds: what no span inside it covers.
 *
 * All events are collected, ordered by thread and time, and swept once; time that passes goes to the innermost open span.
 */
#include "base/json.h"
#include "import/reader.h"

#include <math.h>
#include <stdlib.h>

struct span {
    int64_t process, thread;
    uint64_t start; /* nanoseconds */
    uint64_t end;   /* of complete ones; of others UINT64_MAX */
    size_t order;   /* in the file, which decides where times are equal */
    uint32_t name;  /* string; 0: the end of the innermost "B" */
};

struct open_span {
    uint64_t end;
    uint32_t node;
    bool complete; /* its end is known */
    bool begun;    /* by "B" */
};

struct thread_label {
    int64_t process, thread; /* thread is INT64_MIN: the process's */
    uint32_t name;
};

struct chrome {
    struct reader r;
    struct json json;
    VECTOR(struct span) spans;
    VECTOR(struct thread_label) labels;
    VECTOR(struct open_span) open;
    struct buffer key, name, phase, label;
    size_t begun; /* how many of the open ones are */
    uint64_t now;
};

/* ---- reading ------------------------------------------------------------------------------ */

/* Microseconds, with a fraction as a rule. */
static bool time_value(struct json *json, uint64_t *nanoseconds) {
    struct text number;
    double value;
    if (!json_number(json, &number) || !text_to_double(number, &value))
        return false;
    *nanoseconds = double_to_u64(round(value * 1000));
    return true;
}

/* An id is a number, or a string with one in it. */
static bool id_value(struct chrome *c, int64_t *id) {
    struct text number;
    c->label.count = 0;
    double value;
    if (json_peek(&c->json) == '"') {
        if (!json_string(&c->json, &c->label))
            return false;
        number = buffer_text(&c->label);
        *id = text_to_double(number, &value) && fabs(value) < 9e18
                  ? (int64_t)value
                  : (int64_t)(digest_bytes(number.data, number.length) >> 2);
        return true;
    }
    if (!json_number(&c->json, &number) || !text_to_double(number, &value) || fabs(value) > 9e18)
        return json_skip(&c->json);
    *id = (int64_t)value;
    return true;
}

struct event_fields {
    struct span span;
    uint64_t duration;
    bool has_duration;
    bool is_sum; /* of others that are in the trace, too */
    struct buffer label, detail;
};

/* args: of a metadata event {"name": "worker"}, of clang's {"detail": "the file or function"}; of clang's sums {"avg ms": 3} */
static bool args_value(struct chrome *c, struct event_fields *f) {
    if (!json_take(&c->json, '{'))
        return json_skip(&c->json);
    struct buffer key = {0};
    bool fine = true;
    while (fine && json_member(&c->json, &key)) {
        bool string = json_peek(&c->json) == '"';
        struct buffer *value = !string                                         ? NULL
                               : text_equal(buffer_text(&key), TEXT("name"))   ? &f->label
                               : text_equal(buffer_text(&key), TEXT("detail")) ? &f->detail
                                                                               : NULL;
        f->is_sum |= text_equal(buffer_text(&key), TEXT("avg ms"));
        if (value)
            value->count = 0;
        fine = value ? json_string(&c->json, value) : json_skip(&c->json);
    }
    buffer_release(&key);
    return fine;
}

static bool event_member(struct chrome *c, struct event_fields *f) {
    struct text key = buffer_text(&c->key);
    if (text_equal(key, TEXT("name")) && json_peek(&c->json) == '"')
        return json_string(&c->json, &c->name);
    if (text_equal(key, TEXT("ph")) && json_peek(&c->json) == '"')
        return json_string(&c->json, &c->phase);
    if (text_equal(key, TEXT("ts")))
        return time_value(&c->json, &f->span.start) || json_skip(&c->json);
    if (text_equal(key, TEXT("dur"))) {
        f->has_duration = time_value(&c->json, &f->duration);
        return f->has_duration || json_skip(&c->json);
    }
    if (text_equal(key, TEXT("pid")))
        return id_value(c, &f->span.process);
    if (text_equal(key, TEXT("tid")))
        return id_value(c, &f->span.thread);
    if (text_equal(key, TEXT("args")))
        return args_value(c, f);
    return json_skip(&c->json);
}

static void keep_label(struct chrome *c, const struct event_fields *f) {
    bool process = text_equal(buffer_text(&c->name), TEXT("process_name"));
    if (!process && !text_equal(buffer_text(&c->name), TEXT("thread_name")))
        return;
    struct thread_label label = {f->span.process, process ? INT64_MIN : f->span.thread,
                                 strings_add(c->r.tree->strings, buffer_text(&f->label))};
    vector_push(&c->labels, label);
}

static void keep_event(struct chrome *c, struct event_fields *f) {
    char phase = c->phase.count == 1 ? c->phase.items[0] : 0;
    f->span.order = c->spans.count;
    f->span.end = UINT64_MAX;
    if (f->detail.count) {
        buffer_add_char(&c->name, ' ');
        buffer_add(&c->name, buffer_text(&f->detail));
    }
    f->is_sum &= text_starts(buffer_text(&c->name), TEXT("Total "));
    if (phase == 'M') {
        keep_label(c, f);
    } else if (phase == 'X' && f->has_duration && !f->is_sum) {
        f->span.end = saturating_add(f->span.start, f->duration);
        f->span.name = strings_add(c->r.tree->strings, buffer_text(&c->name));
        vector_push(&c->spans, f->span);
    } else if (phase == 'B') {
        f->span.name = strings_add(c->r.tree->strings, buffer_text(&c->name));
        vector_push(&c->spans, f->span);
    } else if (phase == 'E') {
        vector_push(&c->spans, f->span);
    }
}

static bool read_event(struct chrome *c) {
    if (!json_take(&c->json, '{'))
        return json_skip(&c->json);
    struct event_fields f = {0};
    c->name.count = c->phase.count = 0;
    bool fine = true;
    while (fine && json_member(&c->json, &c->key))
        fine = event_member(c, &f);
    if (fine)
        keep_event(c, &f);
    buffer_release(&f.label);
    buffer_release(&f.detail);
    return fine;
}

static const struct note_kind note_cut = {"cut-trace", "the trace ends in the middle of an event"};

/* A trace whose program was killed lacks the end: what is there is used. */
static bool read_events(struct chrome *c) {
    if (!json_take(&c->json, '['))
        return json_skip(&c->json);
    while (!import_stops(c->r.options, c->json.rest.data) && json_peek(&c->json) &&
           !json_take(&c->json, ']')) {
        json_take(&c->json, ',');
        char next = json_peek(&c->json);
        if (next == ']' || !c->json.rest.length || read_event(c))
            continue;
        if (c->json.rest.length)
            return false;
        reader_warn(&c->r, &note_cut);
    }
    return true;
}

static bool read_document(struct chrome *c) {
    if (json_peek(&c->json) == '[')
        return read_events(c);
    if (!json_take(&c->json, '{'))
        return false;
    bool fine = true;
    while (fine && json_member(&c->json, &c->key))
        fine = text_equal(buffer_text(&c->key), TEXT("traceEvents")) ? read_events(c)
                                                                     : json_skip(&c->json);
    return fine;
}

/* ---- sweeping ----------------------------------------------------------------------------- */

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* By time, and where that is equal as in the file: a "B" or "E" has no end that it could be ordered by. */
static int span_order(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    int order = ORDER(x->process, y->process);
    order = order ? order : ORDER(x->thread, y->thread);
    order = order ? order : ORDER(x->start, y->start);
    return order ? order : ORDER(x->order, y->order);
}

static int longest_first(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    int order = ORDER(y->end, x->end);
    return order ? order : ORDER(x->order, y->order);
}

static bool begin_together(const struct span *x, const struct span *y) {
    return x->process == y->process && x->thread == y->thread && x->start == y->start &&
           x->end != UINT64_MAX && y->end != UINT64_MAX;
}

/* Order the spans for the sweep. Of complete ones that begin together, with no "B" or "E" between them, the outer comes first. */
static void sort_spans(struct chrome *c) {
    struct span *spans = c->spans.items;
    size_t count = c->spans.count;
    if (count)
        qsort(spans, count, sizeof *spans, span_order);
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && begin_together(&spans[first], &spans[next]);)
            next++;
        if (next - first > 1)
            qsort(spans + first, next - first, sizeof *spans, longest_first);
    }
}

static void time_passes(struct chrome *c, uint64_t now) {
    if (c->open.count && now > c->now && !c->r.stack.skip)
        tree_count(c->r.tree, c->open.items[c->open.count - 1].node, c->r.stack.series, 0,
                   now - c->now);
    c->now = now > c->now ? now : c->now;
}

static void close_until(struct chrome *c, uint64_t now) {
    while (c->open.count && c->open.items[c->open.count - 1].complete &&
           c->open.items[c->open.count - 1].end <= now) {
        time_passes(c, c->open.items[c->open.count - 1].end);
        c->begun -= c->open.items[--c->open.count].begun;
    }
    time_passes(c, now);
}

/* "E": what was begun last, and whatever stands inside it. Without any it means nothing. */
static void close_begun(struct chrome *c) {
    while (c->begun) {
        c->open.count--;
        if (c->open.items[c->open.count].begun) {
            c->begun--;
            break;
        }
    }
}

static void open_one(struct chrome *c, const struct span *span) {
    const struct open_span *outer = c->open.count ? &c->open.items[c->open.count - 1] : NULL;
    struct location location = {
        .function = tree_name_function(c->r.tree, strings_get(c->r.tree->strings, span->name))};
    struct open_span inner = {.end = span->end,
                              .complete = span->end != UINT64_MAX,
                              .begun = span->end == UINT64_MAX,
                              .node = tree_add_node(c->r.tree, outer ? outer->node : 0,
                                                    tree_add_location(c->r.tree, &location))};
    if (outer && outer->complete &&
        inner.end > outer->end) { /* a span cannot outlive the one it is in */
        inner.end = outer->end;
        inner.complete = true;
    }
    if (!c->r.stack.skip)
        tree_count(c->r.tree, inner.node, c->r.stack.series, 1, 0);
    c->begun += inner.begun;
    vector_push(&c->open, inner);
}

static int label_order(const void *a, const void *b) {
    const struct thread_label *x = a, *y = b;
    int order = ORDER(x->process, y->process);
    order = order ? order : ORDER(x->thread, y->thread);
    return order ? order : ORDER(x->name, y->name);
}

static uint32_t label_find(const struct chrome *c, int64_t process, int64_t thread) {
    const struct thread_label *labels = c->labels.items;
    size_t at = search_first(i, 0, c->labels.count,
                             labels[i].process < process ||
                                 (labels[i].process == process && labels[i].thread < thread));
    bool found =
        at < c->labels.count && labels[at].process == process && labels[at].thread == thread;
    return found ? labels[at].name : 0;
}

static int32_t small_id(int64_t id) {
    return id >= 0 && id <= INT32_MAX ? (int32_t)id : -1;
}

/* The comm is the thread's name, or the process's, or none; the process's is a label in any case. */
static void start_thread(struct chrome *c, const struct span *span) {
    uint32_t thread = label_find(c, span->process, span->thread);
    uint32_t process = label_find(c, span->process, INT64_MIN);
    c->open.count = c->begun = 0;
    c->now = 0;
    stack_set_thread(&c->r.stack, strings_get(c->r.tree->strings, thread ? thread : process),
                     small_id(span->process), small_id(span->thread));
    stack_set_label(&c->r.stack, TEXT("process"), strings_get(c->r.tree->strings, process));
}

/* Nothing is known of the time behind a thread's last event: what was begun and never ended has no more of it. */
static void end_thread(struct chrome *c) {
    while (c->open.count && c->open.items[c->open.count - 1].complete)
        close_until(c, c->open.items[c->open.count - 1].end);
}

static void sweep(struct chrome *c) {
    sort_spans(c);
    if (c->labels.count)
        qsort(c->labels.items, c->labels.count, sizeof *c->labels.items, label_order);
    for (size_t i = 0; i < c->spans.count && !budget_exceeded(c->r.options->budget); i++) {
        const struct span *span = &c->spans.items[i];
        if (i == 0 || span[-1].process != span->process || span[-1].thread != span->thread) {
            end_thread(c);
            start_thread(c, span);
        }
        close_until(c, span->start);
        if (span->name)
            open_one(c, span);
        else
            close_begun(c);
    }
    end_thread(c);
}

static bool chrome_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct chrome c = {.json = {content}};
    reader_init(&c.r, content, path, options, tree, TEXT("time"), error);
    tree->events.items[tree->series.items[c.r.stack.series].event].unit =
        strings_add(tree->strings, TEXT("ns"));
    bool fine = read_document(&c);
    if (fine)
        sweep(&c);
    else
        error_at(error, path, (uint64_t)(c.json.rest.data - content.data), "not JSON as expected");
    vector_release(&c.spans);
    vector_release(&c.labels);
    vector_release(&c.open);
    buffer_release(&c.key);
    buffer_release(&c.name);
    buffer_release(&c.phase);
    buffer_release(&c.label);
    reader_release(&c.r);
    return fine;
}

static int chrome_score(struct text beginning) {
    struct json json = {beginning};
    char first = json_peek(&json);
    if (first != '{' && first != '[')
        return 0;
    bool events = text_search(beginning, TEXT("\"traceEvents\"")) != SIZE_MAX;
    bool phase = text_search(beginning, TEXT("\"ph\"")) != SIZE_MAX;
    return events ? 95 : first == '[' && phase ? 85 : 0;
}

const struct import_format format_chrome = {"chrome", "Chrome trace events, JSON", chrome_score,
                                            chrome_read};
