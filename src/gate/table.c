/*
 * The result as text, Markdown and JSON.
 */
#include "gate/internal.h"

#include <math.h>

static void add_number(struct buffer *text, const struct gate *gate, double value) {
    if (gate->shares)
        buffer_printf(text, "%.2f %%", 100 * value);
    else
        buffer_printf(text, "%.0f", value);
}

static void add_change(struct buffer *text, double ratio) {
    if (isinf(ratio))
        buffer_add(text, TEXT("new"));
    else
        buffer_printf(text, fabs(ratio - 1) < 0.01 ? "%+.3f %%" : "%+.1f %%", 100 * (ratio - 1));
}

static void add_runs(struct buffer *text, const struct gate *gate) {
    size_t before = gate->sides[0].wholes.count, after = gate->sides[1].wholes.count;
    if (gate->exact)
        buffer_add(text, TEXT("exact counts"));
    else if (before == 1 && after == 1)
        buffer_add(text, TEXT("one run a side, so only the noise of sampling is known"));
    else
        buffer_printf(text, "%zu and %zu runs, less than 1 %% false alarms", before, after);
}

/* "2 of 57 comparisons exceed their limit (…)" */
static void add_sentence(struct buffer *text, const struct gate *gate) {
    size_t all = gate->comparisons.count, grown = gate->grown - gate->exceeded;
    if (gate->exceeded)
        buffer_printf(text, "%zu of %zu comparison%s exceed%s %s limit (", gate->exceeded, all,
                      all == 1 ? "" : "s", gate->exceeded == 1 ? "s" : "",
                      gate->exceeded == 1 ? "its" : "their");
    else
        buffer_printf(text, "none of %zu comparison%s exceeds its limit (", all,
                      all == 1 ? "" : "s");
    add_runs(text, gate);
    buffer_add_char(text, ')');
    if (grown)
        buffer_printf(text, "; %zu grew by more, but not by more than noise", grown);
}

static struct text name_of(const struct comparison *c) {
    return c->name.length ? c->name : TEXT("(all)");
}

/* ---- text ---- */

static void text_row(struct out *out, const struct gate *gate, const struct comparison *c) {
    struct buffer line = {0}, cell = {0};
    for (int i = 0; i < 4; i++) {
        cell.count = 0;
        if (i < 2)
            add_number(&cell, gate, i ? c->after : c->before);
        else if (i == 2)
            add_change(&cell, c->ratio);
        else
            buffer_printf(&cell, "%.1f %%", 100 * c->noise);
        buffer_printf(&line, "%*.*s ", i < 2 ? 14 : 10, TEXT_ARGS(buffer_text(&cell)));
    }
    buffer_printf(&line, " %-24s ", c->rule->text);
    cell.count = 0;
    buffer_add_shown(&cell, name_of(c));
    buffer_add(&line, buffer_text(&cell));
    buffer_add_char(&line, '\n');
    out_text(out, buffer_text(&line));
    buffer_release(&line);
    buffer_release(&cell);
}

static void write_text(struct out *out, const struct gate *gate, size_t limit) {
    struct buffer sentence = {0};
    add_sentence(&sentence, gate);
    buffer_add_char(&sentence, '\n');
    out_text(out, buffer_text(&sentence));
    buffer_release(&sentence);
    if (gate->exceeded)
        out_printf(out, "%14s %14s %10s %10s  %-24s %s\n", "before", "after", "change", "noise",
                   "rule", "function");
    for (size_t i = 0; i < gate->exceeded && i < limit; i++)
        text_row(out, gate, &gate->comparisons.items[i]);
    if (gate->exceeded > limit)
        out_printf(out, "… and %zu more; --limit 0 shows all\n", gate->exceeded - limit);
}

/* ---- Markdown ---- */

static void markdown_row(struct out *out, const struct gate *gate, const struct comparison *c) {
    struct buffer line = {0};
    buffer_add(&line, TEXT("| "));
    buffer_add_markdown(&line, name_of(c));
    buffer_add(&line, TEXT(" | "));
    add_number(&line, gate, c->before);
    buffer_add(&line, TEXT(" | "));
    add_number(&line, gate, c->after);
    buffer_add(&line, TEXT(" | "));
    add_change(&line, c->ratio);
    buffer_printf(&line, " | %.1f %% | ", 100 * c->noise);
    buffer_add_markdown(&line, text_of(c->rule->text));
    buffer_add(&line, TEXT(" |\n"));
    out_text(out, buffer_text(&line));
    buffer_release(&line);
}

static void write_markdown(struct out *out, const struct gate *gate, size_t limit) {
    struct buffer sentence = {0};
    buffer_add(&sentence, gate->exceeded ? TEXT("**Slower**: ") : TEXT("**No slower**: "));
    add_sentence(&sentence, gate);
    buffer_add(&sentence, TEXT(".\n"));
    out_text(out, buffer_text(&sentence));
    buffer_release(&sentence);
    if (!gate->exceeded)
        return;
    out_text(out, TEXT("\n| function | before | after | change | noise | rule |\n"
                       "|---|---:|---:|---:|---:|---|\n"));
    for (size_t i = 0; i < gate->exceeded && i < limit; i++)
        markdown_row(out, gate, &gate->comparisons.items[i]);
    if (gate->exceeded > limit)
        out_printf(out, "\n… and %zu more.\n", gate->exceeded - limit);
}

/* ---- JSON ---- */

static void json_row(struct buffer *text, const struct comparison *c) {
    buffer_add(text, TEXT("{\"rule\":"));
    buffer_add_json_text(text, text_of(c->rule->text));
    buffer_add(text, TEXT(",\"function\":"));
    if (c->name.length)
        buffer_add_json_text(text, c->name);
    else
        buffer_add(text, TEXT("null"));
    buffer_printf(text, ",\"before\":%.17g,\"after\":%.17g,\"ratio\":", c->before, c->after);
    if (isinf(c->ratio))
        buffer_add(text, TEXT("null"));
    else
        buffer_printf(text, "%.6f", c->ratio);
    buffer_printf(text, ",\"noise\":%.6f,\"probability\":%.6g,\"exceeds\":%s}", c->noise,
                  c->probability, c->exceeds ? "true" : "false");
}

static void write_json(struct out *out, const struct gate *gate) {
    struct buffer text = {0};
    buffer_printf(&text, "{\"exceeded\":%zu,\"runs_before\":%zu,\"runs_after\":%zu,\"rows\":[",
                  gate->exceeded, gate->sides[0].wholes.count, gate->sides[1].wholes.count);
    for (size_t i = 0; i < gate->comparisons.count; i++) {
        buffer_add(&text, i ? TEXT(",\n") : TEXT("\n"));
        json_row(&text, &gate->comparisons.items[i]);
    }
    buffer_add(&text, TEXT("\n]}\n"));
    out_text(out, buffer_text(&text));
    buffer_release(&text);
}

void gate_write(struct out *out, const struct gate *gate, enum report_format format, size_t limit) {
    size_t rows = limit ? limit : SIZE_MAX;
    if (format == REPORT_JSON)
        write_json(out, gate);
    else if (format == REPORT_MARKDOWN)
        write_markdown(out, gate, rows);
    else
        write_text(out, gate, rows);
}
