/*
 * terminal: the full-screen viewer: flame graph, call tree, table, and the callers and callees of a function, with
 * keys and mouse.
 *
 * viewer_run() takes over the terminal, shows what room stacks makes of a tree, and always restores the terminal. It
 * renders flames, tables and flames of callers; it never walks the tree of locations. Control characters and
 * escape sequences in names are shown as \xNN, so that nothing in a profile reaches the terminal as a command.
 *
 * The room is part of the program, not of libwick, because ncurses has process-wide state.
 */
#ifndef WICK_TERMINAL_H
#define WICK_TERMINAL_H

#include "stacks/stacks.h"
#include "view/view.h"

struct viewer_options {
    const char *title; /* name of the profile */
    const struct tree *tree;
    /* The names. The viewer changes which series are skipped, and restores that at the end. */
    struct naming *naming;
    const struct flame_options *flame; /* the rules it has are kept; what is typed adds to them */
    const struct notes *notes;         /* for the key that shows them */
    struct colouring colouring;
};
/* Show the profile until the user quits. Fails if there is no usable terminal, or nothing to show. */
bool viewer_run(const struct viewer_options *options, struct error *error);
/* Check that this build has the viewer and that there is a terminal for output and keys, and open the latter. Call it
   before anything is read. */
bool viewer_possible(struct error *error);

#endif
