/*
 * terminal: a profile on a whole screen of text: flame graph, call tree, table, and the callers and callees of a function, by keys and mouse.
 *
 * viewer_run() takes the terminal, shows what room stacks makes of a tree, and gives the terminal back as it was, on every way out. It
 * renders flames, sums of tables and flames of callers; it never walks the tree of locations. Names are shown with control characters and
 * escape sequences as \xNN, so that nothing out of a profile reaches the terminal as a command.
 *
 * The room is part of the program alone, not of libwick: ncurses, which draws, has state of its own for the whole process.
 */
#ifndef WICK_TERMINAL_H
#define WICK_TERMINAL_H

#include "stacks/stacks.h"
#include "view/view.h"

struct viewer_options {
    const char *title; /* what is looked at */
    const struct tree *tree;
    /* What it is called. The viewer changes which series are skipped, and puts that back. */
    struct naming *naming;
    const struct flame_options *flame; /* the rules it has are kept; what is typed adds to them */
    const struct notes *notes;         /* for the key that shows them */
    struct colouring colouring;
};
/* Show the profile until somebody leaves. False: there is no terminal, it is one that can't be used, or there is nothing to show. */
bool viewer_run(const struct viewer_options *options, struct error *error);
/* Whether this build can, and there is a terminal to write to and to read keys from, which it opens: before anything is read. */
bool viewer_possible(struct error *error);

#endif
