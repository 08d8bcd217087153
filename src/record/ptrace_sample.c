/*
 * A stopped thread's registers and the top of its stack, and the sample made from them. Data is copied unchanged while the thread is stopped.
 * The reader of the file unwinds it, except for frame pointers, which are followed in the copy once the thread runs again.
 */
#include "record/ptrace.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <unistd.h>

enum { SAMPLE_MOST = 65528, SAMPLE_FIXED = 512, PAGE = 4096, MOST_FRAMES = 127 };

#if defined(__x86_64__)
typedef struct user_regs_struct machine_registers;

static void take_registers(struct capture *c, const machine_registers *r) {
    const uint64_t values[] = {r->rax, r->rbx, r->rcx,    r->rdx, r->rsi, r->rdi, r->rbp,
                               r->rsp, r->rip, r->eflags, r->cs,  r->ss,  r->r8,  r->r9,
                               r->r10, r->r11, r->r12,    r->r13, r->r14, r->r15};
    memcpy(c->registers, values, sizeof values);
    c->ip = r->rip;
    c->thread_pointer = r->fs_base;
    c->frame = r->rbp;
    c->stack_pointer = r->rsp;
}

static void take_signature(struct capture *c, pid_t tid) {
    (void)c, (void)tid;
}

/* A 32-bit program has another register layout; eip is the 13th. */
static void take_registers_32(struct capture *c, const void *registers, size_t size) {
    c->ip = size >= 52 ? load_u32((const char *)registers + 48) : 0;
}
#elif defined(__aarch64__)
typedef struct user_regs_struct machine_registers;

static void take_registers(struct capture *c, const machine_registers *r) {
    memcpy(c->registers, r->regs, 31 * sizeof(uint64_t));
    c->registers[31] = r->sp;
    c->registers[32] = r->pc;
    c->ip = r->pc;
    c->frame = r->regs[29];
    c->stack_pointer = r->sp;
}

/* The kernel removes signatures from the chains that it makes; machines without signatures don't have these masks. */
static void take_signature(struct capture *c, pid_t tid) {
    uint64_t masks[2]; /* of data, of code */
    struct iovec vector = {masks, sizeof masks};
    bool known = ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_PAC_MASK, &vector) == 0;
    c->signature = known && vector.iov_len == sizeof masks ? masks[1] : 0;
}

static void take_registers_32(struct capture *c, const void *registers, size_t size) {
    c->ip = size >= 64 ? load_u32((const char *)registers + 60) : 0;
}
#else
typedef struct {
    uint64_t none;
} machine_registers;
static void take_registers(struct capture *c, const machine_registers *r) {
    (void)c, (void)r;
}
static void take_signature(struct capture *c, pid_t tid) {
    (void)c, (void)tid;
}
static void take_registers_32(struct capture *c, const void *registers, size_t size) {
    (void)c, (void)registers, (void)size;
}
#endif

/* A slower way, for systems that deny the other one but allow ptrace. */
static ssize_t read_memory_file(pid_t tid, uint64_t address, char *to, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", tid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t got = pread(file, to, size, (off_t)address);
    close(file);
    return got;
}

/* Read in pieces of a page; what lies beyond the last mapped page is skipped. */
static size_t read_stack(pid_t tid, uint64_t address, char *to, size_t size) {
    struct iovec local = {to, size}, remote[SAMPLE_MOST / PAGE + 2];
    size_t pieces = 0;
    for (size_t done = 0; done < size; pieces++) {
        size_t piece = PAGE - (address + done) % PAGE;
        if (piece > size - done)
            piece = size - done;
        remote[pieces] = (struct iovec){(void *)(uintptr_t)(address + done), piece};
        done += piece;
    }
    ssize_t got = process_vm_readv(tid, &local, 1, remote, pieces, 0);
    if (got < 0 && (errno == EPERM || errno == ENOSYS))
        got = read_memory_file(tid, address, to, size);
    return got > 0 ? (size_t)got & ~(size_t)7 : 0;
}

bool capture_take(struct capture *c, pid_t tid, const struct record_options *options) {
    machine_registers registers = {0};
    struct iovec vector = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &vector) != 0)
        return false;
    c->stack.count = 0;
    c->thread_pointer = 0;
    if (c->interpreted)
        c->interpreted->count = 0;
    if (vector.iov_len != sizeof registers) {
        c->frame = c->stack_pointer = 0;
        c->abi = PERF_SAMPLE_REGS_ABI_NONE;
        take_registers_32(c, &registers, vector.iov_len);
        return true;
    }
    c->abi = PERF_SAMPLE_REGS_ABI_64;
    take_registers(c, &registers);
    if (options->call_graph == CALL_GRAPH_NONE)
        return true;
    if (options->call_graph == CALL_GRAPH_FP)
        take_signature(c, tid);
    size_t size = options->stack_size < SAMPLE_MOST - SAMPLE_FIXED ? options->stack_size
                                                                   : SAMPLE_MOST - SAMPLE_FIXED;
    vector_reserve(&c->stack, size);
    c->stack.count = read_stack(tid, c->stack_pointer, c->stack.items, size);
    return true;
}

void capture_move(struct capture *to, struct capture *from) {
    struct capture held = *to;
    *to = *from;
    *from = held;
}

void capture_release(struct capture *c) {
    free(c->interpreted);
    buffer_release(&c->stack);
}

/* ---- the record ---- */

static void add_pair(struct buffer *record, uint32_t low, uint32_t high) {
    buffer_put_u64(record, (uint64_t)high << 32 | low);
}

static void add_leaf(struct buffer *record, const struct capture *c) {
    buffer_put_u64(record, 2);
    buffer_put_u64(record, PERF_CONTEXT_USER);
    buffer_put_u64(record, c->ip);
}

/* Frame records are two words: the caller's frame and the return address. They must lead upwards, inside the copy. */
static void add_frames(struct buffer *record, const struct capture *c) {
    size_t count_at = record->count;
    uint64_t count = 2, frame = c->frame;
    add_leaf(record, c);
    for (; count < MOST_FRAMES && frame >= c->stack_pointer; count++) {
        uint64_t at = frame - c->stack_pointer;
        if (frame % 8 || c->stack.count < 16 || at > c->stack.count - 16)
            break;
        uint64_t caller = load_u64(c->stack.items + at + 8), up = load_u64(c->stack.items + at);
        if (!caller)
            break;
        buffer_put_u64(record, caller & ~c->signature);
        if (up <= frame) {
            count++;
            break;
        }
        frame = up;
    }
    memcpy(record->items + count_at, &count, sizeof count);
}

/* It may be signed or not: its meaning depends on where the sample was taken, which the reader of the file finds out. */
static void add_link_register(struct buffer *record, const struct capture *c) {
    buffer_put_u64(record, c->abi);
    if (c->abi != PERF_SAMPLE_REGS_ABI_NONE)
        buffer_put_u64(record, c->registers[30]);
}

/* perf unwinds only if there is a chain, even an empty one. */
static void add_unwound_later(struct buffer *record, const struct capture *c) {
    bool has_registers = c->abi != PERF_SAMPLE_REGS_ABI_NONE;
    if (has_registers)
        buffer_put_u64(record, 0);
    else
        add_leaf(record, c);
    buffer_put_u64(record, c->abi);
    if (has_registers)
        buffer_add(record, (struct text){(const char *)c->registers,
                                         8 * (size_t)__builtin_popcountll(USER_REGISTERS)});
    buffer_put_u64(record, c->stack.count);
    if (!c->stack.count)
        return;
    buffer_add(record, buffer_text(&c->stack));
    buffer_put_u64(record, c->stack.count);
}

void put_sample(struct sampler *s, struct tracee *tracee, const struct capture *c, uint64_t id,
                uint64_t period) {
    struct buffer *record = &s->record;
    uint64_t type = s->r->events.items[0].attr.sample_type;
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .misc = PERF_RECORD_MISC_USER};
    record->count = 0;
    buffer_add(record, (struct text){(const char *)&header, sizeof header});
    if (type & PERF_SAMPLE_IDENTIFIER)
        buffer_put_u64(record, id);
    buffer_put_u64(record, c->ip);
    add_pair(record, (uint32_t)tracee->process->pid, (uint32_t)tracee->tid);
    buffer_put_u64(record, s->r->sink.time);
    add_pair(record, tracee->cpu, 0);
    buffer_put_u64(record, period);
    if (type & PERF_SAMPLE_STACK_USER)
        add_unwound_later(record, c);
    else if (type & PERF_SAMPLE_CALLCHAIN)
        add_frames(record, c);
    if (LINK_REGISTER && type & PERF_SAMPLE_REGS_USER && !(type & PERF_SAMPLE_STACK_USER))
        add_link_register(record, c);
    ((struct perf_event_header *)record->items)->size = (uint16_t)record->count;
    if (c->interpreted && c->interpreted->count)
        interpreted_put(s->r->sink.interpreted, c->interpreted, s->r->sink.time);
    if (!sink_records(&s->r->sink, (const uint8_t *)record->items, record->count, s->error))
        sampler_fail(s);
}
