/*
 * The answer: the top ten functions by self and by total, in one table, for a quick look at a terminal; wick report has all rows.
 */
#include <stdlib.h>

#include "view/blocked.h"
#include "view/report.h"

struct answer {
    const struct flame *flame;
    struct strings *names;  /* rows are numbered as their names are */
    VECTOR(uint64_t) self;  /* by row */
    VECTOR(uint64_t) total; /* by row */
    VECTOR(uint32_t) order; /* rows, for sorting */
    uint32_t *keys;         /* by node: its row, or NO_KEY */
    struct buffer name;
};

static uint32_t row_of(struct answer *a, struct text name) {
    uint32_t row = strings_add(a->names, name);
    while (a->self.count <= row) {
        vector_push(&a->self, 0);
        vector_push(&a->total, 0);
    }
    return row;
}

/* The row of waits that end there. */
static uint32_t blocked_row(struct answer *a, uint32_t node) {
    a->name.count = 0;
    blocked_add(&a->name, a->flame, node);
    return row_of(a, buffer_text(&a->name));
}

/* ---- rows ---- */

static bool is_function(const struct flame_node *node, bool waits) {
    return !(node->kinds & KIND_ROOT) && !(waits && node->kinds & (KIND_KERNEL | KIND_WAKER));
}

static void count(struct answer *a, bool waits) {
    size_t nodes = a->flame->nodes.count;
    a->keys = memory_zero(nodes, sizeof *a->keys);
    for (uint32_t i = 0; i < nodes; i++)
        a->keys[i] = i && is_function(&a->flame->nodes.items[i], waits)
                         ? row_of(a, flame_name(a->flame, i))
                         : NO_KEY;
    struct key_sum *sums = memory_zero(a->self.count + 1, sizeof *sums);
    flame_sum(a->flame, a->keys, a->self.count, sums);
    for (size_t i = 0; i < a->self.count; i++) {
        a->total.items[i] = sums[i].total;
        a->self.items[i] = waits ? 0 : sums[i].self;
    }
    free(sums);
    for (uint32_t i = 1; waits && i < nodes; i++)
        if (a->flame->nodes.items[i].self) {
            uint32_t row = blocked_row(a, i);
            a->self.items[row] = saturating_add(a->self.items[row], a->flame->nodes.items[i].self);
        }
}

struct ranking {
    const struct answer *answer;
    const uint64_t *first, *second; /* the second decides where the first are equal */
};

static int order_rows(const void *a, const void *b, void *context) {
    const struct ranking *ranking = context;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (ranking->first[x] != ranking->first[y])
        return ranking->first[x] > ranking->first[y] ? -1 : 1;
    if (ranking->second[x] != ranking->second[y])
        return ranking->second[x] > ranking->second[y] ? -1 : 1;
    return text_compare(strings_get(ranking->answer->names, x),
                        strings_get(ranking->answer->names, y));
}

/* The first rows by a column; those that would show as 0.0 % are none. */
static size_t rank(struct answer *a, const uint64_t *first, const uint64_t *second, size_t most,
                   uint32_t *rows) {
    struct ranking ranking = {a, first, second};
    size_t count = 0;
    a->order.count = 0;
    for (uint32_t i = 0; i < a->self.count; i++)
        if (first[i] && per_cent(first[i], a->flame->nodes.items[0].total) >= 0.05)
            vector_push(&a->order, i);
    if (a->order.count)
        qsort_r(a->order.items, a->order.count, sizeof *a->order.items, order_rows, &ranking);
    for (; count < most && count < a->order.count; count++)
        rows[count] = a->order.items[count];
    return count;
}

/* ---- writing ---- */

enum { SHARE_WIDTH = 9, GAP = 2, LEAST_NAME = 16, MOST_ROWS = 40 };

static void add_cell(struct answer *a, struct buffer *text, const uint64_t *weights, uint32_t row,
                     size_t room, bool padded) {
    struct buffer shown = {0}, name = {0};
    buffer_add_shown(&shown, strings_get(a->names, row));
    name_add_short(&name, buffer_text(&shown), room);
    buffer_printf(text, "%6.1f %%  %.*s", per_cent(weights[row], a->flame->nodes.items[0].total),
                  TEXT_ARGS(buffer_text(&name)));
    size_t used = 0;
    for (size_t i = 0; i < name.count; i++)
        used += ((unsigned char)name.items[i] & 0xc0) != 0x80;
    for (; padded && used < room + GAP; used++)
        buffer_add_char(text, ' ');
    buffer_release(&shown);
    buffer_release(&name);
}

void answer_add(struct buffer *text, const struct flame *flame,
                const struct answer_options *options) {
    struct answer a = {.flame = flame, .names = strings_new()};
    uint32_t by_self[MOST_ROWS], by_total[MOST_ROWS];
    size_t most = options->rows < MOST_ROWS ? options->rows : MOST_ROWS;
    size_t columns = options->width / 2, used = SHARE_WIDTH + GAP;
    size_t room = columns > used + LEAST_NAME ? columns - used : LEAST_NAME;
    count(&a, options->waits);
    size_t selves = rank(&a, a.self.items, a.total.items, most, by_self);
    size_t totals = rank(&a, a.total.items, a.self.items, most, by_total);
    const char *self_title = options->waits ? "blocked in" : "function itself";
    buffer_printf(text, "    self  %-*s    total  %s\n", (int)(room - 1 + GAP), self_title,
                  options->waits ? "in or below" : "with what it calls");
    for (size_t i = 0; i < selves || i < totals; i++) {
        if (i < selves)
            add_cell(&a, text, a.self.items, by_self[i], room, i < totals);
        else
            buffer_printf(text, "%*s", (int)(SHARE_WIDTH + room + GAP + 1), "");
        if (i < totals)
            add_cell(&a, text, a.total.items, by_total[i], room, false);
        buffer_add_char(text, '\n');
    }
    strings_free(a.names);
    vector_release(&a.self);
    vector_release(&a.total);
    vector_release(&a.order);
    buffer_release(&a.name);
    free(a.keys);
}
