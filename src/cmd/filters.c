/*
 * Filters by label and time, and --set-label: what the options mean, and the note if nothing passes.
 */
#include "cmd/cmd.h"

#include <stdlib.h>

/* ---- labels ---- */

/* Split KEY=VALUE. Keys that have an option of their own are filtered while reading, by that option. */
static bool split(struct request *request, const char *value, struct label_filter *pair,
                  struct error *error) {
    struct text t = text_of(value);
    size_t equals = text_find(t, '=');
    if (equals == 0 || equals == SIZE_MAX)
        return error_set(error, ERROR_USAGE, "'%s' is not KEY=VALUE", value);
    pair->key = arena_copy(&request->arena, text_upto(t, equals)).data;
    pair->pattern = value + equals + 1;
    return true;
}

bool set_label(void *command, const char *value, struct error *error) {
    struct request *request = command;
    struct label_filter label;
    if (!split(request, value, &label, error))
        return false;
    if (strcmp(label.key, "pid") == 0)
        return set_pids(command, label.pattern, error);
    if (strcmp(label.key, "tid") == 0)
        return set_tids(command, label.pattern, error);
    if (strcmp(label.key, "cpu") == 0)
        return set_cpus(command, label.pattern, error);
    if (strcmp(label.key, "comm") == 0)
        vector_push(&request->comms, label.pattern);
    else if (strcmp(label.key, "event") == 0)
        vector_push(&request->events, label.pattern);
    else
        vector_push(&request->labels, label);
    return true;
}

bool assign_label(void *command, const char *value, struct error *error) {
    struct request *request = command;
    struct label_filter label;
    if (!split(request, value, &label, error))
        return false;
    if (label_is_fixed(text_of(label.key)) || strcmp(label.key, "cpu") == 0)
        return error_set(error, ERROR_USAGE, "'%s': %s is measured and can't be set", value,
                         label.key);
    vector_push(&request->assigned, label);
    return true;
}

void filters_assign(const struct request *request, struct tree *tree) {
    for (size_t i = 0; i < request->assigned.count; i++)
        for (size_t k = 1; k < tree->series.count; k++) {
            struct series *series = &tree->series.items[k];
            series->labels =
                tree_set_label(tree, series->labels, text_of(request->assigned.items[i].key),
                               text_of(request->assigned.items[i].pattern));
        }
}

/* ---- time ---- */

enum { SHARE_DIGITS = 3, SHARE_WHOLE = 100000 }; /* thousandths of a per cent */

/* Parse one end: "12.5", "+2" or "10%"; empty means none. */
static bool time_end(struct text t, int *kind, uint64_t *value) {
    if (!t.length)
        return true;
    int own = t.data[0] == '+'          ? TIME_FROM_START
              : text_ends(t, TEXT("%")) ? TIME_SHARES
                                        : TIME_ABSOLUTE;
    if (*kind != TIME_ALL && *kind != own)
        return false;
    *kind = own;
    if (own == TIME_SHARES)
        return parse_decimal(text_upto(t, t.length - 1), 1000, SHARE_DIGITS, value) &&
               *value <= SHARE_WHOLE;
    return parse_decimal(own == TIME_FROM_START ? text_from(t, 1) : t, 1000000000, 9, value);
}

bool set_time(void *command, const char *value, struct error *error) {
    struct time_range *time = &((struct request *)command)->time;
    struct text t = text_of(value);
    size_t divider = text_find(t, ',');
    if (divider == SIZE_MAX && text_ends(t, TEXT("%")))
        divider = text_find(t, '-');
    struct text from = divider == SIZE_MAX ? t : text_upto(t, divider);
    struct text to = divider == SIZE_MAX ? TEXT("") : text_from(t, divider + 1);
    int kind = TIME_ALL;
    *time = (struct time_range){.to = UINT64_MAX, .text = value};
    if (!time_end(from, &kind, &time->from) || !time_end(to, &kind, &time->to))
        return error_set(error, ERROR_USAGE,
                         "'%s' is not FROM,TO in seconds (12.5,14), from the start (+2,+4) or in "
                         "shares (10%%-20%%)",
                         value);
    time->kind = kind == TIME_ALL ? TIME_ABSOLUTE : kind;
    if (time->from > time->to)
        return error_set(error, ERROR_USAGE, "'%s' ends before it begins", value);
    struct filter *filter = &((struct request *)command)->import.profile.filter;
    filter->has_time = true;
    filter->time_from = time->from;
    filter->time_to = time->to;
    return true;
}

/* Open everything, without filters and names: to find where time begins, or what the filter dropped. */
static bool open_unfiltered(const struct request *request, struct source *source,
                            const char *const *paths, size_t count, struct error *error) {
    struct import_options options = request->import;
    options.profile.filter = (struct filter){0};
    options.profile.keep_samples = options.profile.no_names = options.profile.all_events = true;
    options.profile.source_lines = false;
    return source_open(source, paths, count, &options, error);
}

static bool find_range(const struct tree *tree, uint64_t *first, uint64_t *last) {
    *first = UINT64_MAX, *last = 0;
    for (size_t i = 0; i < tree->samples.count; i++) {
        const struct sample *sample = &tree->samples.items[i];
        if (!sample_has_time(sample))
            continue;
        *first = sample->time < *first ? sample->time : *first;
        *last = sample->time > *last ? sample->time : *last;
    }
    return *first <= *last;
}

/* Standard input can be read only once. */
static bool can_read_again(const char *const *paths, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(paths[i], "-") == 0)
            return false;
    return true;
}

static uint64_t at_share(uint64_t length, uint64_t share) {
    return (uint64_t)((__uint128_t)length * share / SHARE_WHOLE);
}

/* Costs reading everything twice, except for names. */
bool filters_settle_time(struct request *request, const char *const *paths, size_t count,
                         struct error *error) {
    const struct time_range *time = &request->time;
    struct filter *filter = &request->import.profile.filter;
    struct source source;
    uint64_t first, last;
    if (time->kind != TIME_FROM_START && time->kind != TIME_SHARES)
        return true;
    if (!can_read_again(paths, count))
        return error_set(error, ERROR_USAGE, "--time %s: the start of standard input is not known",
                         time->text);
    if (!open_unfiltered(request, &source, paths, count, error))
        return false;
    bool fine = find_range(source.tree, &first, &last) ||
                error_set(error, ERROR_INPUT, "--time %s: %s has no times", time->text,
                          source.files[0].path);
    source_close(&source);
    if (!fine)
        return false;
    bool shares = time->kind == TIME_SHARES;
    filter->time_from =
        saturating_add(first, shares ? at_share(last - first, time->from) : time->from);
    filter->time_to =
        time->to == UINT64_MAX
            ? UINT64_MAX
            : saturating_add(first, shares ? at_share(last - first, time->to) : time->to);
    return true;
}

/* ---- if nothing passes ---- */

static const struct note_kind note_nothing = {"filters-match-nothing",
                                              "no sample passes the filters"};

static bool is_empty(const struct tree *tree) {
    for (size_t i = 0; i < tree->cells.count; i++)
        if (tree->cells.items[i].samples)
            return false;
    return true;
}

static void add_numbers(struct buffer *text, const char *name, const int32_t *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        buffer_printf(text, "%s%s%d", i ? "," : " --", i ? "" : name, items[i]);
}

static void add_filters(struct buffer *text, const struct request *request) {
    for (size_t i = 0; i < request->comms.count; i++)
        buffer_printf(text, " --comm %s", request->comms.items[i]);
    add_numbers(text, "pid ", request->pids.items, request->pids.count);
    add_numbers(text, "tid ", request->tids.items, request->tids.count);
    for (size_t i = 0; i < request->cpus.count; i++)
        buffer_printf(text, "%s%u", i ? "," : " --cpu ", request->cpus.items[i]);
    if (request->time.kind)
        buffer_printf(text, " --time %s", request->time.text);
    for (size_t i = 0; i < request->labels.count; i++)
        buffer_printf(text, " --label %s=%s", request->labels.items[i].key,
                      request->labels.items[i].pattern);
}

enum { VALUES_SHOWN = 8 };

static int by_content(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Append the value nearest to the typed one, or else the first values by name. */
static void add_values(struct buffer *text, const struct tree *tree, const char *key,
                       const char *typed) {
    struct strings *values = strings_new();
    struct buffer value = {0};
    for (size_t i = 1; i < tree->series.count; i++) {
        value.count = 0;
        if (series_label(tree, &tree->series.items[i], text_of(key), &value) &&
            !text_starts(buffer_text(&value), TEXT(":-"))) /* a thread without name and number */
            strings_add(values, buffer_text(&value));
    }
    uint32_t count = strings_count(values);
    const char **sorted = memory_zero(count + 1, sizeof *sorted);
    struct guess guess = {.typed = text_of(typed)};
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = strings_get(values, i + 1).data;
    qsort(sorted, count, sizeof *sorted, by_content);
    for (uint32_t i = 0; i < count; i++)
        guess_offer(&guess, sorted[i]);
    if (guess.best)
        buffer_printf(text, "; did you mean %s=%s?", key, guess.best);
    else if (!count)
        buffer_printf(text, "; no sample has the label %s", key);
    for (uint32_t i = 0; !guess.best && i < count && i < VALUES_SHOWN; i++)
        buffer_printf(text, "%s%s%s%s", i ? ", " : "; ", i ? "" : key, i ? "" : ": ", sorted[i]);
    if (!guess.best && count > VALUES_SHOWN)
        buffer_printf(text, " and %u more", count - VALUES_SHOWN);
    free(sorted);
    buffer_release(&value);
    strings_free(values);
}

static void add_range(struct buffer *text, uint64_t first, uint64_t last) {
    const uint64_t second = 1000000000, lasted = last - first;
    buffer_printf(text, "; the samples are from %llu.%09llu to %llu.%09llu",
                  (unsigned long long)(first / second), (unsigned long long)(first % second),
                  (unsigned long long)(last / second), (unsigned long long)(last % second));
    buffer_printf(text, ", which is +0 to +%llu.%06llu", (unsigned long long)(lasted / second),
                  (unsigned long long)(lasted % second / 1000));
}

/* Append the existing values for each filter that may be mistyped. */
static void add_what_there_is(struct buffer *text, const struct request *request,
                              struct tree *tree) {
    uint64_t first, last;
    if (request->comms.count)
        add_values(text, tree, "comm", request->comms.items[0]);
    if (request->pids.count)
        add_values(text, tree, "pid", "");
    if (request->tids.count)
        add_values(text, tree, "tid", "");
    if (request->cpus.count && tree_label_cpus(tree))
        add_values(text, tree, "cpu", "");
    for (size_t i = 0; i < request->labels.count; i++)
        add_values(text, tree, request->labels.items[i].key, request->labels.items[i].pattern);
    if (request->time.kind && find_range(tree, &first, &last))
        add_range(text, first, last);
}

/* Costs reading everything once more, but only if there was nothing to show. */
static void note_nothing_passes(const struct request *request, const char *const *paths,
                                size_t count, struct tree *tree) {
    struct buffer text = {0};
    struct source source;
    add_filters(&text, request);
    if (can_read_again(paths, count) && open_unfiltered(request, &source, paths, count, NULL)) {
        add_what_there_is(&text, request, source.tree);
        source_close(&source);
    }
    notes_drop(&tree->notes, "filtered"); /* that was all of them */
    notes_add(&tree->notes, &note_nothing, 1, 0, "%.*s",
              TEXT_ARGS(text_from(buffer_text(&text), 1)));
    buffer_release(&text);
}

void filters_note(const struct request *request, const char *const *paths, size_t count,
                  struct tree *tree) {
    const struct filter *filter = &request->import.profile.filter;
    if ((filter_is_set(filter) || filter->label_count) && is_empty(tree))
        note_nothing_passes(request, paths, count, tree);
}
