/* Private to this room: one step by rule. */
#ifndef WICK_UNWIND_STEP_H
#define WICK_UNWIND_STEP_H

#include "unwind/internal.h"

/* Step from a frame to its caller. Return false if a required value is not available, or if the stack pointer would not grow. */
bool step_by_row(struct state *state, const struct machine *machine, const struct cfi_row *row,
                 bool is_running);

#endif
