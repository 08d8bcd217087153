/*
 * Private to run_*.c, which implement the instructions: shared by their handlers. Include it first, because its pragma applies to everything
 * that follows.
 */
#ifndef WICK_TRACE_RUN_H
#define WICK_TRACE_RUN_H

#include "trace/riscv/machine.h"

#ifndef __clang__ /* one register more, no prologue, and tail calls become jumps at any level */
#pragma GCC optimize("omit-frame-pointer", "optimize-sibling-calls")
#endif

#define RD m->x[op->rd]
#define RS1 m->x[op->rs1]
#define RS2 m->x[op->rs2]
#define IMM ((uint64_t)(int64_t)op->imm)
#define WORD(v) ((uint64_t)(int64_t)(int32_t)(v))

/* A handler that computes one value and continues. */
#define RESULT(name, destination, expression)                                                      \
    HANDLER(name) {                                                                                \
        (destination) = (expression);                                                              \
        NEXT;                                                                                      \
    }

/* After a store: fault, or continue with the next instruction, after a flush if code was overwritten. `done` is the result of
   machine_store_slow(). */
static inline const struct op *machine_stored(struct machine *m, const struct op *op,
                                              uint8_t *memory, int64_t left, uint64_t address,
                                              int done) {
    if (!done)
        return machine_fault(m, op, m->fault, address, left);
    if (done == 2) {
        const struct op_site *next = &m->sites[op + 1 - m->slots];
        return machine_leave(m, LEAVE_FLUSH, next->pc, left + next->rest);
    }
    NEXT;
}

#endif
