/* Full-screen text: help, notes, a long name. Lines are wrapped and can be scrolled. */
#include "terminal/viewer.h"

#include <stdlib.h>

typedef VECTOR(struct text) line_list;

static void wrap(struct text text, int columns, line_list *lines) {
    while (text.length) {
        struct text line = text_take_line(&text);
        do {
            size_t length = screen_fit(line, columns);
            vector_push(lines, text_upto(line, length));
            line = text_from(line, length);
        } while (line.length);
    }
}

static void draw(const line_list *lines, size_t top) {
    static const struct text foot = TEXT(" up, down: scroll   any other key: back");
    int rows = screen_rows() > 1 ? screen_rows() - 1 : screen_rows();
    screen_clear();
    for (int i = 0; i < rows && top + (size_t)i < lines->count; i++)
        screen_put(i, 0, screen_columns(), lines->items[top + (size_t)i], &(struct style){0});
    if (screen_rows() > 1)
        screen_put(screen_rows() - 1, 0, screen_columns(), foot, &(struct style){.reverse = true});
    screen_show();
}

void page_show(struct text text) {
    line_list lines = {0};
    size_t top = 0;
    for (bool done = false; !done;) {
        lines.count = 0;
        wrap(text, screen_columns(), &lines);
        draw(&lines, top);
        struct screen_event event = screen_read();
        long page = screen_rows() - 1;
        long by = event.kind == SCREEN_WHEEL      ? 3 * event.turned
                  : event.kind != SCREEN_KEY      ? 0
                  : event.key == SCREEN_UP        ? -1
                  : event.key == SCREEN_DOWN      ? 1
                  : event.key == SCREEN_PAGE_UP   ? -page
                  : event.key == SCREEN_PAGE_DOWN ? page
                  : event.key == ' '              ? page
                                                  : 0;
        done = !by && event.kind != SCREEN_RESIZED;
        size_t last = lines.count > (size_t)page ? lines.count - (size_t)page : 0;
        long to = (long)top + by;
        top = to < 0 ? 0 : (size_t)to > last ? last : (size_t)to;
    }
    vector_release(&lines);
}
