/*
 * Saved profiles. The first file of a command is read straight into its tree; of several, each is read by itself and joined.
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

/* What was saved of a recording may tell of several times. What was saved of one alone is that, unless another is asked for. */
bool saved_choose_times(struct tree *tree, const char *path, const struct import_options *options,
                        struct error *error) {
    enum times times = options->profile.times;
    bool known = false;
    for (size_t i = 1; i < tree->events.count; i++)
        known |= event_is_of(&tree->events.items[i], times);
    if (!known && times != TIMES_RUNNING)
        return error_set(error, ERROR_INPUT,
                         "%s: was saved without times when threads waited; save it again from a "
                         "recording that has them",
                         path);
    if (times != TIMES_RUNNING)
        notes_drop(&tree->notes, "waits-recorded"); /* they are asked for */
    if (known && !options->profile.each)
        tree_keep_times(tree, times);
    return true;
}

static bool wick_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    if (options->profile.quirks.saved_is_refused)
        return error_set(error, ERROR_USAGE,
                         "%s: is saved with wick's own names; --compat needs the recording itself",
                         path);
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
