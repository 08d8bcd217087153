/*
 * Chrome's trace events, as written by browsers, compilers (-ftime-trace) and many libraries: time spans by thread,
 * either complete ("X") or as begin and end ("B", "E"). A span's weight is its self time in nanoseconds: the time
 * that no span inside it covers.
 *
 * All events are collected, sorted by thread and time, and swept once; elapsed time goes to the innermost open span.
 * A trace may also contain samples (chrome_samples.c). Then these are shown, because they are stacks; --event time
 * selects the spans.
 */
#include "import/chrome.h"

#include <math.h>
#include <stdlib.h>

/* ---- reading ------------------------------------------------------------------------------ */

bool chrome_time(struct chrome *c, uint64_t *nanoseconds) {
    struct text number;
    double value;
    c->label.count = 0;
    bool string = json_peek(&c->json) == '"';
    if (string ? !json_string(&c->json, &c->label) : !json_number(&c->json, &number))
        return false;
    if (text_to_double(string ? buffer_text(&c->label) : number, &value))
        *nanoseconds = double_to_u64(round(value * 1000));
    return true;
}

bool chrome_id(struct chrome *c, int64_t *id) {
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
    int64_t id;
    bool has_duration, has_id;
    struct text data; /* raw text of args */
    bool is_sum;      /* of others that are in the trace, too */
    struct buffer label, detail;
};

/* args: of a metadata event {"name": "worker"}; of clang {"detail": "the file or function"}; of clang's sums {"avg
   ms": 3} */
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
        bool is_data = json_peek(&c->json) == '{' && text_equal(buffer_text(&key), TEXT("data"));
        const char *begin = c->json.rest.data;
        fine = value ? json_string(&c->json, value) : json_skip(&c->json);
        if (is_data && fine)
            f->data = (struct text){begin, (size_t)(c->json.rest.data - begin)};
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
        return chrome_time(c, &f->span.start) || json_skip(&c->json);
    if (text_equal(key, TEXT("dur")) || (text_equal(key, TEXT("tdur")) && !f->has_duration)) {
        f->has_duration = chrome_time(c, &f->duration);
        return f->has_duration || json_skip(&c->json);
    }
    if (text_equal(key, TEXT("id"))) {
        f->has_id = true;
        return chrome_id(c, &f->id);
    }
    if (text_equal(key, TEXT("pid")))
        return chrome_id(c, &f->span.process);
    if (text_equal(key, TEXT("tid")))
        return chrome_id(c, &f->span.thread);
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
    if (!c->name.count && phase != 'E')
        buffer_add(&c->name, TEXT("(unnamed)"));
    if (f->detail.count) {
        buffer_add_char(&c->name, ' ');
        buffer_add(&c->name, buffer_text(&f->detail));
    }
    if (f->data.length)
        chrome_keep_chunk(c, &(struct v8_chunk){.process = f->span.process,
                                                .thread = f->span.thread,
                                                .id = f->has_id ? f->id : f->span.thread,
                                                .time = f->span.start,
                                                .data = f->data});
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
        f->span.is_end = true;
        if (c->name.count && !f->detail.count)
            f->span.name = strings_add(c->r.tree->strings, buffer_text(&c->name));
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

/* The trace of a killed program lacks its end: use what is there. */
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
        fine = text_equal(buffer_text(&c->key), TEXT("traceEvents"))   ? read_events(c)
               : text_equal(buffer_text(&c->key), TEXT("samples"))     ? chrome_read_samples(c)
               : text_equal(buffer_text(&c->key), TEXT("stackFrames")) ? chrome_read_frames(c)
                                                                       : json_skip(&c->json);
    return fine;
}

/* ---- sweeping ----------------------------------------------------------------------------- */

/* Sort by time, then by position in the file: a "B" or "E" has no end to sort by. */
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

/* Sort the spans for the sweep. Of complete spans that begin together, with no "B" or "E" between them, the outer one
   comes first. */
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

/* Return how many spans must be closed to close the one with that name, or 0 if none that is open was begun with it. */
static size_t closed_by(struct chrome *c, uint32_t name) {
    size_t begun = 0;
    for (size_t i = c->open.count; i-- > 0 && begun < c->begun;) {
        const struct open_span *span = &c->open.items[i];
        begun += span->begun;
        if (span->begun && span->name == name)
            return begun;
        tree_take_steps(c->r.tree, 1);
    }
    return 0;
}

/*
 * "E" closes the span that was begun last and everything inside it; with a name, the last span begun under that name.
 * Like Perfetto and speedscope, ignore an end whose name was never begun.
 */
static void close_begun(struct chrome *c, uint32_t name) {
    size_t left = name ? closed_by(c, name) : c->begun ? 1 : 0;
    while (left) {
        const struct open_span *last = &c->open.items[--c->open.count];
        left -= last->begun;
        c->begun -= last->begun;
    }
}

static void open_one(struct chrome *c, const struct span *span) {
    const struct open_span *outer = c->open.count ? &c->open.items[c->open.count - 1] : NULL;
    struct location location = {
        .function = tree_name_function(c->r.tree, strings_get(c->r.tree->strings, span->name))};
    struct open_span inner = {.end = span->end,
                              .name = span->name,
                              .complete = span->end != UINT64_MAX,
                              .begun = span->end == UINT64_MAX,
                              .node = tree_add_node(c->r.tree, outer ? outer->node : 0,
                                                    tree_add_location(c->r.tree, &location))};
    if (outer && outer->complete && inner.end > outer->end) { /* a span cannot outlive its parent */
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

void chrome_set_thread(struct chrome *c, int64_t process_id, int64_t thread_id) {
    uint32_t thread = label_find(c, process_id, thread_id);
    uint32_t process = label_find(c, process_id, INT64_MIN);
    stack_set_thread(&c->r.stack, strings_get(c->r.tree->strings, thread ? thread : process),
                     small_id(process_id), small_id(thread_id));
    stack_set_label(&c->r.stack, TEXT("process"), strings_get(c->r.tree->strings, process));
}

/* Nothing is known about the time after a thread's last event: spans that never end stop there. */
static void end_thread(struct chrome *c) {
    while (c->open.count && c->open.items[c->open.count - 1].complete)
        close_until(c, c->open.items[c->open.count - 1].end);
}

static void sweep(struct chrome *c) {
    sort_spans(c);
    for (size_t i = 0; i < c->spans.count && !budget_exceeded(c->r.options->budget); i++) {
        const struct span *span = &c->spans.items[i];
        if (i == 0 || span[-1].process != span->process || span[-1].thread != span->thread) {
            end_thread(c);
            chrome_set_thread(c, span->process, span->thread);
            c->open.count = c->begun = 0;
            c->now = 0;
        }
        close_until(c, span->start);
        if (span->is_end)
            close_begun(c, span->name);
        else
            open_one(c, span);
    }
    end_thread(c);
}

/* ---- choosing ---- */

static const struct note_kind note_spans = {
    "other-events", "# trace event{ was|s were} left out; --event time shows {it|them}"};

/* Count the spans, unless there are samples and spans were not requested. */
static bool count_events(struct chrome *c) {
    const struct filter *filter = &c->r.options->profile.filter;
    bool cpu = filter_event(filter, TEXT("cpu")), time = filter_event(filter, TEXT("time"));
    if (filter->event_count && !cpu && !time)
        return error_set(c->r.error, ERROR_USAGE,
                         "--event %s: %s has no such event, only time, cpu", filter->events[0],
                         c->r.path);
    if (c->labels.count)
        qsort(c->labels.items, c->labels.count, sizeof *c->labels.items, label_order);
    size_t samples = 0;
    stack_set_event(&c->r.stack, TEXT("cpu"), TEXT("ns"));
    if ((cpu || !filter->event_count) && !chrome_count_samples(c, &samples))
        return false;
    if (!filter->event_count && samples && c->spans.count)
        notes_add(&c->r.tree->notes, &note_spans, c->spans.count, 0, "%s", c->r.path);
    stack_set_event(&c->r.stack, TEXT("time"), TEXT("ns"));
    if (filter->event_count ? time : !samples)
        sweep(c);
    return true;
}

static bool chrome_read(struct text content, const char *path, const struct import_options *options,
                        struct tree *tree, struct error *error) {
    struct chrome c = {.json = {content}};
    reader_init(&c.r, content, path, options, tree, TEXT(""), error);
    bool fine =
        read_document(&c) ||
        error_at(error, path, (uint64_t)(c.json.rest.data - content.data),
                 "not JSON as a trace has it; a trace that was cut is read as far as it goes");
    fine = fine && count_events(&c);
    if (fine)
        reader_warn_cut(&c.r);
    vector_release(&c.spans);
    vector_release(&c.labels);
    vector_release(&c.open);
    vector_release(&c.chunks);
    vector_release(&c.samples);
    vector_release(&c.frames);
    vector_release(&c.way);
    index_release(&c.frame_ids);
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
                                            chrome_read, TELLS_EVENTS};
