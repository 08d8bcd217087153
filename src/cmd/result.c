/*
 * Show a tree in any view: choose the view by the options, and let the view's room write it.
 */
#include "cmd/result.h"

static const char *const view_names[] = {"folded", "svg", "html", "table", "csv", "json"};

void result_begin(struct result_request *r) {
    picture_begin(&r->p);
    r->limit = UINT32_MAX;
}

/* ---- options ------------------------------------------------------------------------------ */

static bool set_view(void *command, const char *value, struct error *error) {
    struct result_request *r = command;
    r->chosen = true;
    return choose(value, view_names, COUNT_OF(view_names), &r->view, error);
}

static bool set_svg(void *command, const char *value, struct error *error) {
    return set_view(command, "svg", error);
}
static bool set_html(void *command, const char *value, struct error *error) {
    return set_view(command, "html", error);
}
static bool set_table(void *command, const char *value, struct error *error) {
    return set_view(command, "table", error);
}
static bool set_csv(void *command, const char *value, struct error *error) {
    return set_view(command, "csv", error);
}
static bool set_json(void *command, const char *value, struct error *error) {
    return set_view(command, "json", error);
}

static bool set_rows(void *command, const char *value, struct error *error) {
    static const char *const names[] = {"function", "category"};
    struct result_request *r = command;
    unsigned choice = 0;
    bool known = choose(value, names, COUNT_OF(names), &choice, error);
    r->by_chosen = true;
    r->by = choice ? BY_CATEGORY : BY_FUNCTION;
    return known;
}

#define HERE(member) IN(struct result_request, member)
const struct option options_result[] = {
    {"as", 0, OPTION_CALL, CALL(set_view), "VIEW",
     "output as folded (default), svg, html, table, csv or json", "folded svg html table csv json"},
    {"svg", 0, OPTION_CALL, CALL(set_svg), NULL, "write a flame graph (default: flamegraph.svg)"},
    {"html", 0, OPTION_CALL, CALL(set_html), NULL,
     "write one HTML page with all views (default: flamegraph.html)"},
    {"table", 0, OPTION_CALL, CALL(set_table), NULL, "print a table, as wick report does"},
    {"csv", 0, OPTION_CALL, CALL(set_csv), NULL, "print the whole table as comma-separated values"},
    {"json", 0, OPTION_CALL, CALL(set_json), NULL, "print the whole table as JSON"},
    {"by", 0, OPTION_CALL, CALL(set_rows), "WHAT", "one row per function (default) or category",
     "function category"},
    {"limit", 'n', OPTION_U32, HERE(limit), "N",
     "number of rows in text output (default: 30; 0 for all)"},
    {"categories", 0, OPTION_TEXT, HERE(categories_file), "FILE",
     "rules that assign functions to categories; see wick report"},
    {"max-depth", 0, OPTION_COUNT, ASKED(flame.max_depth), "N",
     "cut stacks after N frames and keep their weight"},
    {0},
};

const char *result_path(const struct result_request *r) {
    return r->p.request.output    ? r->p.request.output
           : r->view == VIEW_SVG  ? "flamegraph.svg"
           : r->view == VIEW_HTML ? "flamegraph.html"
                                  : "-";
}

static bool is_table(const struct result_request *r) {
    return r->view == VIEW_TABLE || r->view == VIEW_CSV || r->view == VIEW_JSON;
}

bool result_check(const struct result_request *r, struct error *error) {
    const char *looks = r->view == VIEW_SVG    ? NULL
                        : r->view == VIEW_HTML ? picture_only(&r->p, true)
                                               : picture_any(&r->p);
    if (looks)
        return error_set(error, ERROR_USAGE, "--%s is for the picture: add --svg", looks);
    if (r->p.request.flame.reverse && is_table(r))
        return error_set(error, ERROR_USAGE, "--reverse is for stacks: --svg or folded text");
    if (r->limit != UINT32_MAX && r->view != VIEW_TABLE)
        return error_set(error, ERROR_USAGE,
                         "--limit is for --table; the other formats have all rows");
    if (r->by_chosen && !is_table(r))
        return error_set(error, ERROR_USAGE, "--by is for --table, --csv and --json");
    if (r->categories_file && !is_table(r) && r->view != VIEW_HTML)
        return error_set(error, ERROR_USAGE,
                         "--categories is for --table, --csv, --json and --html");
    return true;
}

bool result_prepare(struct result_request *r, struct error *error) {
    return r->view != VIEW_SVG || picture_prepare(&r->p, error);
}

/* ---- writing ------------------------------------------------------------------------------ */

static bool write_table(struct result_request *r, struct out *out, const struct flame *flame,
                        struct error *error) {
    struct report_options options = {0};
    struct categories *categories =
        categories_new(r->categories_file, &r->p.request.context, error);
    if (!categories)
        return false;
    report_options_settle(&options, r->limit == UINT32_MAX ? 30 : r->limit, r->view == VIEW_CSV,
                          r->view == VIEW_JSON, r->p.request.output);
    struct report *report = report_of_flame(flame, categories, r->by);
    report_write(out, report, &options);
    report_free(report);
    categories_free(categories);
    return true;
}

static bool write_text(struct result_request *r, const struct flame *flame, struct error *error) {
    struct out out;
    if (!out_open(&out, result_path(r), error))
        return false;
    bool fine = true;
    if (r->view == VIEW_FOLDED)
        fold_write(&out, flame, &(struct fold_options){.context = &r->p.request.context});
    else
        fine = write_table(r, &out, flame, error);
    if (fine && interrupted) /* writing stopped there: part of it must not look whole */
        fine = error_set(error, ERROR_INTERRUPTED, "interrupted while writing");
    if (fine)
        return out_commit(&out, error);
    out_discard(&out);
    return false;
}

bool result_write(struct result_request *r, const struct tree *tree, struct notes *notes,
                  struct error *error) {
    struct naming *naming = naming_of_tree(tree, &r->p.request.naming);
    bool fine;
    if (r->view == VIEW_HTML)
        fine = page_write(&r->p, tree, naming, r->categories_file, notes, error);
    else {
        struct flame *flame = flame_of_tree(tree, naming, &r->p.request.flame, error);
        fine = flame && (r->view == VIEW_SVG ? picture_write(&r->p, flame, notes, error)
                                             : write_text(r, flame, error));
        flame_free(flame);
    }
    naming_free(naming);
    return fine;
}
