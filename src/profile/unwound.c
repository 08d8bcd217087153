/*
 * Complete stacks that the recording has only in parts: registers and a copy of the stack, to be unwound; the processor's call stacks (LBR); the
 * caller of a leaf, known only from its link register; deferred user chains; single addresses. All become typed frames.
 */
#include "profile/worker.h"

#include <stdlib.h>

static bool chain_is_unwindable(const struct worker *w, const struct perfdata_sample *sample) {
    const uint64_t needed = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    const struct perfdata_event *event = &w->reading->profile->data->events.items[sample->event];
    /* A stack that could not be copied (it was just growing) still leaves the registers. */
    return (event->sample_type & needed) == needed && sample->regs_user &&
           (sample->stack_size > 0 || !w->reading->options->quirks.unwinding_needs_stack);
}

static struct unwinder *unwinder_of(struct worker *w) {
    const struct profile *profile = w->reading->profile;
    struct unwinder **unwinder = &w->counts[w->views].unwinder;
    if (*unwinder)
        return *unwinder;
    struct unwind_options options = {.arch = unwind_arch_of(profile->data->arch),
                                     .quirks = w->reading->options->quirks};
    return *unwinder = unwinder_new(profile->objects, profile->spaces, &options);
}

/* For struct unwind_sample. */
struct interpreted {
    const struct java_process *process;
    uint64_t time;
};

static uint64_t find_interpreted(const void *context, uint64_t method, uint64_t bytecode,
                                 uint64_t other) {
    const struct interpreted *interpreted = context;
    return java_interpreted(interpreted->process, interpreted->time, method, bytecode, other);
}

/* What the recording has of the sample's stack beside its copy. */
static void add_blocks(struct worker *w, const struct perfdata_sample *sample,
                       struct unwind_sample *what) {
    const struct memories *memories = w->reading->memories;
    if (!memories)
        return;
    uint64_t sp = unwind_stack_pointer(unwind_arch_of(w->reading->profile->data->arch), what);
    memories_find(memories, sample->tid, sample->time, sp, &w->blocks);
    what->blocks = w->blocks.items;
    what->block_count = w->blocks.count;
}

static struct unwind_sample sample_for_unwinding(const struct worker *w,
                                                 const struct perfdata_sample *sample,
                                                 const struct space_at *at) {
    const struct perfdata *data = w->reading->profile->data;
    return (struct unwind_sample){.abi = sample->regs_user_abi,
                                  .register_mask = data->events.items[sample->event].regs_user,
                                  .registers = sample->regs_user,
                                  .stack = sample->stack,
                                  .stack_size = sample->stack_size,
                                  .stack_dumped = sample->stack_dumped,
                                  .user = at->user,
                                  .epoch = (uint32_t)at->epochs};
}

/* ---- chains of our own making ---- */

/* Begin with the first `count` words of the recorded one. */
static void frames_begin(struct worker *w, struct chain_decoder *decoder,
                         const struct perfdata_sample *sample, uint64_t count) {
    chain_begin(decoder, &w->frames, &w->reading->options->quirks, sample->mode, !sample->chain);
    chain_add_words(decoder, sample->chain, count);
}

/* What the unwinder found. perf shows a return address that it unwound one lower, and looks it up there. */
static void frames_add_unwound(struct worker *w, const struct unwind_frame *frame) {
    bool lower = w->reading->options->quirks.unwound_are_lowered && frame->call;
    struct chain_frame typed = {
        .address = frame->address - lower,
        .mapping = space_mapping_number(w->reading->profile->spaces, frame->mapping),
        .mode = MODE_USER,
        .is_call = frame->call && !lower,
        .is_unwound = true};
    vector_push(&w->frames, typed);
    vector_push(&w->stack_pointers, frame->stack_pointer);
}

void chain_decode(struct worker *w, const struct perfdata_sample *sample) {
    struct chain_decoder decoder;
    frames_begin(w, &decoder, sample, sample->chain_count);
    chain_end(&decoder);
}

/* ---- stacks that were copied ---- */

/* How much of a recorded chain belongs to the kernel: user frames, if there are any, are found again by unwinding. */
static uint64_t kernel_part(const struct perfdata_sample *sample) {
    for (uint64_t i = 0; i < sample->chain_count; i++)
        if (load_u64(sample->chain + 8 * i) == PERF_CONTEXT_USER)
            return i;
    return sample->chain_count;
}

/* Return where the user part of a recorded chain begins, after its marker; UINT64_MAX if there is none. */
static uint64_t user_part(const struct perfdata_sample *sample) {
    uint64_t kernel = kernel_part(sample);
    return kernel < sample->chain_count ? kernel + 1 : UINT64_MAX;
}

/*
 * Go runs parts of its runtime on the thread's own stack, so the goroutine's stack is not in the copy; or a frame is larger than the copy. The
 * kernel's own walk by frame pointers crosses stacks. If such a chain was recorded in addition to the copy and leads to a start, it continues the
 * stack from the last frame that both have. The copy comes first because it yields callers of leaf functions, which frame pointers do not.
 */
static bool chain_goes_on(struct worker *w, const struct perfdata_sample *sample,
                          const struct space_at *at, const struct unwind_stack *stack,
                          uint32_t *common, uint64_t *from) {
    enum { FRAMES_MOST = 128 };
    const struct profile *profile = w->reading->profile;
    uint64_t first = user_part(sample), last;
    struct symbol symbol;
    if (first == UINT64_MAX || first >= sample->chain_count || !stack->count)
        return false;
    last = load_u64(sample->chain + 8 * (sample->chain_count - 1)) - 1;
    const struct mapping *mapping = space_find(profile->spaces, at->user, last);
    if (!mapping || !mapping->object ||
        !objects_symbol(profile->objects, mapping->object, last - mapping->start + mapping->offset,
                        &symbol) ||
        !unwind_is_first_by_frame_pointer(symbol.name))
        return false;
    for (uint32_t i = stack->count; i-- > 0 && stack->count - i <= FRAMES_MOST;)
        for (uint64_t k = first; k < sample->chain_count; k++)
            if (load_u64(sample->chain + 8 * k) == stack->frames[i].address) {
                *common = i;
                *from = k + 1;
                return true;
            }
    return false;
}

static void frames_add_recorded(struct worker *w, const struct perfdata_sample *sample,
                                uint64_t from, uint64_t stack_pointer) {
    for (uint64_t i = from; i < sample->chain_count; i++) {
        struct chain_frame typed = {.address = load_u64(sample->chain + 8 * i),
                                    .mode = MODE_USER,
                                    .is_call = true,
                                    .is_unwound = true};
        vector_push(&w->frames, typed);
        vector_push(&w->stack_pointers, stack_pointer);
    }
}

/* The recorded frames, then the unwound ones. */
static uint8_t chain_unwind(struct worker *w, const struct perfdata_sample *sample,
                            const struct space_at *at, uint8_t *ending) {
    static const uint8_t endings[] = {[UNWIND_COMPLETE] = ENDING_COMPLETE,
                                      [UNWIND_TRUNCATED] = ENDING_TRUNCATED,
                                      [UNWIND_BROKEN] = ENDING_BROKEN};
    bool keeps_user = w->reading->options->quirks.keeps_recorded_user;
    struct unwind_sample what = sample_for_unwinding(w, sample, at);
    struct unwind_stack stack;
    struct chain_decoder decoder;
    struct interpreted java = {java_process(w->reading->java, sample->pid), sample->time};
    if (java.process) {
        what.interpreted = find_interpreted;
        what.interpreted_context = &java;
    }
    add_blocks(w, sample, &what);
    unwinder_run(unwinder_of(w), &what, &stack);
    frames_begin(w, &decoder, sample, keeps_user ? sample->chain_count : kernel_part(sample));
    uint32_t common;
    uint64_t from;
    bool goes_on = !keeps_user && stack.ending != UNWIND_COMPLETE &&
                   chain_goes_on(w, sample, at, &stack, &common, &from);
    for (uint32_t i = 0; i < (goes_on ? common + 1 : stack.count); i++)
        frames_add_unwound(w, &stack.frames[i]);
    if (goes_on)
        frames_add_recorded(w, sample, from, stack.frames[common].stack_pointer);
    chain_end(&decoder);
    *ending = goes_on ? ENDING_COMPLETE : endings[stack.ending];
    w->counts[w->views].interrupted += stack.is_interrupted && !goes_on;
    return STACK_TYPED;
}

/* ---- call stacks of the processor ---- */

static bool chain_is_lbr(const struct worker *w, const struct perfdata_sample *sample) {
    const struct perfdata_event *event = &w->reading->profile->data->events.items[sample->event];
    return event->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK && sample->branch_count > 0 &&
           sample->chain && user_part(sample) != UINT64_MAX;
}

/* Each branch is a call that has not returned; its `from` is the call itself, so that every address is looked up as it is. perf begins with
   where the last call went to, wick with where the sample was taken. */
static uint8_t chain_from_lbr(struct worker *w, const struct perfdata_sample *sample) {
    uint64_t user = user_part(sample);
    uint64_t leaf = load_u64(sample->branches + 8);
    struct chain_decoder decoder;
    if (!w->reading->options->quirks.branches_begin_at_target && user < sample->chain_count)
        leaf = load_u64(sample->chain + 8 * user);
    frames_begin(w, &decoder, sample, user);
    chain_add_word(&decoder, leaf);
    for (uint64_t i = 0; i < sample->branch_count; i++) {
        chain_add_word(&decoder, PERF_CONTEXT_USER);
        chain_add_word(&decoder, load_u64(sample->branches + 24 * i));
    }
    chain_end(&decoder);
    return STACK_TYPED | STACK_LBR;
}

/* ---- leaf functions without a frame record: aarch64 ---- */

/* perf record -g samples the link register there. */
static bool chain_has_link_register(const struct worker *w, const struct perfdata_sample *sample) {
    const struct perfdata *data = w->reading->profile->data;
    return data->events.items[sample->event].regs_user == UNWIND_LINK_REGISTER_ONLY &&
           sample->regs_user && sample->chain && unwind_arch_of(data->arch) == UNWIND_AARCH64 &&
           user_part(sample) < sample->chain_count;
}

/* The caller goes between the leaf and what its frame record says, unless that is the same. perf adds none behind the last. */
static uint8_t chain_add_leaf_caller(struct worker *w, const struct perfdata_sample *sample,
                                     const struct space_at *at) {
    const struct quirks *quirks = &w->reading->options->quirks;
    uint64_t next = user_part(sample) + 1, leaf = load_u64(sample->chain + 8 * (next - 1));
    struct unwind_sample what = sample_for_unwinding(w, sample, at);
    struct unwind_frame caller;
    if (quirks->no_last_leaf_caller && next == sample->chain_count)
        return 0;
    if (!unwinder_leaf_caller(unwinder_of(w), &what, leaf, &caller))
        return 0;
    uint64_t address = caller.address - (quirks->unwound_are_lowered && caller.call);
    if (next < sample->chain_count && load_u64(sample->chain + 8 * next) == address)
        return 0;
    struct chain_decoder decoder;
    frames_begin(w, &decoder, sample, next);
    chain_add_word(&decoder, address);
    chain_add_words(&decoder, sample->chain + 8 * next, sample->chain_count - next);
    chain_end(&decoder);
    return STACK_TYPED;
}

/* ---- deferred chains ---- */

/* The record of the deferred chain that a sample waits for. */
static const struct deferred *deferred_find(const struct reading *reading, int32_t tid,
                                            uint64_t cookie) {
    const struct deferred *list = reading->deferred.items;
    size_t at = search_first(i, 0, reading->deferred.count,
                             list[i].tid < tid || (list[i].tid == tid && list[i].cookie < cookie));
    bool found = at < reading->deferred.count && list[at].tid == tid && list[at].cookie == cookie;
    return found ? &list[at] : NULL;
}

static bool chain_is_deferred(const struct perfdata_sample *sample) {
    uint64_t count = sample->chain_count;
    return sample->chain && count >= 2 &&
           load_u64(sample->chain + 8 * (count - 2)) == CONTEXT_USER_DEFERRED;
}

/* A chain that ends in [USER_DEFERRED, cookie] goes on with the one that came later, or stops there. */
static uint8_t chain_join(struct worker *w, struct perfdata_sample *sample) {
    uint64_t count = sample->chain_count;
    struct perfdata *data = w->reading->profile->data;
    const struct deferred *found =
        deferred_find(w->reading, sample->tid, load_u64(sample->chain + 8 * (count - 1)));
    sample->chain_count = count - 2;
    struct perfdata_record record;
    struct perfdata_deferred late;
    struct chain_decoder decoder;
    uint64_t offset = found ? found->offset : 0;
    if (!found || !perfdata_next(data, &offset, &record, NULL) ||
        !perfdata_deferred(data, &record, &late, NULL)) {
        w->counts[w->views].unmatched++;
        return 0;
    }
    frames_begin(w, &decoder, sample, sample->chain_count);
    chain_add_word(&decoder, PERF_CONTEXT_USER);
    chain_add_words(&decoder, late.chain, late.chain_count);
    chain_end(&decoder);
    return STACK_TYPED;
}

/* ---- which of them ---- */

static uint8_t chain_of_address(struct worker *w, const struct perfdata_sample *sample) {
    struct chain_decoder decoder;
    frames_begin(w, &decoder, sample, 0);
    chain_add_word(&decoder, sample->ip);
    chain_end(&decoder);
    return STACK_TYPED | STACK_ALONE;
}

uint8_t chain_complete(struct worker *w, struct perfdata_sample *sample, const struct space_at *at,
                       uint8_t *ending) {
    *ending = ENDING_UNKNOWN;
    w->stack_pointers.count = 0;
    bool is_whole = sample->chain && !sample->regs_user && !sample->branch_count;
    if (is_whole && !chain_is_deferred(sample))
        return 0;
    if (chain_is_unwindable(w, sample))
        return chain_unwind(w, sample, at, ending);
    if (chain_is_deferred(sample))
        return chain_join(w, sample);
    if (chain_is_lbr(w, sample))
        return chain_from_lbr(w, sample);
    if (chain_has_link_register(w, sample))
        return chain_add_leaf_caller(w, sample, at);
    return sample->chain ? 0 : chain_of_address(w, sample);
}
