/* What the page's files share. */
#ifndef WICK_VIEW_HTML_H
#define WICK_VIEW_HTML_H

#include "stacks/stacks.h"

struct html_source {
    const struct tree *tree;
    const struct naming *naming;
    const struct flame_options *shape;
    const bool *left_out;    /* by series: not in the page */
    const uint32_t *numbers; /* by series: its number in the page */
};
/*
 * Append `"source":{…},`: of each function what each of its lines and instructions cost, by series, with the text and the code that are attached to
 * the tree; nothing if nothing is. web/page/source.js reads it:
 *   files      [name, [[first line, text], …]]: the lines that were hit and some around them
 *   functions  [name, [[file, line, costs], …], [[object, [[address, text, row that it jumps to or -1, costs], …]], …]]
 *   costs      series, self, total, samples of self, samples of total, and so on; of instructions without the totals
 *   left       how many functions have no code because there was too much
 * False: a pattern met its limits.
 */
bool html_add_source(struct buffer *json, const struct html_source *s, struct error *error);

#endif
