/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Off-CPU time, summed up where it happens. When a thread leaves the CPU, its stacks and the time are stored under its tid; when it comes
 * back, the difference is added to the sum of (thread, stacks, reason, waker). So a million switches of one kind are one entry, and nothing
 * is written while they happen.
 *
 * The few fields that are read from kernel structures are declared below; the loader finds their offsets in the running kernel (CO-RE), so no
 * kernel header is needed to build this.
 *
 * bpf_get_stackid() follows frame pointers, but the C library of most systems is built without them, so most waits would show a stack of one
 * frame. So the registers and the stack are copied, once for each kind of wait, and later unwound by DWARF rules. The kind is determined
 * without unwinding: by the instruction pointer, the depth of the stack, and all words near its top that look like return addresses because a
 * call instruction precedes them. Stale ones among them split a kind in two, but the sums stay right.
 *
 * Some kernels don't report every switch. A thread that leaves the CPU without having been seen to come back has been running for as long as
 * its CPU time has grown since it last left, and was waiting until then.
 *
 * Two stacks may need the same place in a stack map; the second is refused and tried in another map, then in a third. With ten thousand
 * different stacks, three or four are lost.
 */
#include "bpf_types.h"

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "offcpu_bpf.h"

/* From the kernel's user interface. */
enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_STACK_TRACE = 7,
    BPF_MAP_TYPE_CGROUP_ARRAY = 8
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_F_USER_STACK = 1 << 8 };

enum { PF_KTHREAD = 0x200000, TASK_UNINTERRUPTIBLE = 2, TASK_DEAD = 0x80, TASK_NOLOAD = 0x400 };

/* The frames of BPF itself on a kernel stack: the program, bpf_trace_run, the tracepoint's caller. */
enum { OWN_FRAMES = 3 };

struct mm_struct {
    unsigned long start_code, end_code, task_size;
} __attribute__((preserve_access_index));

struct sched_entity {
    __u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct task_struct {
    struct sched_entity se;
    struct mm_struct *mm;
    int pid;
    int tgid;
    unsigned int flags;
} __attribute__((preserve_access_index));

struct task_struct___now {
    unsigned int __state;
} __attribute__((preserve_access_index));

struct task_struct___before_5_14 {
    long state;
} __attribute__((preserve_access_index));

enum { FIELD_EXISTS = 2 };

#include "offcpu_maps.h" /* needs the types of maps */

const volatile struct off_cpu_settings settings = {};
volatile int enabled = 0;

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFF_CPU_SUMS);
    __type(key, struct off_cpu_key);
    __type(value, struct off_cpu_sum);
} sums SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, OFF_CPU_TROUBLES);
    __type(key, __u32);
    __type(value, __u64);
} troubles SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, OFF_CPU_COPIES);
    __uint(key_size, sizeof(__u64));
    __uint(value_size, sizeof(struct off_cpu_copy)); /* smaller if less of each stack is copied */
} copies SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_CGROUP_ARRAY);
    __uint(max_entries, 1);
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(__u32));
} group SEC(".maps");

#define STACK_MAP(name, size)                                                                      \
    struct {                                                                                       \
        __uint(type, BPF_MAP_TYPE_STACK_TRACE);                                                    \
        __uint(max_entries, size);                                                                 \
        __uint(key_size, sizeof(__u32));                                                           \
        __uint(value_size, OFF_CPU_FRAMES * sizeof(__u64));                                        \
    } name SEC(".maps")

STACK_MAP(stacks_0, 16384);
STACK_MAP(stacks_1, 16384);
STACK_MAP(stacks_2, 4096);

static void count_trouble(__u32 which) {
    __u64 *count = bpf_map_lookup_elem(&troubles, &which);
    if (count)
        __sync_fetch_and_add(count, 1);
}

/* A thread may have no such stack (-EFAULT), which is not a failure. A place that is taken (-EEXIST) is. */
static int take_stack(void *context, __u64 flags) {
    enum { TAKEN = -17 };
    int place = bpf_get_stackid(context, &stacks_0, flags);
    if (place != TAKEN)
        return place;
    place = bpf_get_stackid(context, &stacks_1, flags);
    if (place >= 0)
        return place | 1 << OFF_CPU_STACK_SHIFT;
    place = bpf_get_stackid(context, &stacks_2, flags);
    if (place >= 0)
        return place | 2 << OFF_CPU_STACK_SHIFT;
    count_trouble(OFF_CPU_NO_STACK);
    return place;
}

/* ---- what differs between machines ---- */

#if defined(__TARGET_ARCH_x86)

#define CAN_COPY
enum { USER_CODE = 0x33 };

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, ip;
    unsigned short cs;
    unsigned long flags, sp;
} __attribute__((preserve_access_index));

static bool is_known_program(struct pt_regs *registers) {
    return registers->cs == USER_CODE;
}

static __u64 place_of(struct pt_regs *registers) {
    return registers->ip;
}

/* Return the return address of a leaf function, if it is in a register. */
static __u64 link_of(struct pt_regs *registers) {
    return 0;
}

/* Return a word of the stack as an address. */
static __u64 address_in(__u64 word, struct mm_struct *memory) {
    return word;
}

/* call rel32; call *reg or *(reg); with an 8-bit or 32-bit displacement; the latter two with an index. */
static int follows_call(__u64 address) {
    __u8 code[8];
    if (bpf_probe_read_user(code, sizeof code, (void *)(address - sizeof code)) != 0)
        return 0;
    return code[3] == 0xe8 || (code[6] == 0xff && (code[7] & 0x38) == 0x10) ||
           (code[5] == 0xff && (code[6] & 0x38) == 0x10) ||
           (code[4] == 0xff && (code[5] & 0x38) == 0x10) ||
           (code[2] == 0xff && (code[3] & 0x38) == 0x10) ||
           (code[1] == 0xff && (code[2] & 0x38) == 0x10);
}

static void copy_registers(struct off_cpu_copy *copy, struct pt_regs *from) {
    __u64 *to = copy->registers; /* in perf's order */
    to[0] = from->ax, to[1] = from->bx, to[2] = from->cx, to[3] = from->dx;
    to[4] = from->si, to[5] = from->di, to[6] = from->bp, to[7] = from->sp;
    to[8] = from->ip, to[9] = from->flags, to[10] = USER_CODE, to[11] = USER_CODE - 8;
    to[12] = from->r8, to[13] = from->r9, to[14] = from->r10, to[15] = from->r11;
    to[16] = from->r12, to[17] = from->r13, to[18] = from->r14, to[19] = from->r15;
}

#elif defined(__TARGET_ARCH_arm64)

#define CAN_COPY
enum { MODE = 0x1f, LINK = 30, REGISTERS = 31 };

struct pt_regs {
    __u64 regs[REGISTERS], sp, pc, pstate;
} __attribute__((preserve_access_index));

/* Whether it is a 64-bit program. */
static bool is_known_program(struct pt_regs *registers) {
    return (registers->pstate & MODE) == 0;
}

static __u64 place_of(struct pt_regs *registers) {
    return registers->pc;
}

static __u64 link_of(struct pt_regs *registers) {
    return registers->regs[LINK];
}

/* The bits between an address and bit 55 may hold a signature. */
static __u64 address_in(__u64 word, struct mm_struct *memory) {
    return word >> 55 ? word : word & (memory->task_size - 1);
}

/* bl; blr, blraa, blrab and those two without a modifier. */
static int follows_call(__u64 address) {
    __u32 code;
    if (address & 3 ||
        bpf_probe_read_user(&code, sizeof code, (void *)(address - sizeof code)) != 0)
        return 0;
    return code >> 26 == 0x25 || (code & 0xfefff000) == 0xd63f0000;
}

static void copy_registers(struct off_cpu_copy *copy, struct pt_regs *from) {
    __u64 *to = copy->registers; /* in perf's order */
    for (int i = 0; i < REGISTERS; i++)
        to[i] = from->regs[i];
    to[REGISTERS] = from->sp, to[REGISTERS + 1] = from->pc;
}

#endif

/* ---- copies of stacks ---- */

#ifdef CAN_COPY

enum { CHUNK = 1024, SCANNED = 4096 };

/* One for each CPU, created by the loader: too large for a per-CPU map. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct off_cpu_copy);
} scratch SEC(".maps");

static __u64 mix(__u64 hash, __u64 word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    return hash ^ hash >> 32;
}

/* Copy up to `end` bytes of the stack, or up to its end. */
static void copy_stack(struct off_cpu_copy *copy, __u64 sp, __u64 end) {
    for (int i = 0; i < OFF_CPU_COPY_SIZE / CHUNK; i++) {
        __u64 size = copy->size, some = CHUNK - ((sp + size) & (CHUNK - 1));
        if (size >= end || size > OFF_CPU_COPY_SIZE - CHUNK || some > CHUNK)
            return;
        if (bpf_probe_read_user(copy->stack + size, (__u32)some, (void *)(sp + size)) != 0)
            return;
        copy->size = size + some;
    }
}

/* Check only words that point into the program or the area of libraries: an address that is not mapped costs a fault. */
static __u64 kind_of_stack(const struct off_cpu_copy *copy, __u64 hash, struct task_struct *task,
                           __u64 ip, __u64 sp) {
    struct mm_struct *memory = task->mm;
    __u64 code = memory->start_code, code_size = memory->end_code - code;
    for (__u32 i = 0; i < SCANNED / 8; i++) {
        if (i * 8 >= copy->size)
            break;
        __u64 word = address_in(*(const __u64 *)(copy->stack + i * 8), memory);
        bool near = word - code < code_size || ((word ^ ip) >> 40 == 0 && word - sp >= 8 << 20);
        if (near && follows_call(word))
            hash = mix(hash, word);
    }
    return hash ? hash : 1;
}

/* Copy the current thread's stack; return 0 on failure. */
static __u64 take_copy(void) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    __u32 cpu = bpf_get_smp_processor_id();
    struct off_cpu_copy *copy = bpf_map_lookup_elem(&scratch, &cpu);
    if (!copy || task->flags & PF_KTHREAD)
        return 0;
    struct pt_regs *registers = (void *)bpf_task_pt_regs((void *)task);
    __u64 sp = registers->sp;
    if (!is_known_program(registers) || sp & 7)
        return 0;
    copy->size = 0;
    copy_stack(copy, sp, SCANNED);
    if (!copy->size)
        return 0;
    __u64 ip = place_of(registers);
    __u64 hash = mix(mix(mix((__u32)task->tgid, ip), sp), link_of(registers));
    __u64 kind = kind_of_stack(copy, hash, task, ip, sp);
    if (bpf_map_lookup_elem(&copies, &kind))
        return kind;
    copy_registers(copy, registers);
    copy_stack(copy, sp, settings.copy_size);
    if (bpf_map_update_elem(&copies, &kind, copy, BPF_ANY) == 0)
        return kind;
    count_trouble(OFF_CPU_NO_COPY);
    return 0;
}

#else

static __u64 take_copy(void) {
    return 0;
}

#endif

/* ---- switches ---- */

/* Take the stacks of the current thread. A thread may be preempted anywhere, so each preemption is a kind of its own; system-wide, these
   would leave no room for the others. */
static void take_stacks(void *context, struct off_cpu_stacks *stacks, bool preempted) {
    bool copies = settings.copies && !(preempted && settings.everything);
    stacks->copy = copies ? take_copy() : 0;
    stacks->user = settings.user && !stacks->copy ? take_stack(context, BPF_F_USER_STACK) : -1;
    stacks->kernel = settings.kernel ? take_stack(context, OWN_FRAMES) : -1;
}

static __u32 state_of(const __u64 *context, struct task_struct *prev) {
    if (settings.has_prev_state)
        return (__u32)context[3];
    struct task_struct___now *now = (void *)prev;
    if (__builtin_preserve_field_info(now->__state, FIELD_EXISTS))
        return now->__state;
    return (__u32)((struct task_struct___before_5_14 *)(void *)prev)->state;
}

static struct off_cpu_thread *thread_of(struct task_struct *task) {
    __u32 tid = (__u32)task->pid;
    struct off_cpu_thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (thread || !settings.everything || !tid || task->flags & PF_KTHREAD)
        return thread;
    struct off_cpu_thread fresh = {.pid = (__u32)task->tgid};
    if (bpf_map_update_elem(&threads, &tid, &fresh, BPF_NOEXIST) != 0)
        count_trouble(OFF_CPU_NO_THREAD);
    return bpf_map_lookup_elem(&threads, &tid);
}

/* Whether to record the current thread on this CPU. The number is kept in one register: the verifier of Linux 6.1 does not see that the
   number compared is the number used. */
static bool is_wanted(void) {
    __u64 cpu = bpf_get_smp_processor_id();
    asm volatile("" : "+r"(cpu));
    if (settings.some_cpus && (cpu >= OFF_CPU_CPUS || !(settings.cpus[cpu / 64] >> cpu % 64 & 1)))
        return false;
    return !settings.one_group || bpf_current_task_under_cgroup(&group, 0) == 1;
}

/* The thread waited until `end`. */
static void end_wait(struct off_cpu_thread *thread, struct task_struct *task, __u64 end) {
    __u64 waited = end - thread->since;
    thread->since = 0;
    if (waited < settings.least || waited > settings.most)
        return;
    struct off_cpu_key key = {.pid = (__u32)task->tgid,
                              .tid = (__u32)task->pid,
                              .stacks = thread->stacks,
                              .state = thread->state,
                              .waker_pid = thread->waker_pid,
                              .waker_tid = thread->waker_tid,
                              .waker = thread->waker,
                              .woken = thread->woken};
    struct off_cpu_sum *sum = bpf_map_lookup_elem(&sums, &key);
    if (!sum) {
        struct off_cpu_sum fresh = {};
        bpf_map_update_elem(&sums, &key, &fresh, BPF_NOEXIST);
        sum = bpf_map_lookup_elem(&sums, &key);
    }
    if (!sum) {
        count_trouble(OFF_CPU_NO_SUM);
        return;
    }
    if (settings.one_in > 1)
        waited *= settings.one_in;
    sum->ns += waited; /* only this CPU runs the thread, so no other adds here */
    sum->count++;
    sum->last = end;
    sum->cpu = bpf_get_smp_processor_id();
}

/* End a wait whose end was not reported; the thread is on the CPU now. */
static void end_untold(struct off_cpu_thread *thread, struct task_struct *task, __u64 now) {
    __u64 ran = task->se.sum_exec_runtime - thread->ran;
    if (thread->since && thread->since + ran < now)
        end_wait(thread, task, now - ran);
}

/* Decide at random, before a stack is taken, because that is the expensive part. */
static bool is_sampled(void) {
    return settings.one_in < 2 || bpf_get_prandom_u32() % settings.one_in == 0;
}

static void leave(__u64 *context, struct task_struct *prev, __u32 state, __u64 now) {
    struct off_cpu_thread *thread = is_wanted() ? thread_of(prev) : 0;
    if (!thread || thread->until_exec)
        return;
    end_untold(thread, prev, now);
    thread->since = 0;
    if (!is_sampled())
        return;
    thread->ran = prev->se.sum_exec_runtime;
    thread->state = !state                                                     ? OFF_CPU_PREEMPTED
                    : (state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD) ? OFF_CPU_DISK
                                                                               : OFF_CPU_SLEEP;
    thread->pid = (__u32)prev->tgid;
    thread->woken = thread->waker_tid = thread->waker_pid = 0;
    thread->waker.user = thread->waker.kernel = -1;
    thread->waker.copy = thread->waker.kind = 0;
    take_stacks(context, &thread->stacks, !state);
    __u32 tid = (__u32)prev->pid;
    const __u64 *kind = bpf_map_lookup_elem(&kinds, &tid);
    thread->stacks.kind = kind ? *kind : 0;
    thread->since = now;
}

static void come_back(struct task_struct *next, __u64 now) {
    __u32 tid = (__u32)next->pid;
    struct off_cpu_thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (thread && thread->since)
        end_wait(thread, next, now);
}

/* Forget a thread that exits, because its tid will be reused. */
static void forget(struct task_struct *dead, __u64 now) {
    __u32 tid = (__u32)dead->pid;
    struct off_cpu_thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (thread && enabled)
        end_untold(thread, dead, now);
    bpf_map_delete_elem(&threads, &tid);
    bpf_map_delete_elem(&kinds, &tid);
}

SEC("tp_btf/sched_switch")
int on_switch(__u64 *context) {
    __u64 now = bpf_ktime_get_ns();
    struct task_struct *prev = (struct task_struct *)context[1];
    __u32 state = context[0] ? 0 : state_of(context, prev); /* preempted, whatever its state */
    if (state & TASK_DEAD)
        forget(prev, now);
    else if (enabled)
        leave(context, prev, state, now);
    if (enabled)
        come_back((struct task_struct *)context[2], now);
    return 0;
}

/* Runs in the context of the waker. In an interrupt, the current thread has nothing to do with the wakeup; the kernel part of the stack shows
   that. */
SEC("tp_btf/sched_waking")
int on_waking(__u64 *context) {
    struct task_struct *woken = (struct task_struct *)context[0];
    __u32 tid = (__u32)woken->pid;
    struct off_cpu_thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (!enabled || !thread || !thread->since)
        return 0;
    __u64 waker = bpf_get_current_pid_tgid();
    take_stacks(context, &thread->waker, false);
    thread->waker_pid = waker >> 32;
    thread->waker_tid = (__u32)waker;
    thread->woken = 1;
    return 0;
}

/* Children of targets become targets. */
SEC("tp_btf/task_newtask")
int on_newtask(__u64 *context) {
    struct task_struct *task = (struct task_struct *)context[0];
    __u32 parent = (__u32)bpf_get_current_pid_tgid(), tid = (__u32)task->pid;
    if (settings.everything || !bpf_map_lookup_elem(&threads, &parent))
        return 0;
    struct off_cpu_thread fresh = {.pid = (__u32)task->tgid};
    if (bpf_map_update_elem(&threads, &tid, &fresh, BPF_ANY) != 0)
        count_trouble(OFF_CPU_NO_THREAD);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(void *unused) {
    __u32 tid = (__u32)bpf_get_current_pid_tgid();
    struct off_cpu_thread *thread = bpf_map_lookup_elem(&threads, &tid);
    if (thread)
        thread->until_exec = 0;
    return 0;
}

char licence_of_this[] SEC("license") = "Dual MIT/GPL";
