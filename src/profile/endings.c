/*
 * Note how many stacks are complete: always after unwinding, and for recorded chains if some are not.
 */
#include "profile/reading.h"
#include "unwind/unwind.h"

#include <stdlib.h>

static const struct note_kind note_stacks = {"stacks", "# stack{ was|s were} unwound", true};
static const struct note_kind note_chains = {
    "chains", "# stack{ was recorded as a call chain|s were recorded as call chains}", true};

enum { STACK_SIZE_MAX = 65528 };

enum start reading_start_of(const struct reading *reading, const struct location *location) {
    struct symbol symbol;
    uint64_t address = location_within(location);
    uint32_t object = location->object;
    if (!object && location->mode == MODE_KERNEL && reading_is_kernel(reading, address))
        object = reading->kernel_object;
    if (!object || !objects_symbol(reading->profile->objects, object, address, &symbol))
        return START_NAMELESS;
    return unwind_is_first_by_frame_pointer(symbol.name) ? START_YES
           : text_equal(symbol.name, TEXT("main"))       ? START_MAIN
                                                         : START_NO;
}

/* By the tree's events: the file's that each is. Those that no sample of the file is counted under have none. free() it. */
static const struct perfdata_event **events_of_file(const struct reading *reading) {
    const struct perfdata_event **events =
        memory_zero(reading->profile->tree->events.count, sizeof *events);
    for (size_t i = reading->events.count; i-- > 0;) /* of several in one, the first */
        if (reading->events.items[i].is_read) {
            events[reading->events.items[i].id] = &reading->profile->data->events.items[i];
            events[reading->events.items[i].measured] = &reading->profile->data->events.items[i];
        }
    events[0] = NULL;
    return events;
}

/* Of one kind of stack. */
struct endings {
    uint64_t counts[ENDING_UNKNOWN];
    uint64_t all;
    uint64_t interrupted; /* those of the truncated that end at a handler on a stack of its own */
    uint32_t stack_size;
};

static void endings_add(struct endings *endings, const struct series *series,
                        const struct cell *cell, uint32_t stack_size) {
    endings->counts[series->ending] += cell->samples;
    endings->all += cell->samples;
    endings->stack_size = stack_size;
}

static void add_share(struct buffer *text, uint64_t part, uint64_t all, const char *what) {
    if (part)
        buffer_printf(text, "%s%.1f %% %s", text->count ? "; " : "",
                      100.0 * (double)part / (double)all, what);
}

static void note_endings(struct notes *notes, const struct note_kind *kind,
                         const struct endings *endings, const char *cut, const char *broken) {
    struct buffer text = {0};
    add_share(&text, endings->counts[ENDING_COMPLETE], endings->all, "complete");
    add_share(&text, endings->counts[ENDING_TRUNCATED] - endings->interrupted, endings->all, cut);
    add_share(&text, endings->interrupted, endings->all,
              "end in a signal handler on an alternate stack, and the interrupted stack was not "
              "recorded: wick record as root copies it, by BPF");
    add_share(&text, endings->counts[ENDING_BROKEN], endings->all, broken);
    notes_add(notes, kind, endings->all, 0, "%.*s", TEXT_ARGS(buffer_text(&text)));
    buffer_release(&text);
}

static void note_unwound(struct notes *notes, const struct endings *unwound, uint32_t limit) {
    struct buffer cut = {0};
    uint32_t size = unwound->stack_size;
    buffer_printf(&cut, "cut at %u bytes or %u frames", size, limit ? limit : 1024);
    if (size && size < STACK_SIZE_MAX)
        buffer_printf(&cut, ": record with -g dwarf,%u",
                      size < STACK_SIZE_MAX / 2 ? 2 * size : STACK_SIZE_MAX);
    buffer_add_char(&cut, 0);
    note_endings(notes, &note_stacks, unwound, cut.items, "broken");
    buffer_release(&cut);
}

static void note_endings_of(struct reading *reading, const struct perfdata_event **events,
                            enum times times, struct notes *notes) {
    struct tree *tree = reading->profile->tree;
    struct endings unwound = {0}, recorded = {0};
    for (size_t i = 0; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        const struct series *series = &tree->series.items[cell->series];
        const struct perfdata_event *event = events[series->event];
        if (!event || series->ending >= ENDING_UNKNOWN ||
            (reading->each && !series_is_of(tree, series, times)))
            continue;
        if (event->sample_type & PERF_SAMPLE_STACK_USER)
            endings_add(&unwound, series, cell, event->stack_user);
        else if (event->sample_type & PERF_SAMPLE_CALLCHAIN)
            endings_add(&recorded, series, cell, 0);
    }
    uint64_t cut = unwound.counts[ENDING_TRUNCATED], interrupted = reading->interrupted[times];
    unwound.interrupted = interrupted < cut ? interrupted : cut;
    if (unwound.all)
        note_unwound(notes, &unwound, reading->options->quirks.unwound_limit);
    if (recorded.counts[ENDING_COMPLETE] < recorded.all)
        note_endings(notes, &note_chains, &recorded,
                     "cut at the recorder's limit, kernel.perf_event_max_stack",
                     "broken, by code without frame pointers: record with -g dwarf");
}

/* If several times are read at once, for each of them. */
void reading_note_endings(struct reading *reading) {
    struct notes *notes = &reading->profile->tree->notes;
    const struct perfdata_event **events = events_of_file(reading);
    if (!reading->each)
        note_endings_of(reading, events, reading->times, notes);
    for (enum times times = TIMES_RUNNING; times <= TIMES_BOTH && reading->each; times++) {
        struct notes own = {0};
        note_endings_of(reading, events, times, &own);
        notes_merge_for(notes, &own, times_view(times));
        notes_release(&own);
    }
    free(events);
}
