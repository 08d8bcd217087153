/* Private to the room: what the makers of flames share. */
#ifndef WICK_STACKS_FLAME_H
#define WICK_STACKS_FLAME_H

#include "stacks/stacks.h"

/* Totals and depth from the nodes' own weights; false if they pass 2^64. */
bool flame_total(struct flame *flame, struct error *error);
/* What the weights count: the events' unit where they share one. */
struct text flame_unit(const struct tree *tree, const struct flame_options *options);

#endif
