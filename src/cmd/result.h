/* Private to the room: a tree as any view that wick has, for commands that make a tree of their own. */
#ifndef WICK_CMD_RESULT_H
#define WICK_CMD_RESULT_H

#include "cmd/picture.h"

enum result_view { VIEW_FOLDED, VIEW_SVG, VIEW_HTML, VIEW_TABLE, VIEW_CSV, VIEW_JSON };

/* The first member of every command that shows a tree of its own. */
struct result_request {
    struct picture_request p;
    enum result_view view;
    bool chosen; /* one of the options was given */
    enum report_by by;
    bool by_chosen;
    uint32_t limit; /* UINT32_MAX: not given, 30 */
    const char *categories_file;
};
void result_begin(struct result_request *r);
extern const struct option options_result[]; /* --as --svg --html --table --csv --json --by … */

/* Where it goes: -o, or what fits the view: standard output for text, flamegraph.svg, flamegraph.html. */
const char *result_path(const struct result_request *r);
/* False, with a usage error, if an option was given that the view does not heed. */
bool result_check(const struct result_request *r, struct error *error);
/* What can be known to fail before the tree is there: the picture's looks. */
bool result_prepare(struct result_request *r, struct error *error);
/* Writes the tree, which may be partial. The notes are for the page, and get more. */
bool result_write(struct result_request *r, const struct tree *tree, struct notes *notes,
                  struct error *error);

#endif
