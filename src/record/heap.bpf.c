/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Allocations of a process that runs already: a program on uprobes of its allocator's functions.
 *
 * Each thread counts down bytes, as in the preloaded library (heap/preload/sample.c). Whether a call is taken is decided when the function is entered; its
 * stack is copied when it returns, for only then the block's address is known. The frames above are the same then, and so are the registers that a function
 * has to keep. A free is told of only if its allocation was.
 *
 * One function of an allocator may call another (realloc calls malloc): what happens inside a call that is being watched is that call's.
 *
 * It runs with preemption on, so nothing is kept per CPU: a copy is made right in the ring.
 */
#include "bpf_types.h"

#include <bpf/bpf_helpers.h>
#include <stdbool.h>

#include "heap_bpf.h"

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_RINGBUF = 27, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_ANY = 0, BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_AVAIL_DATA = 0, BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

struct task_struct;

/* A thread. */
struct state {
    __s64 countdown;
    __u64 mean; /* that it was drawn with; 0: it was not */
    /* the call that is being watched: */
    __u64 sp;       /* 0: none */
    __u64 ip, back; /* where it was entered, and where it returns to */
    __u64 size;
    __u64 sample_mean;       /* 0: it is not taken */
    __u64 result;            /* posix_memalign: where the address goes */
    __u64 freed, freed_time; /* realloc: a recorded block that it gives up */
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

/* Apart, so that a flood of allocations loses no free. */
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
    return which == 0 ? r->di : which == 1 ? r->si : r->dx;
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

/* Where the function that was just entered returns to. */
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
    return which == 0 ? r->regs[0] : which == 1 ? r->regs[1] : r->regs[2];
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

/* Without the link register the function's own frame can't be unwound: it begins with the caller. */
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

/* The logarithm of `x` to the base 2, of 20 binary places; x is not 0. */
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

/* Exponentially distributed: -ln(u) * mean. */
static __s64 draw_gap(__u64 mean) {
    enum { LN_2 = 726817 }; /* of 20 binary places */
    __u32 drawn = bpf_get_prandom_u32();
    __u64 bits = (32ull << 20) - logarithm(drawn ? drawn : 1);
    return (__s64)(mean * (bits * LN_2 >> 20) >> 20) + 1;
}

/* The mean that it is taken with; 0: it is not. */
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

static __u64 size_of(const struct pt_regs *r, __u32 kind) {
    __u64 size = kind == CATCH_CALLOC                             ? argument(r, 0) * argument(r, 1)
                 : kind == CATCH_REALLOCARRAY                     ? argument(r, 1) * argument(r, 2)
                 : kind == CATCH_POSIX_MEMALIGN                   ? argument(r, 2)
                 : kind == CATCH_REALLOC || kind == CATCH_ALIGNED ? argument(r, 1)
                                                                  : argument(r, 0);
    return size;
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

/* Up to where it ends: what lies above is not mapped. */
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

static void take(const struct pt_regs *r, const struct state *s, __u64 address) {
    struct caught *record = bpf_ringbuf_reserve(&ring, sizeof *record, 0);
    if (!record) {
        __sync_fetch_and_add(&variables.lost, 1);
        return;
    }
    fill_head(&record->head, CAUGHT_ALLOC, bpf_ktime_get_ns(), address);
    record->bytes = s->size ? s->size : 1;
    record->mean = s->sample_mean;
    copy_registers(record, r, s);
    copy_stack(record, s->sp);
    if (BACK_IS_ON_STACK && record->stack_size >= 8) /* the kernel has put its own there */
        *(__u64 *)record->stack = s->back;
    if (!remember(address)) {
        __sync_fetch_and_add(&variables.lost, 1);
        bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
        return;
    }
    bool filling = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= CATCH_RING / 4;
    bpf_ringbuf_submit(record, filling ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* ---- calls ---- */

static struct state *state_of_thread(void) {
    return bpf_task_storage_get(&threads, (void *)bpf_get_current_task_btf(), 0,
                                BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Whether its end has to be seen. */
static bool enter(const struct pt_regs *r, struct state *s, __u64 cookie) {
    __u32 kind = cookie & 0xff;
    __u64 sp = sp_of(r), size = size_of(r, kind);
    __sync_fetch_and_add(&variables.calls, 1);
    if (s->sp && sp <= s->sp)
        return false; /* inside another */
    s->sp = 0;
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
    s->sp = sp;
    s->ip = ip_of(r);
    s->back = back_of(r);
    s->size = size;
    s->result = argument(r, 0);
    s->kind = kind;
    return true;
}

static void leave(const struct pt_regs *r, struct state *s) {
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
        take(r, s, address);
    s->sp = 0;
}

static bool is_back(const struct pt_regs *r, const struct state *s) {
    return s->sp && ip_of(r) == s->back;
}

/* Where the kernel asks at the beginning of a call whether its end is wanted: 0 says so. */
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
