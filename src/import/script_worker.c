/*
 * One thread's share of perf script text: parse lines into samples in a tree.
 *
 * A frame line is first looked up by its raw bytes: a line that was seen before, as nearly all were, costs one hash
 * and one comparison and is not parsed. Consecutive samples share the outer parts of their stacks, which need no
 * lookup.
 *
 * script_line.c decides what a line means; this file only decides when a sample begins and ends. By inferno's rules
 * that is a state machine with bugs of its own, reproduced in inferno_line(); by wick's rules a sample ends at a
 * blank line, at the next event line or at the end, and the text after an event's name is a frame only if no frames
 * follow.
 */
#include "import/script_worker.h"

#include <stdlib.h>

/* Beyond this many, lines are parsed each time they occur: a text of only distinct lines must not be kept whole. */
enum { LINES_KEPT = 1 << 21, LINE_MAX_KEPT = 1 << 16 };

static void worker_torn(struct script_worker *w, struct text line) {
    size_t at = (size_t)(line.data - w->content.data);
    if (!w->torn++ || at < w->torn_at) {
        w->torn_at = at;
        w->torn_line = line;
    }
}

/* ---- labels ------------------------------------------------------------------------------- */

/* Without periods, samples of a clock are counted, not its nanoseconds. */
static struct text unit_of(struct text event, bool has_period) {
    size_t colon = text_find(event, ':');
    struct text base = colon == SIZE_MAX ? event : text_upto(event, colon);
    if (text_ends(base, TEXT("-clock")))
        return has_period ? TEXT("ns") : TEXT("samples");
    return base.length ? base : TEXT("samples");
}

/* Register the events that an earlier file added. */
void worker_know_events(struct script_worker *w) {
    for (size_t i = 0; i <= strings_count(w->tree->strings); i++)
        vector_push(&w->events, 0);
    for (size_t i = 1; i < w->tree->events.count; i++)
        w->events.items[w->tree->events.items[i].name] = (uint32_t)i;
}

static uint32_t worker_event(struct script_worker *w, struct text name) {
    uint32_t string = strings_add(w->tree->strings, name);
    while (w->events.count <= string)
        vector_push(&w->events, 0);
    if (!w->events.items[string]) {
        bool tracepoint = text_find(name, ':') != SIZE_MAX && text_find(name, '_') != SIZE_MAX;
        w->events.items[string] = tree_add_event(w->tree, name, unit_of(name, w->event.has_period),
                                                 tracepoint ? EVENT_TRACEPOINT : EVENT_OTHER);
    }
    return w->events.items[string];
}

static uint32_t worker_thread(struct script_worker *w, int32_t pid, int32_t tid) {
    uint64_t hash = hash_mix((uint32_t)pid, (uint32_t)tid);
    uint32_t id;
    for (struct probe p = index_probe(&w->thread_index, hash);
         (id = index_next(&w->thread_index, &p));)
        if (w->tree->threads.items[id].pid == pid && w->tree->threads.items[id].tid == tid)
            return id;
    id = tree_add_thread(w->tree, &(struct thread){.pid = pid, .tid = tid, .end = UINT64_MAX});
    index_add(&w->thread_index, hash, id);
    return id;
}

/* Most samples have the thread and event of the previous one. */
static void worker_series(struct script_worker *w) {
    const struct script_event *e = &w->event;
    if (w->last_series && e->pid == w->last_pid && e->tid == w->last_tid &&
        text_equal(e->comm, w->last_comm) && text_equal(e->name, w->last_name)) {
        w->series = w->last_series;
        return;
    }
    struct series series = {.event = worker_event(w, e->name),
                            .thread = worker_thread(w, e->pid, e->tid),
                            .comm = strings_add(w->tree->strings, e->comm),
                            .ending = ENDING_UNKNOWN};
    w->series = w->last_series = tree_add_series(w->tree, &series);
    w->last_comm = strings_get(w->tree->strings, series.comm);
    w->last_name = strings_get(w->tree->strings, w->tree->events.items[series.event].name);
    w->last_pid = e->pid;
    w->last_tid = e->tid;
}

/* ---- frames ------------------------------------------------------------------------------- */

/* An address that would not be printed back the same becomes part of the name. */
static struct text unresolved_name(struct script_worker *w, const struct script_frame *frame) {
    struct text object = frame->object.data ? frame->object : TEXT("[unknown]");
    size_t slash = text_find_last(object, '/');
    struct text base = slash == SIZE_MAX ? object : text_from(object, slash + 1);
    struct buffer name = {0};
    buffer_add_char(&name, '[');
    buffer_add(&name, text_equal(object, TEXT("[unknown]")) ? TEXT("unknown") : base);
    buffer_printf(&name, " <%.*s>]", TEXT_ARGS(frame->address));
    struct text copy =
        strings_get(w->tree->strings, strings_add(w->tree->strings, buffer_text(&name)));
    buffer_release(&name);
    return copy;
}

static bool is_canonical(struct text address, uint64_t *value) {
    struct buffer again = {0};
    bool same = text_hex_to_u64(address, value);
    buffer_add_hex(&again, *value);
    same = same && text_equal(buffer_text(&again), address);
    buffer_release(&again);
    return same;
}

static uint32_t worker_location(struct script_worker *w, const struct script_frame *frame) {
    bool by_prefix = w->options->profile.quirks.object_kinds_by_prefix;
    struct text object = frame->object.data ? frame->object : TEXT("[unknown]");
    struct location location = {
        .kinds = (uint8_t)(script_object_kinds(object, by_prefix) | KIND_SCRIPT)};
    struct text symbol = frame->symbol;
    if (text_equal(symbol, TEXT("[unknown]"))) {
        location.kinds |= KIND_UNKNOWN;
        uint64_t address = 0;
        bool canonical = is_canonical(frame->address, &address);
        if (w->options->profile.raw_addresses && canonical && address)
            location.raw = address;
        else if (w->options->profile.raw_addresses)
            symbol = unresolved_name(w, frame);
    }
    if (frame->inlined)
        location.kinds |= KIND_INLINED;
    location.function = tree_name_function(w->tree, symbol);
    if (!text_equal(object, TEXT("[unknown]")))
        location.object = object_named(w->tree, object);
    if (location.kinds & KIND_KERNEL)
        location.mode = MODE_KERNEL;
    return tree_add_location(w->tree, &location);
}

/* Costs one hash and one comparison for a line seen before. */
static const struct script_line *worker_find_line(const struct script_worker *w, struct text line,
                                                  uint64_t hash) {
    uint32_t id;
    for (struct probe p = index_probe(&w->line_index, hash);
         (id = index_next(&w->line_index, &p));) {
        const struct script_line *seen = &w->lines.items[id];
        if (seen->length == line.length && memcmp(seen->data, line.data, line.length) == 0)
            return seen;
    }
    return NULL;
}

static void worker_add_line(struct script_worker *w, struct text line, uint64_t hash,
                            uint32_t location, bool torn) {
    if (line.length > LINE_MAX_KEPT || w->lines.count >= LINES_KEPT)
        return;
    if (w->lines.count == 0)
        vector_push(&w->lines, ((struct script_line){0}));
    struct script_line seen = {.data = arena_copy(&w->line_arena, line).data,
                               .length = (uint32_t)line.length,
                               .location = location,
                               .torn = torn};
    index_add(&w->line_index, hash, (uint32_t)w->lines.count);
    vector_push(&w->lines, seen);
}

static void worker_push(struct script_worker *w, uint32_t location) {
    if (location)
        vector_push(&w->stack, location);
}

/* ---- samples ------------------------------------------------------------------------------ */

/* The outer part that this stack shares with the last one needs no lookup. */
static uint32_t worker_node(struct script_worker *w) {
    size_t shared = 0, count = w->stack.count;
    while (shared < count && shared < w->last_stack.count &&
           w->last_stack.items[shared] == w->stack.items[count - 1 - shared])
        shared++;
    w->last_stack.count = w->last_nodes.count = shared;
    uint32_t node = shared ? w->last_nodes.items[shared - 1] : 0;
    for (size_t i = shared; i < count; i++) {
        uint32_t location = w->stack.items[count - 1 - i];
        node = tree_add_node(w->tree, node, location);
        vector_push(&w->last_stack, location);
        vector_push(&w->last_nodes, node);
    }
    return node;
}

static void worker_count(struct script_worker *w) {
    const struct script_event *e = &w->event;
    if (!filter_sample(&w->options->profile.filter, e->pid, e->tid, e->comm, e->cpu, e->time))
        return;
    worker_series(w);
    uint32_t node = worker_node(w);
    tree_count(w->tree, node, w->series, 1, w->period);
    if (w->tree->keep_samples)
        tree_keep_sample(w->tree, &(struct sample){.time = e->time,
                                                   .offset = w->offset,
                                                   .weight = w->period,
                                                   .node = node,
                                                   .series = w->series,
                                                   .cpu = e->cpu});
}

/* End the sample, if there is one, and prepare for the next. inferno drops samples without frames. */
void worker_end(struct script_worker *w) {
    bool counts = w->options->profile.quirks.samples_need_frames ? w->stack.count > 0
                                                                 : w->in_sample && !w->skip;
    if (counts)
        worker_count(w);
    w->stack.count = 0;
    w->in_sample = w->skip = w->maybe_inline = false;
    w->clean = true;
    w->period = 1;
}

/* Return true if the event counts. If none was selected, the first one seen decides. */
bool worker_wants(struct script_worker *w, struct text name) {
    const struct filter *filter = &w->options->profile.filter;
    if (filter->event_count)
        return filter_event(filter, name);
    if (!w->only.data) /* copied, because the line may be in the scratch buffer */
        w->only = strings_get(w->tree->strings, strings_add(w->tree->strings, name));
    return w->options->profile.quirks.events_are_exact ? text_equal(name, w->only)
                                                       : event_same(name, w->only);
}

static void worker_other_event(struct script_worker *w, struct text line, struct text name) {
    size_t at = (size_t)(line.data - w->content.data);
    if (!w->other_events++ || at < w->other_at) {
        w->other_at = at;
        w->other_name = name;
    }
}

/* ---- inferno's rules ---------------------------------------------------------------------- */

static bool inferno_is_blank(struct script_worker *w, struct text line) {
    if (line.length && line.data[0] > ' ')
        return false;
    return text_trim_end(text_lossy(line, &w->scratch)).length == 0;
}

/* `text` is the frame as inferno sees it, `line` its position. */
static uint32_t inferno_frame(struct script_worker *w, struct text text, bool *torn) {
    struct script_frame frame;
    *torn = !script_frame_parse_inferno(text, &frame);
    if (*torn || text_starts(frame.symbol, TEXT("(")))
        return 0;
    return worker_location(w, &frame);
}

static void inferno_event_line(struct script_worker *w, struct text line) {
    struct text text = text_trim_end(text_lossy(line, &w->scratch));
    struct script_event *e = &w->event;
    if (!script_event_parse_inferno(text, e)) {
        worker_torn(w, line);
        return;
    }
    w->in_sample = true;
    w->clean = false;
    w->offset = (size_t)(line.data - w->content.data);
    if (e->name.data) {
        w->period = e->has_period ? e->period : 1;
        if (!worker_wants(w, e->name)) {
            worker_other_event(w, line, TEXT(""));
            w->skip = true;
            return;
        }
    }
    /* The line may be in the scratch buffer, which the next line overwrites. */
    e->comm = strings_get(w->tree->strings, strings_add(w->tree->strings, e->comm));
    e->name = strings_get(w->tree->strings, strings_add(w->tree->strings, e->name));
    if (!e->rest.length)
        return;
    bool torn = false;
    if (!w->skip)
        worker_push(w, inferno_frame(w, e->rest, &torn));
    if (torn)
        worker_torn(w, line);
    w->in_sample = false;
    if (w->stack.count)
        worker_end(w);
}

/* Within a sample: return true if the line was a frame or should have been one. */
static bool inferno_frame_line(struct script_worker *w, struct text line) {
    uint64_t hash = hash_bytes(line.data, line.length);
    const struct script_line *seen = worker_find_line(w, line, hash);
    uint32_t location = seen ? seen->location : 0;
    bool torn = seen && seen->torn;
    if (!seen) {
        if ((line.length && line.data[0] == '#') || inferno_is_blank(w, line))
            return false;
        location = inferno_frame(w, text_trim_end(text_lossy(line, &w->scratch)), &torn);
        worker_add_line(w, line, hash, location, torn);
    }
    worker_push(w, location);
    if (torn)
        worker_torn(w, line);
    return true;
}

static void inferno_line(struct script_worker *w, struct text line) {
    if (w->in_sample && !w->skip && inferno_frame_line(w, line))
        return;
    if (line.length && line.data[0] == '#')
        return;
    if (inferno_is_blank(w, line))
        worker_end(w);
    else if (!w->in_sample)
        inferno_event_line(w, line);
}

/* ---- wick's rules ------------------------------------------------------------------------- */

static bool is_blank_line(struct text line) {
    return line.length == 0 || text_trim(line).length == 0;
}

/* The text after the event's name is its only frame, unless frames follow: then it was a payload. */
static void wick_event_rest(struct script_worker *w) {
    struct script_frame frame;
    if (!w->event.rest.length || !script_frame_parse(w->event.rest, &frame) || !frame.object.data)
        return;
    if (!w->skip)
        worker_push(w, worker_location(w, &frame));
    w->maybe_inline = true;
}

static void wick_event(struct script_worker *w, struct text line, const struct script_event *e) {
    worker_end(w);
    w->event = *e;
    w->in_sample = true;
    w->offset = (size_t)(line.data - w->content.data);
    w->period = e->period;
    if (e->name.data && !worker_wants(w, e->name)) {
        worker_other_event(w, line, e->name);
        w->skip = true;
    }
    if (!e->name.data)
        w->event.name = w->only.data ? w->only : TEXT("");
    wick_event_rest(w);
}

/* Handle a line that was not seen before: a frame, or an event line, which may look like one. */
static void wick_new_line(struct script_worker *w, struct text line, uint64_t hash) {
    struct script_event event;
    struct script_frame frame;
    bool indented = line.data[0] == '\t';
    if (indented && w->skip)
        return;
    if (!indented && script_event_parse(line, &event) && (event.name.data || !event.rest.length)) {
        wick_event(w, line, &event);
    } else if (w->in_sample && script_frame_parse(line, &frame)) {
        uint32_t location = worker_location(w, &frame);
        worker_add_line(w, line, hash, location, false);
        if (w->maybe_inline)
            w->stack.count = 0;
        w->maybe_inline = false;
        if (!w->skip)
            worker_push(w, location);
    } else if (!w->in_sample && script_event_parse(line, &event) &&
               text_starts(event.rest, TEXT("PERF_RECORD_"))) {
        return; /* perf script --show-mmap-events and its like */
    } else if (!w->in_sample || !(line.data[0] == ' ' || indented)) {
        worker_torn(w, line);
    }
}

static void wick_line(struct script_worker *w, struct text line) {
    uint64_t hash = hash_bytes(line.data, line.length);
    const struct script_line *seen = w->in_sample ? worker_find_line(w, line, hash) : NULL;
    if (seen) {
        if (w->maybe_inline)
            w->stack.count = 0;
        w->maybe_inline = false;
        if (!w->skip)
            worker_push(w, seen->location);
    } else if (is_blank_line(line)) {
        worker_end(w);
    } else if (line.data[0] != '#') {
        wick_new_line(w, line, hash);
    }
}

/* ---- lines ------------------------------------------------------------------------------- */

void worker_line(struct script_worker *w, struct text line) {
    if (w->options->profile.quirks.script_state_machine) {
        inferno_line(w, line);
        return;
    }
    if (line.length && line.data[line.length - 1] == '\r')
        line.length--;
    wick_line(w, line);
}

void worker_release(struct script_worker *w) {
    arena_release(&w->line_arena);
    vector_release(&w->lines);
    index_release(&w->line_index);
    vector_release(&w->events);
    index_release(&w->thread_index);
    buffer_release(&w->scratch);
    vector_release(&w->stack);
    vector_release(&w->last_stack);
    vector_release(&w->last_nodes);
}
