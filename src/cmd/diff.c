/*
 * wick diff: both sources to flames, the two to one, and that to any view; or, as inferno does it, two texts to a third.
 */
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
    bool as_text, as_table, as_csv, as_json, as_page;
};

#define HERE(member) IN(struct diff_command, member)
static const struct option options_diff[] = {
    {"normalize", 'n', OPTION_FLAG, HERE(diff.normalize), NULL,
     "scale BEFORE so that both add up to the same"},
    {"strip-hex", 's', OPTION_FLAG, HERE(diff.strip_hex), NULL, "0x45ef2173 in a name is 0x..."},
    {"folded", 0, OPTION_FLAG, HERE(as_text), NULL,
     "write text, `stack BEFORE AFTER`, not a picture"},
    {"html", 0, OPTION_FLAG, HERE(as_page), NULL,
     "one HTML page with all views of both; flamegraph.html by default; takes --title, --subtitle "
     "and --categories of what follows"},
    {"table", 0, OPTION_FLAG, HERE(as_table), NULL,
     "write only the table of what changed, not a picture"},
    {"csv", 0, OPTION_FLAG, HERE(as_csv), NULL, "the table as comma-separated values, all rows"},
    {"json", 0, OPTION_FLAG, HERE(as_json), NULL, "the table as JSON, all rows"},
    {"by", 0, OPTION_CALL, CALL(set_by), "WHAT",
     "the table's rows: a function each (default), a line, address, object, module or category; "
     "with "
     "labels such as comm or pid, which are root frames, too, those apart",
     "function line address object module process thread comm pid tid event state category"},
    {"limit", 0, OPTION_U32, HERE(limit), "N", "rows of the table; 30 by default, 0 is all"},
    {"categories", 0, OPTION_TEXT, HERE(categories_path), "FILE",
     "rules for what kind of work a function is; see wick report"},
    {"force", 0, OPTION_FLAG, ASKED(force), NULL, "write folded text of more than 4 GB"},
    {0},
};

static const struct option_group groups[] = {
    {"What to show", options_diff},   OPTION_GROUPS_OF_PICTURES, {"Root", options_root},
    {"Which stacks", options_stacks}, OPTION_GROUPS_OF_PROFILES, {0},
};

static const struct syntax syntax = {
    "diff",
    "BEFORE AFTER",
    "What changed between two profiles of any kind that wick reads, pictures included: a flame\n"
    "graph in which red grew and blue shrank (flamegraph.svg without -o), and a table of\n"
    "functions by change of what they spent themselves. With --compat=inferno --folded, what\n"
    "inferno-diff-folded writes of two folded texts, in order.",
    groups,
    .examples = "wick diff before.data after.data               # flamegraph.svg and a table\n"
                "wick diff wick-out/a wick-out/b --html\n"
                "wick diff --table --by object before.data after.data",
    .common = "output html table folded normalize by limit event comm title",
};

/* Colours say what changed; that it is time spent waiting is left to the words. */
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
    if (!request_open(&c->p.request, &source, &c->p.request.operands.items[operand], 1, error))
        return NULL;
    struct flame *flame = make_flame(&c->p.request, &source, notes, error);
    source_close(&source);
    return flame;
}

static bool write_table(struct diff_command *c, const struct flame *flame, const char *path,
                        struct error *error) {
    struct out out;
    struct categories *categories =
        categories_new(c->categories_path, &c->p.request.context, error);
    bool fine = categories && out_open(&out, path, error);
    if (fine) {
        out.guarded = c->table.format != REPORT_TEXT && !out.file.path && isatty(STDOUT_FILENO);
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
    c->p.request.flame.rules = NULL; /* both sides are what they leave */
    bool fine = page_write(&c->p, tree, naming, c->categories_path, notes, error);
    naming_free(naming);
    objects_free(tree->objects);
    tree_free(tree);
    return fine;
}

/* The picture goes to a file, and the table to who looks at the terminal. */
static bool write_diff(struct diff_command *c, struct flame *flame, struct notes *notes,
                       struct error *error) {
    struct request *request = &c->p.request;
    bool nothing = flame->nodes.items[0].total == 0 && flame->nodes.items[0].total_before == 0;
    if (c->as_text)
        return fold_fits(request, flame, error) && folded_write(request, flame, error);
    if (nothing)
        return error_set(error, ERROR_INPUT, "there are no stacks to compare");
    if (c->as_table || c->as_csv || c->as_json)
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
    "diff-wholes", "AFTER weighs another amount than BEFORE; --normalize compares shares"};

/* By more than a tenth: what grew may have grown with everything else. */
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
    bool fine = both && write_diff(c, both, notes, error);
    flame_free(both);
    flame_free(after);
    flame_free(before);
    return fine;
}

static int run(void *command, int argc, char **argv) {
    struct diff_command *c = command;
    struct request *request = &c->p.request;
    picture_begin(&c->p);
    c->limit = 30;
    int status = 0;
    if (!request_find_compat(request, argc, argv, &status) ||
        !request_parse(request, &syntax, argc, argv, &status))
        return status;
    if (c->as_text + c->as_table + c->as_csv + c->as_json + c->as_page > 1)
        return fail_usage("diff",
                          "one of --folded, --html, --table, --csv and --json, not several");
    const char *not_for_pages = picture_only(&c->p, false);
    if (request->naming.mark_incomplete)
        not_for_pages = "mark-incomplete";
    if (c->as_page && not_for_pages)
        return fail_usage("diff", "--%s is for the picture; the page does not take it",
                          not_for_pages);
    if (!c->p.svg.title)
        c->p.svg.title = titles[request->import.profile.times];
    c->by = grouping_settle_table(request);
    report_options_settle(&c->table, c->limit, c->as_csv, c->as_json,
                          c->as_table || c->as_csv || c->as_json ? request->output : NULL);
    if (request->operands.count != 2)
        return fail_usage("diff", "wants two files, BEFORE and AFTER");
    struct error error;
    struct notes notes = {0};
    bool is_picture = !(c->as_text || c->as_table || c->as_csv || c->as_json || c->as_page);
    if (is_picture && !picture_prepare(&c->p, &error))
        return fail(&error);
    bool fine = request->import.profile.quirks.diffs_texts && c->as_text
                    ? write_inferno(c, &notes, &error)
                    : write_own(c, &notes, &error);
    status = fine ? 0 : fail(&error);
    print_notes(request, &notes);
    notes_release(&notes);
    return status;
}

const struct command command_diff = {"diff",
                                     "what changed between two profiles, as a picture or text",
                                     sizeof(struct diff_command), run, picture_release};
