/*
 * Stacks that the recording leaves to us: registers and a slice of stack, unwound into a chain like a recorded one; and how
 * recorded chains end.
 */
#include "profile/worker.h"

#include <stdlib.h>

bool chain_is_unwindable(const struct worker *w, const struct perfdata_sample *sample) {
    const uint64_t needed = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    const struct perfdata_event *event = &w->reading->profile->data->events.items[sample->event];
    /* A stack that could not be copied (it was just growing) still leaves the registers. */
    return (event->sample_type & needed) == needed && sample->regs_user &&
           (sample->stack_size > 0 || !w->reading->options->compat_perf);
}

static void unwind(struct worker *w, const struct perfdata_sample *sample,
                   const struct space_at *at, struct unwind_stack *stack) {
    const struct profile *profile = w->reading->profile;
    struct unwind_options options = {.arch = unwind_arch_of(profile->data->arch),
                                     .compat_perf = w->reading->options->compat_perf};
    struct unwind_sample what = {.abi = sample->regs_user_abi,
                                 .register_mask =
                                     profile->data->events.items[sample->event].regs_user,
                                 .registers = sample->regs_user,
                                 .stack = sample->stack,
                                 .stack_size = sample->stack_size,
                                 .stack_dumped = sample->stack_dumped,
                                 .user = at->user,
                                 .epoch = (uint32_t)at->epochs};
    if (!w->unwinder)
        w->unwinder = unwinder_new(profile->objects, profile->spaces, &options);
    unwinder_run(w->unwinder, &what, stack);
}

/* How much of a recorded chain belongs to the kernel: user frames, if there are any, are found again by unwinding. */
static uint64_t kernel_part(const struct perfdata_sample *sample) {
    for (uint64_t i = 0; i < sample->chain_count; i++)
        if (load_u64(sample->chain + 8 * i) == PERF_CONTEXT_USER)
            return i;
    return sample->chain_count;
}

static void chain_push(struct worker *w, uint64_t value) {
    buffer_add(&w->joined, (struct text){(const char *)&value, sizeof value});
}

/*
 * The chain becomes: what was recorded, then CHAIN_UNWOUND before every address that is no return address, then those that
 * are. perf shows a return address that it unwound one lower, and looks it up there.
 */
uint8_t chain_unwind(struct worker *w, struct perfdata_sample *sample, const struct space_at *at) {
    static const uint8_t endings[] = {[UNWIND_COMPLETE] = ENDING_COMPLETE,
                                      [UNWIND_TRUNCATED] = ENDING_TRUNCATED,
                                      [UNWIND_BROKEN] = ENDING_BROKEN};
    bool compat = w->reading->options->compat_perf;
    uint64_t recorded = compat ? sample->chain_count : kernel_part(sample);
    struct unwind_stack stack;
    unwind(w, sample, at, &stack);
    w->joined.count = 0;
    buffer_add(&w->joined, (struct text){(const char *)sample->chain, 8 * recorded});
    for (uint32_t i = 0; i < stack.count; i++) {
        const struct unwind_frame *frame = &stack.frames[i];
        if (i == 0 || !frame->call)
            chain_push(w, CHAIN_UNWOUND);
        chain_push(w, frame->address - (compat && frame->call));
    }
    sample->chain = (const uint8_t *)w->joined.items;
    sample->chain_count = w->joined.count / 8;
    w->is_unwound = true;
    return endings[stack.ending];
}

/* ---- how recorded chains end ---- */

static bool is_start(struct worker *w, const struct space_at *at, const struct entry *entry) {
    struct cached_location *cached = location_cached(w, at, entry);
    const struct location *location = &w->tree->locations.items[cached->location];
    struct symbol symbol;
    if (cached->start == 0) {
        cached->start = 1;
        if (location->object &&
            objects_symbol(w->reading->profile->objects, location->object,
                           location->address - location->call, &symbol) &&
            unwind_is_first_by_frame_pointer(symbol.name))
            cached->start = 2;
    }
    return cached->start == 2;
}

/* A kernel thread has no user space to go on to. */
uint8_t chain_ending(struct worker *w, const struct space_at *at) {
    size_t count = w->entries.count;
    if (w->reading->options->no_names)
        return ENDING_UNKNOWN;
    if (count == 0)
        return ENDING_BROKEN;
    const struct entry *last = &w->entries.items[count - 1];
    if (last->mode == MODE_USER && is_start(w, at, last))
        return ENDING_COMPLETE;
    if (count >= COMPAT_DEPTH)
        return ENDING_TRUNCATED;
    return last->mode == MODE_KERNEL && at->user == 0 ? ENDING_COMPLETE : ENDING_BROKEN;
}
