/*
 * Decide which frames of a flame are drawn, and where.
 *
 * One walk, parents first and left to right, without recursion and without a stack of nodes: children and siblings are linked, and only the left
 * edge of the open frame at each depth is kept. A frame that is too narrow is left out with its callees, so the cost of the walk depends on what
 * is drawn, not on what was counted.
 */
#include "view/svg.h"

#include <stdlib.h>

/* ---- widths ---- */

static bool shows_before(const struct svg_shape *s) {
    return s->flame->is_diff && s->options->shape == SHAPE_BEFORE;
}

uint64_t svg_width(const struct svg_shape *s, uint32_t id) {
    const struct flame_node *node = &s->flame->nodes.items[id];
    if (s->widths)
        return s->widths[id];
    return shows_before(s) ? node->total_before : node->total;
}

/* A frame's self weight is to the left of its callees, as in flamegraph.pl's and inferno's order of lines. */
static uint64_t own_width(const struct svg_shape *s, uint32_t id) {
    const struct flame_node *node = &s->flame->nodes.items[id];
    if (s->widths)
        return node->self > node->self_before ? node->self : node->self_before;
    return shows_before(s) ? node->self_before : node->self;
}

/* The larger of both sides' own weights, added up. Sums beyond 64 bits leave the shape of the later side. */
static uint64_t *widths_of_both(const struct flame *flame) {
    uint64_t *widths = memory_zero(flame->nodes.count, sizeof *widths);
    bool overflow = false;
    for (size_t i = flame->nodes.count; i-- > 0;) {
        const struct flame_node *node = &flame->nodes.items[i];
        uint64_t own = node->self > node->self_before ? node->self : node->self_before;
        overflow |= __builtin_add_overflow(widths[i], own, &widths[i]);
        if (i > 0)
            overflow |=
                __builtin_add_overflow(widths[node->parent], widths[i], &widths[node->parent]);
    }
    if (!overflow)
        return widths;
    free(widths);
    return NULL;
}

void svg_shape_begin(struct svg_shape *s, const struct flame *flame,
                     const struct svg_options *options) {
    *s = (struct svg_shape){.flame = flame, .options = options};
    if (flame->is_diff && options->shape == SHAPE_BOTH)
        s->widths = widths_of_both(flame);
    s->total = svg_width(s, 0);
    if (options->total > s->total)
        s->total = options->total;
    s->least = (double)s->total * options->min_width / 100;
}

void svg_shape_end(struct svg_shape *s) {
    free(s->widths);
}

/* ---- the walk ---- */

/* What a frame calls is no wider and deeper, so that what is drawn hangs together. */
static bool is_drawn(const struct svg_shape *s, uint32_t id) {
    uint64_t width = svg_width(s, id);
    return width > 0 && (double)width >= s->least &&
           !(width == s->narrowest && s->flame->nodes.items[id].depth > s->deepest);
}

static uint32_t deepest_node(const struct svg_shape *s) {
    uint32_t deepest = 0;
    for (uint32_t i = 1; i < s->flame->nodes.count; i++)
        if (s->flame->nodes.items[i].depth > deepest && is_drawn(s, i))
            deepest = s->flame->nodes.items[i].depth;
    return deepest;
}

/* lefts[depth] is where the next frame of that depth begins. */
void svg_shape_place(const struct svg_shape *s, struct svg_places *places) {
    const struct flame_node *nodes = s->flame->nodes.items;
    uint64_t *lefts = memory_zero((size_t)deepest_node(s) + 2, sizeof *lefts);
    uint32_t id = 0;
    places->count = 0;
    for (;;) {
        uint64_t width = svg_width(s, id), x = lefts[nodes[id].depth];
        bool drawn = is_drawn(s, id);
        lefts[nodes[id].depth] = x + width;
        if (drawn)
            vector_push(places, ((struct svg_place){id, x}));
        if (drawn && nodes[id].first_child) {
            uint64_t own = own_width(s, id);
            id = nodes[id].first_child;
            lefts[nodes[id].depth] = x + own;
            continue;
        }
        while (id && !nodes[id].next)
            id = nodes[id].parent;
        if (!id)
            break;
        id = nodes[id].next;
    }
    free(lefts);
}

uint32_t svg_shape_depth(const struct svg_shape *s, const struct svg_places *places) {
    uint32_t deepest = 0;
    for (size_t i = 0; i < places->count; i++) {
        uint32_t depth = s->flame->nodes.items[places->items[i].node].depth;
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

/* ---- not too large ---- */

/* The frames get less than 4 MB, so that the whole does: script, style and titles take the rest. */
enum { MOST_FRAMES = 20000, MOST_BYTES = 7 << 19, LEAST_FRAMES = 1000, USUAL_NAME = 2000 };

/* Whether it is not worth measuring: most pictures have few frames and no monstrous names. */
static bool has_few_frames(const struct svg_shape *s, const struct svg_places *places) {
    size_t longest = 0;
    if (places->count > LEAST_FRAMES)
        return false;
    for (size_t i = 0; i < places->count; i++) {
        uint32_t name = s->flame->nodes.items[places->items[i].node].name;
        size_t length = strings_get(s->flame->strings, name).length;
        longest = length > longest ? length : longest;
    }
    return longest < USUAL_NAME / 6; /* as bytes of XML */
}

/* The most bytes that a name takes in a title, a label or a list: six for what XML escapes, and sixteen where others are spelled out and
   the exact name is kept as well. */
static uint32_t name_bytes(struct text name) {
    uint32_t bytes = 8; /* for what a cut leaves behind */
    for (size_t i = 0; i < name.length; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c < 0x20 || c >= 0x7f)
            return 8 +
                   16 * (uint32_t)(name.length < UINT32_MAX / 32 ? name.length : UINT32_MAX / 32);
        bytes += c == '<' || c == '>' || c == '&' || c == '"' || c == '\'' ? 6 : 1;
    }
    return bytes;
}

/* Whether the frames can't take too many bytes, by the length of their names: each stands in a title, a label, and once in a list. Costs a look at
   each distinct name, where measuring costs the whole picture. */
static bool has_short_names(const struct svg_shape *s, const struct svg_places *places) {
    enum { WITHOUT_NAMES = 400, TIMES = 3 };
    const struct svg_options *options = s->options;
    const struct flame *flame = s->flame;
    if (places->count > MOST_FRAMES || flame->is_diff || options->attributes || options->count_name)
        return false;
    uint64_t bytes = 0, each = WITHOUT_NAMES + name_bytes(strings_get(flame->strings, flame->unit));
    uint32_t *known = memory_zero(strings_count(flame->strings) + 1, sizeof *known);
    for (size_t i = 0; i < places->count; i++) {
        uint32_t name = flame->nodes.items[places->items[i].node].name;
        if (!known[name])
            known[name] = name_bytes(strings_get(flame->strings, name));
        bytes += each + (uint64_t)TIMES * known[name];
    }
    free(known);
    return bytes <= MOST_BYTES;
}

static int order_places(const void *a, const void *b, void *context) {
    const struct svg_shape *s = context;
    const struct svg_place *x = a, *y = b;
    uint64_t wide = svg_width(s, x->node), other = svg_width(s, y->node);
    uint32_t deep = s->flame->nodes.items[x->node].depth;
    uint32_t other_deep = s->flame->nodes.items[y->node].depth;
    return wide != other ? (wide < other) - (wide > other)
                         : (deep > other_deep) - (deep < other_deep);
}

size_t svg_shape_bound(struct svg_shape *s, const struct svg_places *places,
                       size_t (*frame_bytes)(void *context, const struct svg_place *place),
                       void *context) {
    size_t bytes = 0, kept = 0;
    if (has_few_frames(s, places) || has_short_names(s, places))
        return 0;
    struct svg_place *order =
        (struct svg_place *)memory_copy(places->items, places->count * sizeof *order);
    qsort_r(order, places->count, sizeof *order, order_places, s);
    for (; kept < places->count && kept < MOST_FRAMES; kept++) {
        bytes += frame_bytes(context, &order[kept]);
        if (bytes > MOST_BYTES)
            break;
    }
    size_t left_out = places->count - kept;
    if (left_out) { /* those that are alike stay or go together, the root stays */
        while (kept > 1 && order_places(&order[kept - 1], &order[kept], s) == 0)
            kept--;
        uint32_t last = order[kept ? kept - 1 : 0].node;
        s->narrowest = svg_width(s, last);
        s->least = (double)s->narrowest;
        s->deepest = s->flame->nodes.items[last].depth;
        left_out = places->count - (kept ? kept : 1);
    }
    free(order);
    return left_out;
}
