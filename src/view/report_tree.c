/*
 * A call tree as an indented table: the total of each frame, largest first. Siblings are linked by weight first; then one walk follows the links,
 * without a stack, because the input controls the depth.
 */
#include "view/report.h"

#include <stdlib.h>

struct tree_table {
    struct out *out;
    const struct flame *flame;
    const struct tree_table_options *options;
    uint32_t *next, *first; /* links by weight */
    struct buffer line;
    size_t rows;
};

static bool is_shown(const struct tree_table *t, uint32_t node) {
    const struct flame_node *n = &t->flame->nodes.items[node];
    double least = t->options->threshold * (double)t->options->whole / 100;
    return n->total && (double)n->total >= least &&
           (!t->options->max_depth || n->depth <= t->options->max_depth);
}

/* The function that a tree is about has all that it spends itself, wherever it stands. */
static uint64_t self_of(const struct tree_table *t, uint32_t node) {
    const struct flame_node *n = &t->flame->nodes.items[node];
    return t->options->is_around && n->depth == 1 ? t->options->self : n->self;
}

/* What a caller spends itself is not in a tree of callers. */
static bool has_self(const struct tree_table *t, uint32_t node) {
    return !t->options->is_callers || t->flame->nodes.items[node].depth == 1;
}

static void add_text(struct tree_table *t, uint32_t node) {
    const struct flame_node *n = &t->flame->nodes.items[node];
    struct buffer shown = {0};
    size_t indent = 2 * (size_t)(n->depth - 1), used = 21 + indent;
    buffer_add_shown(&shown, flame_name(t->flame, node));
    if (has_self(t, node))
        buffer_printf(&t->line, "%7.2f %%", per_cent(self_of(t, node), t->options->whole));
    else
        buffer_add(&t->line, TEXT("         "));
    buffer_printf(&t->line, " %7.2f %%  %*s", per_cent(n->total, t->options->whole),
                  (int)(indent < 1000 ? indent : 1000), "");
    name_add_short(&t->line, buffer_text(&shown),
                   !t->options->width              ? PIPED_NAME
                   : t->options->width > used + 10 ? t->options->width - used
                                                   : 10);
    buffer_release(&shown);
}

static void add_json(struct tree_table *t, uint32_t node) {
    const struct flame_node *n = &t->flame->nodes.items[node];
    buffer_printf(&t->line, "%s\n{\"depth\":%u,\"name\":\"", t->rows ? "," : "", n->depth);
    buffer_add_json(&t->line, flame_name(t->flame, node));
    buffer_add(&t->line, TEXT("\","));
    if (has_self(t, node))
        buffer_printf(&t->line, "\"self\":%llu,", (unsigned long long)self_of(t, node));
    buffer_printf(&t->line, "\"total\":%llu}", (unsigned long long)n->total);
}

static void add_csv(struct tree_table *t, uint32_t node) {
    const struct flame_node *n = &t->flame->nodes.items[node];
    buffer_printf(&t->line, "%u,", n->depth);
    buffer_add_csv(&t->line, flame_name(t->flame, node));
    buffer_add_char(&t->line, ',');
    if (has_self(t, node))
        buffer_add_u64(&t->line, self_of(t, node));
    buffer_printf(&t->line, ",%llu", (unsigned long long)n->total);
}

static void write_row(struct tree_table *t, uint32_t node) {
    enum report_format format = t->options->format;
    t->line.count = 0;
    (format == REPORT_CSV ? add_csv : format == REPORT_JSON ? add_json : add_text)(t, node);
    if (format != REPORT_JSON)
        buffer_add_char(&t->line, '\n');
    out_text(t->out, buffer_text(&t->line));
    t->rows++;
}

static void write_head(struct tree_table *t) {
    struct text unit = strings_get(t->flame->strings, t->flame->unit);
    if (t->options->format == REPORT_TEXT)
        out_text(t->out, TEXT("     self     total  function\n"));
    if (t->options->format == REPORT_CSV)
        out_text(t->out, TEXT("depth,function,self,total\n"));
    if (t->options->format != REPORT_JSON)
        return;
    buffer_printf(&t->line, "{\"total\":%llu,\"unit\":\"", (unsigned long long)t->options->whole);
    buffer_add_json(&t->line, unit);
    buffer_add(&t->line, TEXT("\",\"rows\":["));
    out_text(t->out, buffer_text(&t->line));
}

static uint32_t next_shown(const struct tree_table *t, uint32_t node) {
    while (node && !is_shown(t, node))
        node = t->next[node];
    return node;
}

size_t tree_table_write(struct out *out, const struct flame *flame,
                        const struct tree_table_options *options) {
    struct tree_table t = {.out = out, .flame = flame, .options = options};
    flame_link_by_weight(t.flame, &t.first, &t.next);
    write_head(&t);
    for (uint32_t at = next_shown(&t, t.first[0]); at;) {
        write_row(&t, at);
        uint32_t below = next_shown(&t, t.first[at]);
        while (!below && at) {
            below = next_shown(&t, t.next[at]);
            at = flame->nodes.items[at].parent;
        }
        at = below;
    }
    if (options->format == REPORT_JSON)
        out_text(out, TEXT("\n]}\n"));
    buffer_release(&t.line);
    free(t.first);
    free(t.next);
    return flame->nodes.count - 1 - t.rows;
}
