/*
 * The table of a diff: self and total of each row, before and after. Shares are relative to each side's own total, so that neither exceeds 100 %
 * and each can be read alone. A change is shown in points, the difference of the two shares, and as a factor, the weight after divided by the
 * weight before. If the totals differ, these say different things, and both are true: a function may cost less and yet have a larger share.
 * Rows are sorted by change of weight, which also decides the picture's colours.
 */
#include "view/report.h"

#include <math.h>
#include <stdio.h>

static uint64_t change(uint64_t before, uint64_t after) {
    return before > after ? before - after : after - before;
}

int report_order_change(const void *a, const void *b) {
    const struct report_row *x = a, *y = b;
    uint64_t self_x = change(x->self_before, x->self), self_y = change(y->self_before, y->self);
    uint64_t total_x = change(x->total_before, x->total),
             total_y = change(y->total_before, y->total);
    if (self_x != self_y)
        return self_x > self_y ? -1 : 1;
    if (total_x != total_y)
        return total_x > total_y ? -1 : 1;
    return text_compare(x->name, y->name);
}

struct shares {
    double before, after;
};
static struct shares shares_of(const struct report *report, uint64_t before, uint64_t after) {
    return (struct shares){per_cent(before, report->total_before), per_cent(after, report->total)};
}

/* "+1.23", "-1.23" or "0.00", never "-0.00". */
static void add_points(struct buffer *line, struct shares shares, int width, int decimals) {
    char digits[40], text[44];
    snprintf(digits, sizeof digits, "%.*f", decimals, fabs(shares.after - shares.before));
    bool none = strspn(digits, "0.") == strlen(digits);
    snprintf(text, sizeof text, "%s%s",
             none                           ? ""
             : shares.before > shares.after ? "-"
                                            : "+",
             digits);
    buffer_printf(line, "%*s", width, text);
}

/* ---- CSV and JSON ---- */

/* The factor's field is empty where there was nothing before. */
static void csv_side(struct buffer *line, const struct report *report, uint64_t before,
                     uint64_t after) {
    struct shares shares = shares_of(report, before, after);
    buffer_printf(line, ",%llu,%.4f,%llu,%.4f,", (unsigned long long)before, shares.before,
                  (unsigned long long)after, shares.after);
    add_points(line, shares, 0, 4);
    buffer_add_char(line, ',');
    if (before)
        buffer_printf(line, "%.4f", (double)after / (double)before);
}

void report_diff_csv(struct out *out, const struct report *report,
                     const struct report_options *options) {
    bool functions = report->by == BY_FUNCTION;
    struct buffer line = {0};
    char counted[80];
    report_counted(report, options, counted, sizeof counted);
    out_text(out, report->title);
    for (const char *column = "self"; column; column = *column == 's' ? "inclusive" : NULL)
        out_printf(out, ",%s_%s_before,%s_pct_before,%s_%s,%s_pct,%s_points,%s_factor", column,
                   counted, column, column, counted, column, column, column);
    out_text(out, functions ? TEXT(",category\n") : TEXT("\n"));
    for (size_t i = 0; i < report->rows.count; i++) {
        const struct report_row *row = &report->rows.items[i];
        line.count = 0;
        buffer_add_csv(&line, row->name);
        csv_side(&line, report, row->self_before, row->self);
        csv_side(&line, report, row->total_before, row->total);
        if (functions)
            buffer_add_char(&line, ','), report_add_category(&line, row->category);
        buffer_add_char(&line, '\n');
        out_text(out, buffer_text(&line));
    }
    buffer_release(&line);
}

void report_diff_json(struct buffer *text, const struct report *report, const char *name,
                      uint64_t before, uint64_t after) {
    struct shares shares = shares_of(report, before, after);
    buffer_printf(text, ",\"%s_pct_before\":%.4f,\"%s_pct\":%.4f,\"%s_factor\":", name,
                  shares.before, name, shares.after, name);
    if (before)
        buffer_printf(text, "%.4f", (double)after / (double)before);
    else
        buffer_add(text, TEXT("null"));
}

/* ---- text ---- */

/* Six columns; ×, which has one, takes two bytes. */
static void add_factor(struct buffer *line, uint64_t before, uint64_t after) {
    struct buffer text = {0};
    buffer_add_factor(&text, before, after);
    bool sign = before && after;
    buffer_printf(line, "%*.*s", 6 + sign, TEXT_ARGS(buffer_text(&text)));
    buffer_release(&text);
}

static void text_side(struct buffer *line, const struct report *report, uint64_t before,
                      uint64_t after, bool colours) {
    struct shares shares = shares_of(report, before, after);
    buffer_printf(line, "%6.2f %6.2f ", shares.before, shares.after);
    if (colours && before != after)
        buffer_add(line, after > before ? TEXT("\033[31m") : TEXT("\033[34m"));
    add_points(line, shares, 7, 2);
    buffer_add_char(line, ' ');
    add_factor(line, before, after);
    if (colours && before != after)
        buffer_add(line, TEXT("\033[0m"));
    buffer_add(line, TEXT("  "));
}

/* A narrower terminal shows what functions spent themselves alone. */
enum { NARROW = 72, SIDE_WIDTH = 30 };

static bool is_narrow(const struct report_options *options) {
    return options->width && options->width < NARROW;
}

static void write_row(struct out *out, const struct report *report, const struct report_row *row,
                      const struct report_options *options) {
    struct buffer line = {0}, shown = {0};
    size_t used = is_narrow(options) ? SIDE_WIDTH : 2 * SIDE_WIDTH;
    size_t room = options->width > used + 10 ? options->width - used : 10;
    text_side(&line, report, row->self_before, row->self, options->colours);
    if (!is_narrow(options))
        text_side(&line, report, row->total_before, row->total, options->colours);
    buffer_add_shown(&shown, row->name);
    name_add_short(&line, buffer_text(&shown), options->width ? room : PIPED_NAME);
    buffer_add_char(&line, '\n');
    out_text(out, buffer_text(&line));
    buffer_release(&shown);
    buffer_release(&line);
}

/* "100 before, 200 after, ×2.00: samples in all", "1.02 s before, 2.04 s after, ×2.00: time in all" */
static void write_sum(struct out *out, const struct report *report) {
    struct buffer sum = {0};
    bool is_time = text_equal(report->unit, TEXT("ns"));
    const uint64_t totals[] = {report->total_before, report->total};
    for (size_t i = 0; i < COUNT_OF(totals); i++) {
        if (is_time)
            report_add_weight(&sum, report, totals[i]);
        else
            buffer_add_u64(&sum, totals[i]);
        buffer_add(&sum, i ? TEXT(" after") : TEXT(" before, "));
    }
    if (report->total_before && report->total) {
        buffer_add(&sum, TEXT(", "));
        buffer_add_factor(&sum, report->total_before, report->total);
    }
    buffer_add(&sum, TEXT(": "));
    buffer_add_shown(&sum, is_time ? TEXT("time") : report->unit);
    buffer_add(&sum, TEXT(" in all\n"));
    out_text(out, buffer_text(&sum));
    buffer_release(&sum);
}

/* Unchanged rows come last: they are counted, not shown. */
void report_diff_text(struct out *out, const struct report *report,
                      const struct report_options *options) {
    size_t changed = 0;
    while (changed < report->rows.count &&
           (report->rows.items[changed].self != report->rows.items[changed].self_before ||
            report->rows.items[changed].total != report->rows.items[changed].total_before))
        changed++;
    size_t limit = options->limit && options->limit < changed ? options->limit : changed;
    bool narrow = is_narrow(options);
    out_printf(out,
               "self: %% of each side's whole%s\n"
               "before  after  points factor  %s%s\n",
               narrow ? "" : "   total: % of each side's whole",
               narrow ? "" : "before  after  points factor  ", report->title.data);
    for (size_t i = 0; i < limit; i++)
        write_row(out, report, &report->rows.items[i], options);
    if (limit < changed)
        out_printf(out, "… and %zu more%s\n", changed - limit,
                   options->no_hint ? "" : "; --limit 0 shows all");
    if (changed < report->rows.count)
        out_printf(out, "%zu did not change\n", report->rows.count - changed);
    write_sum(out, report);
}
