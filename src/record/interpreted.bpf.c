/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The frames of interpreters, taken when a sample is: the program runs on the sampling event itself, in the thread that is sampled, so that
 * nothing moves while it looks. Only addresses are read here; names and lines are read later, once for each function (interpreted.c).
 *
 * A process that is not known is told of, once in a while, and userland looks whether it has an interpreter. It has one read a frame: 5
 * frames take about 3 microseconds.
 */
#include "bpf_types.h"

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "../interpreter/layout.h"
#include "offcpu_bpf.h"

/* From the kernel's user interface. */
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_RINGBUF = 27 };

#include "offcpu_maps.h" /* needs the types of maps */
enum { BPF_ANY = 0, BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

enum { RING_SIZE = 8 << 20, LOOK_AGAIN = 2000000 /* nanoseconds */ };

struct thread_struct {
    unsigned long fsbase;
} __attribute__((preserve_access_index));

struct mm_struct;

struct task_struct {
    struct mm_struct *mm;
    struct thread_struct thread;
} __attribute__((preserve_access_index));

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, STACK_PROCESSES);
    __type(key, __u32);
    __type(value, struct frame_layout);
} processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, RING_SIZE);
} ring SEC(".maps");

/* Of waits that are summed up in the kernel (offcpu.bpf.c): which stacks of interpreters were told. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, STACK_KINDS);
    __type(key, __u64);
    __type(value, __u64);
} told SEC(".maps");

struct scratch {
    struct raw_stack stack;
    __u8 frame[STACK_FRAME_READ];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

static __u64 mix(__u64 hash, __u64 word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 32;
}

enum { STACK_HEAD = __builtin_offsetof(struct raw_stack, frames) };

static __u64 read_word(__u64 address) {
    __u64 word = 0;
    bpf_probe_read_user(&word, sizeof word, (void *)address);
    return word;
}

/* ---- Python ---- */

/* What pthread_getspecific() would give for the interpreter's key. */
static __u64 python_state_by_key(const struct frame_layout *layout, __u64 thread) {
    __u32 key[2] = {0, 0}; /* whether it is made; which it is */
    if (bpf_probe_read_user(key, sizeof key, (void *)layout->key) != 0 || !key[0] ||
        key[1] >= KEYS_MOST)
        return 0;
    __u32 which = key[1] / KEYS_BLOCK;
    __u64 block = which ? read_word(thread + KEYS_BLOCKS + 8ull * which) : thread + KEYS_FIRST;
    return block ? read_word(block + 16ull * (key[1] % KEYS_BLOCK) + 8) : 0;
}

/* The state that has the lock, if it is this thread's: another interpreter's than the key tells, perhaps. */
static __u64 python_state(const struct frame_layout *layout, struct task_struct *task) {
    __u64 thread = task->thread.fsbase, state = layout->current ? read_word(layout->current) : 0;
    if (state && read_word(state + layout->state_thread) == thread)
        return state;
    return python_state_by_key(layout, thread);
}

static __u64 field(const struct scratch *s, __u32 offset) {
    return *(const __u64 *)(s->frame + (offset & (STACK_FRAME_READ - 8)));
}

/* One frame after the other, leaf first. As a loop of its own the verifier would go through every turn, for a tenth of a second. */
struct walk {
    const struct frame_layout *layout;
    struct scratch *scratch;
    __u64 frame;
};

static long walk_frame(__u32 i, void *context) {
    struct walk *walk = context;
    const struct frame_layout *layout = walk->layout;
    struct scratch *s = walk->scratch;
    __u64 at = i, frame = walk->frame;
    s->stack.end = STACK_WHOLE;
    if (!frame)
        return 1;
    asm volatile("" : "+r"(at));
    s->stack.end = STACK_DEEP;
    if (at >= STACK_FRAMES)
        return 1;
    s->stack.end = STACK_UNREADABLE;
    if (bpf_probe_read_user(s->frame, layout->read & (STACK_FRAME_READ - 1), (void *)frame) != 0)
        return 1;
    __u64 code = field(s, layout->code) & ~(__u64)FRAME_BITS;
    if (layout->mark_value && s->frame[layout->mark & (STACK_FRAME_READ - 1)] == layout->mark_value)
        code |= layout->has_shim ? FRAME_ENTRY | FRAME_SHIM : FRAME_ENTRY;
    __u64 instruction = layout->instruction_size == 8
                            ? field(s, layout->instruction)
                            : *(__u32 *)(s->frame + (layout->instruction & (STACK_FRAME_READ - 4)));
    struct raw_frame *to = &s->stack.frames[at];
    to->code = code;
    to->instruction = instruction;
    to->address = layout->check && !(code & FRAME_SHIM)
                      ? read_word((code & ~(__u64)FRAME_BITS) + layout->check)
                      : frame;
    if (!(code & FRAME_SHIM))
        s->stack.root = frame;
    s->stack.kind = mix(mix(s->stack.kind, code), code & FRAME_SHIM ? frame : instruction);
    s->stack.count = (__u32)at + 1;
    s->stack.end = STACK_DEEP;
    walk->frame = field(s, layout->previous);
    return 0;
}

static void walk_frames(const struct frame_layout *layout, struct scratch *s, __u64 frame) {
    struct walk walk = {layout, s, frame};
    bpf_loop(STACK_FRAMES + 1, walk_frame, &walk, 0);
}

static void walk_python(const struct frame_layout *layout, struct scratch *s,
                        struct task_struct *task) {
    __u64 state = python_state(layout, task);
    if (!state)
        return; /* a thread that runs no Python */
    __u64 frame = read_word(state + layout->state_frame);
    if (layout->has_holder && frame)
        frame = read_word(frame + layout->holder_frame);
    walk_frames(layout, s, frame);
}

/* ---- Ruby ---- */

struct ruby_walk {
    struct scratch *scratch;
    __u64 frame, end;
};

/* Frames stand side by side, leaf first; those of functions in C have no code. */
static long walk_ruby_frame(__u32 i, void *context) {
    struct ruby_walk *walk = context;
    struct scratch *s = walk->scratch;
    __u64 at = s->stack.count, frame = walk->frame;
    s->stack.end = STACK_WHOLE;
    if (frame >= walk->end)
        return 1;
    asm volatile("" : "+r"(at));
    s->stack.end = STACK_DEEP;
    if (at >= STACK_FRAMES)
        return 1;
    s->stack.end = STACK_UNREADABLE;
    if (bpf_probe_read_user(s->frame, RUBY_ENVIRONMENT + 8, (void *)frame) != 0)
        return 1;
    walk->frame = frame + RUBY_FRAME;
    s->stack.end = STACK_DEEP;
    __u64 code = field(s, RUBY_CODE);
    __u64 flags = code ? read_word(field(s, RUBY_ENVIRONMENT)) : 0;
    if (!code || (flags & RUBY_KIND) == RUBY_DUMMY)
        return 0;
    struct raw_frame *to = &s->stack.frames[at];
    to->code = (code & ~(__u64)FRAME_BITS) | (flags & RUBY_FINISH ? FRAME_ENTRY : 0);
    to->instruction = field(s, 0);
    to->address = frame;
    s->stack.kind = mix(mix(s->stack.kind, code), field(s, 0));
    s->stack.count = (__u32)at + 1;
    return 0;
}

/* The thread's variables of a module are found by a table that the thread's descriptor points to. */
static void walk_ruby(const struct frame_layout *layout, struct scratch *s,
                      struct task_struct *task) {
    __u64 vm[3]; /* where the stack is, how many words it has, the innermost frame */
    __u64 table = read_word(task->thread.fsbase + 8);
    __u64 block = table ? read_word(table + 16 * layout->key) : 0;
    __u64 context = block ? read_word(block + layout->state_frame) : 0;
    if (!context || bpf_probe_read_user(vm, sizeof vm, (void *)context) != 0 || vm[2] < vm[0])
        return; /* a thread that runs no Ruby */
    struct ruby_walk walk = {s, vm[2], vm[0] + 8 * vm[1]};
    bpf_loop(2 * STACK_FRAMES, walk_ruby_frame, &walk, 0);
}

/* ---- samples ---- */

static void tell_of_process(struct scratch *s, __u32 pid) {
    struct frame_layout unknown = {.memory = s->stack.memory, .again = s->stack.time + LOOK_AGAIN};
    bpf_map_update_elem(&processes, &pid, &unknown, BPF_ANY);
    s->stack.end = STACK_UNKNOWN;
    bpf_ringbuf_output(&ring, &s->stack, STACK_HEAD, BPF_RB_FORCE_WAKEUP);
}

/* The number is kept in one register, so that the verifier sees its limit. */
static void hand_over(struct scratch *s) {
    __u64 count = s->stack.count;
    asm volatile("" : "+r"(count));
    if (count <= STACK_FRAMES)
        bpf_ringbuf_output(&ring, &s->stack, STACK_HEAD + count * sizeof(struct raw_frame),
                           BPF_RB_NO_WAKEUP);
}

/* The stack of the thread that runs, if it has one: it is in the scratch then, else NULL is returned. */
static struct scratch *take_stack(void) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u64 id = bpf_get_current_pid_tgid();
    __u32 pid = id >> 32, zero = 0;
    struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);
    __u64 memory = (__u64)task->mm;
    if (!s || !pid || !memory)
        return 0;
    s->stack.time = bpf_ktime_get_ns();
    s->stack.memory = memory;
    s->stack.pid = pid;
    s->stack.tid = (__u32)id;
    s->stack.kind = memory;
    s->stack.root = 0;
    s->stack.count = 0;
    s->stack.end = STACK_WHOLE;
    const struct frame_layout *layout = bpf_map_lookup_elem(&processes, &pid);
    if (!layout || layout->memory != memory ||
        (!layout->interpreter && layout->again < s->stack.time)) {
        tell_of_process(s, pid);
        return 0;
    }
    if (layout->interpreter == INTERPRETER_PYTHON)
        walk_python(layout, s, task);
    else if (layout->interpreter == INTERPRETER_RUBY)
        walk_ruby(layout, s, task);
    else if (layout->interpreter == INTERPRETER_PHP && pid == (__u32)id)
        walk_frames(layout, s, read_word(layout->key)); /* it has one thread */
    return s->stack.count ? s : 0;
}

static void take_sample(void) {
    struct scratch *s = take_stack();
    if (!s)
        return;
    s->stack.kind = 0;
    hand_over(s);
}

SEC("perf_event")
int on_sample(void *context) {
    take_sample();
    return 1; /* the sample is wanted all the same */
}

/* Of an event that counts switches, beside the one that samples them: tracepoints run programs of another kind, and those for everybody. */
SEC("perf_event")
int on_switch(void *context) {
    take_sample();
    return 0;
}

/* Before the program that sums up waits, which takes the thread's kind. */
SEC("tp_btf/sched_switch")
int on_leave(void *context) {
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    __u64 none = 0;
    if (!tid || !bpf_map_lookup_elem(&threads, &tid))
        return 0;
    struct scratch *s = take_stack();
    __u64 kind = s ? s->stack.kind | 1 : 0;
    if (s && !bpf_map_lookup_elem(&told, &kind)) {
        s->stack.kind = kind;
        if (bpf_map_update_elem(&told, &kind, &none, BPF_ANY) == 0)
            hand_over(s);
        else
            kind = 0;
    }
    bpf_map_update_elem(&kinds, &tid, &kind, BPF_ANY);
    return 0;
}

char licence_of_this[] SEC("license") = "Dual MIT/GPL";
