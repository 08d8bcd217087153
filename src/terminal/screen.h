/* Private to the room: the terminal itself. Nothing else of the room knows of ncurses. There is one screen a process. */
#ifndef WICK_TERMINAL_SCREEN_H
#define WICK_TERMINAL_SCREEN_H

#include "base/base.h"
#include "view/view.h"

/* Keys that are no characters; others are code points. */
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

/* How a piece of text looks. What a terminal can't show is left out. */
struct style {
    const struct colour *background; /* with black on it; NULL: the terminal's own colours */
    bool bold, reverse, underline, dim;
};

/* Open the terminal for keys, where standard input is none: a process that is confined later can't. */
bool screen_find_keys(struct error *error);
/* Take the terminal. `in_colour` false: bold, reverse and underline alone. */
bool screen_start(bool in_colour, struct error *error);
void screen_end(void);
int screen_rows(void);
int screen_columns(void);
bool screen_has_colours(void);
/* The sign at the left of a frame, as the terminal's encoding has it. */
struct text screen_edge(void);
void screen_clear(void);
/* Put text into WIDTH columns, filled up with spaces, clipped to the screen. Control characters must have been escaped. */
void screen_put(int row, int column, int width, struct text text, const struct style *style);
/* Show the cursor there after screen_show(); a negative column hides it. */
void screen_cursor(int row, int column);
void screen_show(void);
void screen_redraw(void); /* all of it, where something else wrote over it */
/* How many columns the text takes. */
int screen_width(struct text text);
/* How many of its bytes fit into so many columns: at least one character, if there is any. */
size_t screen_fit(struct text text, int columns);
/* Wait for what happens next. */
struct screen_event screen_read(void);

#endif
