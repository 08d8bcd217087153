/*
 * Choose the events to count.
 *
 * The default is the first attribute's event; `--event NAME` picks one, several are added up, `all` takes all. A note names the others.
 *
 * A recording of both running and waiting shows running unless waiting is requested.
 *
 * inferno identifies an event by its name up to the first ':' (cycles:u and cycles:k are the same) and takes the event of the earliest sample;
 * quirks.first_sample_chooses imitates this. It reads the number one space before the name as the period, and none if perf pads the name because
 * another event's is longer. What it makes of lines that are not samples depends on the text itself.
 */
#include "profile/blocks.h"
#include "profile/waits.h"

static const struct note_kind note_left_out = {"events-left-out",
                                               "# sample{|s} of other events {was|were} dropped; "
                                               "--event NAME selects one, --event all adds them"};

static const struct note_kind note_waits = {"waits-recorded",
                                            "# sample{ shows|s show} where threads waited: "
                                            "--off-cpu shows waits, --wall both in one graph"};

static const struct note_kind note_switches = {
    "switches-counted", "# switch{ was|es were} counted: --off-cpu shows how long threads waited"};

static struct text event_inferno_key(struct text name) {
    size_t colon = text_find(name, ':');
    return colon == SIZE_MAX ? name : text_upto(name, colon);
}

static const struct event_seen *events_first(const struct reading *reading) {
    const struct event_seen *first = NULL;
    for (size_t i = 0; i < reading->events.count; i++) {
        const struct event_seen *seen = &reading->events.items[i];
        if (seen->samples && (!first || key_compare(&seen->first, &first->first) < 0))
            first = seen;
    }
    return first;
}

static void events_choose_inferno(struct reading *reading) {
    const struct perfdata *data = reading->profile->data;
    const struct filter *filter = &reading->options->filter;
    const struct event_seen *first = events_first(reading);
    struct text first_key = TEXT("");
    if (first)
        first_key = event_inferno_key(data->events.items[first - reading->events.items].name);
    size_t width = 0;
    for (size_t i = 0; i < reading->events.count; i++)
        if (data->events.items[i].name.length > width)
            width = data->events.items[i].name.length;
    for (size_t i = 0; i < reading->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        struct text key = event_inferno_key(event->name);
        reading->events.items[i].is_chosen =
            filter->event_count ? filter_event(filter, key) : text_equal(key, first_key);
        reading->events.items[i].inferno_reads_period = event->name.length == width;
    }
}

/* A tracepoint's payload and a hex dump are taken for frames, and without a time much else is. Where samples have no chain, perf's text has
   no blank lines, and a line of an event that is not counted, or of no thread (inferno takes the period for one, and what follows for
   the event), makes inferno skip lines until a blank one. And inlined functions' names depend on the samples before, of other events
   too: addr2line.h. */
static bool events_need_text(const struct reading *reading) {
    const struct perfdata *data = reading->profile->data;
    size_t chains = 0, lines = 0, others = 0, unwound = 0;
    for (size_t i = 0; i < reading->events.count; i++) {
        const struct event_seen *seen = &reading->events.items[i];
        const struct perfdata_event *event = &data->events.items[i];
        bool output =
            event->type == PERF_TYPE_SOFTWARE && event->config == PERF_COUNT_SW_BPF_OUTPUT;
        if (!seen->samples)
            continue;
        if (event->type == PERF_TYPE_TRACEPOINT || output || seen->nobody ||
            ~event->sample_type & (PERF_SAMPLE_TID | PERF_SAMPLE_TIME))
            return true;
        chains += (event->sample_type & PERF_SAMPLE_CALLCHAIN) != 0;
        lines += !(event->sample_type & PERF_SAMPLE_CALLCHAIN);
        others += !seen->is_chosen;
        unwound += (event->sample_type & PERF_SAMPLE_STACK_USER) != 0;
    }
    return (lines && (chains || others)) || (unwound && others);
}

/* Where threads ran is asked for: an event that says so is taken before one that tells of switches, and rather without any sample than
   that a wait is taken for work. */
static unsigned event_worth(const struct event_seen *seen) {
    return 2 * (seen->role == ROLE_RUNNING) + (seen->samples > 0);
}

/* The first attribute that has a sample, so that a leading dummy or bookkeeping event is not "nothing recorded"; and waits are only
   where there is nothing else. */
static void events_choose_first(struct reading *reading) {
    struct event_seen *first = NULL;
    for (size_t i = 0; i < reading->events.count; i++) {
        struct event_seen *seen = &reading->events.items[i];
        if (!first || event_worth(seen) > event_worth(first))
            first = seen;
    }
    if (!first)
        return;
    const struct perfdata *data = reading->profile->data;
    struct text name = data->events.items[first - reading->events.items].name;
    first->is_chosen = true;
    for (size_t i = 0; i < reading->events.count; i++)
        reading->events.items[i].is_chosen |= reading->events.items[i].role == first->role &&
                                              event_same(name, data->events.items[i].name);
}

static void events_choose_named(struct reading *reading) {
    for (size_t i = 0; i < reading->events.count; i++)
        reading->events.items[i].is_chosen =
            filter_event(&reading->options->filter, reading->profile->data->events.items[i].name);
}

static bool events_check_names(const struct reading *reading, struct error *error) {
    const struct filter *filter = &reading->options->filter;
    const struct perfdata *data = reading->profile->data;
    for (size_t i = 0; i < filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool known = false;
        for (size_t k = 0; k < data->events.count && !known; k++)
            known = filter_event(&one, data->events.items[k].name);
        if (known)
            continue;
        struct buffer names = {0};
        for (size_t k = 0; k < data->events.count; k++)
            buffer_printf(&names, "%s%.*s", k ? ", " : "", TEXT_ARGS(data->events.items[k].name));
        error_set(error, ERROR_USAGE, "--event %s: the file has no such event, only %.*s",
                  filter->events[i], TEXT_ARGS(buffer_text(&names)));
        buffer_release(&names);
        return false;
    }
    return true;
}

static enum event_kind event_kind(const struct perfdata_event *event) {
    switch (event->type) {
    case PERF_TYPE_SOFTWARE:
        return EVENT_SOFTWARE;
    case PERF_TYPE_TRACEPOINT:
        return EVENT_TRACEPOINT;
    case PERF_TYPE_HARDWARE:
    case PERF_TYPE_HW_CACHE:
    case PERF_TYPE_RAW:
        return EVENT_HARDWARE;
    default:
        return EVENT_OTHER;
    }
}

/* Clocks count nanoseconds; everything else counts itself. */
struct text event_unit(const struct perfdata_event *event) {
    bool clock = event->type == PERF_TYPE_SOFTWARE && (event->config == PERF_COUNT_SW_CPU_CLOCK ||
                                                       event->config == PERF_COUNT_SW_TASK_CLOCK);
    return clock ? TEXT("ns") : event_inferno_key(event->name);
}

/* What else the recording has, where threads ran is asked for. */
static void note_others(struct reading *reading, size_t i) {
    const struct event_seen *seen = &reading->events.items[i];
    struct text name = reading->profile->data->events.items[i].name;
    bool waits = seen->role == ROLE_SWITCH || seen->role == ROLE_WAIT;
    if (!seen->samples || seen->role == ROLE_WAKING || seen->role == ROLE_WAKER)
        return;
    struct notes notes = {0};
    notes_add(&notes, waits ? &note_waits : &note_left_out, seen->samples, i, "%.*s",
              TEXT_ARGS(name));
    notes_merge_for(&reading->profile->tree->notes, &notes,
                    reading->each ? times_view(TIMES_RUNNING) : 0);
    notes_release(&notes);
}

/* With its own weights, in its own unit. */
static uint32_t event_add(struct tree *tree, const struct perfdata_event *event) {
    uint32_t id = tree_add_event(tree, event->name, event_unit(event), event_kind(event));
    tree->events.items[id].chains = event->sample_type & PERF_SAMPLE_CALLCHAIN;
    return id;
}

/* One event for all waits, whatever told of them; what ran is in nanoseconds beside it. */
static void events_add_times(struct reading *reading) {
    struct profile *profile = reading->profile;
    struct tree *tree = profile->tree;
    bool both = reading->times == TIMES_BOTH;
    reading->waiting = tree_add_event(tree, TEXT("off-cpu"), TEXT("ns"), EVENT_SOFTWARE);
    tree->events.items[reading->waiting].chains = true;
    tree->events.items[reading->waiting].time = TIME_WAITED;
    for (size_t i = 0; i < reading->events.count; i++) {
        struct event_seen *seen = &reading->events.items[i];
        const struct perfdata_event *event = &profile->data->events.items[i];
        bool running = reading->tells_running && seen->role == ROLE_RUNNING && seen->is_chosen;
        bool waker =
            reading->options->wakers && (seen->role == ROLE_WAKING || seen->role == ROLE_WAKER);
        if ((reading->each || reading->times == TIMES_RUNNING) && !seen->is_chosen)
            note_others(reading, i);
        seen->is_read = running || waker || seen->role == ROLE_SWITCH || seen->role == ROLE_WAIT;
        seen->id = running ? tree_add_event(tree, event->name, TEXT("ns"), event_kind(event))
                           : reading->waiting;
        if (running)
            tree->events.items[seen->id].time = TIME_RUN;
        if (running && reading->each)
            seen->measured = event_add(tree, event);
    }
    const char *names = reading->each ? "on-cpu, off-cpu, wall" : both ? "wall" : "off-cpu";
    profile->event_names = memory_copy(names, strlen(names));
}

static bool events_choose_times(struct reading *reading, struct error *error) {
    const struct filter *filter = &reading->options->filter;
    const struct perfdata *data = reading->profile->data;
    if (reading->times == TIMES_WAITING && filter->event_count)
        return error_set(error, ERROR_USAGE,
                         "--off-cpu has its own events and cannot be combined with --event");
    if (filter->event_count) {
        if (!events_check_names(reading, error))
            return false;
        events_choose_named(reading);
    } else {
        events_choose_first(reading);
    }
    for (size_t i = 0; i < reading->events.count; i++) {
        const struct event_seen *seen = &reading->events.items[i];
        bool counts_time = text_equal(event_unit(&data->events.items[i]), TEXT("ns"));
        if (!seen->is_chosen || !seen->samples || seen->role != ROLE_RUNNING || counts_time ||
            reading->waits->has_switches)
            continue;
        reading->waits->untimed = true;
        if (reading->times == TIMES_BOTH)
            return error_set(error, ERROR_INPUT,
                             "%s: %.*s does not count time, and nothing else in the recording says "
                             "how long threads ran: --wall needs -e cpu-clock or --switch-events",
                             data->source->path, TEXT_ARGS(data->events.items[i].name));
    }
    events_add_times(reading);
    return true;
}

/* Whether the user named events or asked for another program's output, and so knows what is counted. */
static bool is_named(const struct profile_options *options) {
    return options->all_events || options->quirks.events_as_recorded || options->filter.event_count;
}

static void events_add(struct reading *reading) {
    struct profile *profile = reading->profile;
    struct buffer names = {0};
    for (size_t i = 0; i < reading->events.count; i++) {
        struct event_seen *seen = &reading->events.items[i];
        const struct perfdata_event *event = &profile->data->events.items[i];
        seen->is_read = seen->is_chosen;
        if (seen->is_read) {
            seen->id = event_add(profile->tree, event);
            buffer_printf(&names, "%s%.*s", names.count ? ", " : "", TEXT_ARGS(event->name));
            if (seen->role == ROLE_SWITCH && seen->samples && !is_named(reading->options))
                notes_add(&profile->tree->notes, &note_switches, seen->samples, i, "%.*s",
                          TEXT_ARGS(event->name));
        } else {
            note_others(reading, i);
        }
    }
    profile->event_names = memory_copy(names.items, names.count);
    buffer_release(&names);
}

static bool has_run(const struct reading *reading) {
    for (size_t i = 0; i < reading->events.count; i++)
        if (reading->events.items[i].role == ROLE_RUNNING && reading->events.items[i].samples)
            return true;
    return false;
}

bool reading_choose_events(struct reading *reading, struct error *error) {
    if (reading->blocks)
        return blocks_choose_values(reading->blocks, error);
    if (reading->waits && reading->times == TIMES_RUNNING && !has_run(reading))
        waits_forget(reading); /* there is nothing that they could stand beside */
    if (reading->waits)
        return events_choose_times(reading, error);
    if (reading->options->all_events && !reading->options->filter.event_count) {
        for (size_t i = 0; i < reading->events.count; i++)
            reading->events.items[i].is_chosen = true;
    } else if (reading->options->quirks.first_sample_chooses) {
        events_choose_inferno(reading);
        reading->profile->needs_text = events_need_text(reading);
    } else if (reading->options->filter.event_count) {
        if (!events_check_names(reading, error))
            return false;
        events_choose_named(reading);
    } else {
        events_choose_first(reading);
    }
    events_add(reading);
    return true;
}
