/*
 * The built-in engine: load a RISC-V program, run it in slices, execute its system calls, and stop for the budget, a checkpoint, a fault or
 * an interrupt.
 */
#include "trace/engine.h"
#include "trace/riscv/guest.h"

#include <stdio.h>
#include <stdlib.h>

#define SLICE                                                                                      \
    50000000u /* instructions between checks for cancellation and progress: some tenths of a second */

static bool open_files(struct guest *g, struct error *error) {
    const struct trace_options *o = g->options;
    g->files = memory_zero(o->file_count + 1, sizeof *g->files);
    for (size_t i = 0; i < o->file_count; i++)
        if (!file_open_raw(&g->files[i], o->files[i].host, o->context, error))
            return false;
    const int standard[3] = {o->input, o->output, o->error_output};
    for (size_t i = 0; i < 3; i++)
        g->descriptors[i] = (struct guest_descriptor){DESCRIPTOR_HOST, standard[i], NULL, 0};
    return true;
}

static bool guest_open(struct guest *g, struct error *error) {
    const struct trace_options *o = g->options;
    struct machine *m = &g->machine;
    if (!guest_load(g, error) || !open_files(g, error))
        return false;
    if (!(o->abi == ABI_PROVER ? guest_start_prover(g, error) : guest_start_linux(g, error)))
        return false;
    functions_add_elf(g->functions, g->image.data, g->image.size, g->bias);
    m->counts = !o->no_stacks;
    m->weight = o->weight;
    m->weighs = o->weight != WEIGHT_INSTRUCTIONS;
    m->misaligned = o->misaligned == MISALIGNED_ALLOW;
    m->pc = g->entry;
    flow_init(&m->flow, &g->trie, g->functions, g->entry);
    return true;
}

static void guest_close(struct guest *g) {
    flow_release(&g->machine.flow);
    machine_close(&g->machine);
    for (size_t i = 0; g->files && i < g->options->file_count; i++)
        file_close(&g->files[i]);
    free(g->files);
    free(g->real_path);
    file_close(&g->image);
    file_close(&g->input);
}

/* ---- faults ------------------------------------------------------------------------------- */

static void describe(struct guest *g, char *text, size_t size) {
    struct machine *m = &g->machine;
    struct instruction i = {0};
    unsigned loaded = 0, stored = 0;
    if (machine_fetch(m, m->fault_pc, &i))
        riscv_access(&i, &loaded, &stored);
    unsigned bytes = stored ? stored : loaded;
    const char *way =
        m->fault == FAULT_LOAD || (m->fault == FAULT_MISALIGNED && !stored) ? "load" : "store";
    unsigned long long address = m->fault_address;
    switch (m->fault) {
    case FAULT_LOAD:
    case FAULT_STORE:
        snprintf(text, size, "%s of %u bytes at 0x%llx, which is not %s", way, bytes, address,
                 m->fault == FAULT_LOAD ? "readable" : "writable");
        break;
    case FAULT_MISALIGNED:
        snprintf(text, size, "misaligned %s of %u bytes at 0x%llx", way, bytes, address);
        break;
    case FAULT_FETCH:
        snprintf(text, size, "jump to 0x%llx, which is not executable", address);
        break;
    case FAULT_BREAK:
        snprintf(text, size, "breakpoint");
        break;
    case FAULT_SYSCALL:
        snprintf(text, size, "%s", m->fault_text);
        break;
    default:
        snprintf(text, size, "illegal instruction");
    }
}

static void set_fault(struct guest *g, struct trace *trace) {
    char what[200];
    uint64_t pc = g->machine.fault_pc;
    describe(g, what, sizeof what);
    struct function_range range = functions_find(g->functions, pc);
    int n =
        snprintf(trace->fault, sizeof trace->fault, "%s, pc 0x%llx", what, (unsigned long long)pc);
    if (range.function && n > 0 && (size_t)n < sizeof trace->fault) {
        uint64_t start = functions_start(g->functions, range.function);
        snprintf(trace->fault + n, sizeof trace->fault - (size_t)n, " (%.*s%s0x%llx)",
                 TEXT_ARGS(functions_name(g->functions, range.function)), pc < start ? "-" : "+",
                 (unsigned long long)(pc < start ? start - pc : pc - start));
    }
    trace->end = TRACE_FAULT;
}

/* ---- running ------------------------------------------------------------------------------ */

/* Count the call's own instruction as a leaf of the frame that made it. */
static void count_call(struct guest *g) {
    struct machine *m = &g->machine;
    if (!g->options->ecall_frames || !m->counts || m->weighs)
        return;
    flow_count_leaf(&m->flow, SYNTHETIC_ADDRESS | m->x[17], 1);
    m->flow.trie->nodes[m->flow.node].count--;
}

/* Return false when the run is over. */
static bool serve_call(struct guest *g, struct trace *trace) {
    struct machine *m = &g->machine;
    uint64_t pc = m->pc - 4;
    count_call(g);
    bool known = g->options->abi == ABI_PROVER ? guest_call_prover(g) : guest_call_linux(g);
    if (!known || (g->exited && m->fault_text[0])) {
        m->fault = FAULT_SYSCALL;
        m->fault_pc = pc;
        set_fault(g, trace);
        return false;
    }
    trace->end = g->signal ? TRACE_SIGNALED : TRACE_EXITED;
    trace->status = g->status;
    trace->signal = g->signal;
    return !g->exited;
}

static uint64_t at_most(uint64_t a, uint64_t b) {
    return b && b < a ? b : a;
}

static void publish(struct guest *g, struct trace *trace) {
    trace->trie = g->trie;
    trace->trie.count = &trace->trie.own_count;
    trace->instructions = machine_executed(&g->machine);
}

static void guest_run(struct guest *g, struct trace *trace, trace_checkpoint *checkpoint,
                      void *context) {
    const struct trace_options *o = g->options;
    struct machine *m = &g->machine;
    uint64_t next = o->checkpoint;
    for (;;) {
        uint64_t done = machine_executed(m);
        machine_run(m, at_most(at_most((done / SLICE + 1) * SLICE, o->budget), next));
        done = machine_executed(m);
        if (m->leave == LEAVE_FAULT) {
            set_fault(g, trace);
            return;
        }
        if (m->leave == LEAVE_ECALL && !serve_call(g, trace))
            return;
        if (next && done >= next) {
            publish(g, trace);
            trace->is_partial = true;
            if (checkpoint)
                checkpoint(context, trace);
            next += o->checkpoint;
        }
        trace->end = o->budget && done >= o->budget ? TRACE_BUDGET : TRACE_INTERRUPTED;
        if (trace->end == TRACE_BUDGET || context_cancelled(o->context))
            return;
        if (m->leave == LEAVE_BUDGET)
            context_progress(o->context, "instructions", done, o->budget);
    }
}

bool engine_riscv(struct trace *trace, const struct trace_options *options,
                  trace_checkpoint *checkpoint, void *context, struct error *error) {
    struct guest g = {.options = options, .functions = trace->functions};
    bool opened = trie_init(&g.trie, error) && guest_open(&g, error);
    if (opened) {
        guest_run(&g, trace, checkpoint, context);
        publish(&g, trace);
        engine_notes(trace, &g.machine.flow);
        trace->is_partial = trace->end == TRACE_FAULT || trace->end == TRACE_INTERRUPTED;
    } else
        trie_release(&g.trie);
    guest_close(&g);
    return opened;
}
