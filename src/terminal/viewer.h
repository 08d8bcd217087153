/* Private to the room: the state of the viewer. */
#ifndef WICK_TERMINAL_VIEWER_H
#define WICK_TERMINAL_VIEWER_H

#include "terminal/screen.h"
#include "terminal/terminal.h"

/* ---- model.c: the flame, and what was typed to narrow it ---- */

enum narrowing_kind { NARROW_FOCUS, NARROW_IGNORE, NARROW_HIDE, NARROW_ROOT, NARROW_LABEL };
struct narrowing {
    enum narrowing_kind kind;
    char *text;
    struct pattern *pattern; /* filters other than labels */
    char *key, *value;       /* filters by label */
};

struct model {
    const struct viewer_options *options;
    struct flame *flame;
    bool by_samples, reverse;
    VECTOR(struct narrowing) narrowings;
    bool *skipped; /* by series: as in the naming before */
    struct buffer query;
    bool any_case;
    VECTOR(uint8_t) found; /* by string: 0 unknown, 1 no match, 2 match */
};
bool model_start(struct model *model, const struct viewer_options *options, struct error *error);
void model_release(struct model *model);
/* Rebuild the flame; if that fails or nothing is left, keep the old one. */
bool model_make(struct model *model, struct error *error);
/* Narrow the flame by what was typed; if nothing would be left, keep it as it is. */
bool model_narrow(struct model *model, enum narrowing_kind kind, struct text typed,
                  struct error *error);
/* Undo the last filter, or all. Return false if there is none. */
bool model_widen(struct model *model, bool all, struct error *error);
void model_describe(const struct model *model, struct buffer *text);
/* Search for QUERY. Case is ignored unless QUERY has an upper-case letter. */
void model_search(struct model *model, struct text query);
bool model_matches(struct model *model, uint32_t name);
/* Return the weight of all stacks that contain a match. */
uint64_t model_matched(struct model *model, const struct flame *flame);
/* "1.25 s", "1,234 samples" */
void model_add_amount(const struct model *model, struct buffer *text, uint64_t amount);

/* ---- the views ---- */

enum view { VIEW_FLAME, VIEW_TREE, VIEW_TABLE, VIEW_SANDWICH, VIEW_COUNT };

struct area {
    int top, rows, columns;
};

/* flame_graph.c */
struct box {
    uint32_t node;
    uint32_t depth;
    uint64_t start; /* in units of the zoomed frame's weight */
    int column, width;
};
struct flame_graph {
    uint32_t zoom, selected;
    bool is_inverted;         /* the root is at the bottom */
    uint32_t top;             /* first visible depth */
    VECTOR(struct box) boxes; /* by depth, then from left to right */
    int columns;              /* columns of the last layout; 0: none */
};

/* outline.c: trees of rows that open and close; the call tree is one, the sandwich two */
struct outline {
    const char *title; /* label of its first row; NULL: none */
    struct flame *flame;
    bool is_owned;
    uint64_t whole, self; /* what percentages refer to; the function's self cost */
    bool is_around, is_callers;
    uint32_t *first, *next; /* children by weight */
    uint8_t *open;          /* by node */
};
struct outline_row {
    uint32_t outline, node; /* node 0 is the title */
};
struct outlines {
    struct outline items[2];
    size_t count;
    VECTOR(struct outline_row) rows;
    size_t cursor, top;
};

/* listing.c: a row for each function */
struct listing_row {
    uint32_t name, object;
    uint64_t self, total;
};
struct listing {
    VECTOR(struct listing_row) rows;
    bool by_total;
    size_t cursor, top;
};

struct viewer {
    struct model model;
    enum view view;
    struct flame_graph graph;
    struct outlines tree, sandwich;
    struct listing listing;
    uint32_t function;   /* string: the selected function, in all views */
    uint32_t sandwiched; /* string: the function of the sandwich */
    struct buffer message;
    bool is_over;
};

struct area viewer_area(void);
struct style style_of_name(struct viewer *v, uint32_t name, uint32_t object, uint32_t kinds,
                           bool is_selected, struct colour *colour);
/* Draw a name, shortened if necessary and with control characters escaped. */
void put_name(int row, int column, int width, struct text name, const struct style *style);
/* Move a cursor by STEPS within COUNT rows, and *top so that it is visible. */
void move_cursor(size_t *cursor, size_t *top, long steps, size_t count, int rows);

void graph_reset(struct viewer *v);
void graph_release(struct viewer *v);
void graph_draw(struct viewer *v, struct area area);
void graph_move(struct viewer *v, uint32_t key);
void graph_zoom(struct viewer *v);
bool graph_unzoom(struct viewer *v);
void graph_click(struct viewer *v, struct area area, int row, int column);
bool graph_find(struct viewer *v, bool backwards);
void graph_select_function(struct viewer *v, uint32_t name);

void outlines_release(struct outlines *o);
void tree_reset(struct viewer *v);
bool sandwich_reset(struct viewer *v, uint32_t name, struct error *error);
void outlines_draw(struct viewer *v, struct outlines *o, struct area area);
void outlines_move(struct viewer *v, struct outlines *o, uint32_t key, int rows);
void outlines_toggle(struct viewer *v, struct outlines *o);
void outlines_open_all(struct viewer *v, struct outlines *o);
void outlines_click(struct viewer *v, struct outlines *o, struct area area, int row);
bool outlines_find(struct viewer *v, struct outlines *o, bool backwards);
void outlines_select_function(struct viewer *v, struct outlines *o, uint32_t name);
/* Return the node at the cursor, or 0 for a title, and set *outline to its outline. */
uint32_t outlines_at(const struct outlines *o, const struct outline **outline);

void listing_reset(struct viewer *v);
void listing_draw(struct viewer *v, struct area area);
void listing_move(struct viewer *v, uint32_t key, int rows);
void listing_sort(struct viewer *v);
void listing_click(struct viewer *v, struct area area, int row);
bool listing_find(struct viewer *v, bool backwards);
void listing_select_function(struct viewer *v, uint32_t name);

/* pages.c: text over the whole screen, until a key ends it */
void page_show(struct text text);

/* ---- keys.c ---- */
void viewer_event(struct viewer *v, const struct screen_event *event);
void viewer_draw(struct viewer *v);
void viewer_show_selected(struct viewer *v);
void viewer_sync(struct viewer *v);  /* set `function` from the view */
void viewer_reset(struct viewer *v); /* after the flame was rebuilt */

#endif
