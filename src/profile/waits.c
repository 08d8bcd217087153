/*
 * Find the role of each event, and make marks of records.
 *
 * Raw payloads have thread ids as the kernel sees them, samples as the recorder sees them; inside a container they differ. If the thread that
 * switches out has another id in its payload, the payload's other ids are ignored.
 */
#include "profile/blocks.h"
#include "profile/waits.h"

#include <stdlib.h>

enum { TASK_DISK = 2, TASK_DEAD = 0x30, TASK_KNOWN = 0xff };

/* perf's sums carry no time but a number that sorts last. */
#define TIMES_MADE_UP (~0ull << 32)

/* ---- events ---- */

static bool each_counts(const struct perfdata_event *event) {
    return event->sample_period == 1 && !(event->flags >> ATTRIBUTE_FREQUENCY & 1);
}

static bool name_is(const struct perfdata_event *event, const char *name) {
    struct text t = event->name;
    return text_starts(t, text_of(name)) &&
           (t.length == strlen(name) || t.data[strlen(name)] == ':');
}

static enum role role_of_heap(const struct perfdata_event *event) {
    static const struct {
        const char *name;
        enum role role;
    } known[] = {{"heap-alloc", ROLE_ALLOC},         {"heap-again", ROLE_AGAIN},
                 {"heap-free", ROLE_FREE},           {"heap-map", ROLE_MAP},
                 {"heap-map-again", ROLE_MAP_AGAIN}, {"heap-unmap", ROLE_UNMAP}};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (name_is(event, known[i].name))
            return known[i].role;
    return ROLE_RUNNING;
}

static enum role role_of(const struct perfdata_event *event) {
    if (event->type == PERF_TYPE_TRACEPOINT && name_is(event, "sched:sched_switch"))
        return each_counts(event) ? ROLE_SWITCH : ROLE_RUNNING;
    if (event->type == PERF_TYPE_TRACEPOINT &&
        (name_is(event, "sched:sched_waking") || name_is(event, "sched:sched_wakeup")))
        return ROLE_WAKING;
    if (name_is(event, "offcpu-time"))
        return ROLE_WAIT;
    if (name_is(event, "offcpu-waker"))
        return ROLE_WAKER;
    if (event->type != PERF_TYPE_SOFTWARE)
        return ROLE_RUNNING;
    if (event->config == PERF_COUNT_SW_BPF_OUTPUT)
        return role_of_heap(event);
    if (event->config == PERF_COUNT_SW_DUMMY)
        return ROLE_NONE;
    return event->config == PERF_COUNT_SW_CONTEXT_SWITCHES && each_counts(event) ? ROLE_SWITCH
                                                                                 : ROLE_RUNNING;
}

static uint8_t state_of_name(struct text name) {
    return text_ends(name, TEXT(":disk"))        ? STATE_DISK
           : text_ends(name, TEXT(":preempted")) ? STATE_PREEMPTED
                                                 : STATE_SLEEP;
}

/* Of two events that tell of the same switches, the tracepoint knows more; and either knows more than sums. */
static void roles_prefer(struct reading *reading, bool has_tracepoint, bool has_switches) {
    for (size_t i = 0; i < reading->events.count; i++) {
        struct event_seen *seen = &reading->events.items[i];
        bool traced = reading->profile->data->events.items[i].type == PERF_TYPE_TRACEPOINT;
        if ((seen->role == ROLE_SWITCH && has_tracepoint && !traced) ||
            ((seen->role == ROLE_WAIT || seen->role == ROLE_WAKER) && has_switches))
            seen->role = ROLE_NONE;
    }
}

struct found {
    bool running, tracepoint, switches, waits, records;
    bool untimed; /* what ran was counted by something else than time */
};

static struct found roles_find(struct reading *reading) {
    const struct perfdata *data = reading->profile->data;
    struct found found = {0};
    for (size_t i = 0; i < data->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        struct event_seen *seen = &reading->events.items[i];
        seen->role = role_of(event);
        seen->state = state_of_name(event->name);
        found.running |= seen->role == ROLE_RUNNING;
        found.untimed |= seen->role == ROLE_RUNNING && !text_equal(event_unit(event), TEXT("ns"));
        found.switches |= seen->role == ROLE_SWITCH;
        found.tracepoint |= seen->role == ROLE_SWITCH && event->type == PERF_TYPE_TRACEPOINT;
        found.waits |= seen->role == ROLE_WAIT;
        found.records |= event->flags >> ATTRIBUTE_SWITCHES & 1;
    }
    return found;
}

static void find_fields(struct waits *w) {
    struct text formats = w->reading->profile->data->features[FEATURE_TRACING_DATA];
    w->previous_pid = tracepoint_field(formats, "sched_switch", "prev_pid", 24);
    w->previous_state = tracepoint_field(formats, "sched_switch", "prev_state", 32);
    w->next_pid = tracepoint_field(formats, "sched_switch", "next_pid", 56);
    w->woken_pid = tracepoint_field(formats, "sched_waking", "pid", 24);
}

/* Each time in one tree, where that gives what a reading of its own would. Counters that were read with samples need one. */
static bool can_tell_each(const struct reading *reading) {
    const struct profile_options *options = reading->options;
    const struct perfdata *data = reading->profile->data;
    if (!options->each || options->all_events || options->quirks.events_as_recorded ||
        (reading->times != TIMES_BOTH && options->filter.event_count))
        return false;
    for (size_t i = 0; i < data->events.count; i++)
        if (data->events.items[i].sample_type & PERF_SAMPLE_READ)
            return false;
    return true;
}

static bool has_times(const struct reading *reading, struct error *error) {
    const struct perfdata *data = reading->profile->data;
    for (size_t i = 0; i < data->events.count; i++)
        if (reading->events.items[i].role == ROLE_SWITCH &&
            (!data->events.items[i].time_offset ||
             !(data->events.items[i].sample_type & PERF_SAMPLE_TID)))
            return error_set(
                error, ERROR_INPUT,
                "%s: %.*s was recorded without sample times or threads, so waits can't be computed",
                data->source->path, TEXT_ARGS(data->events.items[i].name));
    return true;
}

/* Return what `wick record` or `wick profile` was asked for, as the recording's command line has it. Perf's options mean something else. */
static enum times times_recorded(const struct perfdata *data) {
    static const struct {
        const char *words;
        enum times times;
    } asked[] = {{" --wall ", TIMES_BOTH},           {" --kind wall ", TIMES_BOTH},
                 {" --kind=wall ", TIMES_BOTH},      {" --kind offcpu ", TIMES_WAITING},
                 {" --kind=offcpu ", TIMES_WAITING}, {" --off-cpu ", TIMES_WAITING},
                 {" --off-cpu=", TIMES_WAITING}};
    enum times times = TIMES_RUNNING;
    struct buffer line = {0};
    if (!text_starts(data->version, TEXT("wick ")))
        return times;
    buffer_printf(&line, "%.*s %c", TEXT_ARGS(data->cmdline), 0);
    char *target = strstr(line.items, " -- ");
    if (target)
        target[1] = 0;
    for (size_t i = 0; i < COUNT_OF(asked) && times == TIMES_RUNNING; i++)
        if (strstr(line.items, asked[i].words))
            times = asked[i].times;
    buffer_release(&line);
    return times;
}

/* Return what to show if no time is asked for. */
static enum times times_meant(const struct reading *reading, const struct found *found) {
    struct error unseen;
    enum times times = times_recorded(reading->profile->data);
    bool adds_up = times == TIMES_WAITING || found->switches || !found->untimed;
    return adds_up && has_times(reading, &unseen) ? times : TIMES_RUNNING;
}

bool waits_begin(struct reading *reading, struct error *error) {
    const struct profile_options *options = reading->options;
    struct tree *tree = reading->profile->tree;
    struct found found = roles_find(reading);
    reading->times = options->times;
    reading->filter = options->filter;
    blocks_begin(reading);
    bool as_it_is =
        options->all_events || options->quirks.events_as_recorded || options->filter.event_count;
    bool tells_waits = found.switches ? found.records : found.waits;
    tree->meant = tells_waits && found.running ? times_meant(reading, &found) : TIMES_RUNNING;
    if (options->natural && options->times == TIMES_RUNNING && !as_it_is &&
        tree->meant != TIMES_RUNNING) {
        reading->times = tree->meant;
        notes_add(&tree->notes, note_of_natural(tree->meant), 1, 0, NULL);
    }
    if (options->times == TIMES_RUNNING && tells_waits && !found.running && !as_it_is) {
        reading->times = TIMES_WAITING; /* there is nothing else to see */
        notes_add(&tree->notes, &note_only_waits, 1, 0, NULL);
    }
    tree->shown = reading->times;
    struct error unseen;
    reading->each = can_tell_each(reading) && (reading->times != TIMES_RUNNING ||
                                               (tells_waits && has_times(reading, &unseen)));
    reading->tells_running = reading->each || reading->times == TIMES_BOTH;
    if (reading->times == TIMES_RUNNING && !reading->each)
        return true;
    if (!found.switches && !found.waits && !found.records)
        return error_set(error, ERROR_INPUT,
                         "%s: the recording does not say when threads waited: record with `wick "
                         "record --off-cpu` or `perf record -e sched:sched_switch -g "
                         "--switch-events`",
                         reading->profile->data->source->path);
    roles_prefer(reading, found.tracepoint, found.switches);
    struct waits *w = reading->waits = memory_zero(1, sizeof *w);
    *w = (struct waits){.reading = reading,
                        .has_records = found.records,
                        .has_switches = found.switches || found.records};
    reading->filter.has_time = false; /* intervals are cut to it instead */
    reading->profile->tree->keep_samples |= options->wakers;
    find_fields(w);
    return has_times(reading, error);
}

void waits_free(struct waits *w) {
    if (!w)
        return;
    vector_release(&w->marks);
    pairs_release(&w->pairs);
    vector_release(&w->untold);
    vector_release(&w->ready);
    vector_release(&w->wakers);
    free(w);
}

void waits_forget(struct reading *reading) {
    waits_free(reading->waits);
    reading->waits = NULL;
    reading->costs.count = 0;
    reading->each = reading->tells_running = false;
    reading->filter = reading->options->filter;
}

const struct cost *cost_find(const struct reading *reading, uint64_t offset) {
    size_t low = first_from(reading->costs.items, reading->costs.count,
                            sizeof *reading->costs.items, offset);
    bool found = low < reading->costs.count && reading->costs.items[low].offset == offset;
    return found ? &reading->costs.items[low] : NULL;
}

/* ---- marks ---- */

static void see_time(struct waits *w, uint64_t time) {
    if (time > w->newest && time < TIMES_MADE_UP)
        w->newest = time;
}

/* Any record tells that the recording went on; wick's own ends with one that tells nothing else. */
void waits_lasted(struct waits *w, uint64_t newest) {
    see_time(w, newest);
}

/* The idle threads all have the id 0, and those that have lost theirs -1. */
static void mark(struct waits *w, const struct mark *mark) {
    if (mark->tid <= 0)
        return;
    see_time(w, mark->time);
    vector_push(&w->marks, *mark);
}

static bool payload_u32(const struct perfdata_sample *sample, uint32_t at, uint32_t *value) {
    if (!sample->raw || at + 4 > sample->raw_size)
        return false;
    *value = load_u32(sample->raw + at);
    return true;
}

/* Why a thread leaves, as sched_switch says it: 0 is "it would like to go on". */
static uint8_t state_of_task(uint32_t state) {
    state &= TASK_KNOWN;
    return !state              ? STATE_PREEMPTED
           : state & TASK_DEAD ? STATE_DEAD
           : state & TASK_DISK ? STATE_DISK
                               : STATE_SLEEP;
}

static void sample_switch(struct waits *w, struct mark *out, const struct perfdata_sample *sample) {
    const struct perfdata_event *event = &w->reading->profile->data->events.items[sample->event];
    uint32_t previous, state, next;
    out->kind = MARK_OUT;
    out->state = STATE_UNTOLD;
    bool traced = event->type == PERF_TYPE_TRACEPOINT;
    if (traced && payload_u32(sample, w->previous_state, &state))
        out->state = state_of_task(state);
    mark(w, out);
    if (!traced || !payload_u32(sample, w->previous_pid, &previous) ||
        !payload_u32(sample, w->next_pid, &next) || previous != (uint32_t)sample->tid)
        return;
    struct mark in = *out;
    in.kind = MARK_IN;
    in.pid = -1;
    in.tid = (int32_t)next;
    mark(w, &in);
}

static void sample_waking(struct waits *w, struct mark *waking,
                          const struct perfdata_sample *sample) {
    uint32_t pid;
    if (!w->reading->options->wakers || !payload_u32(sample, w->woken_pid, &pid))
        return;
    waking->kind = MARK_WAKING;
    waking->pid = -1;
    waking->tid = (int32_t)pid;
    mark(w, waking);
}

bool waits_want(const struct waits *w, uint64_t time) {
    const struct filter *filter = &w->reading->options->filter;
    return !filter->has_time || (time >= filter->time_from && time <= filter->time_to);
}

static void sample_wait(struct waits *w, const struct perfdata_sample *sample, uint64_t offset) {
    const struct profile_options *options = w->reading->options;
    uint64_t weight = reading_weight(w->reading, sample);
    w->sums++;
    if (weight < options->least_wait || (options->most_wait && weight > options->most_wait) ||
        !waits_want(w, sample->time))
        return;
    struct cost cost = {
        .offset = offset, .weight = weight, .state = w->reading->events.items[sample->event].state};
    vector_push(&w->reading->costs, cost);
    if (options->wakers)
        vector_push(&w->ready, ((struct timed){sample->time, offset}));
}

bool waits_sample(struct waits *w, const struct perfdata_record *record, uint32_t event,
                  uint64_t time, struct error *error) {
    enum role role = w->reading->events.items[event].role;
    bool needed =
        role != ROLE_NONE && (role != ROLE_RUNNING || !w->has_records || w->reading->tells_running);
    struct perfdata_sample sample;
    see_time(w, time);
    if (!needed)
        return true;
    if (!perfdata_sample(w->reading->profile->data, record, &sample, error))
        return false;
    if (role == ROLE_WAIT)
        perfdata_unwrap_wait(w->reading->profile->data, &sample);
    struct mark seen = {.time = sample.time,
                        .offset = record->offset,
                        .pid = sample.pid,
                        .tid = sample.tid,
                        .event = event,
                        .kind = MARK_SEEN};
    if (role == ROLE_SWITCH)
        sample_switch(w, &seen, &sample);
    else if (role == ROLE_WAKING)
        sample_waking(w, &seen, &sample);
    else if (role == ROLE_WAIT)
        sample_wait(w, &sample, record->offset);
    else if (role == ROLE_WAKER)
        vector_push(&w->wakers, ((struct timed){sample.time, record->offset}));
    else
        seen.weight = reading_weight(w->reading, &sample), mark(w, &seen);
    return true;
}

bool waits_record(struct waits *w, const struct perfdata_record *record, struct error *error) {
    struct perfdata *data = w->reading->profile->data;
    struct perfdata_trailer trailer;
    struct perfdata_task task;
    if (!perfdata_trailer(data, record, &trailer, error))
        return false;
    struct mark made = {
        .time = trailer.time, .offset = record->offset, .pid = trailer.pid, .tid = trailer.tid};
    if (record->type == PERF_RECORD_SWITCH || record->type == PERF_RECORD_SWITCH_CPU_WIDE) {
        bool out = record->misc & PERF_RECORD_MISC_SWITCH_OUT;
        made.kind = out ? MARK_LEFT : MARK_IN;
        made.state = out && record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? STATE_PREEMPTED
                                                                               : STATE_UNTOLD;
    } else {
        if (!perfdata_task(data, record, &task, error))
            return false;
        bool made_up =
            record->type == PERF_RECORD_FORK && record->misc & PERF_RECORD_MISC_COMM_EXEC;
        if (made_up)
            return true;
        made.pid = task.pid;
        made.tid = task.tid;
        made.kind = record->type == PERF_RECORD_FORK ? MARK_START : MARK_END;
    }
    if (trailer.has_time && trailer.time)
        mark(w, &made);
    return true;
}
