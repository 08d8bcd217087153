/*
 * The plugin while the guest runs.
 *
 * Most blocks only count: in the translated code itself while there is one thread, otherwise in a short call. The plugin is called only where
 * a call, a return or a jump out of a function can land, or where a block ends in one. There, the previous block and this one's address show
 * what happened in between. `expected` says whether that block really was the previous one: if not, silent blocks were executed since, and
 * what they did follows from the function they are in.
 */
#include "trace/qemu/plugin.h"

#include <unistd.h>

const struct code nowhere = {.quiet = {NO_ADDRESS, NO_ADDRESS}, .target = NO_ADDRESS};

void step_flush(struct follower *follower, struct shared_thread *thread, uint64_t weight) {
    flow_count(&follower->flow, weight - thread->flushed);
    thread->flushed = weight;
}

static void publish(struct shared_thread *thread, const struct flow *flow) {
    thread->node = flow->node;
    thread->unmatched = flow->unmatched;
    thread->unmatched_pc = flow->unmatched_pc;
    thread->dropped = flow->dropped;
}

/* A jump from code without a symbol is not a tail call, except from the loader's own, which a PLT slot jumps to at its first use. */
static bool may_tail(struct flow *flow, const struct code *before, bool to_start) {
    if (before->ends_in)
        return true;
    uint32_t frame =
        functions_find(plugin.functions, plugin.trie.nodes[flow->node].address).function;
    return to_start && frame && functions_is_stub(plugin.functions, frame);
}

static void jump(struct flow *flow, const struct code *before, const struct code *code) {
    bool indirect = before->target == NO_ADDRESS;
    if (!code->begins_in || before->ends_in == code->begins_in)
        return;
    if (!code->is_start && (before->ends_in || indirect) &&
        flow_jump_returns(flow, code->pc, NO_ADDRESS))
        return;
    if (!code->is_start && indirect && flow_jump_lands(flow, code->pc, NO_ADDRESS))
        return;
    if (may_tail(flow, before, code->is_start))
        flow_tail(flow, code->pc);
}

static void transfer(struct follower *follower, const struct code *before,
                     const struct code *code) {
    struct flow *flow = &follower->flow;
    if (leap_lands(follower, code) || leap_leaves_handler(follower, before, code))
        return;
    if (leap_is_signal(follower, before, code)) {
        leap_enter(follower, before, true, code->pc);
        return;
    }
    switch (before->control) {
    case CONTROL_CALL:
        flow_call(flow, code->pc, before->next, NO_ADDRESS);
        break;
    case CONTROL_SWAP:
        if (flow->depth && flow->entries[flow->depth - 1].return_address == code->pc)
            flow_return(flow, before->last, code->pc, NO_ADDRESS);
        flow_call(flow, code->pc, before->next, NO_ADDRESS);
        break;
    case CONTROL_RETURN:
        flow_return(flow, before->last, code->pc, NO_ADDRESS);
        break;
    case CONTROL_JUMP:
    case CONTROL_BRANCH:
        jump(flow, before, code);
        break;
    default: /* restarts where a signal or a fault interrupted it */
        break;
    }
}

/* x86: `rep` iterates. That is one instruction, however many iterations. */
static bool repeats(const struct code *before, const struct code *code) {
    return code->is_alone && code->pc == before->last && before->control == CONTROL_NONE;
}

static void begin(struct follower *follower, const struct code *code) {
    flow_init(&follower->flow, &plugin.trie, plugin.functions, code->pc);
    plugin.shared->started = 1;
}

/* ---- after silent blocks ------------------------------------------------------------------ */

/* `before` went to a silent block. Its address is unknown, but nothing returns there, no function begins there, and its function is known,
   because no silent block leaves it. */
static void transfer_late(struct follower *follower, const struct code *before, uint32_t function) {
    struct flow *flow = &follower->flow;
    uint64_t start = functions_start(plugin.functions, function);
    bool direct = before->target != NO_ADDRESS;
    if (leap_lands_in(follower, function))
        return;
    switch (before->control) {
    case CONTROL_CALL:
    case CONTROL_SWAP:
        flow_call(flow, direct ? before->target : start, before->next, NO_ADDRESS);
        break;
    case CONTROL_RETURN: /* inside: a call that never returns may be all that precedes the start */
        flow_return(flow, before->last, start + 1, NO_ADDRESS);
        break;
    case CONTROL_JUMP:
    case CONTROL_BRANCH:
        if (before->ends_in != function && !before->is_settled &&
            (direct || !flow_jump_lands(flow, start, NO_ADDRESS)) && may_tail(flow, before, false))
            flow_tail(flow, direct ? before->target : start);
        break;
    default:
        break;
    }
}

/* From a silent block, only a signal leads to the start of a function or to code without a symbol. */
static void arrive(struct follower *follower, struct shared_thread *thread,
                   const struct code *before, const struct code *code) {
    uint64_t weight = shared_weight(plugin.shared, thread);
    if (before == &nowhere) {
        begin(follower, code);
    } else if (code->may_surprise) {
        step_flush(follower, thread, weight);
        leap_enter(follower, before, false, code->pc);
    } else {
        step_flush(follower, thread,
                   plugin.is_weighed ? thread->expected_weight : thread->expected);
        transfer_late(follower, before, code->begins_in);
        step_flush(follower, thread, weight);
    }
}

/* ---- for each block ----------------------------------------------------------------------- */

static inline void executed(struct shared_thread *thread, const struct code *code) {
    thread->before = code;
    thread->count = thread->expected = thread->count + code->count;
}

/* The stack may change between these two blocks. */
static __attribute__((noinline)) void step_slow(unsigned cpu, const struct code *code) {
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    struct follower *follower = &plugin.followers[cpu];
    const struct code *before = thread->before;
    bool adjacent = thread->count == thread->expected;
    if (adjacent && repeats(before, code))
        return;
    if (!adjacent) {
        arrive(follower, thread, before, code);
    } else if (before != &nowhere) {
        step_flush(follower, thread, shared_weight(plugin.shared, thread));
        transfer(follower, before, code);
    } else {
        begin(follower, code);
    }
    publish(thread, &follower->flow);
    executed(thread, code);
}

/* The frame changed from `node` to the flow's. */
static inline void moved(struct shared_thread *thread, struct flow *flow, uint32_t node,
                         const struct code *code) {
    uint64_t weight = shared_weight(plugin.shared, thread);
    flow->nodes[node].count += weight - thread->flushed;
    thread->flushed = weight;
    thread->node = flow->node;
    executed(thread, code);
}

/* A return from the last call, and a call that was made before: the most common cases. They make no call except the last, so they need no
   stack frame. */
static __attribute__((noinline)) void step_return(unsigned cpu, const struct code *code) {
    struct flow *flow = &plugin.followers[cpu].flow;
    uint32_t node = flow->node;
    if (flow_return_quick(flow, code->pc))
        moved(&plugin.shared->threads[cpu], flow, node, code);
    else
        step_slow(cpu, code);
}

static __attribute__((noinline)) void step_call(unsigned cpu, const struct code *before,
                                                const struct code *code) {
    struct flow *flow = &plugin.followers[cpu].flow;
    uint32_t node = flow->node;
    if ((before->target == NO_ADDRESS || before->target == code->pc) &&
        flow_call_quick(flow, code->pc, before->next, NO_ADDRESS))
        moved(&plugin.shared->threads[cpu], flow, node, code);
    else
        step_slow(cpu, code);
}

/* After silent blocks there is rarely anything left to determine. */
static inline bool is_quiet(const struct code *before, const struct code *code, bool adjacent) {
    if (adjacent)
        return code->pc == before->quiet[0] || code->pc == before->quiet[1];
    return !code->may_surprise && (before->is_settled || (before->control == CONTROL_JUMP &&
                                                          before->ends_in == code->begins_in));
}

static inline __attribute__((always_inline)) void step(unsigned cpu, const struct code *code) {
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    const struct code *before = thread->before;
    bool adjacent = thread->count == thread->expected;
    if (is_quiet(before, code, adjacent))
        executed(thread, code);
    else if (adjacent && before->control == CONTROL_RETURN)
        step_return(cpu, code);
    else if (adjacent && before->control == CONTROL_CALL)
        step_call(cpu, before, code);
    else
        step_slow(cpu, code);
}

/* With several threads, a turn ends after so many instructions. */
static inline void look_at_turn(unsigned cpu) {
    const struct shared_thread *thread = &plugin.shared->threads[cpu];
    if (__builtin_expect(thread->count >= thread->until, 0))
        turn_over(cpu);
}

void step_code(unsigned cpu, void *code) {
    if (__builtin_expect(cpu >= SHARED_THREADS, 0))
        return;
    look_at_turn(cpu);
    step(cpu, code);
}

void step_first_code(unsigned cpu, void *code) {
    step(0, code);
}

/* A block that repeats the same instruction has no weight: the count shows that. */
void step_weighed_code(unsigned cpu, void *data) {
    const struct code *code = data;
    if (cpu >= SHARED_THREADS)
        return;
    struct shared_thread *thread = &plugin.shared->threads[cpu];
    uint64_t count = thread->count;
    step_code(cpu, data);
    if (thread->count != count)
        thread->weight += code->weight;
    thread->expected_weight = thread->weight;
}

void step_silent_code(unsigned cpu, void *data) {
    const struct code *code = data;
    if (__builtin_expect(cpu >= SHARED_THREADS, 0))
        return;
    look_at_turn(cpu);
    plugin.shared->threads[cpu].count += code->count;
    plugin.shared->threads[cpu].weight += code->weight;
}

void step_budgeted_code(unsigned cpu, void *data) {
    const struct code *code = data;
    struct shared *shared = plugin.shared;
    if (cpu >= SHARED_THREADS)
        return;
    const struct shared_thread *thread = &shared->threads[cpu];
    if (plugin.is_parallel)
        look_at_turn(cpu);
    if (thread->count == thread->expected && repeats(thread->before, code))
        return;
    if (__atomic_fetch_add(&shared->spent, code->count, __ATOMIC_RELAXED) >= shared->budget) {
        shared->over_budget = 1;
        _exit(0); /* this block is neither executed nor counted any more */
    }
    if (code->is_silent)
        step_silent_code(cpu, data);
    else
        step_weighed_code(cpu, data);
}
