/*
 * Write records to rings. A thread starts with the ring of its CPU and tries the others if that one is locked; it never waits for a lock.
 * Records that must not be lost wait for room, and for a lock if all are held; they give up when the recorder is gone.
 */
#include "heap/preload/preload.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>

enum { RESERVE = 8192 }; /* bytes of a ring kept for records that must not be lost */
enum { SPINS = 200, SHORT_WAITS = 3, WAIT_NS = 20000000 };

static void put(uint8_t *bytes, uint64_t at, const void *from, size_t size) {
    size_t mask = shared->ring_size - 1, start = at & mask, first = shared->ring_size - start;
    if (LIKELY(size <= first)) {
        __builtin_memcpy(bytes + start, from, size);
        return;
    }
    __builtin_memcpy(bytes + start, from, first);
    __builtin_memcpy(bytes, (const uint8_t *)from + first, size - first);
}

static bool lock_try(struct heap_ring *ring) {
    uint32_t none = 0;
    return __atomic_load_n(&ring->lock, __ATOMIC_RELAXED) == 0 &&
           __atomic_compare_exchange_n(&ring->lock, &none, (uint32_t)thread.tid, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Wake the recorder, once for each half of a ring. */
static void ring_bell(void) {
    __atomic_add_fetch(&shared->bell, 1, __ATOMIC_RELEASE);
    system_call(SYS_futex, (long)&shared->bell, FUTEX_WAKE, 1, 0, 0, 0);
}

enum outcome { DONE, NO_ROOM, NO_LOCK };

static enum outcome ring_try(unsigned number, const struct heap_record *record, size_t fixed,
                             const void *stack, enum patience patience) {
    struct heap_ring *ring = &shared->rings[number];
    if (!lock_try(ring))
        return NO_LOCK;
    uint64_t head = ring->head, used = head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
    uint8_t *bytes = ring_bytes + number * shared->ring_size;
    bool fits =
        used <= shared->ring_size &&
        shared->ring_size - used >= record->size + (patience > PATIENCE_SHORT ? 0 : RESERVE);
    if (fits) {
        put(bytes, head, record, fixed);
        if (record->size > fixed)
            put(bytes, head + fixed, stack, record->size - fixed);
        __atomic_store_n(&ring->head, head + record->size, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&ring->lock, 0, __ATOMIC_RELEASE);
    if (fits && used < shared->ring_size / 2 && used + record->size >= shared->ring_size / 2)
        ring_bell();
    return fits ? DONE : NO_ROOM;
}

static enum outcome rings_try(unsigned cpu, const struct heap_record *record, size_t fixed,
                              const void *stack, enum patience patience) {
    enum outcome worst = NO_ROOM;
    for (unsigned i = 0; i < HEAP_RINGS; i++) {
        enum outcome outcome = ring_try((cpu + i) % HEAP_RINGS, record, fixed, stack, patience);
        if (outcome == DONE)
            return DONE;
        worst = outcome == NO_LOCK ? NO_LOCK : worst;
    }
    return worst;
}

/* Wait until the recorder has read something, or briefly. */
static void wait_for_room(struct heap_ring *ring) {
    struct timespec moment = {.tv_nsec = WAIT_NS};
    uint32_t room = __atomic_load_n(&ring->room, __ATOMIC_ACQUIRE);
    __atomic_add_fetch(&ring->waiting, 1, __ATOMIC_SEQ_CST);
    ring_bell();
    if (shared->ring_size - (ring->head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) <
        shared->ring_size / 2)
        system_call(SYS_futex, (long)&ring->room, FUTEX_WAIT, room, (long)&moment, 0, 0);
    __atomic_sub_fetch(&ring->waiting, 1, __ATOMIC_SEQ_CST);
}

static void wait_for_lock(void) {
    struct timespec moment = {.tv_nsec = 50000};
    system_call(SYS_nanosleep, (long)&moment, 0, 0, 0, 0, 0);
}

/* After a wait for the recorder timed out, don't wait again until its beat changes. */
static uint32_t silent_since = UINT32_MAX;

static bool may_wait(enum patience patience, unsigned waits, uint32_t *beat, uint64_t *since) {
    uint32_t current = __atomic_load_n(&shared->beat, __ATOMIC_RELAXED);
    if (patience == PATIENCE_LONG)
        return recorder_lives(beat, since);
    bool silent = __atomic_load_n(&silent_since, __ATOMIC_RELAXED) == current;
    if (!silent && waits == SHORT_WAITS)
        __atomic_store_n(&silent_since, current, __ATOMIC_RELAXED);
    return !silent && waits < SHORT_WAITS;
}

bool ring_put(const struct heap_record *record, size_t fixed, const void *stack,
              enum patience patience) {
    int current = sched_getcpu();
    unsigned cpu = current < 0 ? 0 : (unsigned)current;
    uint32_t beat = 0;
    uint64_t since = 0;
    for (unsigned spin = 0, waits = 0;; spin++) {
        enum outcome outcome = rings_try(cpu, record, fixed, stack, patience);
        if (outcome == DONE)
            return true;
        if (outcome == NO_LOCK && spin < SPINS)
            continue;
        if (!may_wait(patience, waits++, &beat, &since))
            return false;
        if (outcome == NO_ROOM)
            wait_for_room(&shared->rings[cpu % HEAP_RINGS]);
        else
            wait_for_lock();
    }
}
