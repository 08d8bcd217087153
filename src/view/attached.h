/*
 * The source text and machine code attached to a tree, sorted, for wick annotate and the page.
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
/* Return the text of a file; empty if there is none. */
struct text attached_source_of(const struct attached *attached, struct text file);
/* Return the code that contains an address, or NULL. */
const struct attached_code *attached_code_at(const struct attached *attached, uint32_t object,
                                             uint64_t address);

struct instruction {
    uint64_t address;
    uint32_t size;
    const char *name, *operands;
    uint64_t target; /* the target of a jump, if known; else 0 */
};
/* Call `each` for all instructions of a function; a byte that is not an instruction is shown as a byte. Return false if there is no disassembler
   for it. */
bool code_each(const struct attached_code *code,
               void (*each)(void *context, const struct instruction *instruction), void *context);

#endif
