/*
 * Keys and the mouse. One table has every key and its action; it is used both to look up keys and to show them with
 * `?`, so neither can lack one.
 */
#include "terminal/viewer.h"

#include <stdlib.h>

static void say(struct viewer *v, const char *text) {
    v->message.count = 0;
    buffer_add(&v->message, text_of(text));
}

static void say_error(struct viewer *v, const struct error *error) {
    say(v, error->message);
}

static struct outlines *outlines_of(struct viewer *v) {
    return v->view == VIEW_SANDWICH ? &v->sandwich : &v->tree;
}

/* ---- typing ---- */

static void drop_character(struct buffer *text) {
    while (text->count && ((unsigned char)text->items[text->count - 1] & 0xc0) == 0x80)
        text->count--;
    if (text->count)
        text->count--;
}

/* Prompt for a line at the bottom. Return false if it was left by Esc, or if the program must end. */
static bool ask(struct viewer *v, const char *what, struct buffer *typed) {
    enum { CLEAR = 'U' - '@' };
    for (;;) {
        struct buffer line = {0};
        buffer_add(&line, text_of(what));
        buffer_add_shown(&line, buffer_text(typed));
        v->message.count = 0;
        viewer_draw(v);
        screen_put(screen_rows() - 1, 0, screen_columns(), buffer_text(&line), &(struct style){0});
        screen_cursor(screen_rows() - 1, screen_width(buffer_text(&line)));
        screen_show();
        buffer_release(&line);
        struct screen_event event = screen_read();
        v->is_over = event.kind == SCREEN_LEAVE;
        if (v->is_over || (event.kind == SCREEN_KEY && event.key == SCREEN_ESCAPE))
            return false;
        if (event.kind != SCREEN_KEY)
            continue;
        if (event.key == SCREEN_ENTER)
            return typed->count;
        if (event.key == SCREEN_BACKSPACE)
            drop_character(typed);
        else if (event.key == CLEAR)
            typed->count = 0;
        else if (event.key >= ' ' && event.key < SCREEN_UP)
            buffer_add_utf8(typed, event.key);
    }
}

/* ---- actions of keys ---- */

static void key_quit(struct viewer *v) {
    v->is_over = true;
}

static void show(struct viewer *v, enum view view) {
    struct error error;
    if (view == VIEW_SANDWICH && v->function != v->sandwiched && v->function &&
        !sandwich_reset(v, v->function, &error)) {
        outlines_release(&v->sandwich);
        v->sandwiched = 0;
        say_error(v, &error);
        return;
    }
    if (view == VIEW_SANDWICH && !v->sandwiched) {
        say(v, "select a function first, then s shows its callers and callees");
        return;
    }
    v->view = view;
    if (view == VIEW_FLAME)
        graph_select_function(v, v->function);
    else if (view == VIEW_TREE)
        outlines_select_function(v, &v->tree, v->function);
    else if (view == VIEW_TABLE)
        listing_select_function(v, v->function);
    viewer_sync(v);
}

static void key_flame(struct viewer *v) {
    show(v, VIEW_FLAME);
}
static void key_tree(struct viewer *v) {
    show(v, VIEW_TREE);
}
static void key_table(struct viewer *v) {
    show(v, VIEW_TABLE);
}
static void key_sandwich(struct viewer *v) {
    show(v, VIEW_SANDWICH);
}
static void key_next_view(struct viewer *v) {
    enum view from = v->view, next = (from + 1) % VIEW_COUNT;
    show(v, next);
    if (v->view == from)
        show(v, VIEW_FLAME);
}
static void key_previous_view(struct viewer *v) {
    enum view from = v->view, next = (from + VIEW_COUNT - 1) % VIEW_COUNT;
    show(v, next);
    if (v->view == from)
        show(v, VIEW_TABLE);
}

static void move(struct viewer *v, uint32_t key) {
    int rows = viewer_area().rows - 1; /* without the header */
    if (v->view == VIEW_FLAME)
        graph_move(v, key);
    else if (v->view == VIEW_TABLE)
        listing_move(v, key, rows);
    else
        outlines_move(v, outlines_of(v), key, rows);
}
static void key_up(struct viewer *v) {
    move(v, SCREEN_UP);
}
static void key_down(struct viewer *v) {
    move(v, SCREEN_DOWN);
}
static void key_left(struct viewer *v) {
    move(v, SCREEN_LEFT);
}
static void key_right(struct viewer *v) {
    move(v, SCREEN_RIGHT);
}
static void key_page_up(struct viewer *v) {
    move(v, SCREEN_PAGE_UP);
}
static void key_page_down(struct viewer *v) {
    move(v, SCREEN_PAGE_DOWN);
}
static void key_home(struct viewer *v) {
    move(v, SCREEN_HOME);
}
static void key_end(struct viewer *v) {
    move(v, SCREEN_END);
}

static void key_enter(struct viewer *v) {
    if (v->view == VIEW_FLAME)
        graph_zoom(v);
    else if (v->view == VIEW_TABLE)
        show(v, VIEW_SANDWICH);
    else
        outlines_toggle(v, outlines_of(v));
}

static void key_back(struct viewer *v) {
    if (v->view == VIEW_FLAME && graph_unzoom(v))
        return;
    if (v->view == VIEW_SANDWICH)
        show(v, VIEW_TABLE);
}

static void key_whole(struct viewer *v) {
    v->graph.zoom = 0;
    v->graph.columns = 0;
}

static void key_invert(struct viewer *v) {
    v->graph.is_inverted = !v->graph.is_inverted;
}

static void key_expand(struct viewer *v) {
    if (v->view == VIEW_TREE || v->view == VIEW_SANDWICH)
        outlines_open_all(v, outlines_of(v));
}

static void key_order(struct viewer *v) {
    if (v->view == VIEW_TABLE)
        listing_sort(v);
}

static void make_again(struct viewer *v, bool *flag) {
    struct error error;
    *flag = !*flag;
    if (model_make(&v->model, &error)) {
        viewer_reset(v);
    } else {
        *flag = !*flag;
        say_error(v, &error);
    }
}
static void key_reverse(struct viewer *v) {
    make_again(v, &v->model.reverse);
}
static void key_weight(struct viewer *v) {
    make_again(v, &v->model.by_samples);
    if (!v->message.count)
        say(v, v->model.by_samples ? "counting samples" : "counting weights");
}

/* ---- searching ---- */

static void find(struct viewer *v, bool backwards) {
    if (!v->model.query.count)
        return say(v, "/ searches; n goes to the next match");
    bool found = v->view == VIEW_FLAME   ? graph_find(v, backwards)
                 : v->view == VIEW_TABLE ? listing_find(v, backwards)
                                         : outlines_find(v, outlines_of(v), backwards);
    uint64_t whole = v->model.flame->nodes.items[0].total;
    v->message.count = 0;
    if (found)
        buffer_printf(&v->message, "/%.*s: in %.2f %%", TEXT_ARGS(buffer_text(&v->model.query)),
                      100.0 * (double)model_matched(&v->model, v->model.flame) / (double)whole);
    else
        buffer_printf(&v->message, "/%.*s: no match", TEXT_ARGS(buffer_text(&v->model.query)));
}
static void key_search(struct viewer *v) {
    struct buffer typed = {0};
    if (ask(v, "/", &typed)) {
        model_search(&v->model, buffer_text(&typed));
        find(v, false);
    } else if (!typed.count) {
        model_search(&v->model, TEXT(""));
    }
    buffer_release(&typed);
}
static void key_next(struct viewer *v) {
    find(v, false);
}
static void key_previous(struct viewer *v) {
    find(v, true);
}

/* ---- narrowing ---- */

static void narrow(struct viewer *v, enum narrowing_kind kind, const char *what) {
    struct buffer typed = {0};
    struct error error;
    if (ask(v, what, &typed)) {
        if (model_narrow(&v->model, kind, buffer_text(&typed), &error))
            viewer_reset(v);
        else
            say_error(v, &error);
    }
    buffer_release(&typed);
}
static void key_focus(struct viewer *v) {
    narrow(v, NARROW_FOCUS, "only stacks through: ");
}
static void key_without(struct viewer *v) {
    narrow(v, NARROW_IGNORE, "no stacks through: ");
}
static void key_hide(struct viewer *v) {
    narrow(v, NARROW_HIDE, "hide frames: ");
}
static void key_root(struct viewer *v) {
    narrow(v, NARROW_ROOT, "root at: ");
}
static void key_label(struct viewer *v) {
    narrow(v, NARROW_LABEL, "thread (comm), or KEY=PATTERN as tid=12 or state=sleep: ");
}
static void widen(struct viewer *v, bool all) {
    struct error error;
    if (model_widen(&v->model, all, &error))
        viewer_reset(v);
    else
        say_error(v, &error);
}
static void key_widen(struct viewer *v) {
    widen(v, false);
}
static void key_clear(struct viewer *v) {
    widen(v, true);
}

/* ---- pages ---- */

static void key_notes(struct viewer *v) {
    struct buffer text = {0}, line = {0};
    const struct notes *notes = v->model.options->notes;
    for (size_t i = 0; i < notes->count; i++) {
        line.count = 0;
        note_print(&notes->items[i], &line);
        buffer_add_shown(&text, buffer_text(&line));
        buffer_add(&text, TEXT("\n"));
    }
    if (!notes->count)
        buffer_add(&text, TEXT("Nothing was lost, missing or skipped.\n"));
    page_show(buffer_text(&text));
    buffer_release(&text);
    buffer_release(&line);
}
static void key_help(struct viewer *v);
static void key_redraw(struct viewer *v) {
    screen_redraw();
}

/* ---- the table ---- */

#define CONTROL(letter) ((letter) - '@')
static const struct binding {
    uint32_t keys[2];
    const char *shown, *what;
    void (*run)(struct viewer *v);
} bindings[] = {
    {{'1', 0}, "1", "flame graph", key_flame},
    {{'2', 0}, "2", "call tree", key_tree},
    {{'3', 0}, "3", "table of functions", key_table},
    {{'4', 's'}, "4 s", "sandwich: callers and callees of the selected function", key_sandwich},
    {{SCREEN_TAB, 0}, "Tab", "the next view", key_next_view},
    {{SCREEN_BACK_TAB, 0}, "Shift-Tab", "the previous view", key_previous_view},
    {{SCREEN_UP, 'k'}, "Up k", "up; in a flame graph to the caller", key_up},
    {{SCREEN_DOWN, 'j'}, "Down j", "down; in a flame graph to the widest callee", key_down},
    {{SCREEN_LEFT, 'h'},
     "Left h",
     "to the frame at the left; close a row, or go to its caller",
     key_left},
    {{SCREEN_RIGHT, 'l'}, "Right l", "to the frame at the right; open a row", key_right},
    {{SCREEN_PAGE_UP, CONTROL('B')}, "PgUp ^B", "a screen up", key_page_up},
    {{SCREEN_PAGE_DOWN, CONTROL('F')}, "PgDn ^F", "a screen down", key_page_down},
    {{SCREEN_HOME, 'g'}, "Home g", "to the first", key_home},
    {{SCREEN_END, 'G'}, "End G", "to the last", key_end},
    {{SCREEN_ENTER, ' '},
     "Enter Space",
     "zoom in; open or close a row; in the table: sandwich",
     key_enter},
    {{SCREEN_ESCAPE, SCREEN_BACKSPACE},
     "Esc Backspace",
     "zoom out by one frame; back from the sandwich",
     key_back},
    {{'0', 'z'}, "0 z", "zoom out to all", key_whole},
    {{'i', 0}, "i", "invert the flame graph: root at the bottom or at the top", key_invert},
    {{'r', 0}, "r", "merge stacks from the leaf, or from the root again", key_reverse},
    {{'e', '*'}, "e *", "open all that matters below the row", key_expand},
    {{'o', 0}, "o", "order the table by self or by total", key_order},
    {{'w', 0}, "w", "count samples, or weights again", key_weight},
    {{'/', 0},
     "/",
     "search names; lower case finds both cases, upper case only itself",
     key_search},
    {{'n', 0}, "n", "the next match", key_next},
    {{'N', 0}, "N", "the previous match", key_previous},
    {{'f', 0}, "f", "only stacks through functions that match a pattern (--focus)", key_focus},
    {{'x', 0}, "x", "no stacks through functions that match (--ignore)", key_without},
    {{'H', 0}, "H", "hide frames that match (--hide)", key_hide},
    {{'R', 0}, "R", "make functions that match the root (--root)", key_root},
    {{'t', 'L'}, "t L", "only a thread (by comm) or another label, as tid=12", key_label},
    {{'u', 0}, "u", "remove the last filter", key_widen},
    {{'c', 0}, "c", "remove all filters", key_clear},
    {{'d', 0},
     "d",
     "the full name of the selected function, and where it is",
     viewer_show_selected},
    {{'m', 0}, "m", "notes: what was lost, missing or skipped", key_notes},
    {{CONTROL('L'), 0}, "^L", "draw the screen again", key_redraw},
    {{'?', 0}, "?", "this page", key_help},
    {{'q', CONTROL('C')}, "q ^C", "quit", key_quit},
};

static void key_help(struct viewer *v) {
    struct buffer text = {0};
    for (size_t i = 0; i < COUNT_OF(bindings); i++)
        buffer_printf(&text, "%-14s %s\n", bindings[i].shown, bindings[i].what);
    buffer_add(&text, TEXT("click          select; once more: zoom in, open or close\n"
                           "right click    zoom out\n"
                           "wheel          up and down\n"));
    page_show(buffer_text(&text));
    buffer_release(&text);
}

/* ---- events ---- */

static void on_click(struct viewer *v, const struct screen_event *event) {
    static const int ends[VIEW_COUNT] = {9, 17, 26, 38}; /* where their names end */
    struct area area = viewer_area();
    if (event->row < area.top) {
        for (int i = 0; i < VIEW_COUNT; i++)
            if (event->column < ends[i])
                return show(v, (enum view)i);
    } else if (event->row >= area.top + area.rows) {
        return;
    } else if (v->view == VIEW_FLAME) {
        graph_click(v, area, event->row, event->column);
    } else if (v->view == VIEW_TABLE) {
        listing_click(v, area, event->row);
    } else {
        outlines_click(v, outlines_of(v), area, event->row);
    }
}

static void on_key(struct viewer *v, uint32_t key) {
    for (size_t i = 0; i < COUNT_OF(bindings); i++)
        if (bindings[i].keys[0] == key || bindings[i].keys[1] == key) {
            bindings[i].run(v);
            return;
        }
    say(v, "? shows what keys do");
}

void viewer_event(struct viewer *v, const struct screen_event *event) {
    enum { WHEEL_ROWS = 3 };
    v->message.count = 0;
    switch (event->kind) {
    case SCREEN_KEY:
        on_key(v, event->key);
        break;
    case SCREEN_CLICK:
        on_click(v, event);
        break;
    case SCREEN_BACK_CLICK:
        key_back(v);
        break;
    case SCREEN_WHEEL:
        for (int i = 0; i < WHEEL_ROWS; i++)
            move(v, event->turned < 0 ? SCREEN_UP : SCREEN_DOWN);
        break;
    case SCREEN_RESIZED:
        v->graph.columns = 0;
        break;
    case SCREEN_LEAVE:
        v->is_over = true;
        break;
    }
}
