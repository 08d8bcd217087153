/*
 * Control flow that leaves a function without a call or a return.
 *
 * Signals: QEMU does not report to the plugin when one is delivered. But it reports system calls: sigaction names the handlers, and sigreturn
 * ends one. What was about to happen when the signal arrived is saved, and happens when its handler has ended.
 *
 * longjmp: with several activations of one function, the return address does not show which one it goes to, and the plugin can't read the
 * stack pointer. But setjmp writes its buffer and longjmp reads it, and QEMU reports where: the buffer identifies the activation.
 *
 * Exceptions: the same problem. The unwinder visits every frame that takes part in exceptions, from the inside out, through
 * _Unwind_GetIPInfo, and starts the one that catches with _Unwind_SetIP. Both access a word of the unwinder's own data, and the word before
 * it is the frame's stack pointer: the former call gives frames their stack pointers, the latter shows which frame it will be.
 */
#include "trace/qemu/plugin.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIGNAL_RETURN (NO_ADDRESS - 1) /* where a handler returns to: no call has this address */
#define SIGNALS 65
#define SIGNALS_NESTED 256
#define SETJMPS_MAX 65536
#define SETJMPS_LOOKED_AT 64
#define BUFFER_SIZE 512 /* of any jmp_buf, at most */
#define CALLS_LOOKED_AT 65536

static struct {
    int64_t sigaction, sigreturn; /* numbers of the calls */
    unsigned pointer_size;
    uint64_t handlers[SIGNALS];
} machine;

/* Read through this thread's /proc entry: if the first thread has ended, the process's entry has no memory. */
bool guest_read(uint64_t address, void *bytes, size_t size) {
    struct iovec own = {bytes, size};
    struct iovec there = {(void *)(uintptr_t)(address + plugin.guest_base), size};
    return plugin.base_known && process_vm_readv(gettid(), &own, 1, &there, 1, 0) == (ssize_t)size;
}

/* ---- signals ------------------------------------------------------------------------------ */

static bool is_handler(uint64_t address) {
    for (size_t i = 0; i < SIGNALS; i++)
        if (machine.handlers[i] == address)
            return true;
    return false;
}

static bool tops(const struct flow *flow, uint64_t return_address) {
    return flow->depth && flow->entries[flow->depth - 1].return_address == return_address;
}

bool leap_is_signal(struct follower *follower, const struct code *before, const struct code *code) {
    uint64_t pc = code->pc;
    if (before->control == CONTROL_RETURN)
        return is_handler(pc) && !tops(&follower->flow, pc);
    bool may_go_on = before->control != CONTROL_CALL && before->control != CONTROL_JUMP;
    bool may_go_anywhere = before->target == NO_ADDRESS && before->control != CONTROL_NONE &&
                           before->control != CONTROL_SYSTEM;
    if (may_go_anywhere || pc == before->target || (may_go_on && pc == before->next))
        return false;
    return pc < before->pc ||
           pc > before->last; /* otherwise it is executed again, after a fault or a signal */
}

void leap_enter(struct follower *follower, const struct code *before, bool adjacent,
                uint64_t handler) {
    struct flow *flow = &follower->flow;
    while (follower->signals.count &&
           follower->signals.items[follower->signals.count - 1].depth >= flow->depth)
        follower->signals.count--; /* left by longjmp */
    if (follower->signals.count < SIGNALS_NESTED)
        vector_push(&follower->signals, ((struct signal_frame){flow->depth, before, adjacent}));
    flow_call(flow, handler, SIGNAL_RETURN, NO_ADDRESS);
}

bool leap_leaves_handler(struct follower *follower, const struct code *before,
                         const struct code *code) {
    struct flow *flow = &follower->flow;
    if (before->control != CONTROL_RETURN || code->follows_call || !tops(flow, SIGNAL_RETURN))
        return false;
    flow_tail(flow, code->pc);
    return true;
}

/* Return to the interrupted code, with what it was about to do. */
static void leave_signal(struct follower *follower, struct shared_thread *thread) {
    struct flow *flow = &follower->flow;
    while (follower->signals.count) {
        struct signal_frame frame = follower->signals.items[--follower->signals.count];
        if (frame.depth >= flow->depth ||
            flow->entries[frame.depth].return_address != SIGNAL_RETURN)
            continue;
        step_flush(follower, thread, shared_weight(plugin.shared, thread));
        flow_pop_to(flow, frame.depth);
        thread->node = flow->node;
        thread->before = frame.before;
        thread->expected = frame.adjacent ? thread->count : NO_ADDRESS;
        thread->expected_weight = thread->weight;
        return;
    }
}

void leap_system_call(unsigned cpu, int64_t number, const uint64_t *arguments) {
    uint64_t handler = 0;
    if (number == machine.sigaction && arguments[0] < SIGNALS && arguments[1] &&
        guest_read(arguments[1], &handler, machine.pointer_size))
        machine.handlers[arguments[0]] = handler;
    if (number == machine.sigreturn)
        leave_signal(&plugin.followers[cpu], &plugin.shared->threads[cpu]);
}

/* ---- setjmp and longjmp ------------------------------------------------------------------- */

static bool is_live(const struct flow *flow, const struct setjmp_frame *frame) {
    if (frame->depth > flow->depth)
        return false;
    uint32_t node = frame->depth == flow->depth ? flow->node : flow->entries[frame->depth].node;
    return node == frame->node;
}

/* Return the setjmp of that buffer, if it is among the last ones; the caller may reuse a buffer as often as it likes. */
static struct setjmp_frame *find_buffer(struct follower *follower, uint64_t address) {
    size_t count = follower->setjmps.count;
    size_t last = count > SETJMPS_LOOKED_AT ? count - SETJMPS_LOOKED_AT : 0;
    struct setjmp_frame *found = NULL;
    for (size_t i = count; i-- > last;) {
        struct setjmp_frame *frame = &follower->setjmps.items[i];
        if (address - frame->buffer < BUFFER_SIZE && (!found || frame->buffer > found->buffer))
            found = frame;
    }
    return found;
}

static void forget_left(struct follower *follower, size_t depth) {
    while (follower->setjmps.count &&
           follower->setjmps.items[follower->setjmps.count - 1].depth > depth)
        follower->setjmps.count--;
    if (follower->setjmps.count == SETJMPS_MAX) {
        follower->setjmps.count /= 2;
        memmove(follower->setjmps.items, follower->setjmps.items + follower->setjmps.count,
                follower->setjmps.count * sizeof *follower->setjmps.items);
    }
}

/* setjmp stores to its buffer, from the first byte on. */
static void on_saved(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    struct follower *follower = &plugin.followers[cpu < SHARED_THREADS ? cpu : 0];
    struct flow *flow = &follower->flow;
    if (cpu >= SHARED_THREADS || !flow->depth || !qemu_plugin_mem_is_store(info))
        return;
    const struct flow_entry *entry = &flow->entries[flow->depth - 1];
    struct setjmp_frame frame = {address, entry->return_address, flow->depth - 1, entry->node};
    forget_left(follower, frame.depth);
    struct setjmp_frame *known = find_buffer(follower, address);
    if (known && known->buffer != address && known->depth == frame.depth &&
        known->return_address == frame.return_address)
        return; /* the rest of it */
    if (known && known->buffer == address)
        known->return_address = NO_ADDRESS, known->buffer = NO_ADDRESS;
    vector_push(&follower->setjmps, frame);
}

/* longjmp loads, among others, what setjmp stored. */
static void on_restored(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    if (cpu >= SHARED_THREADS || qemu_plugin_mem_is_store(info))
        return;
    struct follower *follower = &plugin.followers[cpu];
    const struct setjmp_frame *frame = find_buffer(follower, address);
    if (frame)
        follower->landing = *frame;
}

/* ---- exceptions --------------------------------------------------------------------------- */

/* Read the word at the address, and the one before it. */
static bool read_pair(uint64_t address, uint64_t *before, uint64_t *word) {
    uint8_t bytes[16];
    unsigned size = machine.pointer_size;
    if (!guest_read(address - size, bytes, 2 * size))
        return false;
    *before = size == 8 ? load_u64(bytes) : load_u32(bytes);
    *word = size == 8 ? load_u64(bytes + 8) : load_u32(bytes + 4);
    return true;
}

/* Return the call that was made with that stack pointer: either it is known, or the next call outwards that returns to `back`, whose stack
   pointer is then known. Frames are visited in order, and of those that return to one address all or none, so it must be the next one. Return
   SIZE_MAX if there is none. `back` of 0 belongs to no call. */
static size_t find_call(struct follower *follower, uint64_t sp, uint64_t back) {
    struct flow *flow = &follower->flow;
    size_t from = flow->depth, last = from > CALLS_LOOKED_AT ? from - CALLS_LOOKED_AT : 0;
    if (follower->unwound < from && flow->entries[follower->unwound].sp <= sp)
        from = follower->unwound + 1;
    for (size_t i = from; i-- > last;) {
        struct flow_entry *entry = &flow->entries[i];
        if (entry->sp == NO_ADDRESS && entry->return_address == back)
            entry->sp = sp;
        if (entry->sp == sp)
            return follower->unwound = i;
    }
    return SIZE_MAX;
}

static void on_asked(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    uint64_t sp, back;
    if (cpu < SHARED_THREADS && !qemu_plugin_mem_is_store(info) && read_pair(address, &sp, &back))
        find_call(&plugin.followers[cpu], sp, back);
}

static void on_sent(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data) {
    uint64_t sp, pc;
    if (cpu >= SHARED_THREADS || !qemu_plugin_mem_is_store(info) || !read_pair(address, &sp, &pc))
        return;
    struct follower *follower = &plugin.followers[cpu];
    size_t call = find_call(follower, sp, 0);
    if (call != SIZE_MAX)
        follower->landing = (struct setjmp_frame){0, pc, call, follower->flow.entries[call].node};
}

/* ---- where they land ---------------------------------------------------------------------- */

static bool land(struct follower *follower) {
    struct setjmp_frame landing = follower->landing;
    follower->landing = (struct setjmp_frame){.return_address = NO_ADDRESS};
    if (!is_live(&follower->flow, &landing))
        return false;
    if (landing.depth < follower->flow.depth)
        flow_pop_to(&follower->flow, landing.depth);
    return true;
}

bool leap_lands(struct follower *follower, const struct code *code) {
    return follower->landing.return_address == code->pc && land(follower);
}

bool leap_lands_in(struct follower *follower, uint32_t function) {
    uint64_t pc = follower->landing.return_address;
    return pc != NO_ADDRESS && functions_find(plugin.functions, pc).function == function &&
           land(follower);
}

/* QEMU 7.2 confuses loads and stores when asked for only one of them. */
static void watch_accesses(struct qemu_plugin_tb *block, qemu_accessed *accessed) {
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(block, i), accessed,
                                         QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, NULL);
}

void leap_translated(struct qemu_plugin_tb *block, struct text function) {
    static const struct {
        const char *function;
        qemu_accessed *accessed;
    } watched[] = {
        {"setjmp", on_saved},
        {"sigsetjmp", on_saved},
        {"longjmp", on_restored},
        {"siglongjmp", on_restored},
        {"longjmp_chk", on_restored},
        {"libc_longjmp", on_restored},
        {"libc_siglongjmp", on_restored},
        {"longjmp_internal", on_restored},
        {"Unwind_GetIPInfo", on_asked},
        {"Unwind_GetIP", on_asked},
        {"Unwind_SetIP", on_sent},
    };
    while (function.length && function.data[0] == '_')
        function = text_from(function, 1);
    for (size_t i = 0; i < COUNT_OF(watched); i++)
        if (text_equal(function, text_of(watched[i].function)))
            watch_accesses(block, watched[i].accessed);
}

void leap_forget(struct follower *follower) {
    vector_release(&follower->signals);
    vector_release(&follower->setjmps);
    follower->landing = (struct setjmp_frame){.return_address = NO_ADDRESS};
    follower->unwound = 0;
}

void leap_install(const char *name) {
    bool is_x86 = strcmp(name, "x86_64") == 0;
    machine.sigaction = is_x86 ? 13 : 134;
    machine.sigreturn = is_x86 ? 15 : 139;
    machine.pointer_size = strcmp(name, "riscv32") == 0 ? 4 : 8;
}
