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
        return error_set(
            error, ERROR_INPUT,
            "%s: saved without waits; save it again from a recording with scheduling events", path);
    if (natural && times == tree->meant && times != TIMES_RUNNING)
        notes_add(&tree->notes, note_of_natural(times), 1, 0, NULL);
    tree->shown = times;
    if (known && !options->profile.each)
        tree_keep_times(tree, times);
    return true;
}

static bool wick_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    if (options->profile.quirks.saved_is_refused)
        return error_set(error, ERROR_USAGE,
                         "%s: saved with wick's names; --compat needs the recording", path);
    if (is_empty(tree))
        return saved_read(content, path, &options->profile, tree, error) &&
               saved_choose_times(tree, path, options, error);
    struct tree *own = tree_new();
    own->keep_samples = tree->keep_samples;
    tree_set_budget(own, options->budget);
    bool fine = saved_read(content, path, &options->profile, own, error) &&
                saved_choose_times(own, path, options, error);
    tree_settle(own);
    if (fine && !budget_exceeded(options->budget))
        tree_join(tree, own);
    objects_free(own->objects);
    tree_free(own);
    return fine;
}

const struct import_format format_wick = {"wick", "profiles saved by wick save", wick_score,
                                          wick_read, TELLS_ALL};
