/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Allocations of a running process: a program on uprobes of its allocator's functions.
 *
 * Each thread counts down bytes, as in the preloaded library (heap/preload/sample.c). Whether to sample a call is decided on entry. The stack
 * is copied on return, because only then the block's address is known; the frames above and the callee-saved registers are the same then. A
 * free is reported only if its allocation was.
 *
 * One function of an allocator may call another (realloc calls malloc): everything inside a watched call belongs to that call.
 *
 * Mappings, if requested, are all recorded, by the rules of heap/preload/maps.c. Calls by the C library itself are recognized by their return
 * address and skipped; calls by another allocator are skipped because its functions are watched until they return.
 *
 * The program is preemptible, so nothing is kept per CPU: the copy is made directly in the ring.
 */
#include "bpf_types.h"

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "heap_bpf.h"

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_ANY = 0, BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

struct mm_struct {
    unsigned long brk;
} __attribute__((preserve_access_index));
struct task_struct {
    struct mm_struct *mm;
} __attribute__((preserve_access_index));

/* A thread. */
struct state {
    __s64 countdown;
    __u64 mean; /* used to draw it; 0: not drawn */
    /* the watched call: */
    __u64 sp;       /* 0: none */
    __u64 ip, back; /* its entry and its return address */
    __u64 size;
    __u64 sample_mean;       /* 0: not sampled */
    __u64 result;            /* posix_memalign: where the address is stored */
    __u64 freed, freed_time; /* realloc: the recorded block that it frees; or what is unmapped */
    __u64 freed_size;        /* bytes unmapped; 0: none */
    __u32 kind;
};

struct block {
    __u64 address;
    __u32 pid, unused;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct state);
} threads SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, CATCH_LIVE);
    __type(key, struct block);
    __type(value, __u8);
} live SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, CATCH_RING);
} ring SEC(".maps");

/* A separate ring, so that a flood of allocations loses no frees. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, CATCH_FREES);
} frees SEC(".maps");

struct catch_variables variables;

/* ---- what differs between machines ---- */

#if defined(__TARGET_ARCH_x86)

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs,
        flags, sp, ss;
};

static __u64 argument(const struct pt_regs *r, int which) {
    return which == 0 ? r->di : which == 1 ? r->si : which == 2 ? r->dx : r->cx;
}

static __u64 ip_of(const struct pt_regs *r) {
    return r->ip;
}

static __u64 sp_of(const struct pt_regs *r) {
    return r->sp;
}

static __u64 result_of(const struct pt_regs *r) {
    return r->ax;
}

/* Return the return address of the function just entered. */
static __u64 back_of(const struct pt_regs *r) {
    __u64 back = 0;
    bpf_probe_read_user(&back, sizeof back, (void *)r->sp);
    return back;
}

static void copy_registers(struct caught *to, const struct pt_regs *r, const struct state *s) {
    to->registers[0] = s->sp, to->registers[1] = s->ip, to->registers[2] = r->bx;
    to->registers[3] = r->bp, to->registers[4] = r->r12, to->registers[5] = r->r13;
    to->registers[6] = r->r14, to->registers[7] = r->r15;
}

enum { BACK_IS_ON_STACK = 1 };

#elif defined(__TARGET_ARCH_arm64)

struct pt_regs {
    __u64 regs[31], sp, pc, pstate;
};

static __u64 argument(const struct pt_regs *r, int which) {
    return which == 0 ? r->regs[0] : which == 1 ? r->regs[1] : which == 2 ? r->regs[2] : r->regs[3];
}

static __u64 ip_of(const struct pt_regs *r) {
    return r->pc;
}

static __u64 sp_of(const struct pt_regs *r) {
    return r->sp;
}

static __u64 result_of(const struct pt_regs *r) {
    return r->regs[0];
}

static __u64 back_of(const struct pt_regs *r) {
    return r->regs[30];
}

/* Without the link register, the function's own frame can't be unwound: unwinding starts at the caller. */
static void copy_registers(struct caught *to, const struct pt_regs *r, const struct state *s) {
    to->registers[0] = s->sp, to->registers[1] = s->back;
    to->registers[2] = r->regs[19], to->registers[3] = r->regs[20], to->registers[4] = r->regs[21];
    to->registers[5] = r->regs[22], to->registers[6] = r->regs[23], to->registers[7] = r->regs[24];
    to->registers[8] = r->regs[25], to->registers[9] = r->regs[26], to->registers[10] = r->regs[27];
    to->registers[11] = r->regs[28], to->registers[12] = r->regs[29];
}

enum { BACK_IS_ON_STACK = 0 };

#else
#error "no registers here"
#endif

/* ---- which calls are taken ---- */

/* Return the logarithm of `x` to the base 2, with 20 binary places; x is not 0. */
static __u64 logarithm(__u32 x) {
    __u64 y = x, whole = 31, part = 0;
    for (int i = 0; i < 31 && !(y & 0x80000000); i++)
        y <<= 1, whole--;
    for (int i = 0; i < 20; i++) {
        y = y * y >> 31;
        part <<= 1;
        if (y & 0x100000000)
            y >>= 1, part |= 1;
    }
    return whole << 20 | part;
}

/* Draw from an exponential distribution: -ln(u) * mean. */
static __s64 draw_gap(__u64 mean) {
    enum { LN_2 = 726817 }; /* of 20 binary places */
    __u32 drawn = bpf_get_prandom_u32();
    __u64 bits = (32ull << 20) - logarithm(drawn ? drawn : 1);
    return (__s64)(mean * (bits * LN_2 >> 20) >> 20) + 1;
}

/* Return the mean to sample it with, or 0 to skip it. */
static __u64 decide(struct state *s, __u64 size) {
    __u64 mean = variables.mean;
    if (!mean)
        return 0;
    if (!s->mean) {
        s->mean = mean;
        s->countdown = draw_gap(mean);
    }
    if (size >= s->mean)
        return s->mean;
    s->countdown -= (__s64)size;
    if (s->countdown > 0)
        return 0;
    __u64 taken = s->mean;
    s->mean = mean;
    s->countdown = draw_gap(mean);
    return taken;
}

/* Read all arguments first; otherwise the compiler computes the address to read from, which the verifier rejects. */
static __u64 size_of(const struct pt_regs *r, __u32 kind) {
    __u64 first = argument(r, 0), second = argument(r, 1), third = argument(r, 2);
    asm volatile("" : "+r"(first), "+r"(second), "+r"(third));
    return kind == CATCH_CALLOC                             ? first * second
           : kind == CATCH_REALLOCARRAY                     ? second * third
           : kind == CATCH_POSIX_MEMALIGN                   ? third
           : kind == CATCH_REALLOC || kind == CATCH_ALIGNED ? second
                                                            : first;
}

/* ---- records ---- */

static void fill_head(struct caught_free *head, __u32 kind, __u64 time, __u64 address) {
    __u64 id = bpf_get_current_pid_tgid();
    head->kind = kind;
    head->cpu = bpf_get_smp_processor_id();
    head->pid = id >> 32;
    head->tid = (__u32)id;
    head->time = time;
    head->address = address;
}

static void tell_free(__u64 address, __u64 time) {
    struct caught_free *record = bpf_ringbuf_reserve(&frees, sizeof *record, 0);
    if (!record) {
        __sync_fetch_and_add(&variables.lost_frees, 1);
        return;
    }
    fill_head(record, CAUGHT_FREE, time, address);
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static void tell_unmap(__u64 address, __u64 bytes, __u64 time) {
    struct caught_unmap *record = bpf_ringbuf_reserve(&frees, sizeof *record, 0);
    if (!record) {
        __sync_fetch_and_add(&variables.lost_frees, 1);
        return;
    }
    fill_head(&record->head, CAUGHT_UNMAP, time, address);
    record->bytes = bytes;
    bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* Copy up to the stack's end: what is above is not mapped. */
static void copy_stack(struct caught *to, __u64 sp) {
    enum { CHUNK = 1024 };
    to->stack_size = 0;
    for (int i = 0; i <= CATCH_STACK / CHUNK; i++) {
        __u64 size = to->stack_size, some = CHUNK - ((sp + size) & (CHUNK - 1));
        asm volatile("" : "+r"(size), "+r"(some));
        if (size > CATCH_STACK - CHUNK || some > CHUNK)
            return;
        if (bpf_probe_read_user(to->stack + size, (__u32)some, (void *)(sp + size)) != 0)
            return;
        to->stack_size = size + some;
    }
}

static bool remember(__u64 address) {
    struct block block = {.address = address, .pid = bpf_get_current_pid_tgid() >> 32};
    __u8 one = 1;
    return bpf_map_update_elem(&live, &block, &one, BPF_ANY) == 0;
}

static bool forget(__u64 address) {
    struct block block = {.address = address, .pid = bpf_get_current_pid_tgid() >> 32};
    return bpf_map_delete_elem(&live, &block) == 0;
}

static void take(const struct pt_regs *r, const struct state *s, __u64 address, __u32 kind) {
    struct caught *record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
    if (!record) {
        __sync_fetch_and_add(&variables.lost, 1);
        return;
    }
    fill_head(&record->head, kind, bpf_ktime_get_ns(), address);
    record->bytes = s->size ? s->size : 1;
    record->mean = s->sample_mean;
    copy_registers(record, r, s);
    copy_stack(record, s->sp);
    if (BACK_IS_ON_STACK && record->stack_size >= 8) /* the kernel has put its own there */
        *(__u64 *)record->stack = s->back;
    if (kind == CAUGHT_ALLOC && !remember(address)) {
        __sync_fetch_and_add(&variables.lost, 1);
        bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
        return;
    }
    bool filling = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= CATCH_RING / 4;
    bpf_ringbuf_submit(record, filling ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* ---- blocks ---- */

static struct state *state_of_thread(void) {
    return bpf_task_storage_get(&threads, (void *)bpf_get_current_task_btf(), 0,
                                BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static void watch(const struct pt_regs *r, struct state *s, __u32 kind, __u64 size) {
    s->sp = sp_of(r);
    s->ip = ip_of(r);
    s->back = back_of(r);
    s->size = size;
    s->result = argument(r, 0);
    s->kind = kind;
}

static bool enter_block(const struct pt_regs *r, struct state *s, __u64 cookie) {
    __u32 kind = cookie & 0xff;
    __u64 size = size_of(r, kind);
    if (kind == CATCH_NEW && size >= CATCH_UNTHROWN)
        return false;
    s->sample_mean = decide(s, size ? size : 1);
    s->freed = 0;
    if (kind == CATCH_REALLOC || kind == CATCH_REALLOCARRAY) {
        __u64 old = argument(r, 0);
        if (old && forget(old)) {
            s->freed = old;
            s->freed_time = bpf_ktime_get_ns();
        }
    }
    if (!s->sample_mean && !s->freed && !(cookie & CATCH_MAY_NEST))
        return false;
    watch(r, s, kind, size);
    return true;
}

static void leave_block(const struct pt_regs *r, struct state *s) {
    __u64 address = result_of(r);
    if (s->kind == CATCH_POSIX_MEMALIGN) {
        bool fine = (__u32)address == 0;
        address = 0;
        if (fine)
            bpf_probe_read_user(&address, sizeof address, (void *)s->result);
    }
    if (s->freed && (address || !s->size))
        tell_free(s->freed, s->freed_time);
    else if (s->freed)
        remember(s->freed);
    if (s->sample_mean && address)
        take(r, s, address, CAUGHT_ALLOC);
}

/* ---- mappings ---- */

static __u64 whole_pages(__u64 size) {
    return (size + variables.page - 1) & ~(variables.page - 1);
}

/* Whether the caller is in the probe's own file. */
static bool is_called_from_inside(const struct pt_regs *r, __u64 cookie) {
    __u64 here = ip_of(r) & ~(__u64)(CATCH_PAGE - 1);
    __u64 before = (cookie >> CATCH_BEFORE_SHIFT & CATCH_PAGES) * CATCH_PAGE;
    __u64 after = (cookie >> CATCH_AFTER_SHIFT & CATCH_PAGES) * CATCH_PAGE;
    return back_of(r) - (here - before) < before + after;
}

/* Only accessible anonymous memory counts; any other mapping ends what it overlaps. */
static bool enter_mmap(const struct pt_regs *r, struct state *s) {
    enum { MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20 };
    __u64 flags = argument(r, 3), size = whole_pages(argument(r, 1));
    bool counts = flags & MAP_ANONYMOUS && (__u32)argument(r, 2);
    if (!counts && !(flags & MAP_FIXED))
        return false;
    if (!counts)
        s->freed_size = size;
    watch(r, s, CATCH_MMAP, counts ? size : 0);
    return true;
}

static bool enter_mremap(const struct pt_regs *r, struct state *s) {
    enum { STAYS = 4 };
    if (!argument(r, 1))
        return false;
    if (!(argument(r, 3) & STAYS))
        s->freed_size = whole_pages(argument(r, 1));
    watch(r, s, CATCH_MREMAP, whole_pages(argument(r, 2)));
    return true;
}

/* Size by which the break grows; negative if it shrinks. */
static bool enter_break(const struct pt_regs *r, struct state *s, __u32 kind) {
    struct task_struct *task = (void *)bpf_get_current_task_btf();
    struct mm_struct *mm = task->mm;
    __u64 before = mm ? mm->brk : 0;
    __s64 step = (__s64)(kind == CATCH_SBRK ? argument(r, 0) : argument(r, 0) - before);
    if (!step || !before)
        return false;
    s->freed = before + (__u64)step;
    s->freed_size = step < 0 ? (__u64)-step : 0;
    watch(r, s, kind, step > 0 ? (__u64)step : 0);
    s->result = before;
    return true;
}

static bool enter_mapping(const struct pt_regs *r, struct state *s, __u64 cookie) {
    __u32 kind = cookie & 0xff;
    if (!variables.mean || is_called_from_inside(r, cookie))
        return false;
    s->sample_mean = 1;
    s->freed = argument(r, 0);
    s->freed_size = 0;
    s->freed_time = bpf_ktime_get_ns();
    if (kind == CATCH_MMAP)
        return enter_mmap(r, s);
    if (kind == CATCH_MREMAP)
        return enter_mremap(r, s);
    if (kind != CATCH_MUNMAP)
        return enter_break(r, s, kind);
    s->freed_size = whole_pages(argument(r, 1));
    watch(r, s, kind, 0);
    return true;
}

static void leave_mapping(const struct pt_regs *r, struct state *s) {
    __u64 result = result_of(r), address = result;
    bool fine =
        s->kind == CATCH_MUNMAP || s->kind == CATCH_BRK ? !(__u32)result : result != (__u64)-1;
    if (!fine)
        return;
    if (s->kind == CATCH_MMAP)
        s->freed = result;
    if (s->kind == CATCH_BRK)
        address = s->result;
    if (s->freed_size)
        tell_unmap(s->freed, s->freed_size, s->freed_time);
    if (s->size)
        take(r, s, address, s->kind == CATCH_MREMAP && s->freed_size ? CAUGHT_REMAP : CAUGHT_MAP);
}

/* ---- calls ---- */

/* Return whether the call's return must be seen. */
static bool enter(const struct pt_regs *r, struct state *s, __u64 cookie) {
    __sync_fetch_and_add(&variables.calls, 1);
    if (s->sp && sp_of(r) <= s->sp)
        return false; /* inside another */
    s->sp = 0;
    return (cookie & 0xff) < CATCH_MMAP ? enter_block(r, s, cookie) : enter_mapping(r, s, cookie);
}

static void leave(const struct pt_regs *r, struct state *s) {
    if (s->kind < CATCH_MMAP)
        leave_block(r, s);
    else
        leave_mapping(r, s);
    s->sp = 0;
}

static bool is_back(const struct pt_regs *r, const struct state *s) {
    return s->sp && ip_of(r) == s->back;
}

/* For kernels that ask on entry whether to trap the return: returning 0 requests it. */
SEC("uprobe/session")
int on_session(struct pt_regs *r) {
    struct state *s = state_of_thread();
    if (!s)
        return 1;
    if (is_back(r, s)) {
        leave(r, s);
        return 0;
    }
    return enter(r, s, bpf_get_attach_cookie(r)) ? 0 : 1;
}

SEC("uprobe/enter")
int on_enter(struct pt_regs *r) {
    struct state *s = state_of_thread();
    if (s)
        enter(r, s, bpf_get_attach_cookie(r));
    return 0;
}

SEC("uretprobe/leave")
int on_leave(struct pt_regs *r) {
    struct state *s = state_of_thread();
    if (s && is_back(r, s))
        leave(r, s);
    return 0;
}

SEC("uprobe/free")
int on_free(struct pt_regs *r) {
    __u64 address = argument(r, 0), time = bpf_ktime_get_ns();
    __sync_fetch_and_add(&variables.calls, 1);
    if (address && forget(address))
        tell_free(address, time);
    return 0;
}

char licence_of_this[] SEC("license") = "Dual MIT/GPL";
