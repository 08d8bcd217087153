/*
 * Compare two flames: make one flame whose nodes have both weights.
 */
#include "stacks/stacks.h"

#include <math.h>
#include <stdlib.h>

#include "object/object.h"

/* ---- addresses ---------------------------------------------------------------------------- */

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

void buffer_add_without_hex(struct buffer *out, struct text t) {
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

/* A total of a call graph's node, which is not the sum of its children's. */
struct total {
    uint32_t node;
    bool before;
    uint64_t total;
    double scale;
};

struct differ {
    struct flame *flame;
    VECTOR(struct total) totals;
    const struct diff_options *options;
    struct buffer name;
};

static struct label label_of(struct differ *d, const struct flame *from,
                             const struct flame_node *node) {
    struct text name = strings_get(from->strings, node->name);
    d->name.count = 0;
    if (d->options->strip_hex) {
        buffer_add_without_hex(&d->name, name);
        name = buffer_text(&d->name);
    }
    uint32_t object =
        node->object ? strings_add(d->flame->strings, strings_get(from->strings, node->object)) : 0;
    return (struct label){strings_add(d->flame->strings, name), object, node->kinds};
}

static uint64_t scaled(uint64_t weight, double scale) {
    return scale == 1 ? weight : (uint64_t)llround((double)weight * scale);
}

static void take_totals(struct differ *d) {
    for (size_t i = 0; i < d->totals.count; i++) {
        const struct total *t = &d->totals.items[i];
        struct flame_node *node = &d->flame->nodes.items[t->node];
        *(t->before ? &node->total_before : &node->total) = scaled(t->total, t->scale);
    }
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
        uint64_t weight = scaled(node->self, scale);
        uint64_t *sum = before ? &to->self_before : &to->self;
        if (from->is_graph)
            vector_push(&d->totals, ((struct total){mapped[i], before, node->total, scale}));
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
    bool fine = fits && flame_finish(d.flame, error);
    if (fine)
        take_totals(&d);
    buffer_release(&d.name);
    vector_release(&d.totals);
    if (fine)
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
        .function = tree_name_function(s->tree, strings_get(s->flame->strings, from->name)),
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
