/*
 * A flame as an SVG's frames.
 *
 * One walk, parents first and from left to right, without recursion and without a stack of nodes: children and
 * siblings are linked, and only the left edge of the open frame at each depth is kept. A frame that is too narrow is left out with
 * all it calls, so the walk costs what is drawn, not what was counted. Threads then draw slices of what it found. Each distinct name is
 * escaped once a thread, when it is first drawn.
 */
#include "view/svg.h"

#include <math.h>
#include <stdlib.h>

#include "view/colour.h"

struct drawing {
    struct buffer *buffer; /* what is drawn goes there */
    const struct flame *flame;
    const struct svg_options *options;
    struct svg_layout layout;
    uint64_t *widths; /* by node, for SHAPE_BOTH; else NULL */
    uint64_t total;   /* what the whole width stands for */
    uint64_t largest; /* change of any node, for a diff's colours */
    double least;     /* narrower frames are left out */
    uint64_t number;  /* of the frame at hand, for its random colour */
    struct text unit;
    struct buffer escaped; /* shown names */
    struct piece {
        size_t start, length;
        bool lossy; /* it holds bytes that are not there as they are */
    } * pieces;     /* by string: where in `escaped`; length 0: not yet */
    APART;
};

/* ---- widths ---- */

static uint64_t node_width(const struct drawing *d, uint32_t id) {
    const struct flame_node *node = &d->flame->nodes.items[id];
    if (d->widths)
        return d->widths[id];
    return d->flame->is_diff && d->options->shape == SHAPE_BEFORE ? node->total_before
                                                                  : node->total;
}

/* What a frame spent itself stands to the left of what it called, as the peers' order of lines has it. */
static uint64_t own_width(const struct drawing *d, uint32_t id) {
    const struct flame_node *node = &d->flame->nodes.items[id];
    if (d->widths)
        return node->self > node->self_before ? node->self : node->self_before;
    return d->flame->is_diff && d->options->shape == SHAPE_BEFORE ? node->self_before : node->self;
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

static uint64_t change_of(const struct flame_node *node) {
    return node->total > node->total_before ? node->total - node->total_before
                                            : node->total_before - node->total;
}

static uint64_t largest_change(const struct flame *flame) {
    uint64_t largest = 0;
    for (size_t i = 1; i < flame->nodes.count; i++) {
        uint64_t change = change_of(&flame->nodes.items[i]);
        largest = change > largest ? change : largest;
    }
    return largest;
}

/* What is narrower than its parent may be is no deeper than what is drawn, so any order of looking gives the same answer. */
static uint64_t deepest_drawn(const struct drawing *d) {
    uint32_t deepest = 0;
    for (uint32_t i = 1; i < d->flame->nodes.count; i++) {
        uint64_t width = node_width(d, i);
        if (width > 0 && (double)width >= d->least && d->flame->nodes.items[i].depth > deepest)
            deepest = d->flame->nodes.items[i].depth;
    }
    return deepest;
}

/* ---- one frame ---- */

static struct text escaped_name(struct drawing *d, uint32_t id) {
    if (id == 0)
        return TEXT("");
    struct piece *piece = &d->pieces[id];
    if (piece->length == 0) {
        piece->start = d->escaped.count;
        struct text name = name_unmarked(strings_get(d->flame->strings, id));
        svg_add_shown(&d->escaped, name, d->options->plain_labels);
        piece->length = d->escaped.count - piece->start;
        piece->lossy = svg_is_lossy(name) || (!d->options->plain_labels && !text_is_shown(name));
    }
    return (struct text){d->escaped.items + piece->start, piece->length};
}

static uint64_t shown_count(const struct drawing *d, uint64_t weight) {
    double factor = d->options->factor;
    if (factor == 0 || factor == 1)
        return weight;
    double scaled = floor((double)weight * factor + 0.5);
    return scaled < 0 ? 0 : scaled >= 0x1p64 ? UINT64_MAX : (uint64_t)scaled;
}

static void add_per_cent(struct drawing *d, const struct flame_node *node, uint64_t part,
                         uint64_t whole) {
    if (node == d->flame->nodes.items && part == whole)
        buffer_add(d->buffer, TEXT("100"));
    else
        buffer_add_hundredths(d->buffer, per_cent(part, whole));
    buffer_add_char(d->buffer, '%');
}

/* "+1.23 points", the difference of the two shares; "0.00 points" has no sign. */
static void add_points(struct drawing *d, double before, double after) {
    double points = fabs(after - before);
    if (points >= 0.005)
        buffer_add_char(d->buffer, after > before ? '+' : '-');
    buffer_add_hundredths(d->buffer, points);
    buffer_add(d->buffer, TEXT(" points"));
}

/* "; was 4, 8.00%: +1.23 points, ×1.50": each share is of its own side's whole. */
static void add_change(struct drawing *d, const struct flame_node *node) {
    const struct flame_node *root = d->flame->nodes.items;
    buffer_add(d->buffer, TEXT("; was "));
    buffer_add_grouped(d->buffer, shown_count(d, node->total_before));
    buffer_add(d->buffer, TEXT(", "));
    add_per_cent(d, node, node->total_before, root->total_before);
    buffer_add(d->buffer, TEXT(": "));
    add_points(d, per_cent(node->total_before, root->total_before),
               per_cent(node->total, root->total));
    if (!node->total && !node->total_before)
        return;
    buffer_add(d->buffer, TEXT(", "));
    buffer_add_factor(d->buffer, node->total_before, node->total);
}

static void add_counts(struct drawing *d, const struct flame_node *node) {
    uint64_t whole = d->flame->is_diff ? d->flame->nodes.items[0].total : d->total;
    buffer_add(d->buffer, TEXT(" ("));
    buffer_add_grouped(d->buffer, shown_count(d, node->total));
    buffer_add_char(d->buffer, ' ');
    svg_add_shown(d->buffer, d->unit, d->options->plain_labels);
    buffer_add(d->buffer, TEXT(", "));
    add_per_cent(d, node, node->total, whole);
    if (d->flame->is_diff)
        add_change(d, node);
    buffer_add_char(d->buffer, ')');
}

static struct text root_name(const struct drawing *d) {
    return d->options->root_name ? text_of(d->options->root_name) : TEXT("all");
}

static void add_title(struct drawing *d, const struct flame_node *node,
                      const struct name_attribute *attribute) {
    buffer_add(d->buffer, TEXT("<title>"));
    if (attribute && attribute->title.length) {
        svg_add_xml(d->buffer, attribute->title);
    } else {
        if (node == d->flame->nodes.items)
            svg_add_shown(d->buffer, root_name(d), d->options->plain_labels);
        else
            buffer_add(d->buffer, escaped_name(d, node->name));
        add_counts(d, node);
    }
    buffer_add(d->buffer, TEXT("</title>"));
}

/* Wider is redder: the root of the share, so that a tenth of the whole is a third of the way. */
static struct colour colour_by_width(const struct drawing *d, uint64_t width) {
    double share = sqrt((double)width / (double)d->total) * 2000;
    return colour_of_change((uint64_t)share, 2000, true);
}

static bool tells_waits(const struct flame *flame, const struct svg_options *o) {
    return flame->has_waits && o->colouring.palette == PALETTE_WICK && !o->colouring.by_hash &&
           !o->random && !o->diffusion && !o->map && !o->plain_labels;
}

static struct colour node_colour(struct drawing *d, const struct flame_node *node, uint64_t width) {
    const struct svg_options *options = d->options;
    if (options->diffusion)
        return colour_by_width(d, width);
    if (d->flame->is_diff) {
        bool grew = node->total > node->total_before;
        return colour_of_change(change_of(node), d->largest, grew != options->negate);
    }
    if (node == d->flame->nodes.items)
        return (struct colour){226, 222, 216};
    struct text name = strings_get(d->flame->strings, node->name);
    if (tells_waits(d->flame, options))
        return colour_of_wall(name, strings_get(d->flame->strings, node->object), node->kinds,
                              node->total_before > node->total / 2);
    struct colour colour =
        options->random
            ? colour_at_random(&options->colouring, name, node->kinds, d->number)
            : colour_of_frame(&options->colouring, name,
                              strings_get(d->flame->strings, node->object), node->kinds);
    return options->map ? palette_map_take(options->map, name, colour) : colour;
}

static uint64_t row_top(const struct drawing *d, uint32_t depth) {
    uint64_t row = d->options->inverted ? depth : d->layout.rows - 1 - depth;
    return d->layout.top + row * d->layout.frame_height;
}

static void add_colour(struct buffer *buffer, struct colour c) {
    static const char digits[] = "0123456789abcdef";
    char text[] = {'#',
                   digits[c.red >> 4],
                   digits[c.red & 15],
                   digits[c.green >> 4],
                   digits[c.green & 15],
                   digits[c.blue >> 4],
                   digits[c.blue & 15]};
    buffer_add(buffer, (struct text){text, sizeof text});
}

static void add_rect(struct drawing *d, uint32_t depth, uint64_t x, uint64_t width,
                     struct colour colour) {
    struct buffer *b = d->buffer;
    buffer_add(b, TEXT("<rect x=\""));
    svg_add_place(b, x, d->total, 0, 1);
    buffer_add(b, TEXT("\" y=\""));
    buffer_add_u64(b, row_top(d, depth));
    buffer_add(b, TEXT("\" width=\""));
    svg_add_span(b, x, x + width, d->total);
    buffer_add(b, TEXT("\" height=\""));
    buffer_add_u64(b, d->layout.frame_height - 1);
    buffer_add(b, TEXT("\" fill=\""));
    add_colour(b, colour);
    buffer_add(b, TEXT("\" fg:x=\""));
    buffer_add_u64(b, x);
    buffer_add(b, TEXT("\" fg:w=\""));
    buffer_add_u64(b, width);
    buffer_add(b, TEXT("\"/>"));
}

static void add_text(struct drawing *d, const struct flame_node *node, uint64_t x, uint64_t width,
                     struct colour colour) {
    struct buffer *b = d->buffer;
    uint32_t plot = d->layout.width - 2 * SVG_MARGIN;
    double letters = ((double)plot * (double)width / (double)d->total - 6) / d->layout.letter;
    if (letters < 3)
        return;
    struct text name = node == d->flame->nodes.items
                           ? root_name(d)
                           : name_unmarked(strings_get(d->flame->strings, node->name));
    buffer_add(b, TEXT("<text x=\""));
    svg_add_place(b, x, d->total, 3, plot);
    buffer_add(b, TEXT("\" y=\""));
    buffer_add_u64(b, row_top(d, node->depth) + (d->layout.frame_height + d->layout.font_size) / 2 -
                          3);
    buffer_add(b, colour_takes_black(colour) ? TEXT("\">") : TEXT("\" class=\"w\">"));
    svg_add_label(b, name, (size_t)letters, d->options->truncate_left, d->options->plain_labels);
    buffer_add(b, TEXT("</text>"));
}

static bool add_link(struct buffer *b, const struct name_attribute *attribute) {
    if (!attribute || !attribute->href.length)
        return false;
    buffer_add(b, TEXT("<a href=\""));
    svg_add_xml(b, attribute->href);
    if (attribute->target.length) {
        buffer_add(b, TEXT("\" target=\""));
        svg_add_xml(b, attribute->target);
    }
    buffer_add_char(b, '"');
    buffer_add(b, attribute->link);
    buffer_add_char(b, '>');
    return true;
}

/* What the title does not tell, so that the file can be read back exactly. */
static void add_identity(struct drawing *d, const struct flame_node *node, bool other_title) {
    struct text name = strings_get(d->flame->strings, node->name);
    escaped_name(d, node->name);
    if (node->name && (other_title || d->pieces[node->name].lossy)) {
        buffer_add(d->buffer, TEXT(" fg:name=\""));
        svg_add_exact(d->buffer, name);
        buffer_add_char(d->buffer, '"');
    } else if (name_unmarked(name).length < name.length) {
        buffer_add(d->buffer, TEXT(" fg:mark=\""));
        buffer_add_char(d->buffer, name.data[name.length - 2]);
        buffer_add_char(d->buffer, '"');
    }
}

static void add_frame(struct drawing *d, uint32_t id, uint64_t x, uint64_t width) {
    const struct flame_node *node = &d->flame->nodes.items[id];
    const struct name_attribute *attribute =
        name_attributes_find(d->options->attributes, strings_get(d->flame->strings, node->name));
    struct colour colour = node_colour(d, node, width);
    buffer_add(d->buffer, TEXT("<g"));
    if (attribute)
        buffer_add(d->buffer, attribute->group);
    add_identity(d, node, attribute && attribute->title.length);
    buffer_add_char(d->buffer, '>');
    add_title(d, node, attribute);
    bool linked = add_link(d->buffer, attribute);
    add_rect(d, node->depth, x, width, colour);
    add_text(d, node, x, width, colour);
    if (linked)
        buffer_add(d->buffer, TEXT("</a>"));
    buffer_add(d->buffer, TEXT("</g>\n"));
}

/* ---- the walk ---- */

/* A frame that is wide enough. */
struct drawn_frame {
    uint32_t node;
    uint64_t x;
};
struct places {
    struct drawn_frame *items; /* a vector */
    size_t count;
    size_t capacity;
};

/* lefts[depth] is where the next frame of that depth begins. */
static void find_places(const struct drawing *d, struct places *places) {
    const struct flame_node *nodes = d->flame->nodes.items;
    uint64_t *lefts = memory_zero(d->layout.rows + 1, sizeof *lefts);
    uint32_t id = 0;
    for (;;) {
        uint64_t width = node_width(d, id), x = lefts[nodes[id].depth];
        lefts[nodes[id].depth] = x + width;
        bool drawn = width > 0 && (double)width >= d->least;
        if (drawn)
            vector_push(places, ((struct drawn_frame){id, x}));
        if (drawn && nodes[id].first_child) {
            uint64_t own = own_width(d, id);
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

enum { SLICE = 256 };

struct slices {
    struct places places;
    struct drawing *drawings; /* one a worker */
};

static bool draw_slice(void *context, unsigned worker, size_t item, struct buffer *buffer,
                       struct error *error) {
    struct slices *slices = context;
    struct drawing *d = &slices->drawings[worker];
    size_t end = (item + 1) * SLICE;
    d->buffer = buffer;
    for (size_t i = item * SLICE; i < end && i < slices->places.count; i++) {
        const struct drawn_frame *place = &slices->places.items[i];
        d->number = i - 1; /* the root has a colour of its own */
        add_frame(d, place->node, place->x, node_width(d, place->node));
    }
    context_progress(d->options->context, "drawing", end, slices->places.count);
    return true;
}

/* A palette file's colours depend on which name came first. */
static void draw_frames(const struct drawing *d, struct out *out) {
    unsigned threads = d->options->map ? 1 : context_threads(d->options->context);
    struct slices slices = {.drawings = memory_zero(threads, sizeof *slices.drawings)};
    find_places(d, &slices.places);
    for (unsigned i = 0; i < threads; i++) {
        slices.drawings[i] = *d;
        slices.drawings[i].pieces =
            memory_zero(strings_count(d->flame->strings) + 1, sizeof *d->pieces);
    }
    out_in_order(out, d->options->context, threads, (slices.places.count + SLICE - 1) / SLICE,
                 draw_slice, &slices, NULL);
    for (unsigned i = 0; i < threads; i++) {
        buffer_release(&slices.drawings[i].escaped);
        free(slices.drawings[i].pieces);
    }
    free(slices.drawings);
    vector_release(&slices.places);
}

/* ---- not too large ---- */

enum { MOST_FRAMES = 20000, MOST_BYTES = 7 << 19, FRAME_BYTES = 300 };

/* What a frame takes in the file, or somewhat more. */
static size_t frame_bytes(const struct drawing *d, uint32_t node) {
    struct text name = strings_get(d->flame->strings, d->flame->nodes.items[node].name);
    size_t bytes = FRAME_BYTES + name.length;
    for (size_t i = 0; i < name.length; i++)
        bytes += 3 * (name.data[i] == '<' || name.data[i] == '>' || name.data[i] == '&');
    return bytes;
}

static int order_widths(const void *a, const void *b, void *context) {
    const struct drawn_frame *x = a, *y = b;
    uint64_t wide = node_width(context, x->node), other = node_width(context, y->node);
    return (wide < other) - (wide > other);
}

/* Leave out the narrowest frames if there are more than can be seen or the file would be huge, as a larger --minwidth would: what a frame
   calls is no wider than it. Costs a sort of what would be drawn. */
static size_t bound(struct drawing *d) {
    struct places places = {0};
    size_t bytes = 0, kept = 0;
    find_places(d, &places);
    for (size_t i = 0; i < places.count; i++)
        bytes += frame_bytes(d, places.items[i].node);
    if (places.count > MOST_FRAMES || bytes > MOST_BYTES) {
        qsort_r(places.items, places.count, sizeof *places.items, order_widths, d);
        for (bytes = 0; kept < places.count && kept < MOST_FRAMES && bytes <= MOST_BYTES; kept++)
            bytes += frame_bytes(d, places.items[kept].node);
        uint64_t first_left_out = kept < places.count ? node_width(d, places.items[kept].node) : 0;
        while (kept && node_width(d, places.items[kept - 1].node) == first_left_out)
            kept--;
        d->least = kept ? (double)node_width(d, places.items[kept - 1].node) : d->least;
    } else {
        kept = places.count;
    }
    size_t left_out = kept ? places.count - kept : 0;
    vector_release(&places);
    return left_out;
}

static struct svg_layout layout_of(const struct svg_options *options, uint64_t deepest) {
    struct svg_layout layout = {
        .width = options->width ? options->width : 1200,
        .frame_height = options->frame_height ? options->frame_height : 16,
        .font_size = options->font_size ? options->font_size : 12,
        .rows = deepest + 1,
    };
    layout.letter = layout.font_size * (options->font_width > 0 ? options->font_width : 0.59);
    layout.top = 3 * layout.font_size + 6 + (options->subtitle ? 3 * layout.font_size / 2 : 0);
    layout.height = layout.top + layout.rows * layout.frame_height + 2 * layout.font_size + 6;
    return layout;
}

/* What the colours mean stands below the title, after the subtitle. */
static void add_legend(struct buffer *buffer, struct svg_options *options) {
    if (options->subtitle)
        buffer_printf(buffer, "%s · ", options->subtitle);
    buffer_add(buffer, TEXT("orange: mostly running, blue: mostly waiting"));
    buffer_add_char(buffer, 0);
    options->subtitle = buffer->items;
}

size_t svg_write(struct out *out, const struct flame *flame, const struct svg_options *given) {
    struct svg_options own = *given, *options = &own;
    struct buffer legend = {0};
    struct drawing d = {.flame = flame, .options = options};
    if (tells_waits(flame, options))
        add_legend(&legend, options);
    struct text unit = strings_get(flame->strings, flame->unit);
    d.unit = options->count_name ? text_of(options->count_name)
             : unit.length       ? unit
                                 : TEXT("samples");
    if (flame->is_diff) {
        d.widths = options->shape == SHAPE_BOTH ? widths_of_both(flame) : NULL;
        d.largest = largest_change(flame);
    }
    d.total = node_width(&d, 0);
    if (options->total > d.total)
        d.total = options->total;
    d.least = (double)d.total * options->min_width / 100;
    d.layout = layout_of(options, deepest_drawn(&d));
    size_t left_out = options->unbounded ? 0 : bound(&d);
    if (left_out)
        d.layout = layout_of(options, deepest_drawn(&d));
    svg_write_head(out, flame, options, &d.layout, d.total);
    draw_frames(&d, out);
    svg_write_tail(out, options);
    free(d.widths);
    buffer_release(&legend);
    return left_out;
}
