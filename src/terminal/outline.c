/*
 * Trees of rows that open and close: the call tree, and for the sandwich the callers and the callees of a function,
 * one below the other. Children are sorted by weight. Only open rows cost anything, so a tree with millions of nodes
 * opens at once.
 */
#include "terminal/viewer.h"

#include <stdlib.h>

/* ---- making ---- */

static void outline_link(struct outline *o) {
    flame_link_by_weight(o->flame, &o->first, &o->next);
    o->open = memory_zero(o->flame->nodes.count, sizeof *o->open);
}

static uint64_t total_of(const struct outline *o, uint32_t node) {
    return o->flame->nodes.items[node].total;
}

/* Open the path along the heaviest children, as long as each has most of its parent's weight. */
static void outline_open_hot(struct outline *o) {
    uint32_t at = 0;
    o->open[0] = 1;
    while (o->first[at] && total_of(o, o->first[at]) >= total_of(o, at) / 2) {
        at = o->first[at];
        o->open[at] = 1;
    }
}

static void outline_release(struct outline *o) {
    free(o->first);
    free(o->next);
    free(o->open);
    if (o->is_owned)
        flame_free(o->flame);
    *o = (struct outline){0};
}

void outlines_release(struct outlines *o) {
    for (size_t i = 0; i < o->count; i++)
        outline_release(&o->items[i]);
    vector_release(&o->rows);
    *o = (struct outlines){0};
}

static void add_rows(struct outlines *o, uint32_t which) {
    const struct outline *outline = &o->items[which];
    if (outline->title)
        vector_push(&o->rows, ((struct outline_row){which, 0}));
    for (uint32_t at = outline->open[0] ? outline->first[0] : 0; at;) {
        vector_push(&o->rows, ((struct outline_row){which, at}));
        uint32_t to = outline->open[at] ? outline->first[at] : 0;
        while (!to && at) {
            to = outline->next[at];
            at = outline->flame->nodes.items[at].parent;
        }
        at = to;
    }
}

static void make_rows(struct outlines *o) {
    o->rows.count = 0;
    for (uint32_t i = 0; i < o->count; i++)
        add_rows(o, i);
    if (o->cursor >= o->rows.count)
        o->cursor = o->rows.count ? o->rows.count - 1 : 0;
}

void tree_reset(struct viewer *v) {
    struct outlines *o = &v->tree;
    outlines_release(o);
    o->count = 1;
    o->items[0] =
        (struct outline){.flame = v->model.flame, .whole = v->model.flame->nodes.items[0].total};
    outline_link(&o->items[0]);
    outline_open_hot(&o->items[0]);
    make_rows(o);
}

bool sandwich_reset(struct viewer *v, uint32_t name, struct error *error) {
    struct outlines *o = &v->sandwich;
    struct text function = strings_get(v->model.flame->strings, name);
    outlines_release(o);
    for (int i = 0; i < 2; i++) {
        struct outline *outline = &o->items[i];
        *outline =
            (struct outline){.title = i ? "Callees: what it calls" : "Callers: what calls it",
                             .is_owned = true,
                             .whole = v->model.flame->nodes.items[0].total,
                             .is_around = true,
                             .is_callers = i == 0};
        outline->flame = flame_around(v->model.flame, function, i == 0, &outline->self, error);
        if (!outline->flame)
            return false;
        o->count++;
        if (outline->flame->nodes.count == 1)
            return error_set(error, ERROR_INPUT, "not a function: it has no callers");
        outline_link(outline);
        outline_open_hot(outline);
    }
    v->sandwiched = name;
    make_rows(o);
    o->cursor = 1;
    return true;
}

/* ---- drawing ---- */

static double share(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void draw_title(const struct viewer *v, const struct outline *o, int row, int columns,
                       bool is_selected) {
    struct buffer text = {0};
    buffer_printf(&text, " %s  ", o->title);
    buffer_add_shown(&text, strings_get(v->model.flame->strings, v->sandwiched));
    screen_put(row, 0, columns, buffer_text(&text),
               &(struct style){.bold = true, .reverse = is_selected, .underline = !is_selected});
    buffer_release(&text);
}

static void draw_row(struct viewer *v, const struct outline *o, uint32_t node, int row, int columns,
                     bool is_selected) {
    enum { SHARES = 18, INDENT_MOST = 40 };
    const struct flame_node *n = &o->flame->nodes.items[node];
    uint64_t self = o->is_around && n->depth == 1 ? o->self : n->self;
    bool has_self = !o->is_callers || n->depth == 1;
    int indent = n->depth - 1 < INDENT_MOST ? (int)n->depth - 1 : INDENT_MOST;
    indent = indent < columns - SHARES - 12 ? indent : columns - SHARES - 12;
    indent = indent > 0 ? indent : 0;
    struct buffer text = {0};
    if (has_self)
        buffer_printf(&text, "%6.2f %%", share(self, o->whole));
    else
        buffer_add(&text, TEXT("        "));
    buffer_printf(&text, " %6.2f %% ", share(n->total, o->whole));
    struct colour colour;
    struct style plain = {.reverse = is_selected};
    struct style style = style_of_name(v, n->name, n->object, n->kinds, is_selected, &colour);
    screen_put(row, 0, columns, buffer_text(&text), &plain);
    text.count = 0;
    buffer_printf(&text, "%*s%c", indent, "", !o->first[node] ? ' ' : o->open[node] ? '-' : '+');
    screen_put(row, SHARES, indent + 1, buffer_text(&text), &plain);
    put_name(row, SHARES + indent + 2, columns - SHARES - indent - 2, flame_name(o->flame, node),
             &style);
    buffer_release(&text);
}

void outlines_draw(struct viewer *v, struct outlines *o, struct area area) {
    move_cursor(&o->cursor, &o->top, 0, o->rows.count, area.rows - 1);
    screen_put(area.top, 0, area.columns, TEXT("    self    total  function"),
               &(struct style){.bold = true});
    for (int i = 0; i + 1 < area.rows && o->top + (size_t)i < o->rows.count; i++) {
        struct outline_row at = o->rows.items[o->top + (size_t)i];
        bool is_selected = o->top + (size_t)i == o->cursor;
        if (at.node)
            draw_row(v, &o->items[at.outline], at.node, area.top + 1 + i, area.columns,
                     is_selected);
        else
            draw_title(v, &o->items[at.outline], area.top + 1 + i, area.columns, is_selected);
    }
}

/* ---- moving ---- */

uint32_t outlines_at(const struct outlines *o, const struct outline **outline) {
    *outline = NULL;
    if (o->cursor >= o->rows.count)
        return 0;
    *outline = &o->items[o->rows.items[o->cursor].outline];
    return o->rows.items[o->cursor].node;
}

static void select_row(struct viewer *v, struct outlines *o) {
    const struct outline *outline;
    uint32_t node = outlines_at(o, &outline);
    if (node)
        v->function = outline->flame->nodes.items[node].name;
}

static void cursor_to(struct outlines *o, uint32_t which, uint32_t node) {
    for (size_t i = 0; i < o->rows.count; i++)
        if (o->rows.items[i].outline == which && o->rows.items[i].node == node)
            o->cursor = i;
}

static void set_open(struct outlines *o, bool open) {
    if (o->cursor >= o->rows.count)
        return;
    struct outline_row at = o->rows.items[o->cursor];
    o->items[at.outline].open[at.node] = open;
    make_rows(o);
    cursor_to(o, at.outline, at.node);
}

void outlines_toggle(struct viewer *v, struct outlines *o) {
    const struct outline *outline;
    uint32_t node = outlines_at(o, &outline);
    if (outline)
        set_open(o, !outline->open[node]);
}

/* Open everything below the row that has at least a two-hundredth of its weight. */
void outlines_open_all(struct viewer *v, struct outlines *o) {
    const struct outline *outline;
    uint32_t from = outlines_at(o, &outline);
    if (!outline)
        return;
    uint64_t least = total_of(outline, from) / 200;
    uint8_t *inside = memory_zero(outline->flame->nodes.count, sizeof *inside);
    inside[from] = outline->open[from] = 1;
    for (uint32_t i = from + 1; i < outline->flame->nodes.count; i++) {
        inside[i] = inside[outline->flame->nodes.items[i].parent] && total_of(outline, i) > least;
        if (inside[i])
            outline->open[i] = 1;
    }
    free(inside);
    set_open(o, true);
}

static void close_or_up(struct outlines *o) {
    const struct outline *outline;
    uint32_t node = outlines_at(o, &outline);
    if (!outline)
        return;
    if (outline->open[node] && outline->first[node])
        set_open(o, false);
    else if (node && outline->flame->nodes.items[node].parent)
        cursor_to(o, o->rows.items[o->cursor].outline, outline->flame->nodes.items[node].parent);
}

void outlines_move(struct viewer *v, struct outlines *o, uint32_t key, int rows) {
    long page = rows > 1 ? rows - 1 : 1;
    if (key == SCREEN_RIGHT)
        set_open(o, true);
    else if (key == SCREEN_LEFT)
        close_or_up(o);
    else
        move_cursor(&o->cursor, &o->top,
                    key == SCREEN_UP          ? -1
                    : key == SCREEN_DOWN      ? 1
                    : key == SCREEN_PAGE_UP   ? -page
                    : key == SCREEN_PAGE_DOWN ? page
                    : key == SCREEN_HOME      ? -(long)o->rows.count
                                              : (long)o->rows.count,
                    o->rows.count, rows);
    select_row(v, o);
}

void outlines_click(struct viewer *v, struct outlines *o, struct area area, int row) {
    size_t at = o->top + (size_t)(row - area.top - 1);
    if (row <= area.top || at >= o->rows.count)
        return;
    if (at == o->cursor)
        outlines_toggle(v, o);
    o->cursor = at < o->rows.count ? at : o->cursor;
    select_row(v, o);
}

/* ---- searching ---- */

static void show_node(struct viewer *v, struct outlines *o, uint32_t which, uint32_t node) {
    struct outline *outline = &o->items[which];
    for (uint32_t up = outline->flame->nodes.items[node].parent;;
         up = outline->flame->nodes.items[up].parent) {
        outline->open[up] = 1;
        if (!up)
            break;
    }
    make_rows(o);
    cursor_to(o, which, node);
    select_row(v, o);
}

/* Visit all nodes of all outlines, open or not, in the order of their rows. */
static void list_all(const struct outlines *o, struct outlines *all) {
    for (uint32_t i = 0; i < o->count; i++) {
        const struct outline *outline = &o->items[i];
        for (uint32_t at = outline->first[0]; at;) {
            vector_push(&all->rows, ((struct outline_row){i, at}));
            uint32_t to = outline->first[at];
            while (!to && at) {
                to = outline->next[at];
                at = outline->flame->nodes.items[at].parent;
            }
            at = to;
        }
    }
}

bool outlines_find(struct viewer *v, struct outlines *o, bool backwards) {
    struct outlines all = {0};
    list_all(o, &all);
    size_t count = all.rows.count, at = 0;
    for (size_t i = 0; i < count && o->cursor < o->rows.count; i++)
        if (memcmp(&all.rows.items[i], &o->rows.items[o->cursor], sizeof all.rows.items[i]) == 0)
            at = i;
    bool found = false;
    for (size_t step = 1; step <= count && !found; step++) {
        struct outline_row row = all.rows.items[(at + (backwards ? count - step : step)) % count];
        found = model_matches(&v->model, o->items[row.outline].flame->nodes.items[row.node].name);
        if (found)
            show_node(v, o, row.outline, row.node);
    }
    vector_release(&all.rows);
    return found;
}

/* Find the function's heaviest node. */
void outlines_select_function(struct viewer *v, struct outlines *o, uint32_t name) {
    const struct outline *outline;
    uint32_t node = outlines_at(o, &outline), best = 0;
    if (!outline || (node && outline->flame->nodes.items[node].name == name))
        return;
    for (uint32_t i = 1; i < o->items[0].flame->nodes.count; i++)
        if (o->items[0].flame->nodes.items[i].name == name &&
            (!best || total_of(&o->items[0], i) > total_of(&o->items[0], best)))
            best = i;
    if (best)
        show_node(v, o, 0, best);
}
