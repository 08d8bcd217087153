/*
 * The flame graph: a row for each depth, the root at the top unless it is inverted. A frame that would be narrower
 * than a column is not drawn, nor is anything below it: layout costs a step for each child of a drawn frame.
 */
#include "terminal/viewer.h"

#include <stdlib.h>

static const struct flame_node *node_of(const struct viewer *v, uint32_t node) {
    return &v->model.flame->nodes.items[node];
}

void graph_reset(struct viewer *v) {
    v->graph.zoom = v->graph.selected = v->graph.top = 0;
    v->graph.columns = 0;
}

void graph_release(struct viewer *v) {
    vector_release(&v->graph.boxes);
}

/* ---- layout ---- */

static int column_at(const struct viewer *v, uint64_t at, int columns) {
    uint64_t whole = node_of(v, v->graph.zoom)->total;
    return whole ? (int)((__uint128_t)at * (unsigned)columns / whole) : 0;
}

/* The callers of the zoomed frame are as wide as the screen. */
static void add_ancestors(struct viewer *v, int columns) {
    struct flame_graph *g = &v->graph;
    size_t count = node_of(v, g->zoom)->depth + 1;
    vector_reserve(&g->boxes, count);
    g->boxes.count = count;
    uint32_t node = g->zoom;
    for (size_t i = count; i-- > 0; node = node_of(v, node)->parent)
        g->boxes.items[i] = (struct box){.node = node, .depth = (uint32_t)i, .width = columns};
}

static void add_children(struct viewer *v, size_t index, int columns) {
    struct flame_graph *g = &v->graph;
    struct box box = g->boxes.items[index];
    uint64_t start = box.start;
    for (uint32_t child = node_of(v, box.node)->first_child; child;
         child = node_of(v, child)->next) {
        uint64_t end = start + node_of(v, child)->total;
        int left = column_at(v, start, columns), right = column_at(v, end, columns);
        if (right > left)
            vector_push(&g->boxes, ((struct box){child, box.depth + 1, start, left, right - left}));
        start = end;
    }
}

static void lay_out(struct viewer *v, int columns) {
    struct flame_graph *g = &v->graph;
    if (g->columns == columns)
        return;
    g->boxes.count = 0;
    add_ancestors(v, columns);
    for (size_t i = g->boxes.count - 1; i < g->boxes.count; i++)
        add_children(v, i, columns);
    g->columns = columns;
}

static size_t box_of(const struct viewer *v, uint32_t node) {
    for (size_t i = 0; i < v->graph.boxes.count; i++)
        if (v->graph.boxes.items[i].node == node)
            return i;
    return SIZE_MAX;
}

static void select_node(struct viewer *v, uint32_t node) {
    v->graph.selected = node;
    v->function = node_of(v, node)->name;
}

/* ---- drawing ---- */

static int row_of(const struct viewer *v, struct area area, uint32_t depth) {
    int place = (int)(depth - v->graph.top);
    return v->graph.is_inverted ? area.top + area.rows - 1 - place : area.top + place;
}

static void draw_box(struct viewer *v, struct area area, const struct box *box) {
    const struct flame_node *node = node_of(v, box->node);
    struct colour colour;
    bool is_selected = box->node == v->graph.selected;
    struct style style = style_of_name(v, box->node ? node->name : 0, node->object, node->kinds,
                                       is_selected, &colour);
    int row = row_of(v, area, box->depth);
    if (!box->node)
        style.background = NULL;
    screen_put(row, box->column, box->width, screen_edge(), &style);
    if (box->width > 1)
        put_name(row, box->column + 1, box->width - 1,
                 box->node ? flame_name(v->model.flame, box->node) : TEXT("all"), &style);
}

static void show_selected(struct viewer *v, struct area area) {
    struct flame_graph *g = &v->graph;
    size_t at = box_of(v, g->selected);
    if (at == SIZE_MAX)
        select_node(v, g->zoom);
    uint32_t depth = node_of(v, g->selected)->depth;
    uint32_t all = g->boxes.items[g->boxes.count - 1].depth + 1, rows = (uint32_t)area.rows;
    if (g->top + rows > all) /* no empty rows while there are frames above */
        g->top = all > rows ? all - rows : 0;
    if (depth < g->top)
        g->top = depth;
    if (rows && depth >= g->top + rows)
        g->top = depth - rows + 1;
}

void graph_draw(struct viewer *v, struct area area) {
    lay_out(v, area.columns);
    show_selected(v, area);
    for (size_t i = 0; i < v->graph.boxes.count; i++) {
        const struct box *box = &v->graph.boxes.items[i];
        if (box->depth >= v->graph.top && box->depth < v->graph.top + (uint32_t)area.rows)
            draw_box(v, area, box);
    }
}

/* ---- moving ---- */

static void move_sideways(struct viewer *v, size_t at, bool right) {
    const struct flame_graph *g = &v->graph;
    size_t to = right ? at + 1 : at - 1;
    if (to < g->boxes.count && g->boxes.items[to].depth == g->boxes.items[at].depth)
        select_node(v, g->boxes.items[to].node);
}

static void move_deeper(struct viewer *v, size_t at) {
    const struct flame_graph *g = &v->graph;
    const struct box *widest = NULL;
    for (size_t i = at + 1; i < g->boxes.count; i++)
        if (g->boxes.items[i].node &&
            node_of(v, g->boxes.items[i].node)->parent == g->boxes.items[at].node &&
            (!widest || g->boxes.items[i].width > widest->width))
            widest = &g->boxes.items[i];
    if (widest)
        select_node(v, widest->node);
}

void graph_move(struct viewer *v, uint32_t key) {
    struct flame_graph *g = &v->graph;
    lay_out(v, viewer_area().columns);
    size_t at = box_of(v, g->selected);
    if (at == SIZE_MAX)
        return select_node(v, g->zoom);
    bool deeper = g->is_inverted ? key == SCREEN_UP : key == SCREEN_DOWN;
    if (key == SCREEN_LEFT || key == SCREEN_RIGHT)
        move_sideways(v, at, key == SCREEN_RIGHT);
    else if (key == SCREEN_HOME)
        select_node(v, 0);
    else if (key == SCREEN_END)
        select_node(v, g->boxes.items[g->boxes.count - 1].node);
    else if (key == SCREEN_PAGE_DOWN || key == SCREEN_PAGE_UP)
        for (int i = 0; i < viewer_area().rows - 1; i++)
            graph_move(v, key == SCREEN_PAGE_DOWN ? SCREEN_DOWN : SCREEN_UP);
    else if (deeper)
        move_deeper(v, at);
    else
        select_node(v, node_of(v, g->selected)->parent);
}

void graph_zoom(struct viewer *v) {
    v->graph.zoom = v->graph.selected;
    v->graph.columns = 0;
}

bool graph_unzoom(struct viewer *v) {
    if (!v->graph.zoom)
        return false;
    v->graph.zoom = node_of(v, v->graph.zoom)->parent;
    v->graph.columns = 0;
    return true;
}

/* A click selects a frame; a click on the selected frame zooms into it. */
void graph_click(struct viewer *v, struct area area, int row, int column) {
    for (size_t i = 0; i < v->graph.boxes.count; i++) {
        const struct box *box = &v->graph.boxes.items[i];
        if (box->depth < v->graph.top || row_of(v, area, box->depth) != row ||
            column < box->column || column >= box->column + box->width)
            continue;
        if (v->graph.selected == box->node)
            graph_zoom(v);
        else
            select_node(v, box->node);
        return;
    }
}

/* ---- searching ---- */

/* Zoom to the heaviest match if it is too narrow to be visible. */
static bool find_hidden(struct viewer *v) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < v->model.flame->nodes.count; i++)
        if (model_matches(&v->model, node_of(v, i)->name) &&
            (!best || node_of(v, i)->total > node_of(v, best)->total))
            best = i;
    if (!best)
        return false;
    select_node(v, best);
    graph_zoom(v);
    return true;
}

bool graph_find(struct viewer *v, bool backwards) {
    lay_out(v, viewer_area().columns);
    size_t count = v->graph.boxes.count, at = box_of(v, v->graph.selected);
    at = at == SIZE_MAX ? 0 : at;
    for (size_t step = 1; step <= count; step++) {
        size_t i = (at + (backwards ? count - step : step)) % count;
        uint32_t node = v->graph.boxes.items[i].node;
        if (node && model_matches(&v->model, node_of(v, node)->name)) {
            select_node(v, node);
            return true;
        }
    }
    return find_hidden(v);
}

/* Find the widest frame of the function. */
void graph_select_function(struct viewer *v, uint32_t name) {
    lay_out(v, viewer_area().columns);
    if (node_of(v, v->graph.selected)->name == name)
        return;
    const struct box *widest = NULL;
    for (size_t i = 0; i < v->graph.boxes.count; i++) {
        const struct box *box = &v->graph.boxes.items[i];
        if (box->node && node_of(v, box->node)->name == name &&
            (!widest || box->width > widest->width))
            widest = box;
    }
    if (widest)
        v->graph.selected = widest->node;
}
