/*
 * Write BPF's sums as samples at the end of the file: one for each (thread, stacks, state, waker), with the nanoseconds waited as its period.
 *
 * A sample's time is when the last of these waits ended, so that mappings and names are those of that time. Times are made unique, because a
 * waker's sample follows that of the wait it ended and is recognized by the same time.
 */
#include "record/windows.h"

#include <stdlib.h>

static const struct note_kind note_no_stack = {
    "bpf-no-stack",
    "# wait{ has|s have} no stack: too many different stacks for the kernel's table"};
static const struct note_kind note_no_copy = {
    "bpf-no-copy", "# wait{ has a frame-pointer stack|s have frame-pointer stacks}: too many "
                   "different stacks to copy them all"};
static const struct note_kind note_no_sum = {
    "bpf-no-sum",
    "# wait{ was|s were} not counted: too many different waits for the kernel's table"};
static const struct note_kind note_no_thread = {
    "bpf-no-thread", "# thread{ was|s were} not recorded: too many threads for the kernel's table"};

/* The instruction pointer's place among the copied registers. */
#if defined(__aarch64__)
enum { COPY_IP = 32 };
#else
enum { COPY_IP = 8 };
#endif
static_assert(__builtin_popcountll(USER_REGISTERS) <= OFF_CPU_REGISTERS, "a copy holds them all");

/* Header, identifier, ip, pid and tid, time, cpu, period, count; two markers with their frames; registers and their kind, the stack with its
   two sizes. */
enum {
    SAMPLE_WORDS = 8 + 2 * (1 + OFF_CPU_FRAMES) + 1 + OFF_CPU_REGISTERS + OFF_CPU_COPY_SIZE / 8 + 2
};

struct sample_writer {
    struct recording *r;
    bool copies; /* the event's samples have room for them */
    struct kernel_frames *known;
    size_t most_kernel; /* frames of the kernel's part; 0: all */
    size_t count;
    struct off_cpu_copy copy;
    uint64_t words[SAMPLE_WORDS];
};

static void put(struct sample_writer *w, uint64_t word) {
    w->words[w->count++] = word;
}

static size_t kernel_stack(const struct sample_writer *w, int stack, uint64_t *frames) {
    size_t count = sums_stack(w->r->sums, stack, frames);
    size_t own = kernel_frames_own(w->known, frames, count);
    memmove(frames, frames + own, (count - own) * sizeof *frames);
    return count - own;
}

/* Return the first address, which is the sample's. */
static uint64_t put_user(struct sample_writer *w, int stack) {
    uint64_t *words = &w->words[w->count];
    size_t count = sums_stack(w->r->sums, stack, words + 1);
    if (!count)
        return 0;
    words[0] = PERF_CONTEXT_USER;
    w->count += 1 + count;
    return words[1];
}

static uint64_t put_kernel(struct sample_writer *w, int stack) {
    uint64_t *words = &w->words[w->count];
    size_t count = kernel_stack(w, stack, words + 1);
    if (!count)
        return 0;
    words[0] = PERF_CONTEXT_KERNEL;
    w->count += 1 + (w->most_kernel && w->most_kernel < count ? w->most_kernel : count);
    return words[1];
}

/* Write a copy as the kernel does: only two zeros if there is none. Return the address. */
static uint64_t put_copy(struct sample_writer *w, uint64_t copy) {
    const size_t registers = (size_t)__builtin_popcountll(USER_REGISTERS);
    if (!w->copies || !sums_copy(w->r->sums, copy, &w->copy)) {
        if (w->copies) {
            put(w, PERF_SAMPLE_REGS_ABI_NONE);
            put(w, 0);
        }
        return 0;
    }
    size_t most = w->r->options->stack_size;
    size_t words = (w->copy.size < most ? w->copy.size : most) / 8;
    put(w, PERF_SAMPLE_REGS_ABI_64);
    for (size_t i = 0; i < registers; i++)
        put(w, w->copy.registers[i]);
    put(w, words * 8);
    memcpy(&w->words[w->count], w->copy.stack, words * 8);
    w->count += words;
    put(w, words * 8);
    return w->copy.registers[COPY_IP];
}

static bool put_sample(struct sample_writer *w, size_t event, uint32_t pid, uint32_t tid,
                       const struct off_cpu_stacks *stacks, const struct off_cpu_sum *sum,
                       uint64_t time, struct error *error) {
    enum { IP = 2, CHAIN_COUNT = 7 };
    w->copies = w->r->events.items[event].attr.sample_type & PERF_SAMPLE_STACK_USER;
    w->count = 1;
    put(w, w->r->events.items[event].ids.items[0]);
    put(w, 0);
    put(w, (uint64_t)tid << 32 | pid);
    put(w, time);
    put(w, sum->cpu);
    put(w, sum->ns);
    put(w, 0);
    uint64_t kernel = put_kernel(w, stacks->kernel);
    uint64_t user = put_user(w, stacks->user);
    w->words[CHAIN_COUNT] = w->count - CHAIN_COUNT - 1;
    uint64_t copied = put_copy(w, stacks->copy);
    w->words[IP] = kernel ? kernel : user ? user : copied;
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE,
                                       .misc =
                                           kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
                                       .size = (uint16_t)(w->count * sizeof *w->words)};
    memcpy(w->words, &header, sizeof header);
    return sink_records(&w->r->sink, (const uint8_t *)w->words, header.size, error);
}

/* A wakeup in an interrupt has no waker: write the kernel part down to the interrupt's entry, and thread 0. */
static bool put_waker(struct sample_writer *w, const struct summed *wait, uint64_t time,
                      struct error *error) {
    const struct off_cpu_key *key = &wait->key;
    struct off_cpu_stacks stacks = key->waker;
    uint64_t frames[OFF_CPU_FRAMES];
    size_t count = kernel_stack(w, stacks.kernel, frames);
    w->most_kernel = kernel_frames_interrupt(w->known, frames, count);
    if (w->most_kernel) {
        stacks.user = -1;
        stacks.copy = 0;
    }
    return put_sample(w, w->r->first_made + OFF_CPU_STATES, w->most_kernel ? 0 : key->waker_pid,
                      w->most_kernel ? 0 : key->waker_tid, &stacks, &wait->sum, time, error);
}

static bool put_wait(struct sample_writer *w, const struct summed *wait, uint64_t time,
                     struct error *error) {
    const struct off_cpu_key *key = &wait->key;
    size_t first = w->r->first_made;
    w->most_kernel = 0;
    interpreted_put_kind(w->r->sink.interpreted, key->stacks.kind, key->tid, time);
    return put_sample(w, first + key->state, key->pid, key->tid, &key->stacks, &wait->sum, time,
                      error) &&
           (!key->woken || put_waker(w, wait, time, error));
}

static void note_troubles(struct recording *r) {
    const struct note_kind *kinds[OFF_CPU_TROUBLES] = {
        [OFF_CPU_NO_STACK] = &note_no_stack,
        [OFF_CPU_NO_COPY] = &note_no_copy,
        [OFF_CPU_NO_SUM] = &note_no_sum,
        [OFF_CPU_NO_THREAD] = &note_no_thread,
    };
    for (int i = 0; i < OFF_CPU_TROUBLES; i++) {
        uint64_t count = sums_trouble(r->sums, i);
        if (count)
            notes_add(&r->result->notes, kinds[i], count, 0, NULL);
    }
}

static bool write_waits(struct recording *r, const summed_list *list, struct error *error) {
    struct sample_writer *writer = memory_zero(1, sizeof *writer);
    writer->r = r;
    uint64_t time = 0;
    bool fine = true;
    writer->known = kernel_frames_new();
    interpreted_look(r->sink.interpreted);
    for (size_t i = 0; fine && r->sink.knows_processes && i < list->count; i++)
        fine = sink_introduce(&r->sink, (pid_t)list->items[i].key.waker_pid, error);
    for (size_t i = 0; fine && i < list->count; i++) {
        time = list->items[i].sum.last > time ? list->items[i].sum.last : time + 1;
        fine = put_wait(writer, &list->items[i], time, error);
    }
    kernel_frames_free(writer->known);
    free(writer);
    return fine;
}

bool off_cpu_write(struct recording *r, struct error *error) {
    if (!r->sums)
        return true;
    summed_list list = {0};
    sums_read(r->sums, &list);
    bool fine = write_waits(r, &list, error);
    note_troubles(r);
    vector_release(&list);
    return fine;
}

/* A wait belongs to the window in which it ends. */
bool off_cpu_turn(struct recording *r, struct error *error) {
    const struct window *window = r->sink.window;
    if (!r->sums || !window || window->cut < window->due)
        return true;
    summed_list list = {0};
    sums_take(r->sums, &list);
    bool fine = write_waits(r, &list, error);
    sums_make_room(r->sums);
    vector_release(&list);
    return fine;
}
