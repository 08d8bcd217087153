/*
 * What a kernel stack begins with, recognized by a few functions that are looked up once in /proc/kallsyms (60 ms).
 *
 * The path from the tracepoint to a BPF program is one frame longer while another program watches the same tracepoint, and two on aarch64:
 * those frames are removed. A stack may also belong to an interrupt: then it is on top of unrelated code that was running at that moment.
 */
#include "record/internal.h"

#include <stdlib.h>

enum kernel_function { FUNCTION_NONE, FUNCTION_TRACING, FUNCTION_INTERRUPT };

struct range {
    uint64_t start, end;
    enum kernel_function function;
};

struct kernel_frames {
    VECTOR(struct range) ranges;
};

static enum kernel_function function_of(struct text name) {
    static const struct {
        const char *beginning;
        enum kernel_function function;
    } known[] = {
        {"__traceiter_sched_", FUNCTION_TRACING},
        {"__bpf_trace_sched_", FUNCTION_TRACING},
        {"bpf_trace_run", FUNCTION_TRACING},
        {"asm_sysvec_", FUNCTION_INTERRUPT},
        {"asm_common_interrupt", FUNCTION_INTERRUPT},
        {"asm_spurious_interrupt", FUNCTION_INTERRUPT},
        {"el1h_64_irq", FUNCTION_INTERRUPT},
        {"el0t_64_irq", FUNCTION_INTERRUPT},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (text_starts(name, text_of(known[i].beginning)))
            return known[i].function;
    return FUNCTION_NONE;
}

struct finding {
    struct kernel_frames *known;
    struct range open; /* its end is not known yet */
};

/* Symbols are sorted by address: a function ends where the next begins. */
static bool find_one(void *context, const struct kernel_symbol *symbol) {
    struct finding *finding = context;
    if (finding->open.function && symbol->address > finding->open.start) {
        finding->open.end = symbol->address;
        vector_push(&finding->known->ranges, finding->open);
        finding->open.function = FUNCTION_NONE;
    }
    enum kernel_function function = function_of(symbol->name);
    if (function)
        finding->open = (struct range){.start = symbol->address, .function = function};
    return true;
}

struct kernel_frames *kernel_frames_new(void) {
    struct kernel_frames *known = memory_zero(1, sizeof *known);
    struct finding finding = {.known = known};
    kernel_symbols_each(find_one, &finding);
    return known;
}

void kernel_frames_free(struct kernel_frames *known) {
    vector_release(&known->ranges);
    free(known);
}

static enum kernel_function function_at(const struct kernel_frames *known, uint64_t address) {
    for (size_t i = 0; i < known->ranges.count; i++) {
        const struct range *range = &known->ranges.items[i];
        if (address >= range->start && address < range->end)
            return range->function;
    }
    return FUNCTION_NONE;
}

size_t kernel_frames_own(const struct kernel_frames *known, const uint64_t *frames, size_t count) {
    size_t own = 0;
    while (own < count && function_at(known, frames[own]) == FUNCTION_TRACING)
        own++;
    return own;
}

size_t kernel_frames_interrupt(const struct kernel_frames *known, const uint64_t *frames,
                               size_t count) {
    for (size_t i = 0; i < count; i++)
        if (function_at(known, frames[i]) == FUNCTION_INTERRUPT)
            return i + 1;
    return 0;
}
