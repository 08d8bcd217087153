/* Private to the room: who waited, and for what. */
#ifndef WICK_VIEW_BLOCKED_H
#define WICK_VIEW_BLOCKED_H

#include "view/view.h"

/* Append whose wait it is that ends at `node`: the last function outside the kernel, and what it asked the kernel for, as `read [read]`; of a thread of the
   kernel's own what it waits in. Return the node of that function, or 0. */
uint32_t blocked_add(struct buffer *name, const struct flame *flame, uint32_t node);

#endif
