/* Private to the room: a tree as any view that wick has, for commands that make a tree of their own. */
#ifndef WICK_CMD_RESULT_H
#define WICK_CMD_RESULT_H

#include "cmd/picture.h"

extern const struct option options_result[]; /* --as --svg --html --table --csv --json --by … */

/* Where it goes: -o, or what fits the view: standard output for text, flamegraph.svg, flamegraph.html. */
const char *result_path(void);
bool result_was_chosen(void); /* one of the options was given */
/* False, with a usage error, if an option was given that the view does not heed. */
bool result_check(struct error *error);
/* What can be known to fail before the tree is there: the picture's looks. */
bool result_prepare(struct error *error);
/* Writes the tree, which may be partial. The notes are for the page, and get more. */
bool result_write(const struct tree *tree, struct notes *notes, struct error *error);

#endif
