/*
 * libwick-heap.so: the library inside the target.
 *
 * LD_PRELOAD loads it before every allocator. A hook calls the real function and subtracts the size from a per-thread countdown. When the
 * countdown drops below zero, the allocation is sampled: its registers and stack go into a shared ring and are unwound outside. Nothing here
 * allocates, waits for a lock, unwinds, or calls the dynamic linker, so nothing here can deadlock. The library links with no other library
 * and uses few functions of libc, none newer than glibc 2.17. All system calls are made directly, which also leaves errno alone.
 */
#ifndef WICK_HEAP_PRELOAD_H
#define WICK_HEAP_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heap/ring.h"

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- real.c: the functions behind the hooks ---- */

struct real {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
};
extern struct real real;
void real_find(void); /* find all of them and set `real` */
/* Find one function by name in the libraries loaded after this one; return NULL if none has it. *allocators: it is in the library that has
   malloc. */
void *real_find_one(const char *name, bool *allocators);
void *real_behind(void **slot, const char *name); /* the same, looked up once: *slot keeps it */
bool real_is_in_executable(const char *name);
bool real_is_allocator(const void *code); /* whether it belongs to the library that has malloc */

/* ---- process.c: the recorder, and which process this is ---- */

struct process {
    uint32_t state; /* wiped by a fork */
    int32_t pid;    /* in its own namespace */
    int32_t shown;  /* as the recorder sees it */
};
extern struct process *process;
extern struct heap_shared *shared; /* NULL: no recorder */
extern uint8_t *ring_bytes;
/* Return whether a recorder is connected; connect on the first call and after a fork. Costs two loads. */
bool process_is_recorded(void);
bool process_is_known(
    void); /* the same, but for a process that has just been forked or never connected */
bool process_is_hopeless(void);                       /* not recorded now or later */
bool recorder_lives(uint32_t *beat, uint64_t *since); /* judging by its beats */

/* ---- sample.c ---- */

struct registers {
    uint64_t word[HEAP_REGISTERS];
};

struct thread {
    int64_t countdown; /* used by the hooks; not negative between them */
    int64_t rest;      /* bytes left to skip after the countdown */
    uint64_t mean;     /* mean used to draw them */
    uint64_t random;
    bool inside;
    int32_t pid;           /* pid when the countdown was drawn */
    int32_t tid, named_in; /* thread id, and the pid when it was read */
    uintptr_t verified;    /* the stack is known to be readable from here to its top */
};
extern __thread struct thread thread __attribute__((tls_model("initial-exec")));

/* entry.c: record an allocation requested by `caller`: save the registers at the call and continue in heap_sample(). */
void heap_take(void *address, size_t size, enum heap_kind kind, const void *caller);
void heap_sample(void *address, size_t size, const struct registers *registers, enum heap_kind kind,
                 const void *caller);
/* Forget an address that may have been recorded. Return the time for heap_freed(), or 0 if it was not recorded. */
uint64_t heap_forget(void *address);
void heap_freed(void *address, uint64_t time);
void heap_remember(void *address); /* undo heap_forget(): the block stays allocated */
/* Record that a range was unmapped at `time`. */
void heap_unmapped(void *address, size_t size, uint64_t time);

/* ---- table.c: the addresses that were recorded ---- */

enum { FILTER_SIZE = 1 << 17 };
extern uint8_t filter[FILTER_SIZE];
/* Adjacent blocks have adjacent slots, so a program that stays in one part of its heap touches one part of the filter. */
static inline size_t filter_slot(const void *address) {
    uintptr_t unit = (uintptr_t)address >> 4;
    return (unit ^ (unit / FILTER_SIZE) * 0x9e3779b1u) & (FILTER_SIZE - 1);
}
/* Return whether the address may have been recorded. There are few false positives and no false negatives. */
static inline bool filter_may_have(const void *address) {
    return UNLIKELY(__atomic_load_n(&filter[filter_slot(address)], __ATOMIC_RELAXED));
}
void table_prepare(void);          /* call before system calls are restricted */
bool table_add(uintptr_t address); /* false: no room */
bool table_remove(uintptr_t address);
void table_clear(void);
void filter_take_all(void); /* from now on, filter_may_have() is always true */

/* ---- what the hooks do ---- */

/* Count an allocation down. Return false if heap_sample() must count it and may sample it. */
static inline bool passes(size_t size) {
    uint64_t left;
    if (UNLIKELY(__builtin_sub_overflow((uint64_t)thread.countdown, size + !size, &left)))
        return false;
    thread.countdown = (int64_t)left;
    return true;
}

static inline __attribute__((always_inline)) void allocated(void *address, size_t size) {
    if (LIKELY(address) && !passes(size))
        heap_take(address, size, HEAP_ALLOC, __builtin_return_address(0));
}

/* Call after the real function if passes() was called before it: then the usual path needs no frame in the hook. */
static inline __attribute__((always_inline)) void *taken(void *address, size_t size) {
    if (LIKELY(address))
        heap_take(address, size, HEAP_ALLOC, __builtin_return_address(0));
    return address;
}

/* Call only if filter_may_have() is true. */
static inline void freeing(void *address) {
    uint64_t time = heap_forget(address);
    if (LIKELY(time))
        heap_freed(address, time);
}

/* ---- stack.c ---- */

/* Return how many bytes from `pointer` upwards can be read, at most `most`. */
size_t stack_extent(struct thread *t, uintptr_t pointer, size_t most);

/* ---- number.c ---- */

/* Return a number for the stack; two stacks with the same number unwind to the same frames. */
uint64_t stack_number(const struct thread *t, const struct registers *registers, size_t size,
                      const void *caller);
bool stack_is_new(uint64_t number);   /* and mark it as known */
void stack_was_lost(uint64_t number); /* it was not sent: make it new again */
void stack_code_changed(void);        /* equal stacks may be different ones from now on */
void stack_saw_block(uintptr_t address);
void stack_saw_free(uintptr_t address);

/* ---- ring.c ---- */

/* How long a record may wait for room: briefly; briefly, but with a reserve kept free for it; or as long as the recorder lives. */
enum patience { PATIENCE_SHORT, PATIENCE_RESERVED, PATIENCE_LONG };
/* Write a record (its first `fixed` bytes, then the rest from `stack`) to a ring. */
bool ring_put(const struct heap_record *record, size_t fixed, const void *stack,
              enum patience patience);

/* ---- system.h ---- */
#include "heap/preload/system.h"

#endif
