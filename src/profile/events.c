/*
 * Which events are counted.
 *
 * By default the first attribute's; `--event NAME` picks, several add up, `all` takes every one. What is left out is said.
 *
 * inferno knows an event by its name up to the first ':' (cycles:u and cycles:k are one) and takes the one that the first
 * sample in time has; under compat_inferno so does wick. It reads the number one space before the name as the period: none
 * where perf prints none, for tracepoints, and none where perf pads the name because another event's is longer.
 */
#include "profile/reading.h"

static const struct note_kind note_left_out = {
    "events-left-out",
    "# samples of other events were left out; --event NAME picks, --event all adds"};

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
    struct text wanted = TEXT("");
    if (first)
        wanted = event_inferno_key(data->events.items[first - reading->events.items].name);
    size_t width = 0;
    for (size_t i = 0; i < reading->events.count; i++)
        if (data->events.items[i].name.length > width)
            width = data->events.items[i].name.length;
    for (size_t i = 0; i < reading->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        struct text key = event_inferno_key(event->name);
        reading->events.items[i].wanted =
            filter->event_count ? filter_event(filter, key) : text_equal(key, wanted);
        reading->events.items[i].inferno_reads_period =
            event->name.length == width && event->type != PERF_TYPE_TRACEPOINT;
    }
}

/* The first attribute that has a sample, so that a leading dummy or bookkeeping event is not "nothing recorded". */
static void events_choose_first(struct reading *reading) {
    for (size_t i = 0; i < reading->events.count; i++) {
        if (reading->events.items[i].samples || i + 1 == reading->events.count) {
            reading->events.items[i].wanted = true;
            return;
        }
    }
}

static void events_choose_named(struct reading *reading) {
    for (size_t i = 0; i < reading->events.count; i++)
        reading->events.items[i].wanted =
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
static struct text event_unit(const struct perfdata_event *event) {
    bool clock = event->type == PERF_TYPE_SOFTWARE && (event->config == PERF_COUNT_SW_CPU_CLOCK ||
                                                       event->config == PERF_COUNT_SW_TASK_CLOCK);
    return clock ? TEXT("ns") : event_inferno_key(event->name);
}

static void events_add(struct reading *reading) {
    struct profile *profile = reading->profile;
    struct buffer names = {0};
    for (size_t i = 0; i < reading->events.count; i++) {
        struct event_seen *seen = &reading->events.items[i];
        const struct perfdata_event *event = &profile->data->events.items[i];
        if (seen->wanted) {
            seen->id =
                tree_add_event(profile->tree, event->name, event_unit(event), event_kind(event));
            profile->tree->events.items[seen->id].chains =
                event->sample_type & PERF_SAMPLE_CALLCHAIN;
            buffer_printf(&names, "%s%.*s", names.count ? ", " : "", TEXT_ARGS(event->name));
        } else if (seen->samples) {
            notes_add(&profile->tree->notes, &note_left_out, seen->samples, i, "%.*s",
                      TEXT_ARGS(event->name));
        }
    }
    profile->event_names = memory_copy(names.items, names.count);
    buffer_release(&names);
}

bool reading_choose_events(struct reading *reading, struct error *error) {
    if (reading->options->all_events && !reading->options->filter.event_count) {
        for (size_t i = 0; i < reading->events.count; i++)
            reading->events.items[i].wanted = true;
    } else if (reading->options->compat_inferno) {
        events_choose_inferno(reading);
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
