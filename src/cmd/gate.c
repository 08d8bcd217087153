/*
 * The gate of wick diff: compare the runs of both sides.
 */
#include "cmd/gate.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gate/gate.h"

/* ---- sides ---- */

static bool is_below(const char *directory, const char *name, bool folder) {
    struct buffer path = {0};
    struct stat status;
    buffer_printf(&path, "%s/%s%c", directory, name, 0);
    bool fine = stat(path.items, &status) == 0 &&
                (folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));
    buffer_release(&path);
    return fine;
}

/* Return true for a run of wick profile, or a directory of perf record --threads. */
static bool is_profile(const char *directory) {
    return is_below(directory, "profile.data", false) || is_below(directory, "data", false);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Skip links, because a link to the latest run would count that run twice, and rejected runs, which had too few
   samples. */
static bool is_run(const char *path, const struct dirent *entry) {
    struct text name = text_of(entry->d_name), rejected = TEXT(".rejected");
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && is_profile(path) &&
           !(name.length > rejected.length &&
             text_equal(text_from(name, name.length - rejected.length), rejected));
}

bool side_expand(struct request *request, const char *path, text_list *runs, struct error *error) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode) || is_profile(path)) {
        vector_push(runs, path);
        return true;
    }
    DIR *directory = opendir(path);
    if (!directory)
        return error_errno(error, path);
    text_list files = {0};
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct buffer name = {0};
        if (entry->d_name[0] == '.')
            continue;
        buffer_printf(&name, "%s/%s", path, entry->d_name);
        const char *kept = arena_copy(&request->arena, buffer_text(&name)).data;
        buffer_release(&name);
        if (is_run(kept, entry))
            vector_push(runs, kept);
        else if (is_below(path, entry->d_name, false))
            vector_push(&files, kept);
    }
    closedir(directory);
    if (!runs->count) {
        vector_release(runs);
        *runs = files;
    } else {
        vector_release(&files);
    }
    if (!runs->count)
        return error_set(error, ERROR_INPUT, "%s: a directory without runs and profiles", path);
    qsort(runs->items, runs->count, sizeof *runs->items, compare_names);
    return true;
}

/* ---- runs ---- */

static uint64_t samples_of(const struct tree *tree) {
    uint64_t samples = 0;
    for (size_t i = 1; i < tree->cells.count; i++)
        samples = saturating_add(samples, tree->cells.items[i].samples);
    return samples;
}

static bool add_run(struct gate *gate, struct request *request, const struct gate_request *wanted,
                    const char *path, bool after, struct notes *notes, struct error *error) {
    struct source source;
    if (!request_open(request, &source, &path, 1, error))
        return false;
    uint64_t samples = samples_of(source.tree);
    struct flame *flame = make_flame(request, &source, notes, error);
    source_close(&source);
    if (!flame)
        return false;
    struct report *report = grouping_report(request, flame, wanted->categories, wanted->by);
    bool fine = report->total > 0 ||
                error_set(error, ERROR_INPUT, "%s: there are no stacks to compare", path);
    if (fine)
        gate_add_run(gate, after, report, samples);
    report_free(report);
    flame_free(flame);
    return fine;
}

static bool rules_parse(const struct gate_request *wanted, struct gate_rule *rules,
                        struct error *error) {
    for (size_t i = 0; i < wanted->fail_if.count; i++) {
        if (!gate_rule_parse(wanted->fail_if.items[i], &rules[i], error))
            return false;
        if (wanted->shares && !rules[i].pattern.length)
            return error_set(error, ERROR_USAGE,
                             "--fail-if '%s': with --normalize the total is always the same",
                             wanted->fail_if.items[i]);
    }
    return true;
}

bool gate_run(struct request *request, const struct gate_request *wanted, struct notes *notes,
              bool *exceeded, struct error *error) {
    struct gate *gate = gate_new();
    struct gate_rule *rules = memory_zero(wanted->fail_if.count, sizeof *rules);
    struct out out;
    bool fine = rules_parse(wanted, rules, error);
    for (size_t side = 0; fine && side < 2; side++) {
        text_list runs = {0};
        fine = side_expand(request, request->operands.items[side], &runs, error);
        for (size_t i = 0; fine && i < runs.count; i++)
            fine = add_run(gate, request, wanted, runs.items[i], side == 1, notes, error);
        vector_release(&runs);
    }
    struct gate_options options = {.rules = rules,
                                   .rule_count = wanted->fail_if.count,
                                   .threshold = wanted->threshold,
                                   .shares = wanted->shares,
                                   .exact = wanted->exact};
    fine = fine && gate_decide(gate, &options, error) && output_open(request, &out, error);
    if (fine) {
        out.guarded &= wanted->format != REPORT_TEXT;
        gate_write(&out, gate, wanted->format, wanted->limit);
        fine = out_commit(&out, error);
    }
    *exceeded = fine && gate_exceeded(gate);
    gate_free(gate);
    free(rules);
    return fine;
}
