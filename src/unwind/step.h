/* One step by rule. */
#ifndef WICK_UNWIND_STEP_H
#define WICK_UNWIND_STEP_H

#include "unwind/internal.h"

/* From a frame to its caller. False: something needed could not be had, or the stack would not go up. */
bool step_by_row(struct state *state, const struct machine *machine, const struct cfi_row *row,
                 bool is_running);

#endif
