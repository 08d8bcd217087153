/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Take the frames of interpreters with each sample. The program runs on the sampling event itself, in the sampled thread, so nothing changes
 * while it reads. It reads addresses; names and lines are made from them later, once per function (interpreted.c). For a code object that was
 * not seen before, it also passes on the name and the line table, because the object may be gone by then.
 *
 * An unknown process is reported from time to time, and user space checks whether it has an interpreter. Each frame takes one read: 5 frames
 * take about 3 microseconds.
 */
#include "bpf_types.h"

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "../interpreter/layout.h"
#include "offcpu_bpf.h"

/* From the kernel's user interface. */
enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_RINGBUF = 27
};

#include "offcpu_maps.h" /* needs the types of maps */
enum { BPF_ANY = 0, BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2, BPF_RB_AVAIL_DATA = 0 };

enum { RING_SIZE = 8 << 20, LOOK_AGAIN = 2000000 /* nanoseconds */, CODES_TOLD = 1 << 16 };

struct thread_struct {
    unsigned long fsbase;
} __attribute__((preserve_access_index));

struct mm_struct {
    unsigned long start_stack;
} __attribute__((preserve_access_index));

struct vm_area_struct {
    unsigned long vm_start, vm_end;
} __attribute__((preserve_access_index));

struct pt_regs {
    unsigned long sp;
} __attribute__((preserve_access_index));

struct task_struct {
    struct mm_struct *mm;
    struct thread_struct thread;
    unsigned long sas_ss_sp, sas_ss_size; /* the alternate stack */
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

/* The parts of stacks that samples do not copy. They have their own ring, so that a deep stack does not crowd out the others. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, RING_SIZE);
} memories SEC(".maps");

/* How many bytes of a stack a sample copies; 0: none. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} copied SEC(".maps");

/* For waits that are summed up in the kernel (offcpu.bpf.c): which stacks of interpreters were already passed on. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, STACK_KINDS);
    __type(key, __u64);
    __type(value, __u64);
} told SEC(".maps");

/* Which code objects were passed on: a hash of each, at a place that its address selects. One that loses its place to another is passed on
   again. Two that take turns at one address thus share a place, as they do in user space, which keeps the last one. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, CODES_TOLD);
    __type(key, __u32);
    __type(value, __u64);
} codes SEC(".maps");

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

/* In its own map, because a per-CPU value is limited to 32 kB. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct raw_code);
} code_scratches SEC(".maps");

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

/* Return what pthread_getspecific() would return for the interpreter's key. */
static __u64 python_state_by_key(const struct frame_layout *layout, __u64 thread) {
    __u32 key[2] = {0, 0}; /* whether it was created; its number */
    if (bpf_probe_read_user(key, sizeof key, (void *)layout->key) != 0 || !key[0] ||
        key[1] >= KEYS_MOST)
        return 0;
    __u32 which = key[1] / KEYS_BLOCK;
    __u64 block = which ? read_word(thread + KEYS_BLOCKS + 8ull * which) : thread + KEYS_FIRST;
    return block ? read_word(block + 16ull * (key[1] % KEYS_BLOCK) + 8) : 0;
}

/* Return the state that holds the lock, if it is this thread's; it may belong to another interpreter than the key's. */
static __u64 python_state(const struct frame_layout *layout, struct task_struct *task) {
    __u64 thread = task->thread.fsbase, state = layout->current ? read_word(layout->current) : 0;
    if (state && read_word(state + layout->state_thread) == thread)
        return state;
    return python_state_by_key(layout, thread);
}

static __u64 field(const struct scratch *s, __u32 offset) {
    return *(const __u64 *)(s->frame + (offset & (STACK_FRAME_READ - 8)));
}

/* Read a string object into `to`, if it fits. */
static void read_string(const struct frame_layout *layout, struct raw_code *code, __u32 part,
                        __u8 *to, __u32 most) {
    enum { LENGTH = 16, STATE = 32, WIDTH = 7 };
    __u64 address = code->address[part], length = read_word(address + LENGTH);
    __u64 width = read_word(address + STATE) >> 2 & WIDTH;
    __u64 size = layout->string_head + length * width;
    if (length < most && size < most &&
        bpf_probe_read_user(to, size & (most - 1), (void *)address) == 0)
        code->size[part] = size;
}

/* Read as much of a bytes object as fits. */
static void read_lines(struct raw_code *code) {
    enum { LENGTH = 16, HEAD = 32 };
    __u64 address = code->address[CODE_LINES], size = read_word(address + LENGTH) + HEAD;
    if (size < CODE_LINES_MOST &&
        bpf_probe_read_user(code->lines, size & (CODE_LINES_MOST - 1), (void *)address) == 0)
        code->size[CODE_LINES] = size;
}

static __u64 code_word(const struct raw_code *code, __u32 offset) {
    return *(const __u64 *)(code->head + (offset <= CODE_HEAD_READ - 8 ? offset : 0));
}

static __noinline long hand_over_code(struct scratch *s, const struct frame_layout *layout,
                                      __u64 address) {
    __u32 zero = 0;
    struct raw_code *code = bpf_map_lookup_elem(&code_scratches, &zero);
    if (!code)
        return -1;
    code->time = s->stack.time;
    code->memory = s->stack.memory;
    code->pid = s->stack.pid;
    code->end = STACK_CODE;
    for (int i = 0; i < CODE_PARTS; i++)
        code->size[i] = 0;
    if (bpf_probe_read_user(code->head, CODE_HEAD_READ, (void *)address) != 0)
        return -1;
    code->size[CODE_HEAD] = CODE_HEAD_READ;
    code->address[CODE_HEAD] = address;
    code->address[CODE_FILE] = code_word(code, layout->code_file);
    code->address[CODE_NAME] = code_word(code, layout->code_name);
    code->address[CODE_LINES] = code_word(code, layout->code_lines);
    read_string(layout, code, CODE_FILE, code->file, CODE_FILE_MOST);
    read_string(layout, code, CODE_NAME, code->name, CODE_NAME_MOST);
    read_lines(code);
    __u64 size = code->size[CODE_LINES];
    asm volatile("" : "+r"(size));
    if (size > CODE_LINES_MOST)
        return -1;
    return bpf_ringbuf_output(&ring, code, __builtin_offsetof(struct raw_code, lines) + size,
                              BPF_RB_NO_WAKEUP);
}

/* Return layout_check() of a code object, and pass the object on if it was not seen before. */
static __u64 meet_code(struct scratch *s, const struct frame_layout *layout, __u64 address) {
    __u64 check = layout_check(read_word(address + layout->code_file),
                               read_word(address + layout->code_lines));
    __u64 at = mix(mix(s->stack.memory, s->stack.pid), address), hash = mix(at, check) | 1;
    __u32 place = at >> 32 & (CODES_TOLD - 1);
    __u64 *told_hash = bpf_map_lookup_elem(&codes, &place);
    if (told_hash && *told_hash != hash && hand_over_code(s, layout, address) == 0)
        *told_hash = hash;
    return check;
}

/* Walk the frames, leaf first. If this were a plain loop, the verifier would follow every iteration, for a tenth of a second. */
struct walk {
    const struct frame_layout *layout;
    struct scratch *scratch;
    __u64 frame;
    __u64 passed; /* a frame, replaced after 1, 2, 4, … frames: meeting it again means a cycle */
    __u32 next;
    __u64 wanted; /* a frame that must be on the way; 0: none */
    bool is_circle;
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
    walk->is_circle = frame == walk->passed;
    if (walk->is_circle ||
        bpf_probe_read_user(s->frame, layout->read & (STACK_FRAME_READ - 1), (void *)frame) != 0)
        return 1;
    if (frame == walk->wanted)
        walk->wanted = 0;
    if (i == walk->next) {
        walk->passed = frame;
        walk->next = 2 * i + 1;
    }
    __u64 code = field(s, layout->code) & ~(__u64)FRAME_BITS;
    if (layout->mark_value && s->frame[layout->mark & (STACK_FRAME_READ - 1)] == layout->mark_value)
        code |= layout->has_shim ? FRAME_ENTRY | FRAME_SHIM : FRAME_ENTRY;
    __u64 instruction = layout->instruction_size == 8
                            ? field(s, layout->instruction)
                            : *(__u32 *)(s->frame + (layout->instruction & (STACK_FRAME_READ - 4)));
    struct raw_frame *to = &s->stack.frames[at];
    to->code = code;
    to->instruction = instruction;
    to->address = layout->code_lines && !(code & FRAME_SHIM)
                      ? meet_code(s, layout, code & ~(__u64)FRAME_BITS)
                      : frame;
    if (!(code & FRAME_SHIM))
        s->stack.root = frame;
    s->stack.kind = mix(mix(s->stack.kind, code), code & FRAME_SHIM ? frame : instruction);
    s->stack.count = (__u32)at + 1;
    s->stack.end = STACK_DEEP;
    walk->frame = field(s, layout->previous);
    return 0;
}

/* Return false if the frames form a cycle, or if `wanted` is not among them. */
static bool walk_frames(const struct frame_layout *layout, struct scratch *s, __u64 frame,
                        __u64 wanted) {
    struct walk walk = {layout, s, frame, 0, 0, wanted, false};
    s->stack.count = 0;
    bpf_loop(STACK_FRAMES + 1, walk_frame, &walk, 0);
    return !walk.is_circle && (!walk.wanted || s->stack.end == STACK_DEEP);
}

static __u64 held_frame(const struct frame_layout *layout, __u64 holder) {
    return holder ? read_word(holder + layout->holder_frame) : 0;
}

/* A loop that was just entered has not stored its frame in its holder yet: the frame there is from an earlier call. It is right only if it
   leads to the frame of the previous holder. */
static void walk_python(const struct frame_layout *layout, struct scratch *s,
                        struct task_struct *task) {
    __u64 state = python_state(layout, task);
    if (!state)
        return; /* this thread runs no Python */
    __u64 first = read_word(state + layout->state_frame);
    if (!layout->has_holder) {
        walk_frames(layout, s, first, 0);
        return;
    }
    __u64 before = read_word(first + layout->holder_frame + HOLDER_PREVIOUS);
    before = held_frame(layout, before);
    if (!walk_frames(layout, s, held_frame(layout, first), before))
        walk_frames(layout, s, before, 0);
}

/* ---- Ruby ---- */

struct ruby_walk {
    struct scratch *scratch;
    __u64 frame, end;
};

/* Frames are adjacent, leaf first; those of C functions have no code. */
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
    if (!code || ruby_is_built_in(flags))
        return 0;
    struct raw_frame *to = &s->stack.frames[at];
    to->code = (code & ~(__u64)FRAME_BITS) | (flags & RUBY_FINISH ? FRAME_ENTRY : 0);
    to->instruction = field(s, 0);
    to->address = frame;
    s->stack.kind = mix(mix(s->stack.kind, code), field(s, 0));
    s->stack.count = (__u32)at + 1;
    return 0;
}

/* A table in the thread's descriptor points to the thread-local variables of each module. */
static void walk_ruby(const struct frame_layout *layout, struct scratch *s,
                      struct task_struct *task) {
    __u64 vm[3]; /* address of the stack, its size in words, the innermost frame */
    __u64 table = read_word(task->thread.fsbase + 8);
    __u64 block = table ? read_word(table + 16 * layout->key) : 0;
    __u64 context = block ? read_word(block + layout->state_frame) : 0;
    if (!context || bpf_probe_read_user(vm, sizeof vm, (void *)context) != 0 || vm[2] < vm[0])
        return; /* this thread runs no Ruby */
    struct ruby_walk walk = {s, vm[2], vm[0] + 8 * vm[1]};
    bpf_loop(2 * STACK_FRAMES, walk_ruby_frame, &walk, 0);
}

/* ---- stacks larger than the samples' copies ---- */

/* A larger mapping is not a single stack but a heap that contains stacks of coroutines. A record of 64 kB has room for this much of a stack.
   */
enum { STACK_MAPPING_MOST = 64 << 20, COPIED_MOST = 60 << 10 };

static long see_mapping(struct task_struct *task, struct vm_area_struct *mapping, void *context) {
    if (mapping->vm_end - mapping->vm_start < STACK_MAPPING_MOST)
        *(__u64 *)context = mapping->vm_end;
    return 0;
}

/* Return the end of the stack that `sp` points into, or 0 if it is unknown. */
static __u64 stack_end(struct task_struct *task, __u64 sp) {
    __u64 start = task->mm->start_stack, end = 0;
    if (sp < start && start - sp < STACK_MAPPING_MOST)
        return (start + MEMORY_BLOCK - 1) & ~(MEMORY_BLOCK - 1ull);
    bpf_find_vma(task, sp, see_mapping, &end, 0);
    return end;
}

struct memory_walk {
    struct scratch *scratch;
    __u64 stack_pointer, at, end;
};

static long take_part(__u32 i, void *context) {
    struct memory_walk *walk = context;
    __u64 at = walk->at, size = MEMORY_PART - (at & (MEMORY_PART - 1));
    if (at >= walk->end)
        return 1;
    if (size > walk->end - at)
        size = walk->end - at;
    struct raw_memory *part = bpf_ringbuf_reserve(&memories, sizeof *part, 0);
    if (!part)
        return 1;
    part->time = walk->scratch->stack.time;
    part->memory = walk->scratch->stack.memory;
    part->stack_pointer = walk->stack_pointer;
    part->address = at;
    part->pid = walk->scratch->stack.pid;
    part->tid = walk->scratch->stack.tid;
    part->end = STACK_MEMORY;
    part->size = size;
    asm volatile("" : "+r"(size));
    if (size <= MEMORY_PART && bpf_probe_read_user(part->bytes, size, (void *)at) == 0)
        bpf_ringbuf_submit(part, BPF_RB_NO_WAKEUP);
    else
        bpf_ringbuf_discard(part, BPF_RB_NO_WAKEUP);
    walk->at = at + size;
    return 0;
}

struct signal_search {
    __u64 at, stack, size;
    bool is_found;
};

/* The frame that the kernel made for a handler names the alternate stack; its address is a multiple of 16. */
static long search_signal(__u32 i, void *context) {
    struct signal_search *search = context;
    __u64 told[3] = {0, 0, 0}; /* address, flags, size */
    search->at -= 16;
    if (search->at < search->stack ||
        bpf_probe_read_user(told, sizeof told, (void *)search->at) != 0)
        return 1;
    search->is_found = told[0] == search->stack && told[2] == search->size;
    return search->is_found;
}

/* Return the stack pointer of the code that a handler on an alternate stack interrupted. Its registers are in the frame that the kernel made,
   the outermost on that stack. */
static __u64 interrupted_sp(__u64 stack, __u64 size) {
    enum { STEPS = 1024 /* of 16 bytes: registers of vectors may take 11 kB */, SP = 144 };
    struct signal_search search = {(stack + size) & ~15ull, stack, size, false};
    bpf_loop(STEPS, search_signal, &search, 0);
    return search.is_found ? read_word(search.at + SP) : 0;
}

/* Wake up the reader: the ring fills faster than the wakeups by samples would empty it. */
static void wake_up(void) {
    struct raw_memory *nothing = bpf_ringbuf_reserve(&memories, sizeof *nothing, 0);
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

static void take_memory(struct scratch *s) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct pt_regs *registers = (void *)bpf_task_pt_regs(task);
    __u32 zero = 0;
    __u64 *size = bpf_map_lookup_elem(&copied, &zero);
    __u64 sp = registers->sp, stack = task->sas_ss_sp, from;
    if (!size || !*size)
        return;
    if (task->sas_ss_size && sp - stack < task->sas_ss_size)
        from = interrupted_sp(stack, task->sas_ss_size);
    else
        from = sp + (*size < COPIED_MOST ? *size : COPIED_MOST);
    __u64 end = from ? stack_end(task, from) : 0;
    if (from >= end)
        return;
    struct memory_walk walk = {s, sp, from & ~(MEMORY_BLOCK - 1ull), end};
    bpf_loop(MEMORY_PARTS, take_part, &walk, 0);
    if (bpf_ringbuf_query(&memories, BPF_RB_AVAIL_DATA) > RING_SIZE / 4)
        wake_up();
}

/* ---- samples ---- */

static void tell_of_process(struct scratch *s, __u32 pid) {
    struct frame_layout unknown = {.memory = s->stack.memory, .again = s->stack.time + LOOK_AGAIN};
    bpf_map_update_elem(&processes, &pid, &unknown, BPF_ANY);
    s->stack.end = STACK_UNKNOWN;
    bpf_ringbuf_output(&ring, &s->stack, STACK_HEAD, BPF_RB_FORCE_WAKEUP);
}

/* Keep the number in one register, so that the verifier knows its limit. */
static void hand_over(struct scratch *s) {
    __u64 count = s->stack.count;
    asm volatile("" : "+r"(count));
    if (count <= STACK_FRAMES)
        bpf_ringbuf_output(&ring, &s->stack, STACK_HEAD + count * sizeof(struct raw_frame),
                           BPF_RB_NO_WAKEUP);
}

/* Return the scratch with what is known about the current thread, or NULL for a kernel thread. */
static struct scratch *begin_stack(void) {
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
    return s;
}

/* Take the current thread's stack into the scratch. Return false if it has none. */
static bool take_stack(struct scratch *s) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 pid = s->stack.pid;
    struct frame_layout *layout = bpf_map_lookup_elem(&processes, &pid);
    if (layout && !layout->memory)
        layout->memory = s->stack.memory;
    if (!layout || layout->memory != s->stack.memory ||
        (!layout->interpreter && layout->again < s->stack.time)) {
        tell_of_process(s, pid);
        return false;
    }
    if (layout->interpreter == INTERPRETER_PYTHON)
        walk_python(layout, s, task);
    else if (layout->interpreter == INTERPRETER_RUBY)
        walk_ruby(layout, s, task);
    else if (layout->interpreter == INTERPRETER_PHP && pid == s->stack.tid)
        walk_frames(layout, s, read_word(layout->key), 0); /* it has one thread */
    return s->stack.count;
}

static void take_sample(void) {
    struct scratch *s = begin_stack();
    if (!s)
        return;
    if (take_stack(s)) {
        s->stack.kind = 0;
        hand_over(s);
    }
    take_memory(s);
}

SEC("perf_event")
int on_sample(void *context) {
    take_sample();
    return 1; /* the sample is wanted anyway */
}

/* For an event that counts switches, beside the one that samples them: programs on a tracepoint are of another type and run for all
   processes. */
SEC("perf_event")
int on_switch(void *context) {
    take_sample();
    return 0;
}

/* Runs before the program that sums up waits, which uses the thread's kind. */
SEC("tp_btf/sched_switch")
int on_leave(void *context) {
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    __u64 none = 0;
    if (!tid || !bpf_map_lookup_elem(&threads, &tid))
        return 0;
    struct scratch *s = begin_stack();
    bool is_taken = s && take_stack(s);
    __u64 kind = is_taken ? s->stack.kind | 1 : 0;
    if (is_taken && !bpf_map_lookup_elem(&told, &kind)) {
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
