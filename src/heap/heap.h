/*
 * heap: receive the allocations of a program from a library inside it.
 *
 * The library (preload/) is loaded into the target by LD_PRELOAD. It gets rings in shared memory from a socket named in its environment and
 * writes its records there. This room makes the rings and the socket, answers processes that ask for the rings, and reads their records.
 * Room record turns them into a recording.
 */
#ifndef WICK_HEAP_H
#define WICK_HEAP_H

#include <sys/types.h>

#include "base/base.h"
#include "heap/ring.h"

struct heap;

struct heap_options {
    uint64_t mean; /* mean bytes between samples; 1: every allocation */
    bool maps;     /* record mappings, too */
};

/* Fail with ERROR_DENIED if the library is not installed or the machine does not allow it. */
struct heap *heap_open(const struct heap_options *options, struct error *error);
/* Stop recording. Target processes go on undisturbed. */
void heap_end(struct heap *heap);
void heap_close(struct heap *heap);

/* Call in a child before exec: put the library, before any other preloaded one, and the socket's name into the environment. */
void heap_prepare_child(const struct heap *heap);

/* Descriptors to poll: readable when a process asks for the rings, and when a ring is half full. */
int heap_descriptor(const struct heap *heap);
int heap_bell(const struct heap *heap);
/* Send the rings to the processes that asked, if they are descendants of this process. */
void heap_answer(struct heap *heap);

/* Take a record, checked and copied, and its stack; both are valid during the call. */
typedef bool heap_reader(void *context, const struct heap_record *record, const uint8_t *stack,
                         struct error *error);
/* Read everything in the rings once. Set *busy to the fill level of the fullest ring, in per cent. */
bool heap_drain(struct heap *heap, heap_reader *reader, void *context, unsigned *busy,
                struct error *error);

/* Whether a process asked for the rings, so that its allocations are recorded. *own: it has an allocator of its own linked in, so none are. */
bool heap_knows(const struct heap *heap, pid_t pid, bool *own);
/* The processes that asked, in this order; one that executes a program asks again. Return false if there are no more than I. */
struct heap_asker {
    pid_t pid;
    uint64_t time;      /* CLOCK_MONOTONIC */
    bool has_allocator; /* of its own: no allocation is seen */
};
bool heap_asker(const struct heap *heap, size_t i, struct heap_asker *asker);
struct heap_losses {
    uint64_t allocations, frees; /* dropped: no room */
    uint64_t damaged;            /* invalid records */
    uint64_t mean;               /* the current one: it doubles when allocations are lost */
};
struct heap_losses heap_losses(const struct heap *heap);

/* Return how many bytes a sampled allocation of `bytes` stands for: at least `bytes`, and exactly `bytes` if it is not below the mean. */
uint64_t heap_weight(uint64_t bytes, uint64_t mean);

/* Return why the allocations of a program can't be recorded, judging by its file, as a clause: "it is a static executable". NULL: they can. */
const char *heap_refuses(const char *path);
/* The same for a running program whose allocator is watched from outside. `path` is the file to open, `name` the name to print. */
const char *heap_refuses_running(const char *path, const char *name);
/* Runtimes that keep objects in their own arenas, outside malloc. */
enum heap_arenas {
    HEAP_NO_ARENAS,
    HEAP_PYTHON, /* objects of up to 512 bytes */
    HEAP_NODE,   /* all objects of JavaScript */
    HEAP_JAVA,   /* all objects of Java */
    HEAP_GO,     /* all that Go code allocates */
    HEAP_ARENAS
};
enum heap_arenas heap_arenas_of(pid_t pid);
/* Return how many of the processes that asked for the rings use such arenas. */
uint64_t heap_with_arenas(const struct heap *heap, enum heap_arenas arenas);

#endif
