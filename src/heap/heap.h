/*
 * heap: allocations of a program, as a library inside it tells of them.
 *
 * The library (preload/) is loaded into the target by LD_PRELOAD and writes what it records into rings in shared memory, which it gets from a socket that its environment names.
 * This side makes the rings and the socket, answers processes that ask for them, and reads records out of the rings. What is made of
 * them is the recorder's business (record).
 */
#ifndef WICK_HEAP_H
#define WICK_HEAP_H

#include <sys/types.h>

#include "base/base.h"
#include "heap/ring.h"

struct heap;

struct heap_options {
    uint64_t mean; /* bytes from sample to sample; 1: every allocation */
    bool maps;     /* mappings, too */
};

/* ERROR_DENIED: the library is not installed, or the machine does not allow it. */
struct heap *heap_open(const struct heap_options *options, struct error *error);
/* Nothing more is recorded; processes that are in the middle of it go on by themselves. */
void heap_end(struct heap *heap);
void heap_close(struct heap *heap);

/* In a child before it execs: puts the library and the socket's name into its environment, in front of what is preloaded already. */
void heap_prepare_child(const struct heap *heap);

/* To poll: a process asks for the rings; a ring is half full. */
int heap_descriptor(const struct heap *heap);
int heap_bell(const struct heap *heap);
/* Answers those that ask, if they are descendants of this process. */
void heap_answer(struct heap *heap);

/* A record, checked and copied, with its stack behind it; valid until the callback returns. */
typedef bool heap_reader(void *context, const struct heap_record *record, const uint8_t *stack,
                         struct error *error);
/* Everything in the rings, once. *busy: how full the fullest was, in percent. */
bool heap_drain(struct heap *heap, heap_reader *reader, void *context, unsigned *busy,
                struct error *error);

/* Whether a process has come to ask, so that its allocations are seen; `own`: but it has an allocator linked into it, so that none are. */
bool heap_knows(const struct heap *heap, pid_t pid, bool *own);
struct heap_losses {
    uint64_t allocations, frees; /* that found no room */
    uint64_t damaged;            /* records that made no sense */
    uint64_t mean;               /* as it is now: it doubles when allocations are lost */
};
struct heap_losses heap_losses(const struct heap *heap);

/* What an allocation of `bytes` that was recorded with this mean stands for, in bytes. At least `bytes`; exactly that from the mean upwards. */
uint64_t heap_weight(uint64_t bytes, uint64_t mean);

/* Why the allocations of a program can't be seen, if that can be told from its file: one clause, "it is a static executable". NULL: they can. */
const char *heap_refuses(const char *path);
/* The same of a program that runs, whose allocator is watched from outside: `path` is opened, `name` is what it is called. */
const char *heap_refuses_running(const char *path, const char *name);

#endif
