/*
 * Shared between the recorder and the library inside the target: the rings, their records, and the first messages on the socket.
 *
 * The target controls the library and everything that it writes. The recorder therefore copies a record out of a ring before it looks at it,
 * and checks every number.
 */
#ifndef WICK_HEAP_RING_H
#define WICK_HEAP_RING_H

#include <stdint.h>

enum { HEAP_RINGS = 4, HEAP_STACK_MOST = 16384, HEAP_HEADER_SIZE = 4096 };
enum { HEAP_MAGIC = 0x48434957, HEAP_VERSION = 2 };

/* The registers that unwinding needs, as they were in the hook that requested the sample. */
#if defined(__aarch64__)
enum { HEAP_SP, HEAP_IP, HEAP_X19, HEAP_REGISTERS = HEAP_X19 + 11 }; /* x19 … x29 */
#else
enum { HEAP_SP, HEAP_IP, HEAP_BX, HEAP_BP, HEAP_R12, HEAP_R13, HEAP_R14, HEAP_R15, HEAP_REGISTERS };
#endif

/* A lock that is tried but never waited for. Its value is the thread that holds it, so that the recorder can release it if that thread was
   killed. `head` is where the next record goes and `tail` the first unread record; both only grow. */
struct heap_ring {
    _Alignas(64) uint32_t lock;
    uint64_t head;
    _Alignas(64) uint64_t tail;
    uint32_t room;    /* a futex: grows when the recorder has made room */
    uint32_t waiting; /* threads that wait for it */
};

/* The first page; the bytes of the rings follow it. */
struct heap_shared {
    uint32_t magic, version;
    uint64_t ring_size; /* a power of two */
    uint64_t mean;      /* mean bytes between samples; 1: every allocation. It only grows. */
    uint32_t ended;     /* the recorder stopped */
    uint32_t beat;      /* increases while the recorder lives */
    uint32_t bell;      /* a futex: grows when a ring is half full */
    uint32_t maps;      /* mappings are recorded, too */
    uint64_t lost;      /* allocations dropped because no ring had room */
    uint64_t lost_frees;
    struct heap_ring rings[HEAP_RINGS];
};
_Static_assert(sizeof(struct heap_shared) <= HEAP_HEADER_SIZE, "one page");

enum heap_kind {
    HEAP_ALLOC = 1, /* with registers and the stack */
    HEAP_AGAIN,     /* its stack was sent with an earlier one */
    HEAP_FREE,
    /* Mappings: all of them, with their exact size. Each unmaps what was at its address. */
    HEAP_MAP,
    HEAP_MAP_AGAIN,
    HEAP_REMAP, /* by mremap(): the thread's last HEAP_UNMAP has the old address */
    HEAP_REMAP_AGAIN,
    HEAP_UNMAP, /* a range: may cover parts of mappings, several of them, or none of ours */
};

/* A record in a ring. A free ends before `bytes`, HEAP_UNMAP before `mean`, and records whose stack was already sent before `registers`. */
struct heap_record {
    uint32_t size; /* of the whole record with its stack; a multiple of 8 */
    uint16_t kind;
    uint16_t cpu;
    int32_t pid, tid;
    uint64_t time; /* CLOCK_MONOTONIC: after the allocation, before the free */
    uint64_t address;
    uint64_t bytes; /* requested; 1 if that was 0 */
    uint64_t mean;  /* in effect when the thread decided to sample this one */
    uint64_t stack; /* number by which HEAP_AGAIN refers to it; 0: never */
    uint64_t registers[HEAP_REGISTERS];
    uint64_t stack_size;
    /* stack_size bytes from the stack pointer upwards */
};
enum {
    HEAP_FREE_SIZE = 32,
    HEAP_UNMAP_SIZE = 40,
    HEAP_AGAIN_SIZE = 56,
    HEAP_RECORD_MOST = sizeof(struct heap_record) + HEAP_STACK_MOST,
};

/* The library sends this first; the recorder answers with the descriptor of the rings. */
struct heap_hello {
    uint32_t magic, version;
    int32_t pid;        /* in the process's own namespace */
    uint32_t own_hooks; /* the executable has its own malloc: no allocation is seen */
};
struct heap_welcome {
    uint32_t magic, version;
    int32_t pid; /* as the recorder sees it */
    uint32_t padding;
    uint64_t size; /* of all that is to be mapped */
};

#define HEAP_ENVIRONMENT "WICK_HEAP"

#endif
