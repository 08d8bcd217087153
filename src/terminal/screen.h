/* Private to the room: the terminal. Only this file uses ncurses. There is one screen per process. */
#ifndef WICK_TERMINAL_SCREEN_H
#define WICK_TERMINAL_SCREEN_H

#include "base/base.h"
#include "view/view.h"

/* Keys that are not characters; others are code points. */
enum screen_key {
    SCREEN_UP = 0x200000,
    SCREEN_DOWN,
    SCREEN_LEFT,
    SCREEN_RIGHT,
    SCREEN_PAGE_UP,
    SCREEN_PAGE_DOWN,
    SCREEN_HOME,
    SCREEN_END,
    SCREEN_ENTER,
    SCREEN_BACKSPACE,
    SCREEN_ESCAPE,
    SCREEN_TAB,
    SCREEN_BACK_TAB,
};

struct screen_event {
    enum {
        SCREEN_KEY,
        SCREEN_CLICK,
        SCREEN_BACK_CLICK,
        SCREEN_WHEEL,
        SCREEN_RESIZED,
        SCREEN_LEAVE
    } kind;
    uint32_t key;    /* of SCREEN_KEY */
    int row, column; /* of clicks */
    int turned;      /* of the wheel: -1 up, 1 down */
};

/* The style of a piece of text. Attributes that a terminal can't show are ignored. */
struct style {
    const struct colour *background; /* with black on it; NULL: the terminal's own colours */
    bool bold, reverse, underline, dim;
};

/* Open the terminal for keys if standard input is not one. Must be called before the process is confined. */
bool screen_find_keys(struct error *error);
/* Take over the terminal. If `in_colour` is false, use only bold, reverse and underline. */
bool screen_start(bool in_colour, struct error *error);
void screen_end(void);
int screen_rows(void);
int screen_columns(void);
bool screen_has_colours(void);
/* The character at the left edge of a frame, in the terminal's encoding. */
struct text screen_edge(void);
void screen_clear(void);
/* Write text into WIDTH columns, padded with spaces, clipped to the screen. Control characters must have been
   escaped. */
void screen_put(int row, int column, int width, struct text text, const struct style *style);
/* Show the cursor there after screen_show(); a negative column hides it. */
void screen_cursor(int row, int column);
void screen_show(void);
void screen_redraw(void); /* everything, after something else wrote to the terminal */
/* Return the number of columns of a text. */
int screen_width(struct text text);
/* Return how many of its bytes fit into `columns`: at least one character, if there is any. */
size_t screen_fit(struct text text, int columns);
/* Wait for the next event. */
struct screen_event screen_read(void);

#endif
