/*
 * Which allocations are recorded, and how.
 *
 * A thread draws the number of bytes to skip from an exponential distribution around the mean, and samples the allocation in which they run
 * out. So an allocation of s bytes is sampled with probability 1 - exp(-s/mean), whatever else is allocated. Allocations of at least the
 * mean's size are all sampled and leave the countdown unchanged. The recorder weighs each sample by its probability.
 */
#include "heap/preload/preload.h"

__thread struct thread thread __attribute__((tls_model("initial-exec")));

enum { FAR = INT32_MAX };

/* Return the natural logarithm of 0 < x <= 1, to six digits. */
static double logarithm(double x) {
    union {
        double number;
        uint64_t bits;
    } parts = {x};
    int exponent = (int)(parts.bits >> 52) - 1023;
    parts.bits = (parts.bits & 0xfffffffffffff) | (uint64_t)1023 << 52;
    double z = (parts.number - 1) / (parts.number + 1), square = z * z;
    double sum =
        1 +
        square *
            (1 / 3. +
             square * (1 / 5. +
                       square * (1 / 7. + square * (1 / 9. + square * (1 / 11. + square / 13)))));
    return exponent * 0.6931471805599453 + 2 * z * sum;
}

static int64_t draw_gap(struct thread *t) {
    t->random ^= t->random >> 12;
    t->random ^= t->random << 25;
    t->random ^= t->random >> 27;
    uint64_t drawn = (t->random * 0x2545f4914f6cdd1du >> 11) + 1; /* 1 … 2^53 */
    return (int64_t)(-logarithm((double)drawn * 0x1p-53) * (double)t->mean) + 1;
}

/* Get the thread's id, in a new thread or a new process. */
static void thread_name(struct thread *t) {
    if (t->named_in == process->pid)
        return;
    t->named_in = process->pid;
    t->tid = (int32_t)system_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    t->verified = 0;
}

static void thread_begin(struct thread *t) {
    t->pid = process->pid;
    thread_name(t);
    t->random = (now() ^ (uint64_t)t->tid << 40 ^ (uintptr_t)t) * 0x9e3779b97f4a7c15u | 1;
}

static void set_mean(struct thread *t) {
    t->mean = __atomic_load_n(&shared->mean, __ATOMIC_RELAXED);
}

/* Set the fields that all records have. The others stay unset: fields after those that a kind needs are not sent. */
static inline void record_begin(struct heap_record *record, const struct thread *t,
                                enum heap_kind kind, void *address, uint64_t time) {
    record->kind = (uint16_t)kind;
    record->cpu = 0;
    record->pid = process->shown;
    record->tid = t->tid == process->pid ? process->shown : t->tid;
    record->time = time;
    record->address = (uintptr_t)address;
}

static void lost(uint64_t *counter) {
    static uint32_t beat;
    static uint64_t since;
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
    recorder_lives(&beat, &since); /* else this was the last attempt */
}

/* Send a stack once, and after that only its number. */
static bool send(struct heap_record *record, const struct registers *registers, size_t copied,
                 enum patience patience) {
    if (!stack_is_new(record->stack)) {
        record->kind++; /* HEAP_ALLOC becomes HEAP_AGAIN, and so on */
        record->size = HEAP_AGAIN_SIZE;
        return ring_put(record, record->size, NULL, patience);
    }
    __builtin_memcpy(record->registers, registers->word, sizeof record->registers);
    record->stack_size = copied;
    record->size = (uint32_t)(sizeof *record + copied);
    bool sent = ring_put(record, sizeof *record, (const void *)registers->word[HEAP_SP], patience);
    if (!sent)
        stack_was_lost(record->stack);
    return sent;
}
_Static_assert(HEAP_AGAIN == HEAP_ALLOC + 1 && HEAP_MAP_AGAIN == HEAP_MAP + 1 &&
                   HEAP_REMAP_AGAIN == HEAP_REMAP + 1,
               "the kind whose stack was sent before follows");

static bool send_with_stack(struct thread *t, struct heap_record *record,
                            const struct registers *registers, const void *caller,
                            enum patience patience) {
    size_t copied = stack_extent(t, registers->word[HEAP_SP], HEAP_STACK_MOST) & ~(size_t)7;
    record->stack = stack_number(t, registers, copied, caller);
    return send(record, registers, copied, patience);
}

static void take(struct thread *t, void *address, size_t size, uint64_t mean,
                 const struct registers *registers, const void *caller) {
    struct heap_record record;
    bool every = mean == 1;
    record_begin(&record, t, HEAP_ALLOC, address, now());
    record.bytes = size;
    record.mean = mean;
    stack_saw_block((uintptr_t)address);
    if (!every && !table_add((uintptr_t)address)) {
        lost(&shared->lost);
        return;
    }
    if (send_with_stack(t, &record, registers, caller, every ? PATIENCE_LONG : PATIENCE_SHORT))
        return;
    if (!every)
        table_remove((uintptr_t)address);
    lost(&shared->lost);
}

/* Keep the countdown below the mean, so that every allocation of that size or more comes here; the rest of the drawn bytes is kept beside it.
   Return false if they are used up. */
static bool refill(struct thread *t) {
    int64_t most = (int64_t)t->mean - 1;
    while (t->countdown < 0 && t->rest > 0) {
        int64_t part = t->rest < most ? t->rest : most;
        t->countdown += part;
        t->rest -= part;
    }
    return t->countdown >= 0;
}

/* Return whether to sample the allocation, and set the countdown for the next. */
static bool decide(struct thread *t, size_t size, uint64_t *mean) {
    if (t->pid != process->pid) { /* a new thread, or one in a new process */
        thread_begin(t);
        set_mean(t);
        t->rest = draw_gap(t);
        t->countdown = 0;
    }
    *mean = t->mean;
    if (t->mean == 1 || size >= t->mean)
        return true;
    t->countdown -= (int64_t)size;
    if (refill(t))
        return false;
    set_mean(t);
    t->rest = draw_gap(t);
    t->countdown = -1;
    refill(t);
    return true;
}

/* Mappings are few and large, so all are recorded. */
static void take_mapping(struct thread *t, void *address, size_t size, enum heap_kind kind,
                         const struct registers *registers, const void *caller) {
    struct heap_record record;
    thread_name(t);
    record_begin(&record, t, kind, address, now());
    record.bytes = size;
    record.mean = 1;
    if (!send_with_stack(t, &record, registers, caller,
                         shared->mean == 1 ? PATIENCE_LONG : PATIENCE_RESERVED))
        lost(&shared->lost);
}

void heap_sample(void *address, size_t size, const struct registers *registers, enum heap_kind kind,
                 const void *caller) {
    struct thread *t = &thread;
    uint64_t mean;
    if (t->inside) /* a signal handler that allocates, inside a hook */
        return;
    t->inside = true;
    size += !size;
    if (kind != HEAP_ALLOC)
        take_mapping(t, address, size, kind, registers, caller);
    else if (!process_is_recorded())
        t->countdown = process_is_hopeless() ? FAR : 0;
    else if (decide(t, size, &mean))
        take(t, address, size, mean, registers, caller);
    t->inside = false;
}

/* ---- frees ---- */

uint64_t heap_forget(void *address) {
    struct thread *t = &thread;
    if (!address || t->inside || !process_is_known())
        return 0;
    bool every = shared->mean == 1;
    if (!every && !table_remove((uintptr_t)address))
        return 0;
    thread_name(t);
    return now();
}

void heap_remember(void *address) {
    if (shared->mean > 1)
        table_add((uintptr_t)address);
}

void heap_freed(void *address, uint64_t time) {
    struct thread *t = &thread;
    struct heap_record record;
    t->inside = true;
    record_begin(&record, t, HEAP_FREE, address, time);
    record.size = HEAP_FREE_SIZE;
    bool every = shared->mean == 1;
    stack_saw_free((uintptr_t)address);
    if (!ring_put(&record, record.size, NULL, every ? PATIENCE_LONG : PATIENCE_RESERVED))
        lost(&shared->lost_frees);
    t->inside = false;
}

void heap_unmapped(void *address, size_t size, uint64_t time) {
    struct thread *t = &thread;
    struct heap_record record;
    t->inside = true;
    thread_name(t);
    record_begin(&record, t, HEAP_UNMAP, address, time);
    record.bytes = size;
    record.size = HEAP_UNMAP_SIZE;
    if (!ring_put(&record, record.size, NULL,
                  shared->mean == 1 ? PATIENCE_LONG : PATIENCE_RESERVED))
        lost(&shared->lost_frees);
    t->inside = false;
}
