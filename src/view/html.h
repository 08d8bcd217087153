/* Private to this room: shared by the files that write the page. */
#ifndef WICK_VIEW_HTML_H
#define WICK_VIEW_HTML_H

#include "view/view.h"

struct html_source {
    const struct tree *tree;
    const struct naming *naming;
    const struct flame_options *shape;
    const bool *left_out;    /* by series: not in the page */
    const uint32_t *numbers; /* by series: its number in the page */
};
/*
 * Append `"source":{…},`: the costs of each function's lines and instructions, by series, with the text and code attached to the tree; append
 * nothing if there are none. web/page/source.js reads it:
 *   files      [name, [[first line, text], …]]: the lines that were hit and some around them
 *   functions  [name, [[file, line, costs], …], [[object, [[address, text, row that it jumps to or -1, costs], …]], …]]
 *   costs      series, self, total, samples of self, samples of total, and so on; without the totals for instructions
 *   left       how many functions have no code because there was too much
 * Return false if a pattern exceeds its limits.
 */
bool html_add_source(struct buffer *json, const struct html_source *s, struct error *error);

/* ---- the page under construction ---- */

struct html_cell {
    uint32_t node;
    uint32_t series;
    uint64_t samples;
    uint64_t weight;
};

struct html {
    const struct tree *tree;
    const struct naming *naming;
    const struct html_options *options;
    struct walker *walker;
    const struct flame *flame; /* the walker's */
    bool switches;             /* between several times */
    bool *left_out;            /* by series: counts a time that is not shown */
    uint32_t *order;           /* by flame node: its number in the file */
    VECTOR(struct html_cell) cells;
    struct buffer json, data;
};

/* Append "name":"value" with a comma; invisible characters of the value are made visible. */
void json_field(struct buffer *json, const char *name, struct text value);
void json_shown(struct buffer *json, struct text value);

/* html_series.c. Append the times between which the page can switch, and their titles. */
void html_add_times(struct html *h);
/* Append the series of the cells and number them, in order of content, because ids depend on the number of threads that read. Series that look the
   same in the page get the same number. */
void html_add_series(struct html *h, uint32_t *numbers);

#endif
