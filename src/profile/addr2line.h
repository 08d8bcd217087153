/* Private to the room. */
#ifndef WICK_PROFILE_ADDR2LINE_H
#define WICK_PROFILE_ADDR2LINE_H

#include "profile/profile.h"

/*
 * perf 6.1 asks addr2line for inlined functions, and addr2line remembers: the first time an address is asked for whose innermost function's
 * name is not what the linker knows it by (C++ without external linkage), it answers with the symbol there instead; if that symbol begins where
 * the function does, it calls the function so from then on; otherwise, and until then, by its plain name. So names depend on the
 * order of questions, which is that of the samples, leaf first. This works out the same.
 */
struct addr2line_place {
    uint32_t location;
    struct inline_frame *inlines; /* outermost first; names are replaced */
    size_t count;
    const struct symbol *symbol;
};
/* Places without inlines are left alone. The tree's samples must be in key order. */
void addr2line_rename(const struct tree *tree, struct addr2line_place *places, size_t count);

#endif
