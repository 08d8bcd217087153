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
    uint32_t limit; /* UINT32_MAX: not given, use 30 */
    const char *categories_file;
};
void result_begin(struct result_request *r);
extern const struct option options_result[]; /* --as --svg --html --table --csv --json --by … */

/* Return the output's path: -o, or the view's default: standard output for text, flamegraph.svg or flamegraph.html. */
const char *result_path(const struct result_request *r);
/* Return false with a usage error if the view does not use an option that was given. */
bool result_check(const struct result_request *r, struct error *error);
/* Check what can be checked before the tree exists: the picture's looks. */
bool result_prepare(struct result_request *r, struct error *error);
/* Write the tree, which may be partial. The page shows the notes; more may be added to them. */
bool result_write(struct result_request *r, const struct tree *tree, struct notes *notes,
                  struct error *error);

#endif
