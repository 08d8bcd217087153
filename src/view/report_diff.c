/*
 * The table of a diff: what each row spent itself and with all that it called, before and after. Text and CSV tell changes in points of
 * the whole after, as the picture does: where BEFORE was not scaled to the same whole, its rows may add up to more or less than 100 %.
 */
#include "view/report.h"

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

/* "+1.23", never "-0.00". */
static void add_points(struct buffer *line, const struct report *report, uint64_t before,
                       uint64_t after, int width, int decimals) {
    char text[40];
    const char *sign = before == after ? "" : before > after ? "-" : "+";
    snprintf(text, sizeof text, "%s%.*f", sign, decimals,
             report_per_cent(report, change(before, after)));
    buffer_printf(line, "%*s", width, text);
}

/* ---- CSV ---- */

static void csv_side(struct buffer *line, const struct report *report, uint64_t before,
                     uint64_t after) {
    buffer_printf(line, ",%llu,%.4f,%llu,%.4f,", (unsigned long long)before,
                  report_per_cent(report, before), (unsigned long long)after,
                  report_per_cent(report, after));
    add_points(line, report, before, after, 0, 4);
}

void report_diff_csv(struct out *out, const struct report *report) {
    bool functions = report->by == BY_FUNCTION;
    struct buffer line = {0};
    out_printf(out,
               "%s,self_samples_before,self_pct_before,self_samples,self_pct,self_change_pct,"
               "inclusive_samples_before,inclusive_pct_before,inclusive_samples,inclusive_pct,"
               "inclusive_change_pct%s\n",
               report_titles[report->by], functions ? ",category" : "");
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

/* ---- text ---- */

static void text_side(struct buffer *line, const struct report *report, uint64_t before,
                      uint64_t after, bool colours) {
    buffer_printf(line, "%7.2f %7.2f ", report_per_cent(report, before),
                  report_per_cent(report, after));
    if (colours && before != after)
        buffer_add(line, after > before ? TEXT("\033[31m") : TEXT("\033[34m"));
    add_points(line, report, before, after, 8, 2);
    if (colours && before != after)
        buffer_add(line, TEXT("\033[0m"));
    buffer_add(line, TEXT("  "));
}

static void write_row(struct out *out, const struct report *report, const struct report_row *row,
                      const struct report_options *options) {
    enum { USED = 52 };
    struct buffer line = {0}, shown = {0};
    size_t room = options->width > USED + 10 ? options->width - USED : 10;
    text_side(&line, report, row->self_before, row->self, options->colours);
    text_side(&line, report, row->total_before, row->total, options->colours);
    buffer_add_shown(&shown, row->name);
    report_add_cut(&line, buffer_text(&shown), options->width ? room : SIZE_MAX);
    buffer_add_char(&line, '\n');
    out_text(out, buffer_text(&line));
    buffer_release(&shown);
    buffer_release(&line);
}

/* Rows that did not change stand last: they are counted, not shown. */
void report_diff_text(struct out *out, const struct report *report,
                      const struct report_options *options) {
    size_t changed = 0;
    while (changed < report->rows.count &&
           (report->rows.items[changed].self != report->rows.items[changed].self_before ||
            report->rows.items[changed].total != report->rows.items[changed].total_before))
        changed++;
    size_t limit = options->limit && options->limit < changed ? options->limit : changed;
    out_printf(out, "   self: per cent            total: per cent\n");
    out_printf(out, " before   after   change   before   after   change  %s\n",
               report_titles[report->by]);
    for (size_t i = 0; i < limit; i++)
        write_row(out, report, &report->rows.items[i], options);
    if (limit < changed)
        out_printf(out, "… and %zu more; --limit 0 shows all\n", changed - limit);
    if (changed < report->rows.count)
        out_printf(out, "%zu did not change\n", report->rows.count - changed);
    struct buffer sum = {0};
    buffer_printf(&sum,
                  "%llu before, %llu after (100 %%): ", (unsigned long long)report->total_before,
                  (unsigned long long)report->total);
    buffer_add_shown(&sum, report->unit);
    buffer_add(&sum, TEXT(" in all\n"));
    out_text(out, buffer_text(&sum));
    buffer_release(&sum);
}
