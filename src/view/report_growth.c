/*
 * How the cost of rows has changed since an earlier time. Only stores have other times than the one shown.
 */
#include "view/report.h"

#include <stdio.h>

void report_add_growth(struct report *report, struct text growth) {
    report->growth = strings_get(report->strings, strings_add(report->strings, growth));
}

void report_add_weight(struct buffer *line, const struct report *report, uint64_t weight) {
    static const struct {
        uint64_t least;
        const char *unit;
    } times[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "µs"}};
    for (size_t i = 0; text_equal(report->unit, TEXT("ns")) && i < COUNT_OF(times); i++)
        if (weight >= times[i].least) {
            buffer_printf(line, "%.2f %s", (double)weight / (double)times[i].least, times[i].unit);
            return;
        }
    bool one = weight == 1 && text_equal(report->unit, TEXT("samples"));
    buffer_printf(line, "%llu ", (unsigned long long)weight);
    buffer_add_shown(line, one ? TEXT("sample") : report->unit); /* or a picture's own word */
}

/* Flush right in `width` columns; a character of several bytes is one column. */
static void add_right(struct buffer *line, struct text text, size_t width) {
    size_t columns = 0;
    for (size_t i = 0; i < text.length; i++)
        columns += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    for (; columns < width; columns++)
        buffer_add_char(line, ' ');
    buffer_add(line, text);
}

void report_growth_text(struct buffer *line, const struct report *report,
                        const struct report_row *row) {
    enum { COST_WIDTH = 11, FACTOR_WIDTH = 9 };
    struct buffer cell = {0};
    if (!report->growth.length)
        return;
    if (text_equal(report->unit, TEXT("ns")))
        report_add_weight(&cell, report, row->total);
    else
        buffer_add_u64(&cell, row->total);
    add_right(line, buffer_text(&cell), COST_WIDTH);
    cell.count = 0;
    buffer_add_factor(&cell, row->earlier, row->recent);
    add_right(line, buffer_text(&cell), FACTOR_WIDTH);
    buffer_add(line, TEXT("  "));
    buffer_release(&cell);
}

void report_growth_csv(struct buffer *line, const struct report *report,
                       const struct report_row *row) {
    if (!report->growth.length)
        return;
    buffer_printf(line, ",%llu,%llu,", (unsigned long long)row->earlier,
                  (unsigned long long)row->recent);
    if (row->earlier)
        buffer_printf(line, "%.4f", (double)row->recent / (double)row->earlier);
}

void report_growth_json(struct buffer *text, const struct report *report,
                        const struct report_row *row) {
    if (report->growth.length)
        buffer_printf(text, ",\"earlier\":%llu,\"recent\":%llu", (unsigned long long)row->earlier,
                      (unsigned long long)row->recent);
}
