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

static bool wick_read(struct text content, const char *path, const struct import_options *options,
                      struct tree *tree, struct error *error) {
    if (options->profile.quirks.saved_is_refused)
        return error_set(error, ERROR_USAGE,
                         "%s: is saved with wick's own names; --compat needs the recording itself",
                         path);
    if (is_empty(tree))
        return saved_read(content, path, &options->profile, tree, error);
    struct tree *own = tree_new();
    own->keep_samples = tree->keep_samples;
    tree_set_budget(own, options->budget);
    bool fine = saved_read(content, path, &options->profile, own, error);
    tree_settle(own);
    if (fine && !budget_exceeded(options->budget))
        tree_join(tree, own);
    objects_free(own->objects);
    tree_free(own);
    return fine;
}

const struct import_format format_wick = {"wick", "profiles saved by wick save", wick_score,
                                          wick_read, TELLS_ALL};
