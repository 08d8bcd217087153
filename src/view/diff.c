/*
 * Two flames side by side: one flame whose nodes know what they were before.
 *
 * And inferno's way to the two-column text, which knows no frames: a stack is a text, its counts are truncated, and lines that can't be
 * read are said one by one.
 */
#include "view/view.h"

#include <math.h>
#include <stdlib.h>

#include "import/import.h"

/* ---- addresses ---------------------------------------------------------------------------- */

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* Every `0x45ef2173` becomes `0x...`: addresses differ from run to run. */
static void add_without_hex(struct buffer *out, struct text t) {
    for (size_t at; (at = text_search(t, TEXT("0x"))) != SIZE_MAX;) {
        size_t digits = 0;
        buffer_add(out, text_upto(t, at + 2));
        t = text_from(t, at + 2);
        while (digits < t.length && is_hex(t.data[digits]))
            digits++;
        if (digits)
            buffer_add(out, TEXT("..."));
        t = text_from(t, digits);
    }
    buffer_add(out, t);
}

/* ---- flames ------------------------------------------------------------------------------- */

struct differ {
    struct flame *flame;
    const struct diff_options *options;
    struct buffer name;
};

static struct label label_of(struct differ *d, const struct flame *from,
                             const struct flame_node *node) {
    struct text name = strings_get(from->strings, node->name);
    d->name.count = 0;
    if (d->options->strip_hex) {
        add_without_hex(&d->name, name);
        name = buffer_text(&d->name);
    }
    uint32_t object =
        node->object ? strings_add(d->flame->strings, strings_get(from->strings, node->object)) : 0;
    return (struct label){strings_add(d->flame->strings, name), object, node->kinds};
}

/* Parents stand before their children, so one walk forward maps all nodes. `scale` is for the weights. */
static bool add_side(struct differ *d, const struct flame *from, bool before, double scale) {
    uint32_t *mapped = memory_zero(from->nodes.count, sizeof *mapped);
    bool fits = true;
    for (size_t i = 1; i < from->nodes.count; i++) {
        const struct flame_node *node = &from->nodes.items[i];
        struct label label = label_of(d, from, node);
        mapped[i] = flame_child(d->flame, mapped[node->parent], &label);
        struct flame_node *to = &d->flame->nodes.items[mapped[i]];
        uint64_t weight = scale == 1 ? node->self : (uint64_t)llround((double)node->self * scale);
        uint64_t *sum = before ? &to->self_before : &to->self;
        to->counted |= node->counted;
        fits &= checked_add(*sum, weight, sum);
    }
    free(mapped);
    return fits;
}

struct flame *flame_diff(const struct flame *before, const struct flame *after,
                         const struct diff_options *options, struct error *error) {
    struct differ d = {.flame = flame_new(), .options = options};
    uint64_t old_total = before->nodes.items[0].total, new_total = after->nodes.items[0].total;
    double scale = options->normalize && old_total ? (double)new_total / (double)old_total : 1;
    d.flame->is_diff = true;
    if (after->unit)
        d.flame->unit = strings_add(d.flame->strings, strings_get(after->strings, after->unit));
    bool fits = add_side(&d, before, true, scale) && add_side(&d, after, false, 1);
    buffer_release(&d.name);
    if (fits && flame_finish(d.flame, error))
        return d.flame;
    if (!fits)
        error_set(error, ERROR_INPUT, "the weights add up to more than 2^64");
    flame_free(d.flame);
    return NULL;
}

/* ---- back to a tree ---- */

struct sides {
    struct tree *tree;
    const struct flame *flame;
    uint32_t events[2]; /* after, before */
    uint32_t *tops;     /* by node: which of those next to the root it stands on */
};

/* A root frame that is no function is the comm of what is on it. */
static void sides_count(struct sides *s, uint32_t id, uint32_t node) {
    const struct flame_node *from = &s->flame->nodes.items[id];
    uint32_t top = s->tops[id];
    bool has_comm = s->flame->nodes.items[top].kinds & KIND_ROOT;
    for (int side = 0; side < 2; side++) {
        uint64_t weight = side ? from->self_before : from->self;
        struct series series = {.event = s->events[side], .ending = ENDING_UNKNOWN};
        if (has_comm)
            series.comm = strings_add(s->tree->strings, flame_name(s->flame, top));
        if (weight)
            tree_count(s->tree, node, tree_add_series(s->tree, &series), weight, weight);
    }
}

static uint32_t sides_location(struct sides *s, const struct flame_node *from) {
    struct text object = strings_get(s->flame->strings, from->object);
    struct location location = {
        .name = strings_add(s->tree->strings, strings_get(s->flame->strings, from->name)),
        .kinds = (uint8_t)from->kinds};
    if (from->object && !text_equal(object, TEXT("[unknown]")))
        location.object = objects_add(
            s->tree->objects, &(struct object_identity){.path = object, .kind = OBJECT_NAME});
    return tree_add_location(s->tree, &location);
}

struct tree *tree_of_diff(const struct flame *flame) {
    struct sides s = {.tree = tree_new(), .flame = flame};
    struct text unit = flame->unit ? strings_get(flame->strings, flame->unit) : TEXT("samples");
    uint32_t *nodes = memory_zero(flame->nodes.count, sizeof *nodes);
    s.tops = memory_zero(flame->nodes.count, sizeof *s.tops);
    s.tree->objects = objects_new(&(struct objects_options){0});
    s.events[0] = tree_add_event(s.tree, unit, unit, EVENT_OTHER);
    s.events[1] = tree_add_event(s.tree, TEXT("before"), unit, EVENT_BEFORE);
    for (uint32_t i = 1; i < flame->nodes.count; i++) {
        const struct flame_node *from = &flame->nodes.items[i];
        bool is_comm = from->parent == 0 && from->kinds & KIND_ROOT;
        s.tops[i] = from->parent ? s.tops[from->parent] : i;
        nodes[i] =
            is_comm ? 0 : tree_add_node(s.tree, nodes[from->parent], sides_location(&s, from));
        sides_count(&s, i, nodes[i]);
    }
    free(s.tops);
    free(nodes);
    return s.tree;
}

/* ---- inferno's text ----------------------------------------------------------------------- */

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
        add_without_hex(&c->stripped, stack);
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
