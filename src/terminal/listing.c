/*
 * The table: a row for each function, with its self and total cost; a stack counts once, however often the function
 * recurs. Root frames (comms, threads) are not functions.
 */
#include "terminal/viewer.h"

#include <stdlib.h>

struct order {
    const struct flame *flame;
    bool by_total;
};

static int order_rows(const void *a, const void *b, void *context) {
    const struct order *order = context;
    const struct listing_row *x = a, *y = b;
    uint64_t i = order->by_total ? x->total : x->self, k = order->by_total ? y->total : y->self;
    if (i == k) {
        i = order->by_total ? x->self : x->total;
        k = order->by_total ? y->self : y->total;
    }
    return i != k ? (i > k ? -1 : 1)
                  : text_compare(strings_get(order->flame->strings, x->name),
                                 strings_get(order->flame->strings, y->name));
}

static void sort_rows(struct viewer *v) {
    struct order order = {v->model.flame, v->listing.by_total};
    qsort_r(v->listing.rows.items, v->listing.rows.count, sizeof *v->listing.rows.items, order_rows,
            &order);
}

void listing_reset(struct viewer *v) {
    const struct flame *flame = v->model.flame;
    struct listing *l = &v->listing;
    uint32_t names = strings_count(flame->strings) + 1;
    uint32_t *row_of = memory_zero(names, sizeof *row_of);
    uint32_t *keys = memory_resize(NULL, flame->nodes.count, sizeof *keys);
    l->rows.count = l->cursor = l->top = 0;
    for (uint32_t i = 0; i < flame->nodes.count; i++) {
        const struct flame_node *node = &flame->nodes.items[i];
        keys[i] = NO_KEY;
        if (!i || node->kinds & KIND_ROOT)
            continue;
        if (!row_of[node->name]) {
            vector_push(&l->rows, ((struct listing_row){node->name, node->object, 0, 0}));
            row_of[node->name] = (uint32_t)l->rows.count;
        }
        keys[i] = row_of[node->name] - 1;
    }
    struct key_sum *sums = memory_zero(l->rows.count + 1, sizeof *sums);
    flame_sum(flame, keys, l->rows.count, sums);
    for (size_t i = 0; i < l->rows.count; i++) {
        l->rows.items[i].self = sums[i].self;
        l->rows.items[i].total = sums[i].total;
    }
    free(sums);
    free(keys);
    free(row_of);
    sort_rows(v);
}

void listing_sort(struct viewer *v) {
    v->listing.by_total = !v->listing.by_total;
    sort_rows(v);
    listing_select_function(v, v->function);
}

static double share(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

void listing_draw(struct viewer *v, struct area area) {
    enum { SHARES = 19 };
    struct listing *l = &v->listing;
    uint64_t whole = v->model.flame->nodes.items[0].total;
    struct buffer text = {0};
    move_cursor(&l->cursor, &l->top, 0, l->rows.count, area.rows - 1);
    screen_put(area.top, 0, area.columns,
               l->by_total ? TEXT("    self    TOTAL  function")
                           : TEXT("    SELF    total  function"),
               &(struct style){.bold = true});
    for (int i = 0; i + 1 < area.rows && l->top + (size_t)i < l->rows.count; i++) {
        const struct listing_row *row = &l->rows.items[l->top + (size_t)i];
        bool is_selected = l->top + (size_t)i == l->cursor;
        struct colour colour;
        struct style style = style_of_name(v, row->name, row->object, 0, is_selected, &colour);
        text.count = 0;
        buffer_printf(&text, "%6.2f %% %6.2f %%  ", share(row->self, whole),
                      share(row->total, whole));
        screen_put(area.top + 1 + i, 0, area.columns, buffer_text(&text),
                   &(struct style){.reverse = is_selected});
        put_name(area.top + 1 + i, SHARES, area.columns - SHARES,
                 strings_get(v->model.flame->strings, row->name), &style);
    }
    buffer_release(&text);
}

static void cursor_to(struct viewer *v, size_t row) {
    v->listing.cursor = row;
    v->function = v->listing.rows.items[row].name;
}

void listing_move(struct viewer *v, uint32_t key, int rows) {
    struct listing *l = &v->listing;
    long page = rows > 1 ? rows - 1 : 1, count = (long)l->rows.count;
    move_cursor(&l->cursor, &l->top,
                key == SCREEN_UP          ? -1
                : key == SCREEN_DOWN      ? 1
                : key == SCREEN_PAGE_UP   ? -page
                : key == SCREEN_PAGE_DOWN ? page
                : key == SCREEN_HOME      ? -count
                : key == SCREEN_END       ? count
                                          : 0,
                l->rows.count, rows);
    if (l->rows.count)
        cursor_to(v, l->cursor);
}

void listing_click(struct viewer *v, struct area area, int row) {
    size_t at = v->listing.top + (size_t)(row - area.top - 1);
    if (row == area.top)
        listing_sort(v);
    else if (row > area.top && at < v->listing.rows.count)
        cursor_to(v, at);
}

bool listing_find(struct viewer *v, bool backwards) {
    size_t count = v->listing.rows.count;
    for (size_t step = 1; step <= count; step++) {
        size_t i = (v->listing.cursor + (backwards ? count - step : step)) % count;
        if (model_matches(&v->model, v->listing.rows.items[i].name)) {
            cursor_to(v, i);
            return true;
        }
    }
    return false;
}

void listing_select_function(struct viewer *v, uint32_t name) {
    for (size_t i = 0; i < v->listing.rows.count; i++)
        if (v->listing.rows.items[i].name == name)
            v->listing.cursor = i;
}
