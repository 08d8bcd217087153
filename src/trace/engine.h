/* Private to the room: the entry points of the engines. Each fills the trace; `functions` already exists. */
#ifndef WICK_TRACE_ENGINE_H
#define WICK_TRACE_ENGINE_H

#include "trace/trace.h"

bool engine_riscv(struct trace *trace, const struct trace_options *options,
                  trace_checkpoint *checkpoint, void *context, struct error *error);
bool engine_qemu(struct trace *trace, const struct trace_options *options,
                 trace_checkpoint *checkpoint, void *context, struct error *error);
bool engine_stream(struct trace *trace, const struct trace_options *options,
                   trace_checkpoint *checkpoint, void *context, struct error *error);
/* Add notes about what a flow could not follow. */
void engine_notes(struct trace *trace, const struct flow *flow);

#endif
