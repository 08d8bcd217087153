/*
 * wick diff: merge the flames of two sources into one and show it in any view; or, like inferno, merge two folded
 * texts.
 */
#include "cmd/confine.h"
#include "cmd/gate.h"
#include "cmd/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct diff_command {
    struct picture_request p;
    struct diff_options diff;
    struct report_options table;
    enum report_by by;
    const char *categories_path;
    uint32_t limit;
    bool as_text, as_table, as_csv, as_json, as_markdown, as_page;
    bool credits_sites; /* the table shows memory */
    struct gate_request gate;
};

#define HERE(member) IN(struct diff_command, member)

/* "0.5" or "0.5%". */
static bool set_threshold(void *command, const char *value, struct error *error) {
    struct diff_command *c = command;
    char *end;
    c->gate.threshold = strtod(value, &end);
    if (end == value || strcmp(end + (*end == '%'), "") != 0 || !(c->gate.threshold >= 0) ||
        c->gate.threshold > 100)
        return error_set(error, ERROR_USAGE, "'%s': is not a share in per cent", value);
    return true;
}

static const struct option options_diff[] = {
    {"normalize", 'n', OPTION_FLAG, HERE(diff.normalize), NULL,
     "scale BEFORE so that both sides have the same total"},
    {"strip-hex", 's', OPTION_FLAG, HERE(diff.strip_hex), NULL,
     "replace hexadecimal numbers in names by 0x..."},
    {"folded", 0, OPTION_FLAG, HERE(as_text), NULL,
     "write text, `stack BEFORE AFTER`, instead of a picture"},
    {"html", 0, OPTION_FLAG, HERE(as_page), NULL,
     "write one HTML page with all views of both sides (default: flamegraph.html); honours "
     "--title, --subtitle and --categories"},
    {"table", 0, OPTION_FLAG, HERE(as_table), NULL,
     "write only the table of changes, not a picture"},
    {"csv", 0, OPTION_FLAG, HERE(as_csv), NULL, "print the whole table as comma-separated values"},
    {"json", 0, OPTION_FLAG, HERE(as_json), NULL, "print the whole table as JSON"},
    {"markdown", 0, OPTION_FLAG, HERE(as_markdown), NULL,
     "print the table as Markdown for a pull request comment"},
    {"by", 0, OPTION_CALL, CALL(set_by), "WHAT",
     "one row per function (default), line, address, object, module or category; labels such as "
     "comm or pid divide the rows and become root frames",
     "function line address object module process thread comm pid tid cpu event state category"},
    {"limit", 0, OPTION_U32, HERE(limit), "N",
     "number of rows in the table (default: 30; 0 for all)"},
    {"categories", 0, OPTION_TEXT, HERE(categories_path), "FILE",
     "rules that assign functions to categories; see wick report"},
    OPTION_EACH_THREAD,
    {"force", 0, OPTION_FLAG, ASKED(force), NULL, "allow more than 4 GB of folded text"},
    {0},
};

static const struct option options_gate[] = {
    {"fail-if", 0, OPTION_LIST, HERE(gate.fail_if), "RULE",
     "exit with status 6 if a change exceeds RULE, such as 'total > +5%' or 'NAME self > +10%', by "
     "more than noise, and print it; NAME may contain * and ?; may be repeated"},
    {"threshold", 0, OPTION_CALL, CALL(set_threshold), "PERCENT",
     "for --fail-if: ignore functions below this share of the total on both sides (default: 0.5)"},
    {"exact", 0, OPTION_FLAG, HERE(gate.exact), NULL,
     "for --fail-if: counts are exact, without noise, such as those of wick trace"},
    {0},
};

static const struct option_group groups[] = {
    {"What to show", options_diff},
    {"Gate", options_gate},
    OPTION_GROUPS_OF_PICTURES,
    {"Root", options_root},
    {"Which stacks", options_stacks},
    OPTION_GROUPS_OF_PROFILES,
    {0},
};

static const struct syntax syntax = {
    "diff",
    "BEFORE AFTER",
    "Compare two profiles of any kind that wick reads, pictures included. Draws a flame graph "
    "in\nwhich red grew and blue shrank (flamegraph.svg unless -o is given), and prints a table "
    "of\nfunctions by change of self cost. A side may be a directory of runs or profiles, which "
    "are\nadded up; with --fail-if they are compared run by run. With --compat=inferno --folded, "
    "writes\nwhat inferno-diff-folded writes for two folded texts, in order.",
    groups,
    .examples = "wick diff before.data after.data               # flamegraph.svg and a table\n"
                "wick diff wick-out/a wick-out/b --html\n"
                "wick diff --table --by object before.data after.data\n"
                "wick diff --fail-if 'total > +5%' --fail-if 'parse_* self > +10%' before/ after/",
    .common = "output html table markdown fail-if folded normalize by limit event comm title",
};

/* Colours show the change, so only the title says that this is time spent waiting. */
static const char *const titles[] = {
    [TIMES_RUNNING] = "Differential Flame Graph",
    [TIMES_WAITING] = "Differential Off-CPU Time",
    [TIMES_BOTH] = "Differential Wall Time",
};

static bool write_inferno(struct diff_command *c, struct notes *notes, struct error *error) {
    struct file before = {0}, after = {0};
    struct out out;
    bool fine = file_open(&before, c->p.request.operands.items[0], &c->p.request.context, error) &&
                file_open(&after, c->p.request.operands.items[1], &c->p.request.context, error) &&
                output_open(&c->p.request, &out, error);
    if (fine) {
        diff_folded_inferno(&out, file_text(&before), file_text(&after), &c->diff, notes);
        fine = out_commit(&out, error);
    }
    if (after.path)
        file_close(&after);
    if (before.path)
        file_close(&before);
    return fine;
}

static struct flame *flame_of(struct diff_command *c, size_t operand, struct notes *notes,
                              struct error *error) {
    struct source source;
    text_list runs = {0};
    bool fine = side_expand(&c->p.request, c->p.request.operands.items[operand], &runs, error) &&
                request_open(&c->p.request, &source, runs.items, runs.count, error);
    vector_release(&runs);
    if (!fine)
        return NULL;
    struct flame *flame = make_flame(&c->p.request, &source, notes, error);
    c->credits_sites |= grouping_credits_sites(&c->p.request, source.tree, c->by);
    source_close(&source);
    return flame;
}

static bool write_table(struct diff_command *c, struct flame *flame, const char *path,
                        struct error *error) {
    struct out out;
    struct categories *categories =
        categories_new(c->categories_path, &c->p.request.context, error);
    bool fine = categories && out_open(&out, path, error);
    if (fine) {
        out.guarded = c->table.format != REPORT_TEXT && !out.file.path && isatty(STDOUT_FILENO);
        if (c->credits_sites)
            flame_credit_sites(flame);
        struct report *report = grouping_report(&c->p.request, flame, categories, c->by);
        report_write(&out, report, &c->table);
        report_free(report);
        fine = out_commit(&out, error);
    }
    categories_free(categories);
    return fine;
}

static bool write_page(struct diff_command *c, const struct flame *flame, struct notes *notes,
                       struct error *error) {
    struct tree *tree = tree_of_diff(flame);
    struct naming *naming = naming_of_tree(
        tree, &(struct naming_options){.is_script_text = true, .keep_unknown = true});
    notes_sort(notes);
    c->p.request.flame.rules = NULL; /* the rules were already applied to both sides */
    bool fine = page_write(&c->p, tree, naming, c->categories_path, notes, error);
    naming_free(naming);
    objects_free(tree->objects);
    tree_free(tree);
    return fine;
}

/* Write the picture to a file, and the table to the terminal. */
static bool write_diff(struct diff_command *c, struct flame *flame, struct notes *notes,
                       struct error *error) {
    struct request *request = &c->p.request;
    bool nothing = flame->nodes.items[0].total == 0 && flame->nodes.items[0].total_before == 0;
    if (c->as_text)
        return fold_fits(request, flame, error) && folded_write(request, flame, error);
    if (nothing)
        return error_set(error, ERROR_INPUT, "there are no stacks to compare");
    if (c->as_table || c->as_csv || c->as_json || c->as_markdown)
        return write_table(c, flame, request->output ? request->output : "-", error);
    if (c->as_page)
        return write_page(c, flame, notes, error);
    bool to_output = request->output && strcmp(request->output, "-") == 0;
    if (!picture_write(&c->p, flame, notes, error))
        return false;
    fflush(stdout);
    return to_output || request->quiet || write_table(c, flame, "-", error);
}

static const struct note_kind note_wholes = {
    "diff-wholes", "AFTER and BEFORE have different totals; --normalize compares shares"};

/* Add a note if the totals differ by more than a tenth: a function may have grown only because everything did. */
static void note_size(const struct diff_command *c, const struct flame *both, struct notes *notes) {
    double before = (double)both->nodes.items[0].total_before,
           after = (double)both->nodes.items[0].total;
    if (!c->diff.normalize && before > 0 && after > 0 &&
        (after > before * 1.1 || before > after * 1.1))
        notes_add(notes, &note_wholes, 1, 0, "%.2f times", after / before);
}

static bool write_own(struct diff_command *c, struct notes *notes, struct error *error) {
    struct flame *before = flame_of(c, 0, notes, error);
    struct flame *after = before ? flame_of(c, 1, notes, error) : NULL;
    struct flame *both = after ? flame_diff(before, after, &c->diff, error) : NULL;
    if (both)
        note_size(c, both, notes);
    if (!c->p.svg.title)
        c->p.svg.title = titles[c->p.request.import.profile.times];
    bool fine = both && write_diff(c, both, notes, error);
    flame_free(both);
    flame_free(after);
    flame_free(before);
    return fine;
}

static bool write_gate(struct diff_command *c, struct notes *notes, bool *exceeded,
                       struct error *error) {
    struct categories *categories =
        categories_new(c->categories_path, &c->p.request.context, error);
    if (!categories)
        return false;
    c->gate.categories = categories;
    c->gate.by = c->by;
    c->gate.shares = c->diff.normalize;
    c->gate.format = c->table.format;
    c->gate.limit = c->limit;
    bool fine = gate_run(&c->p.request, &c->gate, notes, exceeded, error);
    categories_free(categories);
    return fine;
}

/* Return 0, or the exit status after an error was printed. */
static int check_gate(const struct diff_command *c) {
    if (!c->gate.fail_if.count && (c->gate.threshold >= 0 || c->gate.exact))
        return fail_usage("diff", "--threshold and --exact are for --fail-if");
    if (c->gate.fail_if.count && (c->as_text || c->as_csv || c->as_page || c->diff.strip_hex))
        return fail_usage("diff",
                          "--fail-if prints a table, or --json, or --markdown, and nothing else");
    return 0;
}

static int run(void *command, int argc, char **argv) {
    struct diff_command *c = command;
    struct request *request = &c->p.request;
    picture_begin(&c->p);
    c->limit = 30;
    c->gate.threshold = -1;
    int status = 0;
    if (!request_find_compat(request, argc, argv, &status) ||
        !request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (c->as_text + c->as_table + c->as_csv + c->as_json + c->as_markdown + c->as_page > 1)
        return fail_usage(
            "diff", "--folded, --html, --table, --csv, --json and --markdown exclude each other");
    if ((status = check_gate(c)))
        return status;
    if (c->gate.threshold < 0)
        c->gate.threshold = 0.5;
    const char *not_for_pages = picture_only(&c->p, false);
    if (request->naming.mark_incomplete)
        not_for_pages = "mark-incomplete";
    if (c->as_page && not_for_pages)
        return fail_usage("diff", "--%s is for the picture; the page does not take it",
                          not_for_pages);
    if (!c->as_text)
        group_threads(request);
    c->by = grouping_settle_table(request);
    report_options_settle(&c->table, c->limit, c->as_csv, c->as_json,
                          c->as_table || c->as_csv || c->as_json || c->as_markdown ? request->output
                                                                                   : NULL);
    if (c->as_markdown)
        c->table.format = REPORT_MARKDOWN;
    if (request->operands.count != 2)
        return fail_usage("diff", "two files are needed, BEFORE and AFTER");
    struct error error;
    struct notes notes = {0};
    bool is_gate = c->gate.fail_if.count, exceeded = false;
    bool is_picture = !(c->as_text || c->as_table || c->as_csv || c->as_json || c->as_markdown ||
                        c->as_page || is_gate);
    const char *drawn = is_picture ? "flamegraph.svg" : c->as_page ? "flamegraph.html" : NULL;
    request->import.graphs = !is_picture && !c->as_text && !c->as_page;
    if (!confine(request, drawn, NULL, &error))
        return fail(&error);
    if (is_picture && !picture_prepare(&c->p, &error))
        return fail(&error);
    bool fine = is_gate ? write_gate(c, &notes, &exceeded, &error)
                : request->import.profile.quirks.diffs_texts && c->as_text
                    ? write_inferno(c, &notes, &error)
                    : write_own(c, &notes, &error);
    status = !fine ? fail(&error) : exceeded ? STATUS_EXCEEDED : 0;
    print_notes(request, &notes);
    notes_release(&notes);
    return status;
}

static void release(void *command) {
    struct diff_command *c = command;
    vector_release(&c->gate.fail_if);
    picture_release(command);
}

const struct command command_diff = {"diff",
                                     "compare two profiles, as a picture, page or table",
                                     sizeof(struct diff_command),
                                     run,
                                     release,
                                     .group = GROUP_COMPARE};
