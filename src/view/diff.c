/*
 * The two-column text by inferno's rules, which have no frames: a stack is a text, its counts are truncated, and each unreadable line is
 * reported.
 */
#include "view/view.h"

#include <stdlib.h>

#include "import/import.h"

static const struct note_kind note_unparsed = {
    "diff-unparsed", "Unable to parse line: # in all {was|were} left out"};
static const struct note_kind note_truncated = {
    "diff-fractions",
    "The input data has fractional sample counts that will be truncated to integers"};

struct two_counts {
    uint32_t stack;
    uint64_t before;
    uint64_t after;
};

struct two_columns {
    const struct diff_options *options;
    struct strings *stacks;
    VECTOR(struct two_counts) counts; /* by the stacks' ids */
    uint64_t totals[2];
    struct buffer lossy, stripped;
    struct notes *notes;
};

static bool all_of(struct text t, const char *bytes) {
    for (size_t i = 0; i < t.length; i++)
        if (!strchr(bytes, t.data[i]) || !t.data[i])
            return false;
    return true;
}

/* "12.75" is 12; *truncated if that loses anything. */
static bool truncated_count(struct text t, uint64_t *count, bool *truncated) {
    size_t point = text_find(t, '.');
    if (point != SIZE_MAX) {
        if (!all_of(text_upto(t, point), "0123456789") ||
            !all_of(text_from(t, point + 1), "0123456789"))
            return false;
        *truncated |= !all_of(text_from(t, point + 1), "0");
        t = text_upto(t, point);
    }
    return text_to_u64(t.length > 1 && t.data[0] == '+' ? text_from(t, 1) : t, count);
}

static struct two_counts *counts_of(struct two_columns *c, struct text stack) {
    c->stripped.count = 0;
    if (c->options->strip_hex) {
        buffer_add_without_hex(&c->stripped, stack);
        stack = buffer_text(&c->stripped);
    }
    uint32_t id = strings_add(c->stacks, stack);
    for (uint32_t next = (uint32_t)c->counts.count; next <= id; next++)
        vector_push(&c->counts, ((struct two_counts){.stack = next}));
    return &c->counts.items[id];
}

static void add_line(struct two_columns *c, struct text line, bool is_after, bool *truncated) {
    size_t space = text_find_last(line, ' ');
    uint64_t count;
    if (space == SIZE_MAX ||
        !truncated_count(text_trim_end(text_from(line, space + 1)), &count, truncated)) {
        size_t shown = line.length < 80 ? line.length : 80;
        notes_add(c->notes, &note_unparsed, 1, 0, "%.*s", (int)shown, line.data);
        return;
    }
    struct two_counts *counts = counts_of(c, text_trim_end(text_upto(line, space)));
    uint64_t *sum = is_after ? &counts->after : &counts->before;
    *sum = saturating_add(*sum, count);
    c->totals[is_after] = saturating_add(c->totals[is_after], count);
}

static void add_text(struct two_columns *c, struct text rest, bool is_after) {
    bool truncated = false;
    while (rest.length) {
        struct text line = text_take_line(&rest);
        add_line(c, text_lossy(line, &c->lossy), is_after, &truncated);
    }
    if (truncated)
        notes_add(c->notes, &note_truncated, 1, 0, NULL);
}

static int by_stack(const void *a, const void *b, void *strings) {
    const struct two_counts *x = a, *y = b;
    return text_compare(strings_get(strings, x->stack), strings_get(strings, y->stack));
}

static uint64_t scaled(const struct two_columns *c, uint64_t before) {
    if (!c->options->normalize || c->totals[0] == c->totals[1])
        return before;
    double value = (double)before * (double)c->totals[1] / (double)c->totals[0];
    return value >= 18446744073709551616.0 ? UINT64_MAX : value > 0 ? (uint64_t)value : 0;
}

void diff_folded_inferno(struct out *out, struct text before, struct text after,
                         const struct diff_options *options, struct notes *notes) {
    struct two_columns c = {.options = options, .stacks = strings_new(), .notes = notes};
    add_text(&c, before, false);
    add_text(&c, after, true);
    if (c.counts.count > 1)
        qsort_r(c.counts.items + 1, c.counts.count - 1, sizeof *c.counts.items, by_stack, c.stacks);
    for (size_t i = 1; i < c.counts.count; i++) {
        out_text(out, strings_get(c.stacks, c.counts.items[i].stack));
        out_char(out, ' ');
        out_u64(out, scaled(&c, c.counts.items[i].before));
        out_char(out, ' ');
        out_u64(out, c.counts.items[i].after);
        out_char(out, '\n');
    }
    strings_free(c.stacks);
    vector_release(&c.counts);
    buffer_release(&c.lossy);
    buffer_release(&c.stripped);
}
