/* Private to the room. */
#ifndef WICK_PROFILE_ADDR2LINE_H
#define WICK_PROFILE_ADDR2LINE_H

#include "profile/profile.h"

/*
 * perf 6.1 asks addr2line for inlined functions, and addr2line's answers depend on earlier requests. At the first request for an address whose
 * innermost function has no linkage name (C++ without external linkage), it answers with the symbol there. If that symbol begins where the
 * function does, the function has this name from then on; otherwise, and until then, it has its plain name. So names depend on the order of
 * requests, which is that of the samples, leaf first. This imitates it.
 */
struct addr2line_place {
    uint32_t location;
    struct inline_frame *inlines; /* outermost first; names are replaced */
    size_t count;
    const struct symbol *symbol;
};
/* Rename the inlined frames of places; places without any are not changed. The tree's samples must be in key order. */
void addr2line_rename(const struct tree *tree, struct addr2line_place *places, size_t count);

#endif
