/*
 * How many stacks are whole, said at the end of everything that unwinds.
 */
#include "profile/reading.h"

static const struct note_kind note_stacks = {"stacks", "# stacks were unwound"};

enum { STACK_SIZE_MAX = 65528 };

static bool is_unwound_event(const struct reading *reading, uint32_t id, uint32_t *stack_size) {
    const struct perfdata *data = reading->profile->data;
    for (size_t i = 0; i < reading->events.count; i++) {
        const struct perfdata_event *event = &data->events.items[i];
        if (reading->events.items[i].wanted && reading->events.items[i].id == id &&
            event->sample_type & PERF_SAMPLE_STACK_USER) {
            *stack_size = event->stack_user;
            return true;
        }
    }
    return false;
}

static void add_share(struct buffer *text, uint64_t part, uint64_t all, const char *what) {
    if (part)
        buffer_printf(text, "%s%.1f %% %s", text->count ? "; " : "",
                      100.0 * (double)part / (double)all, what);
}

void reading_note_endings(struct reading *reading) {
    const struct tree *tree = reading->profile->tree;
    uint64_t counts[ENDING_UNKNOWN + 1] = {0}, all = 0;
    uint32_t stack_size = 0;
    for (size_t i = 0; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        const struct series *series = &tree->series.items[cell->series];
        if (series->ending > ENDING_UNKNOWN ||
            !is_unwound_event(reading, series->event, &stack_size))
            continue;
        counts[series->ending] += cell->samples;
        all += cell->samples;
    }
    if (!all)
        return;
    struct buffer text = {0}, cut = {0};
    buffer_printf(&cut, "cut at %u bytes or 1024 frames", stack_size);
    if (stack_size && stack_size < STACK_SIZE_MAX)
        buffer_printf(&cut, ": record with -g dwarf,%u",
                      stack_size < STACK_SIZE_MAX / 2 ? 2 * stack_size : STACK_SIZE_MAX);
    buffer_add_char(&cut, 0);
    add_share(&text, counts[ENDING_COMPLETE], all, "complete");
    add_share(&text, counts[ENDING_TRUNCATED], all, cut.items);
    add_share(&text, counts[ENDING_BROKEN], all, "broken");
    notes_add(&reading->profile->tree->notes, &note_stacks, all, 0, "%.*s",
              TEXT_ARGS(buffer_text(&text)));
    buffer_release(&text);
    buffer_release(&cut);
}
