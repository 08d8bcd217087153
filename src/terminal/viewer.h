/* Private to the room: what is looked at, and where one is in it. */
#ifndef WICK_TERMINAL_VIEWER_H
#define WICK_TERMINAL_VIEWER_H

#include "terminal/screen.h"
#include "terminal/terminal.h"

/* ---- model.c: the flame, and what was typed to narrow it ---- */

enum narrowing_kind { NARROW_FOCUS, NARROW_IGNORE, NARROW_HIDE, NARROW_ROOT, NARROW_LABEL };
struct narrowing {
    enum narrowing_kind kind;
    char *text;
    struct pattern *pattern; /* of all but labels */
    char *key, *value;       /* of labels */
};

struct model {
    const struct viewer_options *options;
    struct flame *flame;
    bool by_samples, reverse;
    VECTOR(struct narrowing) narrowings;
    bool *skipped; /* by series: as the naming had it */
    struct buffer query;
    bool any_case;
    VECTOR(uint8_t) found; /* by string: 0 not known, 1 no, 2 yes */
};
bool model_start(struct model *model, const struct viewer_options *options, struct error *error);
void model_release(struct model *model);
/* Make the flame anew; if that fails or leaves nothing, the old one stays. */
bool model_make(struct model *model, struct error *error);
/* Narrow it further by what was typed; if nothing would be left, it stays as it is. */
bool model_narrow(struct model *model, enum narrowing_kind kind, struct text typed,
                  struct error *error);
/* Take the last of them back, or all. False: there is none. */
bool model_widen(struct model *model, bool all, struct error *error);
void model_describe(const struct model *model, struct buffer *text);
/* Search for QUERY; lower-case letters match both cases, unless there is an upper-case one. */
void model_search(struct model *model, struct text query);
bool model_matches(struct model *model, uint32_t name);
/* The weight of all stacks through a match. */
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
    uint64_t start; /* in what the zoomed frame weighs */
    int column, width;
};
struct flame_graph {
    uint32_t zoom, selected;
    bool is_inverted;         /* the root is at the bottom */
    uint32_t top;             /* the first depth that is shown */
    VECTOR(struct box) boxes; /* by depth, then from left to right */
    int columns;              /* that they were laid out for; 0: they were not */
};

/* outline.c: trees of rows that open and close; the call tree is one, the sandwich two */
struct outline {
    const char *title; /* of its first row; NULL: it has none */
    struct flame *flame;
    bool is_owned;
    uint64_t whole, self; /* what shares are of; what the function spends itself */
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
    uint32_t function;   /* string: what is selected, in all views */
    uint32_t sandwiched; /* string: what the sandwich is of */
    struct buffer message;
    bool is_over;
};

struct area viewer_area(void);
struct style style_of_name(struct viewer *v, uint32_t name, uint32_t object, uint32_t kinds,
                           bool is_selected, struct colour *colour);
/* Put a name that may have to be shortened, and whose control characters are escaped. */
void put_name(int row, int column, int width, struct text name, const struct style *style);
/* Move a cursor by STEPS within COUNT rows, and *top so that it is seen. */
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
/* The node at the cursor; *flame is the one that it is of. 0: a title. */
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
void viewer_sync(struct viewer *v);  /* the function that is selected is the view's */
void viewer_reset(struct viewer *v); /* after the flame was made anew */

#endif
