/*
 * A tree as any view: which one, from the options; and its writing, for which the rooms do the work.
 */
#include "cmd/result.h"

enum view { VIEW_FOLDED, VIEW_SVG, VIEW_HTML, VIEW_TABLE, VIEW_CSV, VIEW_JSON };
static const char *const view_names[] = {"folded", "svg", "html", "table", "csv", "json"};
static enum view view;
static bool chosen;
static enum report_by by = BY_FUNCTION;
static bool by_chosen;
static uint32_t limit = UINT32_MAX; /* not given: 30 */
static const char *categories_file;

/* ---- options ------------------------------------------------------------------------------ */

static bool set_view(const char *value, struct error *error) {
    chosen = true;
    return choose(value, view_names, COUNT_OF(view_names), &view, error);
}

static bool set_svg(const char *value, struct error *error) {
    return set_view("svg", error);
}
static bool set_html(const char *value, struct error *error) {
    return set_view("html", error);
}
static bool set_table(const char *value, struct error *error) {
    return set_view("table", error);
}
static bool set_csv(const char *value, struct error *error) {
    return set_view("csv", error);
}
static bool set_json(const char *value, struct error *error) {
    return set_view("json", error);
}

static bool set_by(const char *value, struct error *error) {
    by_chosen = true;
    if (report_by_find(value, &by) && (by == BY_FUNCTION || by == BY_CATEGORY))
        return true;
    return error_set(error, ERROR_USAGE, "'%s' is neither function nor category", value);
}

const struct option options_result[] = {
    {"as", 0, OPTION_CALL, set_view, "VIEW", "folded (default), svg, html, table, csv or json"},
    {"svg", 0, OPTION_CALL, set_svg, NULL, "a flame graph; flamegraph.svg by default"},
    {"html", 0, OPTION_CALL, set_html, NULL,
     "one HTML page with all views; flamegraph.html by default"},
    {"table", 0, OPTION_CALL, set_table, NULL, "a table, as wick report prints"},
    {"csv", 0, OPTION_CALL, set_csv, NULL, "the table as comma-separated values, all rows"},
    {"json", 0, OPTION_CALL, set_json, NULL, "the table as JSON, all rows"},
    {"by", 0, OPTION_CALL, set_by, "WHAT", "a row for each function (default) or category"},
    {"limit", 'n', OPTION_U32, &limit, "N", "rows of text; 30 by default, 0 is all"},
    {"categories", 0, OPTION_TEXT, &categories_file, "FILE",
     "rules for what kind of work a function is; see wick report"},
    {"max-depth", 0, OPTION_COUNT, &request.flame.max_depth, "N",
     "cut stacks after N frames; their weight is kept"},
    {0},
};

const char *result_path(void) {
    return request.output      ? request.output
           : view == VIEW_SVG  ? "flamegraph.svg"
           : view == VIEW_HTML ? "flamegraph.html"
                               : "-";
}

bool result_was_chosen(void) {
    return chosen;
}

static bool is_table(void) {
    return view == VIEW_TABLE || view == VIEW_CSV || view == VIEW_JSON;
}

bool result_check(struct error *error) {
    const char *looks = view == VIEW_SVG    ? NULL
                        : view == VIEW_HTML ? picture_only(true)
                                            : picture_any();
    if (looks)
        return error_set(error, ERROR_USAGE, "--%s is for the picture, which --svg draws", looks);
    if (request.flame.reverse && is_table())
        return error_set(error, ERROR_USAGE, "--reverse is for stacks: --svg or folded text");
    if (limit != UINT32_MAX && view != VIEW_TABLE)
        return error_set(error, ERROR_USAGE, "--limit is for --table; the others have all rows");
    if (by_chosen && !is_table())
        return error_set(error, ERROR_USAGE, "--by is for --table, --csv and --json");
    if (categories_file && !is_table() && view != VIEW_HTML)
        return error_set(error, ERROR_USAGE,
                         "--categories is for --table, --csv, --json and --html");
    return true;
}

bool result_prepare(struct error *error) {
    return view != VIEW_SVG || picture_prepare(error);
}

/* ---- writing ------------------------------------------------------------------------------ */

static bool write_table(struct out *out, const struct flame *flame, struct error *error) {
    struct report_options options = {0};
    struct categories *categories = categories_new(categories_file, &request.context, error);
    if (!categories)
        return false;
    report_options_settle(&options, limit == UINT32_MAX ? 30 : limit, view == VIEW_CSV,
                          view == VIEW_JSON, request.output);
    struct report *report = report_of_flame(flame, categories, by);
    report_write(out, report, &options);
    report_free(report);
    categories_free(categories);
    return true;
}

static bool write_text(const struct flame *flame, struct error *error) {
    struct out out;
    if (!out_open(&out, result_path(), error))
        return false;
    bool fine = true;
    if (view == VIEW_FOLDED)
        fold_write(&out, flame, &(struct fold_options){.context = &request.context});
    else
        fine = write_table(&out, flame, error);
    if (fine && interrupted) /* writing stopped there: half of it must not look whole */
        fine = error_set(error, ERROR_INTERRUPTED, "interrupted while writing");
    if (fine)
        return out_commit(&out, error);
    out_discard(&out);
    return false;
}

bool result_write(const struct tree *tree, struct notes *notes, struct error *error) {
    struct naming *naming = naming_of_tree(tree, &request.naming);
    bool fine;
    if (view == VIEW_HTML)
        fine = page_write(tree, naming, categories_file, notes, error);
    else {
        struct flame *flame = flame_of_tree(tree, naming, &request.flame, error);
        fine = flame &&
               (view == VIEW_SVG ? picture_write(flame, notes, error) : write_text(flame, error));
        flame_free(flame);
    }
    naming_free(naming);
    return fine;
}
