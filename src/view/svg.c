/*
 * Draw the frames of an SVG.
 *
 * svg_shape.c finds the position of each frame; threads then draw slices of them. Each thread escapes a distinct name once, when it is first
 * drawn. A long name of several frames is in the file once: <metadata id="names"> before the frames lists these names, a frame has its number in
 * the list (fg:n), and its title has a shortened name, which the script expands for the frame under the pointer. Without the script every title
 * has the whole name.
 */
#include "view/svg.h"

#include <math.h>
#include <stdlib.h>

#include "stacks/stacks.h"
#include "view/colour.h"

enum { LONG_NAME = 64 }; /* bytes; a name that is no longer is as short as a number and a title */

struct drawing {
    struct buffer *buffer; /* what is drawn goes there */
    const struct flame *flame;
    const struct svg_options *options;
    const struct svg_shape *shape;
    struct svg_layout layout;
    uint64_t total;         /* what the whole width stands for */
    uint64_t largest;       /* change of any node, for a diff's colours */
    uint64_t number;        /* of the frame at hand, for its random colour */
    const uint32_t *listed; /* by string: its number in the list of names, plus 1; 0: not in it */
    struct text unit;
    struct buffer escaped; /* shown names */
    struct piece {
        size_t start, length;
        size_t short_start, short_length; /* the same of the shortened name */
        bool lossy;                       /* it holds bytes that are not there as they are */
    } * pieces;                           /* by string: where in `escaped`; length 0: not yet */
    APART;
};

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
    if (d->flame->has_samples)
        svg_add_estimate(d->buffer, node->total_before,
                         estimate_error(node->total_before, node->total, d->options->deviation),
                         d->unit);
    buffer_add_char(d->buffer, ')');
}

/* The number in the list, plus 1, of the name that a frame's title has; 0: the title has all of it. */
static uint32_t listed_name(const struct drawing *d, const struct flame_node *node,
                            const struct name_attribute *attribute) {
    return attribute && attribute->title.length ? 0 : d->listed[node->name];
}

static struct text shortened_name(struct drawing *d, uint32_t id) {
    struct piece *piece = &d->pieces[id];
    if (piece->short_length == 0) {
        struct buffer shown = {0}, cut = {0};
        buffer_add_shown(&shown, name_unmarked(strings_get(d->flame->strings, id)));
        name_add_short(&cut, buffer_text(&shown), LONG_NAME);
        piece->short_start = d->escaped.count;
        svg_add_xml(&d->escaped, buffer_text(&cut));
        piece->short_length = d->escaped.count - piece->short_start;
        buffer_release(&shown);
        buffer_release(&cut);
    }
    return (struct text){d->escaped.items + piece->short_start, piece->short_length};
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
        else if (listed_name(d, node, attribute))
            buffer_add(d->buffer, shortened_name(d, node->name));
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

/* Add what is not in the title, so that the file can be read back exactly. */
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
    if (listed_name(d, node, attribute))
        buffer_printf(d->buffer, " fg:n=\"%u\"", listed_name(d, node, attribute) - 1);
    buffer_add_char(d->buffer, '>');
    add_title(d, node, attribute);
    bool linked = add_link(d->buffer, attribute);
    add_rect(d, node->depth, x, width, colour);
    add_text(d, node, x, width, colour);
    if (linked)
        buffer_add(d->buffer, TEXT("</a>"));
    buffer_add(d->buffer, TEXT("</g>\n"));
}

/* ---- the list of names ---- */

/* Number the long names that two or more frames have, in the order in which they are drawn first. By string, as `listed`; free() it. */
static uint32_t *list_names(const struct drawing *d, const struct svg_places *places) {
    uint32_t *listed = memory_zero(strings_count(d->flame->strings) + 1, sizeof *listed);
    uint32_t *frames = memory_zero(strings_count(d->flame->strings) + 1, sizeof *frames);
    uint32_t count = 0;
    bool has_list = !d->options->no_script && !d->options->plain_labels;
    for (size_t i = 0; has_list && i < places->count; i++)
        frames[d->flame->nodes.items[places->items[i].node].name]++;
    for (size_t i = 0; has_list && i < places->count; i++) {
        uint32_t name = d->flame->nodes.items[places->items[i].node].name;
        if (frames[name] > 1 && !listed[name] &&
            strings_get(d->flame->strings, name).length > LONG_NAME)
            listed[name] = ++count;
    }
    free(frames);
    return listed;
}

static void add_listed(struct drawing *d, uint32_t name) {
    buffer_add(d->buffer, TEXT("<fg:n>"));
    buffer_add(d->buffer, escaped_name(d, name));
    buffer_add(d->buffer, TEXT("</fg:n>\n"));
}

static void write_list(struct drawing *d, const struct svg_places *places, struct out *out) {
    struct buffer list = {0}, *before = d->buffer;
    uint32_t count = 0;
    d->buffer = &list;
    for (size_t i = 0; i < places->count; i++) {
        uint32_t name = d->flame->nodes.items[places->items[i].node].name;
        if (d->listed[name] == count + 1) {
            buffer_add(&list, count ? TEXT("") : TEXT("<metadata id=\"names\">\n"));
            add_listed(d, name);
            count++;
        }
    }
    buffer_add(&list, count ? TEXT("</metadata>\n") : TEXT(""));
    out_text(out, buffer_text(&list));
    buffer_release(&list);
    d->buffer = before;
}

/* ---- all frames ---- */

enum { SLICE = 256 };

struct slices {
    const struct svg_places *places;
    struct drawing *drawings; /* one a worker */
};

static bool draw_slice(void *context, unsigned worker, size_t item, struct buffer *buffer,
                       struct error *error) {
    struct slices *slices = context;
    struct drawing *d = &slices->drawings[worker];
    size_t end = (item + 1) * SLICE;
    d->buffer = buffer;
    for (size_t i = item * SLICE; i < end && i < slices->places->count; i++) {
        const struct svg_place *place = &slices->places->items[i];
        d->number = i - 1; /* the root has a colour of its own */
        add_frame(d, place->node, place->x, svg_width(d->shape, place->node));
    }
    context_progress(d->options->context, "drawing", end, slices->places->count);
    return true;
}

static void drawing_begin(struct drawing *d) {
    d->pieces = memory_zero(strings_count(d->flame->strings) + 1, sizeof *d->pieces);
}

static void drawing_end(struct drawing *d) {
    buffer_release(&d->escaped);
    free(d->pieces);
}

/* A palette file's colours depend on which name came first. */
static void draw_frames(const struct drawing *d, const struct svg_places *places, struct out *out) {
    unsigned threads = d->options->map ? 1 : context_threads(d->options->context);
    struct slices slices = {.places = places,
                            .drawings = memory_zero(threads, sizeof *slices.drawings)};
    for (unsigned i = 0; i < threads; i++) {
        slices.drawings[i] = *d;
        drawing_begin(&slices.drawings[i]);
    }
    out_in_order(out, d->options->context, threads, (places->count + SLICE - 1) / SLICE, draw_slice,
                 &slices, NULL);
    for (unsigned i = 0; i < threads; i++)
        drawing_end(&slices.drawings[i]);
    free(slices.drawings);
}

/* ---- not too large ---- */

struct measuring {
    struct drawing drawing;
    bool *is_measured; /* by string: the list has it already */
};

/* What a frame adds to the file, its name's place in the list included. */
static size_t frame_bytes(void *context, const struct svg_place *place) {
    struct measuring *m = context;
    struct drawing *d = &m->drawing;
    uint32_t name = d->flame->nodes.items[place->node].name;
    d->buffer->count = 0;
    add_frame(d, place->node, place->x, svg_width(d->shape, place->node));
    if (d->listed[name] && !m->is_measured[name])
        add_listed(d, name);
    m->is_measured[name] = true;
    return d->buffer->count;
}

/* Draws what might be in the picture once more than the picture needs, if it could be too large. */
static size_t bound(const struct drawing *d, struct svg_shape *shape,
                    const struct svg_places *places) {
    struct svg_options options = *d->options;
    struct buffer frame = {0};
    struct measuring m = {.drawing = *d};
    uint32_t *listed = list_names(d, places);
    options.map = NULL; /* what is not drawn is not in it */
    m.drawing.options = &options;
    m.drawing.buffer = &frame;
    m.drawing.listed = listed;
    m.is_measured = memory_zero(strings_count(d->flame->strings) + 1, sizeof *m.is_measured);
    drawing_begin(&m.drawing);
    size_t left_out = svg_shape_bound(shape, places, frame_bytes, &m);
    drawing_end(&m.drawing);
    buffer_release(&frame);
    free(m.is_measured);
    free(listed);
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

/* The meaning of the colours is below the title, after the subtitle. */
static void add_legend(struct buffer *buffer, struct svg_options *options) {
    if (options->subtitle)
        buffer_printf(buffer, "%s · ", options->subtitle);
    buffer_add(buffer, TEXT("orange: mostly running, blue: mostly waiting"));
    buffer_add_char(buffer, 0);
    options->subtitle = buffer->items;
}

static void write_picture(struct drawing *d, const struct svg_places *places, struct out *out) {
    uint32_t *listed = list_names(d, places);
    d->listed = listed;
    svg_write_head(out, d->flame, d->options, &d->layout, d->total);
    drawing_begin(d);
    write_list(d, places, out);
    drawing_end(d);
    svg_write_frames(out, d->flame, d->options, &d->layout, d->total);
    draw_frames(d, places, out);
    svg_write_tail(out, d->options);
    free(listed);
}

size_t svg_write(struct out *out, const struct flame *flame, const struct svg_options *given) {
    struct svg_options own = *given, *options = &own;
    struct buffer legend = {0};
    struct svg_shape shape;
    struct svg_places places = {0};
    if (tells_waits(flame, options))
        add_legend(&legend, options);
    svg_shape_begin(&shape, flame, options);
    svg_shape_place(&shape, &places);
    struct drawing d = {.flame = flame,
                        .options = options,
                        .shape = &shape,
                        .total = shape.total,
                        .largest = flame->is_diff ? largest_change(flame) : 0,
                        .layout = layout_of(options, svg_shape_depth(&shape, &places)),
                        .unit = svg_unit(flame, options)};
    size_t left_out = options->unbounded ? 0 : bound(&d, &shape, &places);
    if (left_out) {
        svg_shape_place(&shape, &places);
        d.layout = layout_of(options, svg_shape_depth(&shape, &places));
    }
    write_picture(&d, &places, out);
    vector_release(&places);
    svg_shape_end(&shape);
    buffer_release(&legend);
    return left_out;
}
