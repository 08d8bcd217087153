/* Write tables of cost as text, CSV and JSON. See report_diff.c for diffs and markdown.c for Markdown. */
#include "view/report.h"

static double share(const struct report *report, uint64_t weight) {
    return per_cent(weight, report->total);
}

/* Bare, as the columns are known, unless a user's rule put something into it that would end the field. */
void report_add_category(struct buffer *line, struct text category) {
    if (text_find(category, ',') == SIZE_MAX && text_find(category, '"') == SIZE_MAX)
        buffer_add(line, category);
    else
        buffer_add_csv(line, category);
}

void report_counted(const struct report *report, const struct report_options *options,
                    char *counted, size_t size) {
    struct text unit = options->counted ? text_of(options->counted) : report->unit;
    size_t length = 0;
    for (size_t i = 0; i < unit.length && length + 1 < size; i++)
        counted[length++] =
            text_find(TEXT(",\"\r\n "), unit.data[i]) == SIZE_MAX ? unit.data[i] : '_';
    counted[length] = 0;
}

/* `self_samples,self_ns,self_pct`: the number of samples, where it is known beside the weight. */
static void csv_title(struct out *out, const struct report *report, const char *column,
                      const char *counted) {
    if (report->has_samples)
        out_printf(out, ",%s_samples", column);
    out_printf(out, ",%s_%s,%s_pct", column, counted, column);
}

static void csv_cells(struct buffer *line, const struct report *report, uint64_t samples,
                      uint64_t weight) {
    if (report->has_samples)
        buffer_printf(line, ",%llu", (unsigned long long)samples);
    buffer_printf(line, ",%llu,%.*f", (unsigned long long)weight, report->by == BY_CATEGORY ? 2 : 4,
                  share(report, weight));
}

static void write_csv(struct out *out, const struct report *report,
                      const struct report_options *options) {
    bool categories = report->by == BY_CATEGORY, functions = report->by == BY_FUNCTION;
    char counted[80];
    report_counted(report, options, counted, sizeof counted);
    out_text(out, report->title);
    csv_title(out, report, "self", counted);
    if (!categories)
        csv_title(out, report, "inclusive", counted);
    if (report->growth.length)
        out_printf(out, ",earlier_%s,recent_%s,growth_factor", counted, counted);
    out_text(out, functions ? TEXT(",category\n") : TEXT("\n"));
    struct buffer line = {0};
    for (size_t i = 0; i < report->rows.count; i++) {
        const struct report_row *row = &report->rows.items[i];
        line.count = 0;
        if (categories)
            report_add_category(&line, row->name);
        else
            buffer_add_csv(&line, row->name);
        csv_cells(&line, report, row->self_samples, row->self);
        if (!categories)
            csv_cells(&line, report, row->total_samples, row->total);
        report_growth_csv(&line, report, row);
        if (functions)
            buffer_add_char(&line, ','), report_add_category(&line, row->category);
        buffer_add_char(&line, '\n');
        out_text(out, buffer_text(&line));
    }
    buffer_release(&line);
}

/* A diff has each weight twice. */
static void json_weight(struct buffer *text, const struct report *report, const char *name,
                        uint64_t before, uint64_t weight) {
    if (report->is_diff)
        buffer_printf(text, "\"%s_before\":%llu,", name, (unsigned long long)before);
    buffer_printf(text, "\"%s\":%llu", name, (unsigned long long)weight);
}

static void json_row(struct buffer *text, const struct report *report,
                     const struct report_row *row) {
    buffer_add(text, TEXT("{\"name\":\""));
    buffer_add_json(text, row->name);
    buffer_add(text, TEXT("\","));
    json_weight(text, report, "self", row->self_before, row->self);
    buffer_add_char(text, ',');
    json_weight(text, report, "total", row->total_before, row->total);
    if (report->has_samples)
        buffer_printf(text, ",\"self_samples\":%llu,\"total_samples\":%llu",
                      (unsigned long long)row->self_samples,
                      (unsigned long long)row->total_samples);
    report_growth_json(text, report, row);
    if (report->is_diff) {
        report_diff_json(text, report, "self", row->self_before, row->self);
        report_diff_json(text, report, "total", row->total_before, row->total);
    }
    if (report->by == BY_FUNCTION) {
        buffer_add(text, TEXT(",\"category\":\""));
        buffer_add_json(text, row->category);
        buffer_add_char(text, '"');
    }
    buffer_add_char(text, '}');
}

static void write_json(struct out *out, const struct report *report) {
    struct buffer text = {0};
    buffer_add_char(&text, '{');
    json_weight(&text, report, "total", report->total_before, report->total);
    buffer_add(&text, TEXT(",\"unit\":\""));
    buffer_add_json(&text, report->unit);
    buffer_add(&text, TEXT("\",\"rows\":["));
    for (size_t i = 0; i < report->rows.count; i++) {
        buffer_add(&text, i ? TEXT(",\n") : TEXT("\n"));
        json_row(&text, report, &report->rows.items[i]);
        out_text(out, buffer_text(&text));
        text.count = 0;
    }
    buffer_add(&text, TEXT("\n]}\n"));
    out_text(out, buffer_text(&text));
    buffer_release(&text);
}

/* Ten cells, in eighths. */
static void add_bar(struct buffer *line, double share) {
    static const char *const eighths[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    int filled = (int)(share * 0.8 + 0.5);
    for (int cell = 0; cell < 10; cell++) {
        int here = filled - cell * 8;
        buffer_add(line, text_of(eighths[here < 0 ? 0 : here > 8 ? 8 : here]));
    }
}

/* A narrower terminal shows neither bars nor categories. */
enum {
    NARROW = 60,
    SHARES_WIDTH = 21,
    BAR_WIDTH = 12,
    CATEGORY_WIDTH = 16,
    ERROR_WIDTH = 20,
    SAMPLES_WIDTH = 11
};

static bool is_narrow(const struct report_options *options) {
    return options->width && options->width < NARROW;
}

static int error_width(const struct report *report) {
    if (!report->is_estimated)
        return 0;
    return estimate_has_error(report->unit) ? ERROR_WIDTH : SAMPLES_WIDTH;
}

static size_t name_room(const struct report *report, const struct report_options *options) {
    if (!options->width)
        return PIPED_NAME;
    size_t used =
        SHARES_WIDTH + (size_t)error_width(report) + (report->growth.length ? GROWTH_WIDTH : 0);
    if (!is_narrow(options))
        used += BAR_WIDTH + (report->by == BY_FUNCTION ? CATEGORY_WIDTH : 0);
    return options->width > used + 10 ? options->width - used : 10;
}

static void add_bar_and_category(struct buffer *line, const struct report *report,
                                 const struct report_row *row, bool colours) {
    if (colours)
        buffer_add(line, TEXT("\033[33m"));
    add_bar(line, share(report, report->by == BY_CATEGORY ? row->self : row->total));
    if (colours)
        buffer_add(line, TEXT("\033[0m"));
    if (report->by == BY_FUNCTION)
        buffer_printf(line, "  %-14.14s", row->category.data ? row->category.data : "");
    buffer_add(line, TEXT("  "));
}

/* The number of samples of the total, and its standard error at most. */
static void add_error(struct buffer *line, const struct report *report,
                      const struct report_row *row) {
    uint64_t samples = row->total_samples;
    if (samples && !estimate_has_error(report->unit))
        buffer_printf(line, "%9llu  ", (unsigned long long)samples);
    else if (samples)
        buffer_printf(line, "%9llu ±%5.1f %%  ", (unsigned long long)samples,
                      estimate_error(samples, row->total, report->deviation));
    else
        buffer_printf(line, "%*s", error_width(report), "");
}

static void text_row(struct buffer *line, const struct report *report, const struct report_row *row,
                     const struct report_options *options) {
    struct buffer shown = {0};
    buffer_add_shown(&shown, row->name);
    buffer_printf(line, "%7.2f %% %7.2f %%  ", share(report, row->self), share(report, row->total));
    if (report->is_estimated)
        add_error(line, report, row);
    report_growth_text(line, report, row);
    if (!is_narrow(options))
        add_bar_and_category(line, report, row, options->colours);
    name_add_short(line, buffer_text(&shown), name_room(report, options));
    buffer_add_char(line, '\n');
    buffer_release(&shown);
}

static void write_text(struct out *out, const struct report *report,
                       const struct report_options *options) {
    size_t limit =
        options->limit && options->limit < report->rows.count ? options->limit : report->rows.count;
    bool functions = report->by == BY_FUNCTION, narrow = is_narrow(options);
    out_printf(out, "     self     total  %s%s%s%s%s\n",
               !report->is_estimated              ? ""
               : estimate_has_error(report->unit) ? "  samples  at most  "
                                                  : "  samples  ",
               report->growth.length ? "       cost   growth  " : "", narrow ? "" : "            ",
               functions && !narrow ? "category        " : "", report->title.data);
    struct buffer line = {0};
    for (size_t i = 0; i < limit; i++) {
        line.count = 0;
        text_row(&line, report, &report->rows.items[i], options);
        out_text(out, buffer_text(&line));
    }
    if (limit < report->rows.count)
        out_printf(out, "… and %zu more%s\n", report->rows.count - limit,
                   options->no_hint ? "" : "; --limit 0 shows all");
    line.count = 0;
    report_add_weight(&line, report, report->total);
    buffer_add(&line, TEXT(" in all\n"));
    if (report->growth.length)
        buffer_printf(&line, "growth: %.*s\n", TEXT_ARGS(report->growth));
    out_text(out, buffer_text(&line));
    buffer_release(&line);
}

void report_write(struct out *out, const struct report *report,
                  const struct report_options *options) {
    switch (options->format) {
    case REPORT_CSV:
        if (report->is_diff)
            report_diff_csv(out, report, options);
        else
            write_csv(out, report, options);
        break;
    case REPORT_JSON:
        write_json(out, report);
        break;
    case REPORT_MARKDOWN:
        report_markdown(out, report, options);
        break;
    case REPORT_TEXT:
        (report->is_diff ? report_diff_text : write_text)(out, report, options);
        break;
    }
}
