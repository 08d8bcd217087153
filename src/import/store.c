/*
 * Stores as sources: a path or URL, with its query after a question mark. A store returns a resolved tree, like a
 * saved profile, and is filtered like one.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "import/reader.h"
#include "store/store.h"

const struct import_format format_store = {"store", "a store of profiles", NULL, NULL, TELLS_ALL};

/* Detect a store by its first bytes, never by its name. A pipe is not even opened: its writer would take a reader
   that closes it for the end. */
static bool is_store_file(const char *path, size_t length) {
    char beginning[16];
    char *copy = memory_copy(path, length);
    struct stat status;
    bool is_file = stat(copy, &status) == 0 && S_ISREG(status.st_mode);
    int file = is_file ? open(copy, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    bool found = file >= 0 && pread(file, beginning, sizeof beginning, 0) == sizeof beginning &&
                 store_is_file((struct text){beginning, sizeof beginning});
    if (file >= 0)
        close(file);
    free(copy);
    return found;
}

bool store_is_source(const char *path) {
    return strcmp(path, "-") != 0 &&
           (store_is_url(text_of(path)) || is_store_file(path, store_url_query(path)));
}

/* ---- what to ask for ---- */

/* Pass on the filters that the store can apply itself; the rest is applied to its answer. */
static void push_filters(struct store_query *query, const struct import_options *options) {
    const struct filter *filter = &options->profile.filter;
    bool hosts = options->store_hosts;
    bool common = false;
    for (size_t i = 0; i < filter->label_count; i++) {
        const struct label_filter *label = &filter->labels[i];
        hosts |= strcmp(label->key, "host") == 0;
        store_query_label(query, text_of(label->key), text_of(label->pattern));
    }
    if (hosts && !query->has_by)
        store_query_by(query, TEXT("*"));
    if (options->profile.value && !value_is_common(text_of(options->profile.value), &common))
        query->type = arena_copy(&query->arena, text_of(options->profile.value)).data;
    query->all_types = !query->type && (filter->event_count || options->profile.all_events);
    query->waits = options->profile.times != TIMES_RUNNING || options->profile.each;
}

/* ---- what is made of it ---- */

static bool series_passes(const struct tree *tree, const struct filter *filter,
                          const struct series *series) {
    const struct thread *thread = tree_thread(tree, series->thread);
    if (filter->event_count &&
        !filter_event(filter, strings_get(tree->strings, tree_event(tree, series->event)->name)))
        return false;
    struct buffer comm = {0};
    if (series->comm || series->thread)
        tree_add_comm(tree, series, &comm);
    bool passes = filter_sample(filter, thread ? thread->pid : -1, thread ? thread->tid : -1,
                                buffer_text(&comm), UINT32_MAX, 0);
    buffer_release(&comm);
    return passes;
}

static void filter_cells(struct tree *tree, const struct filter *filter) {
    bool *passes = memory_zero(tree->series.count, sizeof *passes);
    size_t kept = 1;
    for (size_t i = 1; i < tree->series.count; i++)
        passes[i] = series_passes(tree, filter, &tree->series.items[i]);
    for (size_t i = 1; i < tree->cells.count; i++)
        if (passes[tree->cells.items[i].series])
            tree->cells.items[kept++] = tree->cells.items[i];
    tree->cells.count = kept;
    index_release(&tree->cell_index);
    free(passes);
}

/* Like for a saved profile: without inlined functions the outermost name has the innermost line, and lines are only
   kept if requested. */
static void simplify_frames(struct tree *tree, const struct profile_options *options) {
    for (size_t i = 1; options->no_inline && i < tree->locations.count; i++) {
        struct location *location = &tree->locations.items[i];
        if (location->frame_count < 2)
            continue;
        struct frame *first = &tree->frames.items[location->first_frame],
                     *last = first + location->frame_count - 1;
        first->file = last->file;
        first->line = last->line;
        first->column = last->column;
        location->frame_count = 1;
    }
    for (size_t i = 0; !options->source_lines && i < tree->frames.count; i++) {
        struct frame *frame = &tree->frames.items[i];
        frame->file = frame->line = frame->column = 0;
    }
}

static bool can_be_asked(const char *url, const struct import_options *options,
                         struct error *error) {
    const struct filter *filter = &options->profile.filter;
    if (options->profile.quirks.saved_is_refused)
        return error_set(error, ERROR_USAGE,
                         "%s: a store has wick's names; --compat needs the recording", url);
    if (filter->has_time || filter->cpu_count)
        return error_set(error, ERROR_USAGE,
                         "%s: a store has no single samples, which --%s needs; choose a time with "
                         "?from=-1h&to=now",
                         url, filter->has_time ? "time" : "cpu");
    return true;
}

static bool read_open_store(struct store *store, const char *url, struct text asked,
                            const struct import_options *options, struct tree *tree,
                            struct error *error) {
    struct store_query query = {0};
    bool fine = store_query_parse(&query, asked, (int64_t)time(NULL), error);
    if (fine) {
        push_filters(&query, options);
        fine = store_read(store, &query, tree, error);
    }
    store_query_release(&query);
    if (!fine)
        return false;
    simplify_frames(tree, &options->profile);
    filter_cells(tree, &options->profile.filter);
    return saved_choose_times(tree, url, options, error);
}

bool store_source_read(const char *url, const struct import_options *options, struct tree *tree,
                       struct error *error) {
    size_t end = store_url_query(url);
    struct text whole = text_of(url);
    struct text asked = end < whole.length ? text_from(whole, end + 1) : TEXT("");
    struct store_options how = {.context = options->profile.context,
                                .credentials = options->store_credentials,
                                .net = options->store_net,
                                .milliseconds = options->store_milliseconds,
                                .allow_partial = options->store_partial};
    if (!can_be_asked(url, options, error))
        return false;
    char *address = memory_copy(url, end);
    struct store *store = store_open(address, &how, error);
    bool fine = store && read_open_store(store, address, asked, options, tree, error);
    store_close(store);
    free(address);
    return fine;
}
