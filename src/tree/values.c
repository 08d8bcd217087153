/*
 * The values of a profile. The weight of each event is a value, and so is the number of samples. A source with several numbers for each stack (bytes
 * and objects, allocated and live) has an event for each, so that cells have a fixed size and only nonzero numbers are stored.
 */
#include "tree/tree.h"

#include <stdlib.h>

static struct text unit_name(struct text unit) {
    static const struct {
        struct text unit, name;
    } known[] = {{TEXT("ns"), TEXT("nanoseconds")},
                 {TEXT("us"), TEXT("microseconds")},
                 {TEXT("µs"), TEXT("microseconds")},
                 {TEXT("ms"), TEXT("milliseconds")},
                 {TEXT("s"), TEXT("seconds")},
                 {TEXT("seconds"), TEXT("seconds")},
                 {TEXT("bytes"), TEXT("bytes")},
                 {TEXT("nanoseconds"), TEXT("nanoseconds")},
                 {TEXT("microseconds"), TEXT("microseconds")},
                 {TEXT("milliseconds"), TEXT("milliseconds")}};
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (text_equal(unit, known[i].unit))
            return known[i].name;
    return (struct text){0};
}

struct text value_unit(struct text unit) {
    struct text known = unit_name(unit);
    return known.length ? known : TEXT("count");
}

struct text value_name(struct text event, struct text unit) {
    bool clock = text_starts(event, TEXT("cpu-clock")) || text_starts(event, TEXT("task-clock"));
    if (clock && text_equal(unit, TEXT("ns")))
        return TEXT("cpu");
    return text_equal(event, TEXT("off-cpu")) ? TEXT("off_cpu") : event;
}

/* Where weights are numbers of samples, they are no value of their own. */
static bool has_own_value(const struct tree *tree, uint32_t id) {
    const struct event *event = tree_event(tree, id);
    return event->kind != EVENT_BEFORE &&
           !text_equal(strings_get(tree->strings, event->unit), TEXT("samples"));
}

size_t tree_value_count(const struct tree *tree) {
    size_t count = 1;
    for (uint32_t i = 1; i < tree->events.count; i++)
        count += has_own_value(tree, i);
    return count;
}

struct value tree_value(const struct tree *tree, size_t number) {
    struct value samples = {TEXT("samples"), TEXT("count"), 0};
    for (uint32_t i = 1; number && i < tree->events.count; i++) {
        if (!has_own_value(tree, i) || --number)
            continue;
        struct text event = strings_get(tree->strings, tree_event(tree, i)->name);
        struct text unit = strings_get(tree->strings, tree_event(tree, i)->unit);
        return (struct value){value_name(event, unit), value_unit(unit), i};
    }
    return samples;
}

void tree_add_values(const struct tree *tree, struct buffer *names) {
    for (size_t i = 0; i < tree_value_count(tree); i++) {
        struct value value = tree_value(tree, i);
        buffer_printf(names, "%s%.*s/%.*s", i ? ", " : "", TEXT_ARGS(value.name),
                      TEXT_ARGS(value.unit));
    }
}

/* NAME, NAME/UNIT or the event's own name. */
static bool is_called(const struct tree *tree, const struct value *value, struct text wanted) {
    struct buffer whole = {0};
    buffer_printf(&whole, "%.*s/%.*s", TEXT_ARGS(value->name), TEXT_ARGS(value->unit));
    bool same =
        text_equal(wanted, value->name) || text_equal(wanted, buffer_text(&whole)) ||
        text_equal(wanted, strings_get(tree->strings, tree_event(tree, value->event)->name));
    buffer_release(&whole);
    return same;
}

bool value_is_common(struct text name, bool *by_samples) {
    *by_samples = text_equal(name, TEXT("samples")) || text_equal(name, TEXT("samples/count"));
    return *by_samples || text_equal(name, TEXT("period"));
}

bool tree_choose_value(struct tree *tree, const char *name, struct error *error) {
    bool *kept = memory_zero(tree->events.count, sizeof *kept), found = false;
    for (size_t i = 1; i < tree_value_count(tree); i++) {
        struct value value = tree_value(tree, i);
        kept[value.event] = is_called(tree, &value, text_of(name));
        found |= kept[value.event];
        tree->chosen = kept[value.event] ? value.event : tree->chosen;
    }
    if (found)
        tree_keep_events(tree, kept);
    else {
        struct buffer names = {0};
        tree_add_values(tree, &names);
        error_set(error, ERROR_INPUT, "--value %s: no such value, only %.*s", name,
                  TEXT_ARGS(buffer_text(&names)));
        buffer_release(&names);
    }
    free(kept);
    return found;
}
