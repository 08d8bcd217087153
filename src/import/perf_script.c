/*
 * perf script text, in parallel.
 *
 * The text is cut at blank lines into pieces, which the workers take in turn, each with a tree of its own; the trees are joined at the end.
 * A frame line is looked up by its raw bytes first: one that was seen before, as nearly all were, costs one hash and one comparison
 * and is never parsed. Consecutive samples share their stacks' outer parts, which are found again without any lookup.
 *
 * What a line means is decided by script_line.c; here is only when a sample begins and ends. By inferno's rules that is a state machine
 * with bugs of its own, kept in inferno_line(); by wick's rules a sample ends at a blank line, at the next event line or at
 * the end, and what stands behind an event's name is a frame only if no frames follow.
 */
#include "import/reader.h"

#include <stdlib.h>
#include <sys/mman.h>

static const struct note_kind note_events = {
    "other-events",
    "# samples of other events were left out; choose with --event NAME, or --event all"};

/* Lines beyond these are parsed each time they occur: a text of nothing but new lines must not be kept whole. */
enum { LINES_KEPT = 1 << 21, LINE_MAX_KEPT = 1 << 16 };
enum { CHUNK = 1 << 19, PAGE = 4096, WINDOW = 1 << 16 };

struct script_line {
    const char *data;
    uint32_t length;
    uint32_t location; /* 0: a line that gives no frame */
    bool torn;
};

struct script_worker {
    const struct import_options *options;
    struct tree *tree;
    struct text content; /* the whole text: offsets are from its start */
    const char *path;
    struct text only; /* the first event's name, which is counted unless others were asked for */

    struct arena line_arena;
    VECTOR(struct script_line) lines; /* frame lines seen, [0] unused */
    struct index line_index;
    VECTOR(uint32_t) events; /* by their names' strings */
    struct index thread_index;
    struct buffer scratch;

    /* The sample being read. */
    bool in_sample;
    bool skip; /* its event is not counted */
    bool
        maybe_inline; /* its one frame so far stood in the event line, and may yet prove to be a payload */
    bool clean; /* nothing of the last sample is left: inferno's rules leave some, at times */
    struct script_event event;
    size_t offset;
    uint64_t period;
    uint32_t series;
    VECTOR(uint32_t) stack; /* locations, leaf first */

    /* The sample before it, root first. */
    VECTOR(uint32_t) last_stack;
    VECTOR(uint32_t) last_nodes;
    uint32_t last_series;
    struct text last_comm, last_name;
    int32_t last_pid, last_tid;

    uint64_t torn;
    size_t torn_at;
    struct text torn_line;
    uint64_t other_events;
    size_t other_at;
    struct text other_name;
};

static void worker_torn(struct script_worker *w, struct text line) {
    size_t at = (size_t)(line.data - w->content.data);
    if (!w->torn++ || at < w->torn_at) {
        w->torn_at = at;
        w->torn_line = line;
    }
}

/* ---- labels ------------------------------------------------------------------------------- */

static struct text unit_of(struct text event) {
    size_t colon = text_find(event, ':');
    struct text base = colon == SIZE_MAX ? event : text_upto(event, colon);
    if (text_ends(base, TEXT("-clock")))
        return TEXT("ns");
    return base.length ? base : TEXT("samples");
}

/* What an earlier file brought. */
static void worker_know_events(struct script_worker *w) {
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
        w->events.items[string] = tree_add_event(w->tree, name, unit_of(name),
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

/* Most samples are of the thread and event of the one before. */
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
    if (w->options->profile.by_cpu && e->cpu != UINT32_MAX)
        series.cpu = e->cpu + 1;
    w->series = tree_add_series(w->tree, &series);
    w->last_series = series.cpu ? 0 : w->series;
    w->last_comm = strings_get(w->tree->strings, series.comm);
    w->last_name = strings_get(w->tree->strings, w->tree->events.items[series.event].name);
    w->last_pid = e->pid;
    w->last_tid = e->tid;
}

/* ---- frames ------------------------------------------------------------------------------- */

/* An address that would not come back as it was printed goes into the name, and is printed from there. */
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
    bool inferno = w->options->compat_inferno;
    struct text object = frame->object.data ? frame->object : TEXT("[unknown]");
    struct location location = {.kinds =
                                    (uint8_t)(script_object_kinds(object, inferno) | KIND_SCRIPT)};
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
    location.name = strings_add(w->tree->strings, symbol);
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

/* Ends the sample, if there is one, and is then ready for the next. inferno drops those without frames. */
static void worker_end(struct script_worker *w) {
    bool counts = w->options->compat_inferno ? w->stack.count > 0 : w->in_sample && !w->skip;
    if (counts)
        worker_count(w);
    w->stack.count = 0;
    w->in_sample = w->skip = w->maybe_inline = false;
    w->clean = true;
    w->period = 1;
}

/* Whether the event counts. The first one seen decides where nobody chose. */
static bool worker_wants(struct script_worker *w, struct text name) {
    const struct filter *filter = &w->options->profile.filter;
    if (filter->event_count)
        return filter_event(filter, name);
    if (!w->only.data) /* copied: the line may be in the scratch buffer */
        w->only = strings_get(w->tree->strings, strings_add(w->tree->strings, name));
    return text_equal(name, w->only);
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

/* `text` is the frame as inferno sees it, `line` where it stands. */
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

/* In a sample: true if the line was a frame or should have been one. */
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

/* What follows the event's name is its only frame, unless frames follow: then it was a payload. */
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

/* A frame has never been seen; an event line might look like one. */
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

/* ---- pieces ------------------------------------------------------------------------------- */

/* Reads `piece`; with `until_event` only until the event to count is known and its sample done. Returns what is left. */
static struct text worker_read(struct script_worker *w, struct text piece, bool until_event) {
    while (piece.length) {
        size_t end = text_find(piece, '\n');
        struct text line = text_upto(piece, end == SIZE_MAX ? piece.length : end);
        piece = text_from(piece, end == SIZE_MAX ? piece.length : end + 1);
        if (w->options->compat_inferno) {
            inferno_line(w, line);
        } else {
            if (line.length && line.data[line.length - 1] == '\r')
                line.length--;
            wick_line(w, line);
        }
        if (until_event && w->only.data && w->clean)
            return piece;
    }
    worker_end(w);
    return piece;
}

/* The first event named in the text is the one that counts. inferno's rules need the samples before it read to find it. */
static struct text find_first_event(struct script_worker *w, struct text content) {
    if (w->options->compat_inferno)
        return worker_read(w, content, true);
    struct lines lines = {.rest = content};
    struct text line;
    while (!w->only.data && lines_next(&lines, &line)) {
        struct script_event event;
        if (line.length && line.data[0] != '#' && line.data[0] != '\t' &&
            script_event_parse(line, &event) && event.name.data)
            worker_wants(w, event.name);
    }
    return content;
}

/* Where a sample surely begins, at or after `from`: behind a blank line or, by wick's rules, at an event line. */
static size_t cut_after(struct text text, size_t from, bool inferno) {
    while (from < text.length) {
        size_t end = text_find(text_from(text, from), '\n');
        if (end == SIZE_MAX)
            break;
        size_t start = from + end + 1;
        struct text rest = text_from(text, start);
        size_t length = text_find(rest, '\n');
        struct text line = text_upto(rest, length == SIZE_MAX ? rest.length : length);
        if (length != SIZE_MAX && line.length == 0)
            return start + 1;
        struct script_event event;
        if (!inferno && line.length && line.data[0] != '\t' && script_event_parse(line, &event) &&
            event.name.data && event.time)
            return start;
        from = start;
    }
    return text.length;
}

struct script_job {
    struct script_worker *workers;
    struct text text;
    VECTOR(size_t) cuts;
    size_t total;
};

/* Pages that were read are given back: the text is often larger than all that is made of it. The kernel maps neighbours along with
   a page, WINDOW bytes at a time, so whole windows go; who still needs one gets it back from the page cache. */
static void give_back(const struct script_worker *w, struct text piece) {
    if (!w->options->mapped)
        return;
    uintptr_t least = (uintptr_t)w->content.data & ~(uintptr_t)(PAGE - 1);
    uintptr_t most = (uintptr_t)w->content.data + w->content.length;
    uintptr_t start = (uintptr_t)piece.data & ~(uintptr_t)(WINDOW - 1);
    uintptr_t end = ((uintptr_t)piece.data + piece.length + WINDOW) & ~(uintptr_t)(WINDOW - 1);
    start = start < least ? least : start;
    end = end > most ? most & ~(uintptr_t)(PAGE - 1) : end;
    if (end > start)
        madvise((void *)start, end - start, MADV_DONTNEED);
}

static void read_piece(void *context, unsigned worker, size_t item) {
    struct script_job *job = context;
    struct script_worker *w = &job->workers[worker];
    if (interrupted)
        return;
    size_t start = job->cuts.items[item], end = job->cuts.items[item + 1];
    struct text piece = {job->text.data + start, end - start};
    worker_read(w, piece, false);
    give_back(w, piece);
    progress("reading", end, job->text.length);
}

static void worker_init(struct script_worker *w, const struct script_worker *first) {
    *w = (struct script_worker){.options = first->options,
                                .tree = tree_new(),
                                .content = first->content,
                                .path = first->path,
                                .only = first->only,
                                .period = 1};
    w->tree->keep_samples = first->tree->keep_samples;
}

/* What was not used, said once for the whole text. */
static void say_notes(struct script_worker *workers, unsigned count) {
    struct script_worker all = {.torn_at = SIZE_MAX, .other_at = SIZE_MAX};
    for (unsigned i = 0; i < count; i++) {
        all.torn += workers[i].torn;
        all.other_events += workers[i].other_events;
        if (workers[i].torn && workers[i].torn_at < all.torn_at) {
            all.torn_at = workers[i].torn_at;
            all.torn_line = workers[i].torn_line;
        }
        if (workers[i].other_events && workers[i].other_at < all.other_at) {
            all.other_at = workers[i].other_at;
            all.other_name = workers[i].other_name;
        }
    }
    struct tree *tree = workers[0].tree;
    if (all.torn) {
        note_torn_line(tree, workers[0].path, line_number(workers[0].content, all.torn_at),
                       all.torn_line);
        notes_add(&tree->notes, &note_torn, all.torn - 1, 0, NULL);
    }
    if (all.other_events)
        notes_add(&tree->notes, &note_events, all.other_events, all.other_at,
                  all.other_name.length ? "%.*s" : NULL, TEXT_ARGS(all.other_name));
}

static void worker_release(struct script_worker *w) {
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

static void job_cut(struct script_job *job, const struct script_worker *w) {
    vector_push(&job->cuts, 0);
    for (size_t at = 0; at < job->text.length;) {
        size_t from = at + CHUNK;
        if (job->text.length - at <= CHUNK) {
            at = job->text.length;
        } else {
            at = cut_after(job->text, from, w->options->compat_inferno);
            give_back(w, (struct text){job->text.data + from, at - from});
        }
        vector_push(&job->cuts, at);
    }
}

/* The first worker's tree is the caller's, so that only the others' have to be joined to it. */
static bool perf_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    unsigned threads = options->profile.threads ? options->profile.threads : parallel_default();
    struct script_worker first = {
        .options = options, .tree = tree, .content = content, .path = path, .period = 1};
    struct script_job job = {.text = content};
    worker_know_events(&first);
    if (!options->profile.filter.event_count)
        job.text = find_first_event(&first, content);
    job_cut(&job, &first);
    if (threads > job.cuts.count)
        threads = (unsigned)job.cuts.count;
    job.workers = memory_zero(threads, sizeof *job.workers);
    job.workers[0] = first;
    for (unsigned i = 1; i < threads; i++)
        worker_init(&job.workers[i], &first);
    parallel_run(threads, job.cuts.count - 1, read_piece, &job);
    say_notes(job.workers, threads);
    for (unsigned i = 0; i < threads; i++) {
        worker_release(&job.workers[i]);
        if (i == 0)
            continue;
        tree_join(tree, job.workers[i].tree);
        objects_free(job.workers[i].tree->objects);
        tree_free(job.workers[i].tree);
    }
    free(job.workers);
    vector_release(&job.cuts);
    return true;
}

/* ---- recognising -------------------------------------------------------------------------- */

/* inferno's question: is the first line that is neither blank nor a comment an event, and the next a frame? */
enum applicable perf_applicable(struct text text) {
    struct lines lines = {.rest = text};
    struct buffer scratch = {0};
    struct text line;
    enum applicable answer = APPLICABLE_UNSURE;
    bool after_event = false;
    while (answer == APPLICABLE_UNSURE && lines_next(&lines, &line)) {
        struct script_event event;
        struct script_frame frame;
        line = text_trim_both(text_lossy(line, &scratch));
        if (line.length && line.data[0] == '#')
            continue;
        if (line.length == 0)
            after_event = false;
        else if (after_event)
            answer = script_frame_parse_inferno(line, &frame) ? APPLICABLE_YES : APPLICABLE_NO;
        else if (!script_event_parse_inferno(line, &event))
            answer = APPLICABLE_NO;
        else
            after_event = true;
    }
    buffer_release(&scratch);
    return answer;
}

/* Event lines with a time, an event's name and what follows it are nobody else's. */
static int perf_score(struct text beginning) {
    struct lines lines = {.rest = beginning};
    struct text line;
    for (int tries = 0; tries < 40 && lines_next(&lines, &line);) {
        struct script_event event;
        if (is_blank_line(line) || line.data[0] == '#')
            continue;
        if (script_event_parse(line, &event) && event.name.data)
            return event.time ? 95 : 40;
        tries++;
    }
    return perf_applicable(beginning) == APPLICABLE_YES ? 60 : 0;
}

const struct import_format format_perf = {"perf", "Linux perf script text", perf_score, perf_read};
