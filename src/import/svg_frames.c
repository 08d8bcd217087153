/*
 * Drawn frames → stacks.
 *
 * Rows are sorted by their distance from the root's, frames in a row from left to right. A frame's caller is the last
 * frame of the previous row that begins no further right. That is exact even if positions are rounded to a tenth of a
 * pixel: no drawn frame is narrower than that, so two callers never begin at the same position. A frame's self weight
 * is its count minus those of its callees; that includes callees too narrow to be drawn, and a gap that nothing else
 * explains is reported.
 */
#include "import/svg.h"

#include <math.h>
#include <stdlib.h>

static const struct note_kind note_left_out = {"svg-left-out",
                                               "# or more {was|were} in frames too narrow to be "
                                               "drawn; {it counts|they count} for the callers"};
static const struct note_kind note_unplaced = {
    "svg-unplaced", "# frame{|s} of the picture {has|have} no position and {was|were} skipped"};
static const struct note_kind note_uneven = {
    "svg-uneven", "# frame{ weighs less than its|s weigh less than their} callees: the numbers in "
                  "the picture are rounded"};
static const struct note_kind note_rounded = {"svg-rounded",
                                              "# count{|s} from before {is|are} rounded: the "
                                              "picture has {it|them} in hundredths of a per cent"};

/* Each step of reversing the stacks of a reversed picture may create a node, of this many bytes. */
enum { A_NODE = 150 };

struct counter {
    struct svg_picture *picture;
    struct tree *tree;
    const char *path;
    uint64_t *called; /* by frame: sum of its callees */
    uint64_t *called_before;
    uint64_t *covered; /* by frame: the right edge of its callees */
    uint32_t *nodes;   /* by frame */
    uint32_t series, series_before;
    uint64_t left_out, uneven, rounded;
};

/* ---- rows --------------------------------------------------------------------------------- */

/* Number the rows from the root's on, whichever way the picture grows; in pictures of all three tools, no row is
   empty. */
static uint64_t root_row(const struct svg_picture *p) {
    uint64_t top = UINT64_MAX, bottom = 0;
    for (size_t i = 0; i < p->frames.count; i++) {
        const struct svg_frame *frame = &p->frames.items[i];
        if (frame->is_whole)
            return frame->y;
        top = frame->y < top ? frame->y : top;
        bottom = frame->y > bottom ? frame->y : bottom;
    }
    return p->inverted ? top : bottom;
}

static int by_place(const void *a, const void *b) {
    const struct svg_frame *x = a, *y = b;
    if (x->y != y->y)
        return x->y < y->y ? -1 : 1;
    if (x->x != y->x)
        return x->x < y->x ? -1 : 1;
    return x->width != y->width ? (x->width < y->width ? -1 : 1) : 0;
}

static void sort_frames(struct svg_picture *p) {
    uint64_t root = root_row(p);
    for (size_t i = 0; i < p->frames.count; i++) {
        uint64_t y = p->frames.items[i].y;
        p->frames.items[i].y = y > root ? y - root : root - y; /* distance from the root */
    }
    qsort(p->frames.items, p->frames.count, sizeof *p->frames.items, by_place);
}

/* ---- who calls whom ----------------------------------------------------------------------- */

static bool stands_on(const struct counter *c, const struct svg_frame *frame,
                      const struct svg_frame *parent) {
    uint64_t slack = c->picture->exact ? 0 : 1000; /* a tenth of a pixel */
    return frame->x >= parent->x && frame->x - parent->x < saturating_add(parent->width, slack);
}

/* Return true for a gap that is neither at a frame's left, where its self weight is drawn, nor caused by rounding. */
static void add_gap(struct counter *c, uint64_t from, uint64_t to) {
    const struct svg_frame *root = &c->picture->frames.items[0];
    if (c->picture->is_chart || to <= from || (!c->picture->exact && to - from < 1500))
        return;
    double samples = c->picture->exact
                         ? (double)(to - from)
                         : round((double)(to - from) / (double)root->width * (double)root->count);
    c->left_out = saturating_add(c->left_out, double_to_u64(samples));
}

static void link_child(struct counter *c, size_t child, size_t parent) {
    struct svg_frame *frames = c->picture->frames.items;
    frames[child].parent = (uint32_t)parent;
    c->called[parent] = saturating_add(c->called[parent], frames[child].count);
    c->called_before[parent] = saturating_add(c->called_before[parent], frames[child].before);
    if (c->covered[parent])
        add_gap(c, c->covered[parent], frames[child].x);
    c->covered[parent] = saturating_add(frames[child].x, frames[child].width);
}

/* Link the row at [row, end) to the previous one; frames without a caller lose their position. */
static void link_row(struct counter *c, size_t before, size_t row, size_t end) {
    struct svg_frame *frames = c->picture->frames.items;
    size_t parent = before;
    for (size_t i = row; i < end; i++) {
        while (parent + 1 < row && frames[parent + 1].x <= frames[i].x)
            parent++;
        bool placed = frames[parent].width && stands_on(c, &frames[i], &frames[parent]);
        if (placed) {
            link_child(c, i, parent);
        } else {
            c->picture->unplaced++;
            frames[i].width = 0;
        }
    }
}

static void link_frames(struct counter *c) {
    const struct svg_frame *frames = c->picture->frames.items;
    size_t count = c->picture->frames.count, before = 0, row = 0, end = 0;
    for (; row < count; before = row, row = end) {
        for (end = row; end < count && frames[end].y == frames[row].y;)
            end++;
        if (row)
            link_row(c, before, row, end);
    }
    for (size_t i = 0; i < count; i++)
        if (c->covered[i])
            add_gap(c, c->covered[i], saturating_add(frames[i].x, frames[i].width));
}

/* ---- weights ------------------------------------------------------------------------------ */

static uint64_t own_weight(struct counter *c, uint64_t count, uint64_t called) {
    c->uneven += called > count;
    return called > count ? 0 : count - called;
}

/* Other tools write how a frame's self weight changed, in hundredths of a per cent of the whole: exact up to 10,000
   samples. */
static uint64_t weight_before(struct counter *c, const struct svg_frame *frame, uint64_t own) {
    double whole = (double)c->picture->frames.items[0].count;
    double before = (double)own - round(frame->change * whole / 100);
    c->rounded += frame->change != 0 && whole >= 10000;
    return double_to_u64(before);
}

static uint32_t location_of(struct tree *tree, uint32_t name) {
    struct text text = strings_get(tree->strings, name);
    struct location location = {.function =
                                    tree_add_function(tree, &(struct function){.name = name}),
                                .kinds = (uint8_t)kinds_of_mark(text)};
    return tree_add_location(tree, &location);
}

/* A reversed picture's stacks end at the root's side: callers are above callees. */
static uint32_t turned_node(struct counter *c, size_t i) {
    uint32_t node = 0;
    for (; i; i = c->picture->frames.items[i].parent)
        node = tree_add_node(c->tree, node, location_of(c->tree, c->picture->frames.items[i].name));
    return node;
}

static void count_frame(struct counter *c, size_t i) {
    const struct svg_frame *frame = &c->picture->frames.items[i];
    uint64_t own = own_weight(c, frame->count, c->called[i]);
    uint64_t before = c->picture->has_before   ? own_weight(c, frame->before, c->called_before[i])
                      : c->picture->has_change ? weight_before(c, frame, own)
                                               : 0;
    if (!own && !before)
        return;
    uint32_t node = c->picture->reversed ? turned_node(c, i) : c->nodes[i];
    struct sample sample = {
        .offset = frame->x, .weight = own, .node = node, .series = c->series, .cpu = UINT32_MAX};
    if (own) {
        tree_count(c->tree, node, c->series, own, own);
        tree_keep_sample(c->tree, &sample); /* from left to right, as a chart has them */
    }
    if (before)
        tree_count(c->tree, node, c->series_before, before, before);
}

static void count_frames(struct counter *c) {
    const struct svg_frame *frames = c->picture->frames.items;
    for (size_t i = 0; i < c->picture->frames.count; i++) {
        if (!frames[i].width)
            continue;
        if (i && !c->picture->reversed)
            c->nodes[i] = tree_add_node(c->tree, c->nodes[frames[i].parent],
                                        location_of(c->tree, frames[i].name));
        count_frame(c, i);
    }
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void settle_counts(struct svg_picture *p) {
    const struct svg_frame *root = &p->frames.items[0];
    for (size_t i = 0; i < p->frames.count; i++) {
        struct svg_frame *frame = &p->frames.items[i];
        if (p->exact && !p->has_before)
            frame->count = frame->width; /* titles may be multiplied by --factor */
        else if (!frame->has_title)
            frame->count = p->exact
                               ? frame->width
                               : double_to_u64(round((double)frame->width / (double)root->width *
                                                     (double)root->count));
    }
}

static uint64_t steps_to_turn(const struct counter *c) {
    const struct svg_frame *frames = c->picture->frames.items;
    uint64_t steps = 0, depth = 0;
    for (size_t i = 1; i < c->picture->frames.count; i++) {
        depth += frames[i].y != frames[i - 1].y;
        steps += c->called[i] < frames[i].count ? depth : 0;
    }
    return steps;
}

static void add_series(struct counter *c) {
    struct text unit =
        c->picture->unit ? strings_get(c->tree->strings, c->picture->unit) : TEXT("samples");
    struct series series = {.event = event_named(c->tree, unit, unit, EVENT_OTHER),
                            .ending = ENDING_UNKNOWN};
    c->series = tree_add_series(c->tree, &series);
    if (!c->picture->has_before && !c->picture->has_change)
        return;
    struct buffer name = {0};
    buffer_printf(&name, "%.*s before", TEXT_ARGS(unit));
    series.event = event_named(c->tree, buffer_text(&name), unit, EVENT_BEFORE);
    c->series_before = tree_add_series(c->tree, &series);
    buffer_release(&name);
}

static void add_note(const struct counter *c, const struct note_kind *kind, uint64_t count) {
    if (count)
        notes_add(&c->tree->notes, kind, count, 0, "%s", c->path);
}

bool svg_frames_count(struct svg_picture *picture, const char *path, struct tree *tree,
                      struct error *error) {
    size_t count = picture->frames.count;
    if (count == 0)
        return error_set(error, ERROR_INPUT, "%s: an SVG, but not a flame graph", path);
    struct counter c = {.picture = picture, .tree = tree, .path = path};
    c.called = memory_zero(count, sizeof *c.called);
    c.called_before = memory_zero(count, sizeof *c.called_before);
    c.covered = memory_zero(count, sizeof *c.covered);
    c.nodes = memory_zero(count, sizeof *c.nodes);
    sort_frames(picture);
    settle_counts(picture);
    link_frames(&c);
    bool fine = !picture->reversed ||
                budget_take_memory(tree->budget, A_NODE * steps_to_turn(&c), NO_OFFSET);
    if (fine) {
        add_series(&c);
        count_frames(&c);
    } else {
        error_set(error, ERROR_INPUT, "%s: a reversed picture that is too deep to be turned around",
                  path);
    }
    add_note(&c, &note_left_out, c.left_out);
    add_note(&c, &note_unplaced, picture->unplaced);
    add_note(&c, &note_uneven, c.uneven);
    add_note(&c, &note_rounded, c.rounded);
    free(c.called);
    free(c.called_before);
    free(c.covered);
    free(c.nodes);
    return fine;
}
