/*
 * The source and the machine code that a tree carries, in order, for what shows them: wick annotate and the page.
 */
#ifndef WICK_VIEW_ATTACHED_H
#define WICK_VIEW_ATTACHED_H

#include "tree/tree.h"

struct attached {
    const struct tree *tree;
    const struct attached_source **sources; /* by file */
    const struct attached_code **codes;     /* by object and start */
};
void attached_init(struct attached *attached, const struct tree *tree);
void attached_release(struct attached *attached);
/* Return the text of a file; empty: there is none. */
struct text attached_source_of(const struct attached *attached, struct text file);
/* Return the code that an address lies in, or NULL. */
const struct attached_code *attached_code_at(const struct attached *attached, uint32_t object,
                                             uint64_t address);

struct instruction {
    uint64_t address;
    uint32_t size;
    const char *name, *operands;
    uint64_t target; /* where it jumps to, if that is known; else 0 */
};
/* Call `each` for all instructions of a function; a byte that is none is shown as what it is. False: it cannot be disassembled here. */
bool code_each(const struct attached_code *code,
               void (*each)(void *context, const struct instruction *instruction), void *context);

#endif
