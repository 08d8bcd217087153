/*
 * Tables for a comment on a pull request: GitHub's and GitLab's Markdown. Names come from profiles, so every byte that could mean something there is
 * written as a character reference, and a comment has 65,536 bytes at most, so names are cut and rows end before that.
 */
#include "view/report.h"

#include <ctype.h>

enum { NAME_MOST = 100, COMMENT_MOST = 60000 };

/* In <code> nothing is a mention or a link. */
void buffer_add_markdown(struct buffer *buffer, struct text name) {
    struct buffer shown = {0}, cut = {0};
    buffer_add_shown(&shown, name);
    name_add_short(&cut, buffer_text(&shown), NAME_MOST);
    buffer_add(buffer, TEXT("<code>"));
    for (size_t i = 0; i < cut.count; i++) {
        unsigned char c = (unsigned char)cut.items[i];
        bool within = c == '_' && i && i + 1 < cut.count &&
                      isalnum((unsigned char)cut.items[i - 1]) &&
                      isalnum((unsigned char)cut.items[i + 1]); /* which emphasizes nothing */
        if (c >= 0x80 || isalnum(c) || within || strchr(" .,:;()+-/=%", c))
            buffer_add_char(buffer, cut.items[i]);
        else
            buffer_printf(buffer, "&#%u;", c);
    }
    buffer_add(buffer, TEXT("</code>"));
    buffer_release(&shown);
    buffer_release(&cut);
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
    buffer_add_shown(line, report->unit);
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
