/*
 * Off-CPU time from the text of `perf record -e sched:sched_switch -g -a`: from the moment a thread is switched out,
 * with its stack, to the moment it is switched in again. Never detected, because the text is ordinary perf script
 * output: select it with `--from perf-sched`.
 *
 * The text must be sorted by time, as perf script prints it. Threads that are never switched in again count nothing.
 */
#include "import/reader.h"

#include <stdlib.h>

struct away {
    int32_t tid;
    bool is_away;
    uint64_t since;
    uint32_t node;
    uint32_t series;
};

struct sched {
    struct reader r;
    VECTOR(struct away) threads;
    struct index index;
    /* The switch being read. */
    bool in_switch;
    uint64_t time;
    struct text comm;
    int32_t pid, prev, next;
    uint8_t state;
};

static struct away *thread_of(struct sched *s, int32_t tid) {
    uint32_t at;
    uint64_t hash = hash_mix((uint32_t)tid, 3);
    for (struct probe p = index_probe(&s->index, hash); (at = index_next(&s->index, &p));)
        if (s->threads.items[at - 1].tid == tid)
            return &s->threads.items[at - 1];
    vector_push(&s->threads, ((struct away){.tid = tid}));
    index_add(&s->index, hash, (uint32_t)s->threads.count);
    return &s->threads.items[s->threads.count - 1];
}

/* ---- the payload -------------------------------------------------------------------------- */

static bool number_at(struct text t, int32_t *value) {
    size_t end = 0;
    uint64_t number;
    while (end < t.length && t.data[end] >= '0' && t.data[end] <= '9')
        end++;
    if (!text_to_u64(text_upto(t, end), &number) || number > INT32_MAX)
        return false;
    *value = (int32_t)number;
    return true;
}

static bool field(struct text t, struct text key, struct text *value) {
    size_t at = text_search(t, key);
    if (at == SIZE_MAX)
        return false;
    *value = text_from(t, at + key.length);
    return true;
}

static uint8_t state_of(char c) {
    return c == 'D' ? STATE_DISK : c == 'R' ? STATE_PREEMPTED : STATE_SLEEP;
}

/* "prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 …" */
static bool named_fields(struct sched *s, struct text t) {
    struct text prev, next, state;
    if (!field(t, TEXT("prev_pid="), &prev) || !field(t, TEXT("next_pid="), &next) ||
        !number_at(prev, &s->prev) || !number_at(next, &s->next))
        return false;
    s->state = field(t, TEXT("prev_state="), &state) && state.length ? state_of(state.data[0])
                                                                     : STATE_SLEEP;
    return true;
}

/* "a:1 [120] S ==> b:2 [120]", as perf's plugin prints it. */
static bool short_fields(struct sched *s, struct text t) {
    size_t arrow = text_search(t, TEXT(" ==> "));
    if (arrow == SIZE_MAX)
        return false;
    struct text prev = text_upto(t, arrow), next = text_from(t, arrow + 5);
    size_t prev_end = text_search(prev, TEXT(" [")), next_end = text_search(next, TEXT(" ["));
    if (prev_end == SIZE_MAX || next_end == SIZE_MAX)
        return false;
    s->state = prev.length ? state_of(prev.data[prev.length - 1]) : STATE_SLEEP;
    prev = text_upto(prev, prev_end);
    next = text_upto(next, next_end);
    size_t prev_colon = text_find_last(prev, ':'), next_colon = text_find_last(next, ':');
    return prev_colon != SIZE_MAX && next_colon != SIZE_MAX &&
           number_at(text_from(prev, prev_colon + 1), &s->prev) &&
           number_at(text_from(next, next_colon + 1), &s->next);
}

/* ---- switches ----------------------------------------------------------------------------- */

static void came_back(struct sched *s) {
    struct away *thread = thread_of(s, s->next);
    if (thread->is_away && s->time >= thread->since) {
        uint64_t length = s->time - thread->since;
        tree_count(s->r.tree, thread->node, thread->series, 1, length);
        tree_keep_sample(s->r.tree, &(struct sample){.time = thread->since,
                                                     .weight = length,
                                                     .node = thread->node,
                                                     .series = thread->series,
                                                     .cpu = UINT32_MAX});
    }
    thread->is_away = false;
}

static void went_away(struct sched *s) {
    stack_reverse(&s->r.stack);
    uint32_t node = stack_node(&s->r.stack);
    stack_set_thread(&s->r.stack, s->comm, s->pid, s->prev);
    struct series series = s->r.tree->series.items[s->r.stack.series];
    series.state = s->state;
    struct away *thread = thread_of(s, s->prev);
    *thread = (struct away){s->prev, true, s->time, node, tree_add_series(s->r.tree, &series)};
}

static void switch_end(struct sched *s) {
    if (s->in_switch) {
        came_back(s);
        if (s->prev != 0 && s->r.stack.locations.count) /* 0 is the idle thread */
            went_away(s);
    }
    s->in_switch = false;
    s->r.stack.locations.count = 0;
}

static void event_line(struct sched *s, const struct script_event *event) {
    const struct filter *filter = &s->r.options->profile.filter;
    switch_end(s);
    if (!text_ends(event->name, TEXT("sched_switch")))
        return;
    if (!named_fields(s, event->rest) && !short_fields(s, event->rest)) {
        reader_bad(&s->r, "a switch without threads: line");
        return;
    }
    s->in_switch =
        filter_sample(filter, event->pid, event->tid, event->comm, event->cpu, event->time);
    s->time = event->time;
    s->comm = event->comm;
    s->pid = event->pid;
}

static void frame_line(struct sched *s) {
    struct script_frame frame;
    if (!s->in_switch || !script_frame_parse(s->r.line, &frame))
        return;
    struct text object = frame.object.data ? frame.object : TEXT("[unknown]");
    struct location location = {.function = tree_name_function(s->r.tree, frame.symbol),
                                .kinds =
                                    (uint8_t)(script_object_kinds(object, false) | KIND_SCRIPT)};
    if (!text_equal(object, TEXT("[unknown]")))
        location.object = object_named(s->r.tree, object);
    vector_push(&s->r.stack.locations, tree_add_location(s->r.tree, &location));
}

static bool sched_read(struct text content, const char *path, const struct import_options *options,
                       struct tree *tree, struct error *error) {
    struct sched s = {0};
    reader_init(&s.r, content, path, options, tree, TEXT("off-cpu"), error);
    uint32_t event = tree->series.items[s.r.stack.series].event;
    tree->events.items[event].unit = strings_add(tree->strings, TEXT("ns"));
    while (reader_next(&s.r)) {
        struct script_event parsed;
        if (s.r.line.length == 0)
            switch_end(&s);
        else if (s.r.line.data[0] == '#')
            continue;
        else if (s.r.line.data[0] != '\t' && script_event_parse(s.r.line, &parsed) &&
                 parsed.name.data)
            event_line(&s, &parsed);
        else
            frame_line(&s);
    }
    switch_end(&s);
    tree_sort_samples(tree); /* samples were kept at their end, and are shown by their start */
    vector_release(&s.threads);
    index_release(&s.index);
    reader_release(&s.r);
    return true;
}

static int sched_score(struct text beginning) {
    return 0;
}

const struct import_format format_perf_sched = {
    "perf-sched", "off-CPU time from perf script text of sched:sched_switch", sched_score,
    sched_read, TELLS_ALL};
