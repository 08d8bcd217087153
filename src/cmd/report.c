/* wick report: a source to a table. Threads, processes and states are counted on its tree, for a flame no longer knows them. */
#include "cmd/cmd.h"

static enum report_by by = BY_FUNCTION;
static struct report_options report_options;
static const char *categories_path;
static uint32_t limit = 30;
static bool as_csv, as_json;
static bool is_sorted;
static unsigned sort_column; /* an index into sort_names */
static const char *const sort_names[] = {"total", "self"};

static bool set_by(const char *value, struct error *error) {
    if (report_by_find(value, &by))
        return true;
    return error_set(error, ERROR_USAGE,
                     "'%s' is none of function, object, category, thread, process, state", value);
}

static bool set_sort(const char *value, struct error *error) {
    is_sorted = true;
    return choose(value, sort_names, COUNT_OF(sort_names), &sort_column, error);
}

static const struct option options_table[] = {
    {"by", 0, OPTION_CALL, set_by, "WHAT",
     "a row for each function (default), object, category, thread, process or state (why a "
     "thread waited)"},
    {"sort", 0, OPTION_CALL, set_sort, "COLUMN",
     "largest first by total (default; of categories self) or self"},
    {"csv", 0, OPTION_FLAG, &as_csv, NULL, "comma-separated values, all rows"},
    {"json", 0, OPTION_FLAG, &as_json, NULL, "JSON, all rows"},
    {"limit", 'n', OPTION_U32, &limit, "N", "rows of text; 30 by default, 0 is all"},
    {"categories", 0, OPTION_TEXT, &categories_path, "FILE",
     "rules `category: function|object|file PATTERN`, one a line, before the built-in ones"},
    {0},
};

static const struct option_group groups[] = {
    {"Table", options_table},
    {"Which stacks", options_stacks},
    OPTION_GROUPS_OF_PROFILES,
    {0},
};

static const struct syntax syntax = {
    "report",
    "FILE…",
    "A table of where the cost is: self (ends there) and total (occurs there, recursion\n"
    "counted once), by function, object, category, thread, process or state.",
    groups,
};

static struct report *make_report(const struct source *source, struct notes *notes,
                                  struct error *error) {
    if (by == BY_THREAD || by == BY_PROCESS || by == BY_STATE) {
        notes_merge(notes, &source->tree->notes);
        return tree_check(source->tree, error)
                   ? report_of_threads(source->tree, by, request.flame.by_samples)
                   : NULL;
    }
    struct categories *categories = categories_new(categories_path, &request.context, error);
    struct flame *flame = categories ? make_flame(source, notes, error) : NULL;
    struct report *report = flame ? report_of_flame(flame, categories, by) : NULL;
    flame_free(flame);
    categories_free(categories);
    return report;
}

static int write_report(const struct report *report) {
    struct error error;
    struct out out;
    if (report->total == 0 && report->total_before == 0) {
        error_set(&error, ERROR_INPUT, "there is nothing to count");
        return fail(&error);
    }
    if (!output_open(&out, &error))
        return fail(&error);
    out.guarded &=
        report_options.format != REPORT_TEXT; /* which escapes by itself, and has colours */
    report_write(&out, report, &report_options);
    return out_commit(&out, &error) ? 0 : fail(&error);
}

int command_report(int argc, char **argv) {
    int status = 0;
    if (!request_find_compat(argc, argv, &status) || !request_parse(&syntax, argc, argv, &status))
        return status;
    if (as_csv && as_json)
        return fail_usage("report", "--csv or --json, not both");
    if (stacks_are_chosen() && (by == BY_THREAD || by == BY_PROCESS || by == BY_STATE))
        return fail_usage("report",
                          "--with and --without are for functions, objects and categories");
    report_options_settle(&report_options, limit, as_csv, as_json, request.output);
    struct source source;
    if (!open_source(&source, "report", &status))
        return status;
    struct error error;
    struct notes notes = {0};
    struct report *report = make_report(&source, &notes, &error);
    if (report && is_sorted)
        report_sort_by(report, sort_column == 1);
    status = report ? write_report(report) : fail(&error);
    if (report)
        print_notes(&notes);
    report_free(report);
    notes_release(&notes);
    source_close(&source);
    return status;
}
