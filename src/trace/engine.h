/* Private to the room: what engines are called by. Each fills the trace; `functions` is there already. */
#ifndef WICK_TRACE_ENGINE_H
#define WICK_TRACE_ENGINE_H

#include "trace/trace.h"

bool engine_riscv(struct trace *trace, const struct trace_options *options,
                  trace_checkpoint *checkpoint, void *context, struct error *error);
bool engine_qemu(struct trace *trace, const struct trace_options *options,
                 trace_checkpoint *checkpoint, void *context, struct error *error);
bool engine_stream(struct trace *trace, const struct trace_options *options,
                   trace_checkpoint *checkpoint, void *context, struct error *error);
/* What a flow could not do right, as notes. */
void engine_notes(struct trace *trace, const struct flow *flow);

#endif
