/*
 * The viewer: the lines around the views, and the event loop. The line above has the views and the active filters;
 * the two lines below have the selection and the last message. In a window of few rows they give way to the view.
 */
#include "terminal/viewer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool viewer_possible(struct error *error) {
    if (isatty(STDOUT_FILENO))
        return screen_find_keys(error);
    return error_set(error, ERROR_DENIED,
                     "standard output is not a terminal: wick view needs one; wick report prints "
                     "tables, wick flame --html writes a page");
}

/* ---- what all views use ---- */

enum { ROWS_FOR_ALL = 8 }; /* with fewer rows, only the view and the last line are shown */

struct area viewer_area(void) {
    int rows = screen_rows();
    struct area area = {.top = rows >= ROWS_FOR_ALL, .columns = screen_columns()};
    area.rows = rows >= ROWS_FOR_ALL ? rows - 3 : rows > 2 ? rows - 1 : rows;
    return area;
}

struct style style_of_name(struct viewer *v, uint32_t name, uint32_t object, uint32_t kinds,
                           bool is_selected, struct colour *colour) {
    static const struct colour matched = {230, 0, 230};
    const struct strings *strings = v->model.flame->strings;
    bool is_match = name && model_matches(&v->model, name);
    *colour = is_match ? matched
                       : colour_of_frame(&v->model.options->colouring, strings_get(strings, name),
                                         strings_get(strings, object), kinds);
    return (struct style){.background = is_selected ? NULL : colour,
                          .reverse = is_selected,
                          .bold = is_selected || is_match,
                          .underline = is_match};
}

void put_name(int row, int column, int width, struct text name, const struct style *style) {
    enum { LONGEST = 4096 }; /* bytes of a name: no screen has more columns */
    struct buffer shown = {0}, fits = {0};
    if (name.length > 2 * LONGEST) /* the end of a name has the function's own name */
        name = text_from(name, name.length - 2 * LONGEST);
    buffer_add_shown(&shown, name);
    if (width > 0 && screen_width(buffer_text(&shown)) > width)
        name_add_short(&fits, buffer_text(&shown), (size_t)width);
    else
        buffer_add(&fits, buffer_text(&shown));
    screen_put(row, column, width, buffer_text(&fits), style);
    buffer_release(&shown);
    buffer_release(&fits);
}

void move_cursor(size_t *cursor, size_t *top, long steps, size_t count, int rows) {
    long last = count ? (long)count - 1 : 0, to = (long)*cursor + steps;
    *cursor = (size_t)(to < 0 ? 0 : to > last ? last : to);
    size_t seen = rows > 0 ? (size_t)rows : 1;
    if (*cursor < *top)
        *top = *cursor;
    if (*cursor >= *top + seen)
        *top = *cursor - seen + 1;
}

/* ---- drawing ---- */

static const char *const view_names[] = {"1 Flame", "2 Tree", "3 Table", "4 Sandwich"};

static void draw_head(struct viewer *v) {
    struct buffer text = {0}, shown = {0};
    int column = 0;
    for (int i = 0; i < VIEW_COUNT; i++) {
        int width = (int)strlen(view_names[i]) + 2;
        buffer_printf(&text, " %s ", view_names[i]);
        screen_put(0, column, width, buffer_text(&text),
                   &(struct style){.reverse = i == (int)v->view, .bold = i == (int)v->view});
        text.count = 0;
        column += width;
    }
    if (v->model.reverse)
        buffer_add(&text, TEXT(" [from the leaf]"));
    if (v->model.narrowings.count) {
        buffer_add(&text, TEXT(" ["));
        model_describe(&v->model, &text);
        buffer_add_char(&text, ']');
    }
    buffer_printf(&text, " %s", v->model.options->title);
    buffer_add_shown(&shown, buffer_text(&text));
    screen_put(0, column, screen_columns() - column, buffer_text(&shown), &(struct style){0});
    buffer_release(&text);
    buffer_release(&shown);
}

/* Return the selected node of the current view and its flame; for the table, the row. */
static bool selected_weights(struct viewer *v, uint64_t *self, uint64_t *total, uint32_t *name,
                             uint32_t *object) {
    const struct outline *outline;
    const struct flame_node *node = NULL;
    if (v->view == VIEW_TABLE) {
        if (v->listing.cursor >= v->listing.rows.count)
            return false;
        const struct listing_row *row = &v->listing.rows.items[v->listing.cursor];
        *self = row->self, *total = row->total, *name = row->name, *object = row->object;
        return true;
    }
    if (v->view == VIEW_FLAME) {
        node = &v->model.flame->nodes.items[v->graph.selected];
    } else {
        uint32_t at = outlines_at(v->view == VIEW_TREE ? &v->tree : &v->sandwich, &outline);
        node = at ? &outline->flame->nodes.items[at] : NULL;
    }
    if (!node)
        return false;
    *self = node->self, *total = node->total, *name = node->name, *object = node->object;
    return true;
}

void viewer_sync(struct viewer *v) {
    uint64_t self, total;
    uint32_t name, object;
    if (selected_weights(v, &self, &total, &name, &object) && name)
        v->function = name;
}

static void describe_selected(struct viewer *v, struct buffer *text, bool all) {
    uint64_t self, total, whole = v->model.flame->nodes.items[0].total;
    uint32_t name, object;
    if (!selected_weights(v, &self, &total, &name, &object))
        return;
    const struct strings *strings = v->model.flame->strings;
    buffer_printf(text, "%.2f %% ", 100.0 * (double)total / (double)whole);
    model_add_amount(&v->model, text, total);
    buffer_printf(text, ", self %.2f %%", 100.0 * (double)self / (double)whole);
    buffer_add(text, all ? TEXT("\n\n") : TEXT("  "));
    buffer_add_shown(text, name ? strings_get(strings, name) : TEXT("all"));
    if (!object)
        return;
    buffer_add(text, all ? TEXT("\n\nin ") : TEXT("  in "));
    buffer_add_shown(text, strings_get(strings, object));
}

void viewer_reset(struct viewer *v) {
    graph_reset(v);
    tree_reset(v);
    listing_reset(v);
    outlines_release(&v->sandwich);
    v->sandwiched = 0;
    if (v->view == VIEW_SANDWICH)
        v->view = VIEW_TABLE;
    v->function = 0;
    viewer_sync(v);
}

void viewer_show_selected(struct viewer *v) {
    struct buffer text = {0};
    describe_selected(v, &text, true);
    page_show(buffer_text(&text));
    buffer_release(&text);
}

static void draw_foot(struct viewer *v) {
    struct buffer text = {0};
    int rows = screen_rows();
    if (rows >= ROWS_FOR_ALL) {
        describe_selected(v, &text, false);
        screen_put(rows - 2, 0, screen_columns(), buffer_text(&text),
                   &(struct style){.bold = true});
        text.count = 0;
    }
    buffer_add_shown(&text, buffer_text(&v->message));
    if (rows > 2)
        screen_put(rows - 1, 0, screen_columns(),
                   text.count ? buffer_text(&text)
                              : TEXT("? help  q quit  Tab view  Enter open  / search  f focus"),
                   &(struct style){.dim = !text.count});
    buffer_release(&text);
}

void viewer_draw(struct viewer *v) {
    struct area area = viewer_area();
    screen_clear();
    if (v->view == VIEW_FLAME)
        graph_draw(v, area);
    else if (v->view == VIEW_TABLE)
        listing_draw(v, area);
    else
        outlines_draw(v, v->view == VIEW_TREE ? &v->tree : &v->sandwich, area);
    if (area.top)
        draw_head(v);
    draw_foot(v);
    screen_show();
}

/* ---- the loop ---- */

static void release(struct viewer *v) {
    graph_release(v);
    outlines_release(&v->tree);
    outlines_release(&v->sandwich);
    vector_release(&v->listing.rows);
    buffer_release(&v->message);
    model_release(&v->model);
}

bool viewer_run(const struct viewer_options *options, struct error *error) {
    const char *no_colour = getenv("NO_COLOR");
    struct viewer *v = memory_zero(1, sizeof *v);
    bool fine = viewer_possible(error) && model_start(&v->model, options, error) &&
                screen_start(!(no_colour && *no_colour), error);
    if (fine) {
        viewer_reset(v);
        while (!v->is_over) {
            viewer_draw(v);
            struct screen_event event = screen_read();
            viewer_event(v, &event);
        }
        screen_end();
    }
    if (v->model.options)
        release(v);
    free(v);
    return fine;
}
