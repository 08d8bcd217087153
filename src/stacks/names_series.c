/* Name series: the root frames of their stacks, and the values of --by. */
#include "stacks/names.h"

/* Text may know a thread's number and not its process's. */
static void add_numbers(struct buffer *name, const struct thread *thread, bool with_tid) {
    if (thread->pid >= 0)
        buffer_printf(name, "-%d", thread->pid);
    else if (with_tid)
        buffer_add(name, TEXT("-?"));
    if (with_tid)
        buffer_printf(name, "/%d", thread->tid);
}

void thread_name(const struct tree *tree, const struct series *series, bool with_tid,
                 struct buffer *name) {
    if (series->comm || series->thread)
        tree_add_comm(tree, series, name);
    if (series->thread)
        add_numbers(name, &tree->threads.items[series->thread], with_tid);
}

struct text dimension_key(struct text dimension) {
    return text_starts(dimension, TEXT("label:")) ? text_from(dimension, 6) : dimension;
}

void dimension_add(const struct tree *tree, const struct series *series, struct text dimension,
                   struct buffer *value) {
    size_t start = value->count;
    bool process = text_equal(dimension, TEXT("process"));
    const struct thread *thread = &tree->threads.items[series->thread];
    if (process && series->thread && thread->process)
        buffer_printf(value, "%.*s-%d", TEXT_ARGS(strings_get(tree->strings, thread->process)),
                      thread->pid);
    else if (process || text_equal(dimension, TEXT("thread")))
        thread_name(tree, series, !process, value);
    else
        series_label(tree, series, dimension_key(dimension), value);
    if (value->count == start && (process || text_equal(dimension, TEXT("thread"))))
        buffer_add(value, TEXT("[unknown]"));
    else if (value->count == start)
        buffer_printf(value, "[no %.*s]", TEXT_ARGS(dimension_key(dimension)));
}

static void push_root(struct names *n) {
    namer_push(&n->namer, TEXT("[unknown]"), KIND_ROOT);
}

static void add_comm_part(struct buffer *out, struct text comm, bool as_is) {
    size_t start = out->count;
    if (as_is)
        buffer_add(out, comm);
    else
        buffer_add_frame_name(out, comm);
    for (size_t i = start; i < out->count; i++)
        if (out->items[i] == ' ' || out->items[i] == '\n')
            out->items[i] = '_';
}

/* Spaces become underscores, as in other tools' folded text, so that comms can be compared. */
static void add_comm(struct names *n, struct text comm) {
    bool divides = n->namer.options->quirks.names_keep_divider;
    for (size_t end; divides && (end = text_find(comm, ';')) != SIZE_MAX;) {
        n->namer.name.count = 0; /* inferno leaves it, so that it divides frames */
        add_comm_part(&n->namer.name, text_upto(comm, end), true);
        push_root(n);
        comm = text_from(comm, end + 1);
    }
    n->namer.name.count = 0;
    add_comm_part(&n->namer.name, comm, divides);
}

static void add_ids(struct buffer *out, const struct naming_options *options, int32_t pid,
                    int32_t tid) {
    if (!options->show_pid && !options->show_tid)
        return;
    buffer_add_char(out, '-');
    if (pid < 0)
        buffer_add_char(out, '?');
    else
        buffer_add_u64(out, (uint64_t)pid);
    if (options->show_tid)
        buffer_printf(out, "/%d", tid);
}

/* The series as perf script's event line, read as inferno reads it. False: its samples are lost to inferno. */
static bool series_through_script(struct names *n, const struct series *series, struct text *comm,
                                  int32_t *pid, int32_t *tid) {
    const struct tree *tree = n->tree;
    struct text name = strings_get(tree->strings, tree_event(tree, series->event)->name);
    n->text.count = 0;
    bool padded = !tree_event(tree, series->event)->chains;
    for (size_t i = comm->length; padded && i < 16; i++)
        buffer_add_char(&n->text, ' ');
    buffer_add(&n->text, *comm);
    buffer_printf(&n->text, " %5d [000] 12345.678901: %10d %.*s:", *tid, 1, TEXT_ARGS(name));
    struct script_event parsed;
    if (!script_event_parse_inferno(text_lossy(buffer_text(&n->text), &n->lossy), &parsed))
        return false;
    size_t colon = text_find(name, ':');
    if (!parsed.name.data ||
        !text_equal(parsed.name, colon == SIZE_MAX ? name : text_upto(name, colon)))
        return false;
    *comm = parsed.comm;
    *pid = parsed.pid;
    *tid = parsed.tid;
    return true;
}

static void push_ending(struct names *n, const struct series *series) {
    if (series->ending != ENDING_TRUNCATED && series->ending != ENDING_BROKEN)
        return;
    n->namer.name.count = 0;
    buffer_add(&n->namer.name,
               series->ending == ENDING_TRUNCATED ? TEXT("[truncated]") : TEXT("[broken]"));
    push_root(n);
}

static void push_state(struct names *n, const struct series *series) {
    n->namer.name.count = 0;
    buffer_printf(&n->namer.name, "[%.*s]", TEXT_ARGS(state_name(series->state)));
    push_root(n);
}

struct naming_entry names_series_entry(struct names *n, const struct series *series) {
    const struct naming_options *options = n->namer.options;
    size_t first = n->namer.naming->labels.count;
    const struct thread *thread = &n->tree->threads.items[series->thread];
    int32_t pid = series->thread ? thread->pid : -1, tid = series->thread ? thread->tid : -1;
    bool by_thread = !options->is_script_text || options->show_pid || options->show_tid;
    bool has_comm = series->comm || (series->thread && by_thread);
    n->comm.count = 0;
    uint16_t shared = n->numbered ? n->numbered[series - n->tree->series.items] : 0;
    if (has_comm)
        tree_add_comm(n->tree, series, &n->comm);
    if (shared) {
        n->comm.count = shared;
        buffer_add_char(&n->comm, '*');
    }
    struct text comm = buffer_text(&n->comm);
    if (options->quirks.names_through_text && !options->is_script_text && has_comm &&
        !series_through_script(n, series, &comm, &pid, &tid))
        return (struct naming_entry){.skip = true};
    for (size_t i = 0; i < options->root_count; i++) {
        n->text.count = n->namer.name.count = 0;
        dimension_add(n->tree, series, text_of(options->roots[i]), &n->text);
        buffer_add_frame_name(&n->namer.name, buffer_text(&n->text));
        push_root(n);
    }
    if (has_comm && !options->no_comm && !options->root_count) {
        add_comm(n, comm);
        add_ids(&n->namer.name, options, pid, tid);
        push_root(n);
    }
    if (options->show_state)
        push_state(n, series);
    if (options->mark_incomplete)
        push_ending(n, series);
    struct naming_entry entry = naming_entry_from(n->namer.naming, first);
    entry.alternate =
        options->quirks.names_follow_comm && has_comm && text_starts(comm, TEXT("java"));
    entry.before = n->tree->events.items[series->event].kind == EVENT_BEFORE;
    return entry;
}
