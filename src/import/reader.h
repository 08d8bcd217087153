/* Private to the room: what the readers of text share. */
#ifndef WICK_IMPORT_READER_H
#define WICK_IMPORT_READER_H

#include "import/import.h"

/* ---- lines -------------------------------------------------------------------------------- */

struct lines {
    struct text rest;
    uint64_t number; /* of the line given last; the first is 1 */
};
/* The next line without its end (LF, or CR LF); false when there is none. */
bool lines_next(struct lines *lines, struct text *line);

/* The line in which `offset` lies, 1 for the first. Costs a pass over the text up to there. */
uint64_t line_number(struct text content, size_t offset);

/* Notes of a line that could not be read. */
extern const struct note_kind note_torn;
void note_torn_line(struct tree *tree, const char *path, uint64_t number, struct text line);

/* ---- stacks of bare names ----------------------------------------------------------------- */

/*
 * What a single-threaded reader of names needs: frames are pushed root first or leaf first, then counted.
 *
 *     struct stack stack;
 *     stack_init(&stack, tree, TEXT("samples"));
 *     stack_push(&stack, name); … stack_count(&stack, weight); stack.count = 0;
 */
struct stack {
    struct tree *tree;
    uint32_t series;
    VECTOR(uint32_t) locations;
};
void stack_init(struct stack *stack, struct tree *tree, struct text unit);
void stack_release(struct stack *stack);
void stack_push(struct stack *stack, struct text name);
void stack_push_kinds(struct stack *stack, struct text name, uint32_t kinds);
/* Counts what was pushed, root first, and forgets it. An empty stack is counted at the root. */
void stack_count(struct stack *stack, uint64_t samples, uint64_t weight);
void stack_reverse(struct stack *stack);

/* An event by its name: found, or added. */
uint32_t event_named(struct tree *tree, struct text name, struct text unit, enum event_kind kind);
/* A text's object by its path. Gives the tree its objects when it has none. */
uint32_t object_named(struct tree *tree, struct text path);

/* ---- guessing ----------------------------------------------------------------------------- */

/* As inferno asks each format: yes, no, or more lines needed. */
enum applicable { APPLICABLE_NO, APPLICABLE_YES, APPLICABLE_UNSURE };

enum applicable perf_applicable(struct text text);

extern const struct import_format format_perf, format_folded;

#endif
