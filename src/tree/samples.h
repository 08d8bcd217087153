/* Private to the room: where kept samples live. */
#ifndef WICK_TREE_SAMPLES_H
#define WICK_TREE_SAMPLES_H

#include "tree/tree.h"

void samples_release(struct tree *tree);

#endif
