/*
 * libwick-heap.so: what lives inside the target.
 *
 * It is loaded by LD_PRELOAD in front of every allocator. A hook calls the real function and subtracts the size from a countdown of its thread;
 * below zero the allocation is taken: its registers and stack go into a shared ring, to be unwound outside. Nothing here allocates, takes a lock that
 * another holds, unwinds, or asks the dynamic linker for anything, so that nothing here can deadlock. It is linked with no library and uses few functions
 * of libc, none of them newer than glibc 2.17: all system calls are made directly, which also leaves errno alone.
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
void real_find(void); /* all of them; from then on their pointers are there */
/* One by its name, in the libraries behind this one; NULL: none has it. *allocators: it is in the library that has malloc. */
void *real_find_one(const char *name, bool *allocators);
bool real_is_in_executable(const char *name);
bool real_is_allocator(const void *code); /* it belongs to the library that has malloc */

/* ---- process.c: the recorder, and which process this is ---- */

struct process {
    uint32_t state; /* wiped by a fork */
    int32_t pid;    /* as it calls itself */
    int32_t shown;  /* as the recorder calls it */
};
extern struct process *process;
extern struct heap_shared *shared; /* NULL: nobody records */
extern uint8_t *ring_bytes;
/* Whether somebody records: connects the first time and after a fork. Costs two loads. */
bool process_is_recorded(void);
bool process_is_known(
    void); /* the same, but for a process that has just been forked or never connected */
bool process_is_hopeless(void);                       /* nobody records it, and nobody will */
bool recorder_lives(uint32_t *beat, uint64_t *since); /* as far as its beats tell */

/* ---- sample.c ---- */

struct registers {
    uint64_t word[HEAP_REGISTERS];
};

struct thread {
    int64_t countdown; /* the hooks'; between them it is not negative */
    int64_t rest;      /* bytes to let pass when that is used up */
    uint64_t mean;     /* that they were drawn with */
    uint64_t random;
    bool inside;
    int32_t pid;           /* of the process that the countdown was drawn in */
    int32_t tid, named_in; /* and of that it was asked in */
    uintptr_t verified;    /* down to here the stack is known to be readable, up to its top */
};
extern __thread struct thread thread __attribute__((tls_model("initial-exec")));

/* entry.c: an allocation is to be recorded that `caller` asked for: takes the registers as they are where it is called and goes on in heap_sample(). */
void heap_take(void *address, size_t size, enum heap_kind kind, const void *caller);
void heap_sample(void *address, size_t size, const struct registers *registers, enum heap_kind kind,
                 const void *caller);
/* The address may be one that was recorded. Returns the time for heap_freed(), 0: it was not. */
uint64_t heap_forget(void *address);
void heap_freed(void *address, uint64_t time);
void heap_remember(void *address); /* heap_forget() was wrong: it lives on */
/* A range is mapped no longer since `time`. */
void heap_unmapped(void *address, size_t size, uint64_t time);

/* ---- table.c: the addresses that were recorded ---- */

enum { FILTER_SIZE = 1 << 17 };
extern uint8_t filter[FILTER_SIZE];
/* Blocks that lie beside each other have slots beside each other, so that a program which stays in one part of its heap stays in one part of the filter. */
static inline size_t filter_slot(const void *address) {
    uintptr_t unit = (uintptr_t)address >> 4;
    return (unit ^ (unit / FILTER_SIZE) * 0x9e3779b1u) & (FILTER_SIZE - 1);
}
/* Wrong for few that were not recorded, and for none that was. */
static inline bool filter_may_have(const void *address) {
    return UNLIKELY(__atomic_load_n(&filter[filter_slot(address)], __ATOMIC_RELAXED));
}
void table_prepare(void);          /* while everything is permitted */
bool table_add(uintptr_t address); /* false: no room */
bool table_remove(uintptr_t address);
void table_clear(void);
void filter_take_all(void); /* from now on it may have any */

/* ---- what the hooks do ---- */

/* Counts an allocation down; false: it is for heap_sample() to count and perhaps to take. */
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

/* After the real function, if passes() was asked before it: then the call that passes needs no frame in the hook. */
static inline __attribute__((always_inline)) void *taken(void *address, size_t size) {
    if (LIKELY(address))
        heap_take(address, size, HEAP_ALLOC, __builtin_return_address(0));
    return address;
}

/* If filter_may_have() it. */
static inline void freeing(void *address) {
    uint64_t time = heap_forget(address);
    if (LIKELY(time))
        heap_freed(address, time);
}

/* ---- stack.c ---- */

/* How many bytes from `pointer` upwards may be read, up to `most`. */
size_t stack_extent(struct thread *t, uintptr_t pointer, size_t most);

/* ---- number.c ---- */

/* Numbers the stack so that two with the same number unwind alike. */
uint64_t stack_number(const struct thread *t, const struct registers *registers, size_t size,
                      const void *caller);
bool stack_is_new(uint64_t number);   /* and from now on it is not */
void stack_was_lost(uint64_t number); /* it could not be sent: the next is new again */
void stack_saw_block(uintptr_t address);
void stack_saw_free(uintptr_t address);

/* ---- ring.c ---- */

/* How long a record may wait for room: a moment; the same, and room is kept free for it; or as long as the recorder lives. */
enum patience { PATIENCE_SHORT, PATIENCE_RESERVED, PATIENCE_LONG };
/* Puts a record (its first `fixed` bytes, then the rest from `stack`) into a ring. */
bool ring_put(const struct heap_record *record, size_t fixed, const void *stack,
              enum patience patience);

/* ---- system.h ---- */
#include "heap/preload/system.h"

#endif
