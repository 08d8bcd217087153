/*
 * Labels of series: well-known keys are fields, all others are in an interned set of (key, value) pairs.
 *
 * There are few sets (a handful of services, versions or thread names), so they are found through an index and compared pair by pair. Samples
 * never touch them, because the series has the set's number.
 */
#include "tree/tree.h"

#include <stdlib.h>

static const struct note_kind note_filtered = {"filtered", "# sample{|s} did not pass the filters"};

/* ---- sets of pairs ---- */

struct keyed_pair {
    struct text key;
    size_t order; /* of equal keys the last counts */
    struct label_pair pair;
};

static int keyed_order(const void *a, const void *b) {
    const struct keyed_pair *x = a, *y = b;
    int order = text_compare(x->key, y->key);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

static uint64_t pairs_hash(const struct label_pair *pairs, size_t count) {
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++)
        hash = hash_mix(hash + i, (uint64_t)pairs[i].key << 32 | pairs[i].value);
    return hash;
}

static bool set_is(const struct tree *tree, uint32_t id, const struct label_pair *pairs,
                   size_t count) {
    const struct label_set *set = &tree->label_sets.items[id];
    return set->count == count &&
           memcmp(&tree->label_pairs.items[set->first], pairs, count * sizeof *pairs) == 0;
}

/* `pairs` is sorted, without doubles. */
static uint32_t set_add(struct tree *tree, const struct label_pair *pairs, size_t count) {
    uint64_t hash = pairs_hash(pairs, count);
    uint32_t id;
    if (count == 0)
        return 0;
    for (struct probe p = index_probe(&tree->label_index, hash);
         (id = index_next(&tree->label_index, &p));)
        if (set_is(tree, id, pairs, count))
            return id;
    if (tree->label_sets.count == 0)
        vector_push(&tree->label_sets, ((struct label_set){0}));
    id = (uint32_t)tree->label_sets.count;
    struct label_set set = {(uint32_t)tree->label_pairs.count, (uint32_t)count};
    for (size_t i = 0; i < count; i++)
        vector_push(&tree->label_pairs, pairs[i]);
    vector_push(&tree->label_sets, set);
    index_add(&tree->label_index, hash, id);
    return id;
}

uint32_t tree_add_labels(struct tree *tree, const struct label_pair *pairs, size_t count) {
    assert(!tree->whole);
    VECTOR(struct keyed_pair) keyed = {0};
    VECTOR(struct label_pair) set = {0};
    for (size_t i = 0; i < count; i++)
        vector_push(&keyed,
                    ((struct keyed_pair){strings_get(tree->strings, pairs[i].key), i, pairs[i]}));
    if (count)
        qsort(keyed.items, count, sizeof *keyed.items, keyed_order);
    for (size_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count || keyed.items[i + 1].pair.key != keyed.items[i].pair.key;
        if (is_last && keyed.items[i].pair.value)
            vector_push(&set, keyed.items[i].pair);
    }
    uint32_t id = set_add(tree, set.items, set.count);
    vector_release(&keyed);
    vector_release(&set);
    return id;
}

const struct label_pair *tree_labels(const struct tree *tree, uint32_t labels, size_t *count) {
    const struct tree *holder = tree->whole ? tree->whole : tree;
    if (!labels) {
        *count = 0;
        return NULL;
    }
    const struct label_set *set = &holder->label_sets.items[labels];
    *count = set->count;
    return &holder->label_pairs.items[set->first];
}

uint32_t tree_set_label(struct tree *tree, uint32_t labels, struct text key, struct text value) {
    VECTOR(struct label_pair) pairs = {0};
    size_t count;
    const struct label_pair *old = tree_labels(tree, labels, &count);
    for (size_t i = 0; i < count; i++)
        vector_push(&pairs, old[i]);
    struct label_pair pair = {strings_add(tree->strings, key),
                              value.length ? strings_add(tree->strings, value) : 0};
    vector_push(&pairs, pair);
    uint32_t id = tree_add_labels(tree, pairs.items, pairs.count);
    vector_release(&pairs);
    return id;
}

/* ---- what a series says of a key ---- */

static const char *const state_names[] = {[STATE_ON] = "on-cpu",
                                          [STATE_SLEEP] = "sleep",
                                          [STATE_DISK] = "disk",
                                          [STATE_PREEMPTED] = "preempted"};
static const char *const ending_names[] = {
    [ENDING_COMPLETE] = "complete", [ENDING_TRUNCATED] = "truncated", [ENDING_BROKEN] = "broken"};

struct text state_name(uint8_t state) {
    return state < COUNT_OF(state_names) ? text_of(state_names[state]) : TEXT("unknown");
}

static bool answer_name(struct buffer *value, const char *const *names, size_t count,
                        unsigned number) {
    if (number >= count)
        return false;
    buffer_add(value, text_of(names[number]));
    return true;
}

static bool answer_string(const struct tree *tree, struct buffer *value, uint32_t string) {
    if (string)
        buffer_add(value, strings_get(tree->strings, string));
    return string != 0;
}

/* -1: the source does not know it. */
static bool answer_id(struct buffer *value, const struct thread *thread, int32_t id) {
    if (!thread || id < 0)
        return false;
    buffer_printf(value, "%d", id);
    return true;
}

static bool answer_extra(const struct tree *tree, const struct series *series, struct text key,
                         struct buffer *value) {
    size_t count;
    const struct label_pair *pairs = tree_labels(tree, series->labels, &count);
    for (size_t i = 0; i < count; i++)
        if (text_equal(strings_get(tree->strings, pairs[i].key), key))
            return answer_string(tree, value, pairs[i].value);
    return false;
}

bool series_label(const struct tree *tree, const struct series *series, struct text key,
                  struct buffer *value) {
    const struct thread *thread = tree_thread(tree, series->thread);
    if (text_equal(key, TEXT("event")))
        return answer_string(tree, value, tree_event(tree, series->event)->name);
    if (text_equal(key, TEXT("pid")))
        return answer_id(value, thread, thread ? thread->pid : -1);
    if (text_equal(key, TEXT("tid")))
        return answer_id(value, thread, thread ? thread->tid : -1);
    if (text_equal(key, TEXT("comm"))) {
        if (series->comm || (thread && thread->tid >= 0))
            tree_add_comm(tree, series, value);
        return series->comm || (thread && thread->tid >= 0);
    }
    if (text_equal(key, TEXT("state")))
        return answer_name(value, state_names, COUNT_OF(state_names), series->state);
    if (text_equal(key, TEXT("ending")))
        return answer_name(value, ending_names, COUNT_OF(ending_names), series->ending);
    return answer_extra(tree, series, key, value);
}

bool label_is_fixed(struct text key) {
    static const struct text keys[] = {TEXT("event"), TEXT("pid"),   TEXT("tid"),
                                       TEXT("comm"),  TEXT("state"), TEXT("ending")};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (text_equal(keys[i], key))
            return true;
    return false;
}

/* ---- filters ---- */

/* Patterns of one key are alternatives. A key that the series lacks reads as the empty text, so that `KEY=` finds those. */
static bool key_passes(const struct tree *tree, const struct series *series,
                       const struct filter *filter, struct text key) {
    struct buffer value = {0};
    bool passes = false;
    series_label(tree, series, key, &value);
    for (size_t i = 0; i < filter->label_count && !passes; i++)
        passes = text_equal(text_of(filter->labels[i].key), key) &&
                 text_matches(buffer_text(&value), text_of(filter->labels[i].pattern));
    buffer_release(&value);
    return passes;
}

bool filter_series(const struct filter *filter, const struct tree *tree,
                   const struct series *series) {
    for (size_t i = 0; i < filter->label_count; i++)
        if (!key_passes(tree, series, filter, text_of(filter->labels[i].key)))
            return false;
    return true;
}

/* Keeps what `passes` says of series. One look at each cell and kept sample. */
static void keep_series(struct tree *tree, const bool *passes) {
    size_t cells = 1, samples = 0;
    for (size_t i = 1; i < tree->cells.count; i++)
        if (passes[tree->cells.items[i].series])
            tree->cells.items[cells++] = tree->cells.items[i];
    for (size_t i = 0; i < tree->samples.count; i++)
        if (passes[tree->samples.items[i].series])
            tree->samples.items[samples++] = tree->samples.items[i];
    tree->cells.count = cells;
    tree->samples.count = samples;
    index_release(&tree->cell_index);
}

/* Note how many samples do not pass; if the tree has several kinds of time, for each view of them. */
static void note_dropped(struct tree *tree, const bool *passes) {
    uint64_t dropped[VIEWS_OF_TIMES + 1] = {0};
    bool several = tree_knows(tree, TIMES_BOTH);
    for (size_t i = 1; i < tree->cells.count; i++) {
        const struct cell *cell = &tree->cells.items[i];
        if (!passes[cell->series])
            dropped[several ? series_views(tree, &tree->series.items[cell->series]) : 0] +=
                cell->samples;
    }
    for (uint8_t views = 0; views <= VIEWS_OF_TIMES; views++)
        if (dropped[views])
            notes_add_for(&tree->notes, views, &note_filtered, dropped[views]);
}

void tree_filter_labels(struct tree *tree, const struct filter *filter) {
    if (filter->label_count == 0)
        return;
    bool *passes = memory_zero(tree->series.count, sizeof *passes);
    for (size_t i = 1; i < tree->series.count; i++)
        passes[i] = filter_series(filter, tree, &tree->series.items[i]);
    note_dropped(tree, passes);
    keep_series(tree, passes);
    free(passes);
}

void tree_keep_events(struct tree *tree, const bool *events) {
    bool *passes = memory_zero(tree->series.count, sizeof *passes);
    for (size_t i = 1; i < tree->series.count; i++)
        passes[i] = events[tree->series.items[i].event];
    keep_series(tree, passes);
    free(passes);
}
