/* Private to this room: which function waited, and for what. */
#ifndef WICK_VIEW_BLOCKED_H
#define WICK_VIEW_BLOCKED_H

#include "view/view.h"

/* Append the name of the wait that ends at `node`: the last function outside the kernel and its system call or the like, as `read [read]`; for a kernel
   thread, the function in which it waits. Return the node of that function, or 0. */
uint32_t blocked_add(struct buffer *name, const struct flame *flame, uint32_t node);

#endif
