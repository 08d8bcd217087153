/*
 * The terminal, by ncurses with wide characters.
 *
 * The terminal is restored on every exit: by screen_end(), by the handlers of signals that end the process
 * (assertions and crashes included) and by the out-of-memory hook. The first Ctrl-C, SIGTERM or SIGHUP is an event
 * like a key; a second one before the first was read ends the process at once.
 *
 * Colours: a terminal with direct colours shows each one as it is (in steps of 17, so that pairs are few), one with
 * 256 colours the nearest of the cube, one with 8 or 16 the nearest of six hues.
 */
#define NCURSES_WIDECHAR 1
#include "terminal/screen.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <wchar.h>

/* From term.h, whose macros have the names of variables. */
struct term;
extern struct term *cur_term;
int setupterm(const char *kind, int file, int *status);
int del_curterm(struct term *term);

enum { COLOUR_KEYS = 4096 };
static struct {
    SCREEN *screen;
    FILE *keys; /* NULL: standard input */
    int input;
    bool is_on, is_utf8, in_colour;
    int pairs_used;
    uint16_t pairs[COLOUR_KEYS]; /* by 12-bit colour: its pair, or 0 */
    int cursor_row, cursor_column;
} the;
static volatile sig_atomic_t leave;

/* ---- beginning and end ---- */

void screen_end(void) {
    if (!the.is_on)
        return;
    the.is_on = false;
    endwin();
}

static void on_leave(int number) {
    if (leave++) {
        screen_end();
        _exit(128 + number);
    }
}

static void on_crash(int number) {
    screen_end();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_no_memory(void) {
    static const char text[] = "wick: out of memory\n";
    screen_end();
    out_remove_temporaries();
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(ERROR_INTERNAL);
}

static void set_signals(void) {
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGFPE, SIGILL};
    struct sigaction action = {.sa_handler = on_leave};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        sigaction(ends[i], &action, NULL);
    action = (struct sigaction){.sa_handler = on_crash, .sa_flags = SA_NODEFER};
    for (size_t i = 0; i < COUNT_OF(crashes); i++)
        sigaction(crashes[i], &action, NULL);
    memory_set_hook(on_no_memory);
    atexit(screen_end);
}

static void set_modes(void) {
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(25);
    curs_set(0);
    mouseinterval(0); /* a press is a click: do not wait for a double click */
    mousemask(BUTTON1_PRESSED | BUTTON3_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
}

static bool fail_terminal(const char *kind, struct error *error) {
    if (the.keys)
        fclose(the.keys);
    return error_set(error, ERROR_DENIED,
                     "the terminal %s%s can't be used: TERM must name one that the terminfo "
                     "database has and that can move its cursor",
                     kind ? kind : "", kind ? "" : "(TERM is not set)");
}

bool screen_find_keys(struct error *error) {
    the.input = STDIN_FILENO;
    if (the.keys || isatty(STDIN_FILENO))
        return true;
    the.keys = fopen("/dev/tty", "re"); /* the profile comes from standard input */
    if (!the.keys)
        return error_set(error, ERROR_DENIED, "/dev/tty: %s: no keys can be read", strerror(errno));
    the.input = fileno(the.keys);
    return true;
}

bool screen_start(bool in_colour, struct error *error) {
    const char *kind = getenv("TERM");
    setlocale(LC_CTYPE, ""); /* numbers and messages keep the C locale */
    the.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (!kind || strcmp(kind, "dumb") == 0)
        return fail_terminal(kind, error);
    int known; /* checked first, because newterm() leaks if it fails */
    if (setupterm(kind, fileno(stdout), &known) != OK)
        return fail_terminal(kind, error);
    del_curterm(cur_term);
    set_signals();
    the.screen = newterm(kind, stdout, the.keys ? the.keys : stdin);
    if (!the.screen)
        return fail_terminal(kind, error);
    the.is_on = true;
    set_modes();
    the.in_colour = in_colour && has_colors() && start_color() == OK;
    if (the.in_colour)
        use_default_colors();
    return true;
}

/* ---- drawing ---- */

int screen_rows(void) {
    return LINES;
}
int screen_columns(void) {
    return COLS;
}
bool screen_has_colours(void) {
    return the.in_colour;
}
struct text screen_edge(void) {
    return the.is_utf8 ? TEXT("▏") : TEXT("|");
}
void screen_clear(void) {
    erase();
    screen_cursor(0, -1);
}

static int cube_step(uint8_t value) {
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
}

/* Return the hue among red, yellow, green, cyan, blue and magenta; white for grey. */
static int nearest_of_8(struct colour c) {
    uint8_t most = c.red > c.green ? c.red : c.green, least = c.red < c.green ? c.red : c.green;
    most = c.blue > most ? c.blue : most;
    least = c.blue < least ? c.blue : least;
    if (most - least < 24)
        return COLOR_WHITE;
    int middle = (most + least) / 2;
    return (c.red > middle ? COLOR_RED : 0) | (c.green > middle ? COLOR_GREEN : 0) |
           (c.blue > middle ? COLOR_BLUE : 0);
}

static int nearest_colour(struct colour c) {
    if (COLORS > 256)
        return (c.red & 0xf0) << 16 | (c.green & 0xf0) << 8 | (c.blue & 0xf0);
    if (COLORS >= 256)
        return 16 + 36 * cube_step(c.red) + 6 * cube_step(c.green) + cube_step(c.blue);
    return nearest_of_8(c);
}

/* Allocate pairs when they are needed; if there are no more, reuse the last. */
static int pair_of(const struct colour *c) {
    unsigned key = (unsigned)(c->red >> 4) << 8 | (unsigned)(c->green >> 4) << 4 | c->blue >> 4;
    if (!the.pairs[key]) {
        if (the.pairs_used + 1 < COLOR_PAIRS && the.pairs_used + 1 < 32767)
            init_extended_pair(++the.pairs_used, COLORS == 256 ? 16 : COLOR_BLACK,
                               nearest_colour(*c));
        the.pairs[key] = (uint16_t)the.pairs_used;
    }
    return the.pairs[key];
}

static void set_style(const struct style *style) {
    attr_t attributes = A_NORMAL;
    int pair = style->background && the.in_colour ? pair_of(style->background) : 0;
    attributes |= style->bold ? A_BOLD : 0;
    attributes |= style->reverse ? A_REVERSE : 0;
    attributes |= style->underline ? A_UNDERLINE : 0;
    attributes |= style->dim ? A_DIM : 0;
    attr_set(attributes, (short)pair, &pair);
}

/* Remove one character from TEXT and set *columns to its width. A character that the terminal's encoding lacks, or
   that has no width, becomes a question mark. */
static wchar_t take_character(struct text *text, int *columns) {
    wchar_t wide = L'?';
    mbstate_t state = {0};
    size_t used = the.is_utf8 ? mbrtowc(&wide, text->data, text->length, &state) : 1;
    if (!the.is_utf8) {
        unsigned char byte = (unsigned char)text->data[0];
        wide = byte < 0x80 ? byte : L'?';
        while (byte >= 0x80 && used < text->length &&
               ((unsigned char)text->data[used] & 0xc0) == 0x80)
            used++;
    }
    if (used == 0 || used > text->length) {
        used = 1;
        wide = L'?';
    }
    *text = text_from(*text, used);
    *columns = wcwidth(wide);
    if (*columns >= 0)
        return wide;
    *columns = 1;
    return L'?';
}

int screen_width(struct text text) {
    int columns, width = 0;
    while (text.length) {
        take_character(&text, &columns);
        width += columns;
    }
    return width;
}

size_t screen_fit(struct text text, int columns) {
    struct text rest = text;
    int used = 0, more;
    size_t fits = 0;
    while (rest.length) {
        take_character(&rest, &more);
        if (fits && used + more > columns)
            break;
        used += more;
        fits = text.length - rest.length;
    }
    return fits;
}

enum { COMBINED_MOST = 2 }; /* combining characters: a cell holds few */

void screen_put(int row, int column, int width, struct text text, const struct style *style) {
    if (column < 0 || row < 0 || row >= LINES || column >= COLS)
        return;
    width = width < COLS - column ? width : COLS - column;
    VECTOR(wchar_t) line = {0};
    int used = 0, combined = 0;
    while (text.length && used < width) {
        int columns;
        wchar_t wide = take_character(&text, &columns);
        if (used + columns > width)
            break;
        combined = columns ? 0 : combined + 1;
        if (combined > COMBINED_MOST || (columns == 0 && used == 0))
            continue;
        vector_push(&line, wide);
        used += columns;
    }
    for (; used < width; used++)
        vector_push(&line, L' ');
    set_style(style);
    mvaddnwstr(row, column, line.items, (int)line.count);
    attr_set(A_NORMAL, 0, NULL);
    vector_release(&line);
}

void screen_cursor(int row, int column) {
    the.cursor_row = row;
    the.cursor_column = column;
}

void screen_show(void) {
    curs_set(the.cursor_column >= 0);
    if (the.cursor_column >= 0)
        move(the.cursor_row, the.cursor_column < COLS ? the.cursor_column : COLS - 1);
    refresh();
}

void screen_redraw(void) {
    clearok(stdscr, TRUE);
}

/* ---- events ---- */

static bool mouse_event(struct screen_event *event) {
    MEVENT mouse;
    if (getmouse(&mouse) != OK)
        return false;
    event->row = mouse.y;
    event->column = mouse.x;
    event->turned = mouse.bstate & BUTTON4_PRESSED ? -1 : 1;
    event->kind = mouse.bstate & BUTTON1_PRESSED   ? SCREEN_CLICK
                  : mouse.bstate & BUTTON3_PRESSED ? SCREEN_BACK_CLICK
                                                   : SCREEN_WHEEL;
    return mouse.bstate & (BUTTON1_PRESSED | BUTTON3_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED);
}

static uint32_t special_key(wint_t key) {
    static const struct {
        wint_t key;
        uint32_t is;
    } keys[] = {{KEY_UP, SCREEN_UP},         {KEY_DOWN, SCREEN_DOWN},
                {KEY_LEFT, SCREEN_LEFT},     {KEY_RIGHT, SCREEN_RIGHT},
                {KEY_PPAGE, SCREEN_PAGE_UP}, {KEY_NPAGE, SCREEN_PAGE_DOWN},
                {KEY_HOME, SCREEN_HOME},     {KEY_END, SCREEN_END},
                {KEY_ENTER, SCREEN_ENTER},   {KEY_BACKSPACE, SCREEN_BACKSPACE},
                {KEY_BTAB, SCREEN_BACK_TAB}};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i].key == key)
            return keys[i].is;
    return 0;
}

static uint32_t plain_key(wint_t key) {
    return key == '\r' || key == '\n'  ? SCREEN_ENTER
           : key == 27                 ? SCREEN_ESCAPE
           : key == '\t'               ? SCREEN_TAB
           : key == 127 || key == '\b' ? SCREEN_BACKSPACE
                                       : key;
}

/* Return false for events that no view uses. */
static bool take_event(int got, wint_t key, struct screen_event *event) {
    if (got == KEY_CODE_YES && key == KEY_MOUSE)
        return mouse_event(event);
    *event = (struct screen_event){.kind = SCREEN_KEY};
    if (got == KEY_CODE_YES && key == KEY_RESIZE)
        event->kind = SCREEN_RESIZED;
    else
        event->key = got == KEY_CODE_YES ? special_key(key) : plain_key(key);
    return event->kind == SCREEN_RESIZED || event->key;
}

/* A signal that arrives just before poll() is noticed half a second later. */
struct screen_event screen_read(void) {
    enum { HALF_A_SECOND = 500 };
    struct screen_event event = {.kind = SCREEN_LEAVE};
    for (;;) {
        wint_t key;
        if (leave)
            return (struct screen_event){.kind = SCREEN_LEAVE};
        int got = get_wch(&key);
        if (got != ERR && take_event(got, key, &event))
            return event;
        struct pollfd input = {the.input, POLLIN, 0};
        if (got == ERR && poll(&input, 1, HALF_A_SECOND) == 1 &&
            input.revents & (POLLHUP | POLLERR | POLLNVAL))
            return (struct screen_event){.kind = SCREEN_LEAVE}; /* the terminal is gone */
    }
}
