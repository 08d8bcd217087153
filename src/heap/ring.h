/*
 * What the recorder and the library inside the target share: the rings, the records in them, and the first words on the socket.
 *
 * The library is in the target's hands, and so is everything that it writes: the recorder copies a record out of a ring before it looks at
 * it, and checks every number.
 */
#ifndef WICK_HEAP_RING_H
#define WICK_HEAP_RING_H

#include <stdint.h>

enum { HEAP_RINGS = 4, HEAP_STACK_MOST = 16384, HEAP_HEADER_SIZE = 4096 };
enum { HEAP_MAGIC = 0x48434957, HEAP_VERSION = 2 };

/* The registers that unwinding needs, at the place in the hook that asked for the sample. */
#if defined(__aarch64__)
enum { HEAP_SP, HEAP_IP, HEAP_X19, HEAP_REGISTERS = HEAP_X19 + 11 }; /* x19 … x29 */
#else
enum { HEAP_SP, HEAP_IP, HEAP_BX, HEAP_BP, HEAP_R12, HEAP_R13, HEAP_R14, HEAP_R15, HEAP_REGISTERS };
#endif

/* A lock that is tried and never waited for; its value is the thread that has it, so that the recorder can free one whose thread was killed. `head` is
   where the next record goes, `tail` the first that was not read; both only grow. */
struct heap_ring {
    _Alignas(64) uint32_t lock;
    uint64_t head;
    _Alignas(64) uint64_t tail;
    uint32_t room;    /* a futex: grows when the recorder has made room */
    uint32_t waiting; /* threads that wait for it */
};

/* The first page; the rings' bytes follow it. */
struct heap_shared {
    uint32_t magic, version;
    uint64_t ring_size; /* a power of two */
    uint64_t mean;      /* bytes from sample to sample; 1: every allocation. It only grows. */
    uint32_t ended;     /* nobody reads any more */
    uint32_t beat;      /* grows as long as the recorder lives */
    uint32_t bell;      /* a futex: grows when a ring is half full */
    uint32_t maps;      /* mappings are recorded, too */
    uint64_t lost;      /* allocations that were to be recorded and found no room */
    uint64_t lost_frees;
    struct heap_ring rings[HEAP_RINGS];
};
_Static_assert(sizeof(struct heap_shared) <= HEAP_HEADER_SIZE, "one page");

enum heap_kind {
    HEAP_ALLOC = 1, /* with registers and the stack */
    HEAP_AGAIN,     /* its stack was sent with an earlier one */
    HEAP_FREE,
    /* Mappings, all of them, with their exact size. Each unmaps what was at its place. */
    HEAP_MAP,
    HEAP_MAP_AGAIN,
    HEAP_REMAP, /* by mremap(): the thread's last HEAP_UNMAP says where it was */
    HEAP_REMAP_AGAIN,
    HEAP_UNMAP, /* a range: of parts of mappings, of several, of what is no mapping of ours */
};

/* As it stands in a ring. A free ends before `bytes`, HEAP_UNMAP before `mean`, those whose stack was sent before `registers`. */
struct heap_record {
    uint32_t size; /* of all of it, with the stack: a multiple of 8 */
    uint16_t kind;
    uint16_t cpu;
    int32_t pid, tid;
    uint64_t time; /* CLOCK_MONOTONIC: after the allocation, before the free */
    uint64_t address;
    uint64_t bytes; /* asked for; 1 if none were */
    uint64_t mean;  /* when the thread decided to take this one */
    uint64_t stack; /* what HEAP_AGAIN calls it; 0: nothing does */
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

/* The library begins, the recorder answers with the descriptor of the rings. */
struct heap_hello {
    uint32_t magic, version;
    int32_t pid;        /* as the process calls itself */
    uint32_t own_hooks; /* the executable has a malloc of its own: nothing will be seen */
};
struct heap_welcome {
    uint32_t magic, version;
    int32_t pid; /* as the recorder sees it */
    uint32_t padding;
    uint64_t size; /* of all that is to be mapped */
};

#define HEAP_ENVIRONMENT "WICK_HEAP"

#endif
