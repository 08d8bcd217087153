/* wick report: write a source as a table. Threads, processes and states are counted on its tree, because a flame no
   longer has them. */
#include "cmd/confine.h"
#include "run/run.h"
#include "cmd/growth.h"

struct report_command {
    struct request request;
    enum report_by by;
    struct report_options options;
    const char *categories_path;
    uint32_t limit;
    bool as_csv, as_json, as_markdown;
    bool is_sorted;
    unsigned sort_column; /* an index into sort_names */
    bool as_tree, as_summary;
    const char *callers, *callees; /* function */
    const char *lifetimes;         /* function */
    double threshold;
    uint32_t depth;
};

static const char *const sort_names[] = {"self", "total"};

static bool set_sort(void *command, const char *value, struct error *error) {
    struct report_command *c = command;
    c->is_sorted = true;
    return choose(value, sort_names, COUNT_OF(sort_names), &c->sort_column, error);
}

#define HERE(member) IN(struct report_command, member)
static const struct option options_table[] = {
    {"by", 0, OPTION_CALL, CALL(set_by), "DIMENSION,…",
     "one row per function (default), line, address, object, module, category, process, thread or "
     "value of a label such as comm, pid, cpu, event or state (why a thread waited); separate "
     "several with commas; label:KEY if the name is ambiguous",
     "function line address object module process thread comm pid tid cpu event state category"},
    {"sort", 0, OPTION_CALL, CALL(set_sort), "COLUMN",
     "sort by self (default) or total, largest first", "self total"},
    {"tree", 0, OPTION_FLAG, HERE(as_tree), NULL, "print an indented call tree instead of rows"},
    {"callers", 0, OPTION_TEXT, HERE(callers), "FUNCTION",
     "print the tree of this function's callers"},
    {"callees", 0, OPTION_TEXT, HERE(callees), "FUNCTION",
     "print the tree of this function's callees"},
    {"lifetimes", 0, OPTION_TEXT, HERE(lifetimes), "FUNCTION",
     "for heap recordings: print how long blocks lived that this function or its callees "
     "allocated"},
    OPTION_EACH_THREAD,
    {"threshold", 0, OPTION_DOUBLE, HERE(threshold), "PERCENT",
     "for trees: omit frames below this share of the total (default: 0.5)"},
    {"depth", 0, OPTION_COUNT, HERE(depth), "N", "for trees: maximum depth"},
    {"csv", 0, OPTION_FLAG, HERE(as_csv), NULL,
     "print all rows as comma-separated values; self and inclusive each as number of samples, "
     "weight with its unit (self_ns) and share"},
    {"json", 0, OPTION_FLAG, HERE(as_json), NULL, "print all rows as JSON"},
    {"markdown", 0, OPTION_FLAG, HERE(as_markdown), NULL,
     "print a Markdown table for a pull request comment"},
    {"limit", 'n', OPTION_U32, HERE(limit), "N",
     "number of rows in text output (default: 30; 0 for all)"},
    {"summary", 0, OPTION_FLAG, HERE(as_summary), NULL,
     "summarize a perf.data instead: records by type, samples by mode, thread, address and call"},
    {"categories", 0, OPTION_TEXT, HERE(categories_path), "FILE",
     "read category rules from FILE before the built-in ones; each line is `category: "
     "function|object|file PATTERN`"},
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
    "Print where the cost is: self (samples that end in a function) and total (samples that\npass "
    "through it; recursion counts once), by function, object, category, thread,\nprocess, state or "
    "any label.",
    groups,
    .examples = "wick report perf.data                          # functions\n"
                "wick report --by category wick-out/x\n"
                "wick report --by comm,function --csv perf.data\n"
                "wick report --sort total --limit 10 perf.data\n"
                "wick report --by service fleet.db              # a store: cost, and growth since "
                "yesterday",
    .common = "output by sort limit csv json event comm time focus",
};

static bool is_of_series(const struct report_command *c) {
    return c->request.by.labels.count && !c->request.by.frames;
}

/* Return true for tables by function or category that show waits: a wait is credited to the function that blocked, not to
   the scheduler. */
static bool is_of_waits(const struct report_command *c) {
    enum times times = c->request.import.profile.times;
    const struct stack_rules *rules = c->request.flame.rules;
    const char *frames = c->request.by.frames;
    return (times == TIMES_WAITING || times == TIMES_BOTH) &&
           (c->by == BY_FUNCTION || c->by == BY_CATEGORY) &&
           (!frames || strcmp(frames, "function") == 0 || strcmp(frames, "category") == 0) &&
           !(rules && rules->kernel_only) && !c->request.compat &&
           !c->request.import.profile.wakers;
}

static struct report *make_report(struct report_command *c, const struct source *source,
                                  struct notes *notes, struct error *error) {
    struct request *request = &c->request;
    if (is_of_series(c)) {
        notes_merge(notes, &source->tree->notes);
        return tree_check(source->tree, error)
                   ? report_of_dimensions(source->tree, request->by.labels.items,
                                          request->by.labels.count, request->flame.by_samples)
                   : NULL;
    }
    bool is_blocked = is_of_waits(c);
    request->flame.waits = is_blocked && request->import.profile.times == TIMES_BOTH;
    struct categories *categories = categories_new(c->categories_path, &request->context, error);
    struct flame *flame = categories ? make_flame(request, source, notes, error) : NULL;
    if (flame && is_blocked) {
        struct flame *blocked = flame_of_blocked(flame, error);
        flame_free(flame);
        flame = blocked;
    }
    if (flame && grouping_credits_sites(request, source->tree, c->by))
        flame_credit_sites(flame);
    struct report *report = flame ? grouping_report(request, flame, categories, c->by) : NULL;
    flame_free(flame);
    categories_free(categories);
    return report;
}

/* CSV and JSON also have the number of samples if weights are something else; text has it if it shows how good they
   are. */
static bool add_samples(struct report_command *c, const struct source *source,
                        struct report *report, struct error *error) {
    struct request *request = &c->request;
    struct notes unused = {0};
    bool estimated = source_is_estimated(source);
    if (source->tree->is_graph || (c->options.format == REPORT_TEXT && !estimated) ||
        request->flame.by_samples || text_equal(report->unit, TEXT("samples")))
        return true;
    request->flame.by_samples = true;
    struct report *samples = make_report(c, source, &unused, error);
    request->flame.by_samples = false;
    if (samples) {
        report_add_samples(report, samples);
        report->is_estimated = estimated;
        report->deviation = source_deviation(source);
    }
    report_free(samples);
    notes_release(&unused);
    return samples;
}

/* *made is set if there is a report for the notes to refer to. */
static bool report_rows(struct report_command *c, const struct source *source, struct notes *notes,
                        bool *made, struct error *error) {
    struct out out;
    struct report *report = make_report(c, source, notes, error);
    *made = report != NULL;
    if (report && (c->is_sorted || !report->is_diff))
        report_sort_by(report, c->sort_column == 0);
    bool fine = *made && add_samples(c, source, report, error);
    if (fine && growth_is_known(&c->request, source))
        fine = growth_add(&c->request, report, error);
    if (fine && report->total == 0 && report->total_before == 0)
        fine = error_set(error, ERROR_INPUT, "there are no samples to count");
    fine = fine && output_open(&c->request, &out, error);
    if (fine) {
        out.guarded &=
            c->options.format != REPORT_TEXT; /* text escapes names itself, and has colours */
        report_write(&out, report, &c->options);
        fine = out_commit(&out, error);
    }
    report_free(report);
    return fine;
}

/* ---- trees ---- */

static bool is_tree(const struct report_command *c) {
    return c->as_tree || c->callers || c->callees;
}

static const struct note_kind note_light = {
    "tree-threshold", "# frame{|s} {is|are} lighter than --threshold or deeper than --depth"};

static bool write_tree(struct report_command *c, const struct flame *flame,
                       struct tree_table_options *options, struct notes *notes,
                       struct error *error) {
    struct out out;
    if (!output_open(&c->request, &out, error))
        return false;
    out.guarded &= options->format != REPORT_TEXT;
    size_t left_out = tree_table_write(&out, flame, options);
    if (left_out)
        notes_add(notes, &note_light, left_out, 0, NULL);
    return out_commit(&out, error);
}

static bool fail_unknown(const char *option, const char *function, const struct flame *flame,
                         struct error *error) {
    struct guess guess = {.typed = text_of(function)};
    struct buffer meant = {0};
    for (uint32_t i = 1; i < flame->nodes.count; i++)
        if (!(flame->nodes.items[i].kinds & KIND_ROOT))
            guess_offer_function(&guess, flame_name(flame, i).data);
    guess_add(&guess, &meant);
    error_set(error, ERROR_INPUT, "--%s %s: no stack has this function%.*s", option, function,
              TEXT_ARGS(buffer_text(&meant)));
    buffer_release(&meant);
    return false;
}

/* Make the flame and, for --callers and --callees, the flame around the function. */
static bool make_around(struct report_command *c, const struct source *source, struct notes *notes,
                        struct flame **flame, struct flame **around, uint64_t *self,
                        struct error *error) {
    const char *function = c->callers ? c->callers : c->callees;
    if (!source->tree->is_graph) {
        *flame = make_flame(&c->request, source, notes, error);
        if (*flame && function)
            *around = flame_around(*flame, text_of(function), c->callers != NULL, self, error);
        return *flame && (!function || *around);
    }
    if (!graph_answers(&c->request, error))
        return false;
    struct naming *naming = make_naming(&c->request, source, notes);
    *flame = flame_of_graph(source->tree, naming, true, error);
    if (*flame)
        *around = flame_around_graph(source->tree, naming, *flame, text_of(function),
                                     c->callers != NULL, self, error);
    naming_free(naming);
    return *around;
}

static bool report_tree(struct report_command *c, const struct source *source, struct notes *notes,
                        bool *made, struct error *error) {
    const char *function = c->callers ? c->callers : c->callees;
    struct flame *flame = NULL, *around = NULL;
    uint64_t self = 0;
    bool fine = make_around(c, source, notes, &flame, &around, &self, error);
    *made = flame != NULL;
    if (!flame)
        return false;
    struct tree_table_options options = {.format = c->options.format,
                                         .threshold = c->threshold,
                                         .max_depth = c->depth,
                                         .whole = flame->nodes.items[0].total,
                                         .is_around = function != NULL,
                                         .is_callers = c->callers != NULL,
                                         .self = self,
                                         .width = c->options.width};
    if (fine && !options.whole)
        fine = error_set(error, ERROR_INPUT, "there are no samples to count");
    else if (fine && function && around->nodes.count == 1)
        fine = fail_unknown(c->callers ? "callers" : "callees", function, flame, error);
    fine = fine && write_tree(c, function ? around : flame, &options, notes, error);
    flame_free(around);
    flame_free(flame);
    return fine;
}

/* ---- lifetimes ---- */

/* Sum the stacks through the function by lifetime, which is the flame's root frame. Return false if no stack contains
   it. */
static bool sum_lifetimes(const struct flame *flame, struct text function,
                          uint64_t sums[HEAP_LIFETIMES + 1]) {
    size_t lifetime = 0;
    bool found = false;
    for (uint32_t id = flame->nodes.items[0].first_child; id;) {
        const struct flame_node *node = &flame->nodes.items[id];
        struct text name = flame_name(flame, id);
        if (node->depth == 1)
            for (lifetime = 0; lifetime < HEAP_LIFETIMES; lifetime++)
                if (text_equal(name, text_of(heap_lifetimes[lifetime])))
                    break;
        if (node->depth == 1 || !text_equal(name_unmarked(name), function)) {
            id = flame_next(flame, id);
            continue;
        }
        found = true;
        sums[lifetime] = saturating_add(sums[lifetime], node->total);
        uint32_t depth = node->depth; /* its total includes its callees */
        while ((id = flame_next(flame, id)) && flame->nodes.items[id].depth > depth)
            ;
    }
    return found;
}

static bool report_lifetimes(struct report_command *c, const struct source *source,
                             struct notes *notes, bool *made, struct error *error) {
    uint64_t sums[HEAP_LIFETIMES + 1] = {0};
    struct out out;
    struct buffer text = {0};
    *made = false;
    if (!source->profile || !source->profile->heap)
        return error_set(error, ERROR_INPUT,
                         "--lifetimes needs a recording of allocations (wick record --heap)");
    struct flame *flame = make_flame(&c->request, source, notes, error);
    if (!flame)
        return false;
    *made = true;
    bool fine = sum_lifetimes(flame, text_of(c->lifetimes), sums) ||
                fail_unknown("lifetimes", c->lifetimes, flame, error);
    fine = fine && output_open(&c->request, &out, error);
    if (fine) {
        run_add_lifetimes(&text, sums,
                          text_equal(strings_get(flame->strings, flame->unit), TEXT("bytes")));
        out_text(&out, buffer_text(&text));
        fine = out_commit(&out, error);
    }
    buffer_release(&text);
    flame_free(flame);
    return fine;
}

/* ---- summaries ---- */

static bool write_summary(struct report_command *c, const char *path, struct error *error) {
    struct file file;
    struct out out;
    if (!source_open_file(&file, path, &c->request.context, error))
        return false;
    struct perfdata_options options = {.strict = c->request.import.profile.strict,
                                       .context = &c->request.context};
    struct summary summary = {0};
    struct perfdata *data = perfdata_open(&file, &options, error);
    bool fine = data && summary_read(&summary, data, error);
    fine = !file_changed(&file, error) && fine && output_open(&c->request, &out, error);
    if (fine) {
        summary_write(&out, &summary, c->as_json, c->limit == UINT32_MAX ? 10 : c->limit);
        fine = out_commit(&out, error);
    }
    if (data)
        print_notes(&c->request, &data->notes);
    summary_release(&summary);
    perfdata_free(data);
    file_close(&file);
    return fine;
}

static int report_summary(struct report_command *c) {
    struct error error;
    int status = 0;
    if (is_tree(c) || c->request.by.frames || c->request.by.labels.count || c->is_sorted ||
        c->categories_path || c->as_csv || stacks_are_chosen(&c->request) ||
        filter_is_set(&c->request.import.profile.filter) || c->request.time.kind)
        return fail_usage(
            "report", "--summary covers the whole recording and takes only --json, --limit and -o");
    if (!choose_default(&c->request, &status))
        return status;
    if (c->request.operands.count > 1)
        return fail_usage("report", "--summary takes one FILE");
    const char *path = c->request.operands.count ? c->request.operands.items[0] : "-";
    return confine(&c->request, NULL, NULL, &error) && write_summary(c, path, &error)
               ? 0
               : fail(&error);
}

/* Return 0, or the exit status after an error was printed. */
static int check_tree(const struct report_command *c) {
    if (c->as_tree + !!c->callers + !!c->callees > 1)
        return fail_usage("report", "--tree, --callers and --callees exclude each other");
    if (c->lifetimes && (is_tree(c) || c->request.by.frames || c->request.by.labels.count ||
                         c->is_sorted || c->as_csv || c->as_json || c->as_markdown))
        return fail_usage("report", "--lifetimes cannot be combined with --by, --csv, --json and "
                                    "--sort; use --by lifetime,function");
    if (!is_tree(c) && (c->threshold >= 0 || c->depth))
        return fail_usage("report", "--threshold and --depth are for --tree, --callers and "
                                    "--callees");
    if (is_tree(c) && (c->request.by.frames || c->request.by.labels.count || c->is_sorted ||
                       c->categories_path || c->limit != UINT32_MAX))
        return fail_usage("report", "--by, --sort, --limit and --categories are for rows, not for "
                                    "trees");
    return 0;
}

static int run(void *command, int argc, char **argv) {
    struct report_command *c = command;
    struct request *request = &c->request;
    int status = 0;
    c->limit = UINT32_MAX;
    c->threshold = -1;
    if (!request_find_compat(request, argc, argv, &status) ||
        !request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (c->as_csv + c->as_json + c->as_markdown > 1)
        return fail_usage("report", "--csv, --json and --markdown exclude each other");
    if (c->as_markdown && is_tree(c))
        return fail_usage("report", "--markdown is for rows, not for trees");
    if (stacks_are_chosen(request) && is_of_series(c))
        return fail_usage("report", "--%s are for functions, objects and categories",
                          stack_rules_exact(&request->rules) ? "with and --without"
                                                             : "focus, --hide and the like");
    if (c->as_summary)
        return report_summary(c);
    if ((status = check_tree(c)))
        return status;
    if (c->lifetimes)
        vector_push(&request->by.labels, "lifetime");
    c->by = grouping_settle_table(request);
    group_threads(request);
    if (c->threshold < 0)
        c->threshold = 0.5;
    report_options_settle(&c->options, c->limit == UINT32_MAX ? 30 : c->limit, c->as_csv,
                          c->as_json, request->output);
    if (c->as_markdown)
        c->options.format = REPORT_MARKDOWN;
    struct source source;
    request->import.graphs = !c->as_tree;
    if (!confine_reader(request, NULL, &status) || !open_source(request, &source, &status))
        return status;
    struct error error;
    struct notes notes = {0};
    bool made, fine = is_tree(c)     ? report_tree(c, &source, &notes, &made, &error)
                      : c->lifetimes ? report_lifetimes(c, &source, &notes, &made, &error)
                                     : report_rows(c, &source, &notes, &made, &error);
    status = fine ? 0 : fail(&error);
    if (made)
        print_notes(request, &notes);
    notes_release(&notes);
    source_leave(&source);
    return status;
}

const struct command command_report = {"report",
                                       "print tables of cost by function, object, category, thread",
                                       sizeof(struct report_command), run, .group = GROUP_LOOK};
