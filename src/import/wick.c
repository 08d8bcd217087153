/*
 * Saved profiles. A single file is read directly into the command's tree; of several, each is read separately and
 * joined.
 */
#include "import/reader.h"
#include "saved/saved.h"

static int wick_score(struct text beginning) {
    return saved_is(beginning) ? 100 : 0;
}

static bool is_empty(const struct tree *tree) {
    return tree->events.count == 1 && !tree->objects && tree->nodes.count == 1 &&
           strings_count(tree->strings) == 0;
}

/* A saved recording may have several kinds of time. One that was saved with a single kind shows that, unless another
   is requested. */
bool saved_choose_times(struct tree *tree, const char *path, const struct import_options *options,
                        struct error *error) {
    bool natural = options->profile.natural && options->profile.times == TIMES_RUNNING &&
                   !options->profile.filter.event_count;
    enum times times = natural ? tree->meant : options->profile.times;
    bool known = false;
    for (size_t i = 1; i < tree->events.count; i++)
        known |= event_is_of(&tree->events.items[i], times);
    if (!known && times == TIMES_RUNNING && tree_knows(tree, TIMES_WAITING)) {
        times = TIMES_WAITING; /* there is nothing else to see */
        known = true;
        notes_add(&tree->notes, &note_only_waits, 1, 0, NULL);
    }
    if (!known && times != TIMES_RUNNING)
        return error_set(error, ERROR_INPUT,
                         "%s: saved without waits; save the recording again with --off-cpu or "
                         "--wall, if it has scheduling events",
                         path);
    if (natural && times == tree->meant && times != TIMES_RUNNING)
        notes_add(&tree->notes, note_of_natural(times), 1, 0, NULL);
    tree->shown = times;
    if (known && !options->profile.each)
        tree_keep_times(tree, times);
    return true;
}

static bool is_called(const struct tree *tree, const struct event *event, const char *name) {
    return text_equal(strings_get(tree->strings, event->name), text_of(name));
}

/* Of a profile with events aside, keep those that are asked for by name, or else those that are not aside. */
static void choose_values(struct tree *tree, const struct profile_options *options) {
    const struct filter *filter = &options->filter;
    bool any = false, by_value = false;
    for (size_t i = 1; i < tree->events.count; i++) {
        any |= tree->events.items[i].time == TIME_ASIDE;
        by_value |= options->value && is_called(tree, &tree->events.items[i], options->value);
    }
    for (size_t i = 1; any && i < tree->events.count; i++) {
        struct event *event = &tree->events.items[i];
        struct text name = strings_get(tree->strings, event->name);
        bool wanted = by_value              ? is_called(tree, event, options->value)
                      : options->all_events ? true
                      : filter->event_count ? filter_event(filter, name)
                                            : event->time != TIME_ASIDE;
        event->time = wanted ? TIME_MEASURED : TIME_ASIDE;
    }
    if (any && (by_value || filter->event_count))
        notes_drop(&tree->notes, "heap-values"); /* it tells of the values that are not shown */
    if (any)
        tree_drop_aside(tree);
}

/* Refuse names of events that the profile does not have: otherwise the output would be empty, without a reason. */
static bool knows_events(const struct tree *tree, const char *path, const struct filter *filter,
                         struct error *error) {
    struct buffer names = {0};
    size_t unknown = filter->event_count;
    for (size_t k = 1; k < tree->events.count; k++)
        buffer_printf(&names, "%s%.*s", k > 1 ? ", " : "",
                      TEXT_ARGS(strings_get(tree->strings, tree->events.items[k].name)));
    for (size_t i = 0; i < filter->event_count && unknown == filter->event_count; i++) {
        struct filter one = {.events = &filter->events[i], .event_count = 1};
        bool known = false;
        for (size_t k = 1; k < tree->events.count && !known; k++)
            known = filter_event(&one, strings_get(tree->strings, tree->events.items[k].name));
        unknown = known ? unknown : i;
    }
    if (unknown < filter->event_count)
        error_set(error, ERROR_USAGE,
                  "--event %s: %s was saved without this event, only with %.*s; save it again with "
                  "--event all",
                  filter->events[unknown], path, TEXT_ARGS(buffer_text(&names)));
    buffer_release(&names);
    return unknown == filter->event_count;
}

/* What is shown of a profile that has several times or values. */
static bool wick_choose(struct tree *tree, const char *path, const struct import_options *options,
                        struct error *error) {
    if (!knows_events(tree, path, &options->profile.filter, error))
        return false;
    if (!options->keep_all)
        choose_values(tree, &options->profile);
    return saved_choose_times(tree, path, options, error);
}

static bool wick_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    if (options->profile.quirks.saved_is_refused)
        return error_set(error, ERROR_USAGE,
                         "%s: saved with wick's names; --compat needs the recording", path);
    if (is_empty(tree))
        return saved_read(content, path, &options->profile, tree, error) &&
               wick_choose(tree, path, options, error);
    struct tree *own = tree_new();
    own->keep_samples = tree->keep_samples;
    tree_set_budget(own, options->budget);
    bool fine = saved_read(content, path, &options->profile, own, error) &&
                wick_choose(own, path, options, error);
    tree_settle(own);
    if (fine && !budget_exceeded(options->budget))
        tree_join(tree, own);
    objects_free(own->objects);
    tree_free(own);
    return fine;
}

const struct import_format format_wick = {"wick", "profiles saved by wick save", wick_score,
                                          wick_read, TELLS_ALL};
