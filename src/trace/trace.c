/*
 * Running a guest with the engine that fits it, and what it counted as a tree.
 */
#include "trace/trace.h"
#include "trace/engine.h"
#include "trace/guest.h"
#include "tree/tree.h"

#include <stdio.h>
#include <stdlib.h>

static const struct note_kind note_unmatched = {
    "trace-unmatched-returns",
    "# returns went where no call had come from; their frames are a guess"};
static const struct note_kind note_dropped = {
    "trace-dropped-frames",
    "# calls were too deep, or too many different ones, to have frames of their own"};

void engine_notes(struct trace *trace, const struct flow *flow) {
    if (flow->unmatched)
        notes_add(&trace->notes, &note_unmatched, flow->unmatched, flow->unmatched_pc,
                  "at pc 0x%llx", (unsigned long long)flow->unmatched_pc);
    if (flow->dropped)
        notes_add(&trace->notes, &note_dropped, flow->dropped, 0, NULL);
}

bool trace_run(struct trace *trace, const struct trace_options *options,
               trace_checkpoint *checkpoint, void *context, struct error *error) {
    memset(trace, 0, sizeof *trace);
    trace->functions = functions_new();
    trace->abi = options->abi;
    trace->weight = options->weight;
    trace->engine = options->engine ? options->engine : ENGINE_BUILTIN;
    if (engine_riscv(trace, options, checkpoint, context, error))
        return true;
    trace_release(trace);
    return false;
}

void trace_release(struct trace *trace) {
    trie_release(&trace->trie);
    functions_free(trace->functions);
    notes_release(&trace->notes);
    memset(trace, 0, sizeof *trace);
}
