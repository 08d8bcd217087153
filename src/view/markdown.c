/*
 * Tables for comments on pull requests, in GitHub's and GitLab's Markdown. Names come from profiles, so they are written as code spans, in which
 * nothing is a link, a mention or HTML. A comment is limited to 65,536 bytes, so names are cut and rows end before that.
 */
#include "view/report.h"

#include <ctype.h>

enum { NAME_MOST = 100, COMMENT_MOST = 60000 };

/* The longest run of backquotes in a name. The fence around a code span has one more. */
static size_t longest_run(struct text name) {
    size_t most = 0, run = 0;
    for (size_t i = 0; i < name.length; i++) {
        run = name.data[i] == '`' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    return most;
}

/* Without this a space at both ends is dropped, and a backquote at an end belongs to the fence. */
static bool needs_space(struct text name) {
    if (!name.length)
        return true;
    char first = name.data[0], last = name.data[name.length - 1];
    return first == '`' || last == '`' || (first == ' ' && last == ' ');
}

void buffer_add_markdown(struct buffer *buffer, struct text name) {
    struct buffer shown = {0}, cut = {0}, fence = {0};
    buffer_add_shown(&shown, name);
    name_add_short(&cut, buffer_text(&shown), NAME_MOST);
    for (size_t i = longest_run(buffer_text(&cut)) + 1; i; i--)
        buffer_add_char(&fence, '`');
    if (needs_space(buffer_text(&cut))) {
        buffer_add_char(&cut, ' ');
        buffer_add_char(&fence, ' ');
    }
    buffer_add(buffer, buffer_text(&fence));
    for (size_t i = 0; i < cut.count; i++) {
        if (cut.items[i] == '|') /* which would end the cell, even within code */
            buffer_add_char(buffer, '\\');
        buffer_add_char(buffer, cut.items[i]);
    }
    while (fence.count && fence.items[fence.count - 1] == ' ')
        fence.count--;
    buffer_add(buffer, buffer_text(&fence));
    buffer_release(&shown);
    buffer_release(&cut);
    buffer_release(&fence);
}

/* A unit is an event's name, which may be anything in a file; most are one or two plain words. */
static void add_unit(struct buffer *line, struct text unit) {
    for (size_t i = 0; i < unit.length; i++)
        if (!isalnum((unsigned char)unit.data[i]) && !strchr(" -", unit.data[i])) {
            buffer_add_markdown(line, unit);
            return;
        }
    buffer_add(line, unit);
}

static void add_row(struct buffer *line, const struct report *report,
                    const struct report_row *row) {
    buffer_add(line, TEXT("| "));
    buffer_add_markdown(line, row->name);
    if (report->is_diff) {
        double before = per_cent(row->self_before, report->total_before);
        double after = per_cent(row->self, report->total);
        buffer_printf(line, " | %.2f %% | %.2f %% | ", before, after);
        buffer_add_factor(line, row->self_before, row->self);
        before = per_cent(row->total_before, report->total_before);
        after = per_cent(row->total, report->total);
        buffer_printf(line, " | %.2f %% | %.2f %% | ", before, after);
        buffer_add_factor(line, row->total_before, row->total);
    } else {
        buffer_printf(line, " | %.2f %% | %.2f %%", per_cent(row->self, report->total),
                      per_cent(row->total, report->total));
        if (report->growth.length) {
            buffer_add(line, TEXT(" | "));
            buffer_add_factor(line, row->earlier, row->recent);
        }
    }
    buffer_add(line, TEXT(" |\n"));
}

static bool is_changed(const struct report *report, const struct report_row *row) {
    return !report->is_diff || row->self != row->self_before || row->total != row->total_before;
}

static void add_sum(struct buffer *line, const struct report *report) {
    buffer_add_char(line, '\n');
    if (report->is_diff) {
        buffer_add_grouped(line, report->total_before);
        buffer_add(line, TEXT(" before, "));
        buffer_add_grouped(line, report->total);
        buffer_add(line, TEXT(" after"));
        if (report->total_before && report->total) {
            buffer_add(line, TEXT(", "));
            buffer_add_factor(line, report->total_before, report->total);
        }
        buffer_add(line, TEXT(": "));
    } else {
        buffer_add_grouped(line, report->total);
        buffer_add_char(line, ' ');
    }
    add_unit(line, report->unit);
    buffer_add(line, TEXT(" in all"));
}

void report_markdown(struct out *out, const struct report *report,
                     const struct report_options *options) {
    struct buffer text = {0};
    size_t rows = 0, limit = options->limit ? options->limit : SIZE_MAX, left = 0;
    bool growth = report->growth.length > 0;
    buffer_printf(
        &text, "| %s |%s%s\n|---|%s%s\n", report->title.data,
        report->is_diff ? " self before | after | | total before | after | |" : " self | total |",
        growth ? " growth |" : "",
        report->is_diff ? "---:|---:|---:|---:|---:|---:|" : "---:|---:|", growth ? "---:|" : "");
    for (size_t i = 0; i < report->rows.count; i++) {
        if (!is_changed(report, &report->rows.items[i]))
            continue;
        if (rows == limit || text.count > COMMENT_MOST) {
            left++;
            continue;
        }
        add_row(&text, report, &report->rows.items[i]);
        rows++;
    }
    add_sum(&text, report);
    if (left)
        buffer_printf(&text, "; %zu more rows", left);
    if (growth)
        buffer_printf(&text, "; growth: %.*s", TEXT_ARGS(report->growth));
    buffer_add_char(&text, '\n');
    out_text(out, buffer_text(&text));
    buffer_release(&text);
}
