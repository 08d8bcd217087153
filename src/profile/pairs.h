/*
 * Private to this room: pair beginnings with ends. A wait begins when a thread leaves the CPU and ends when it is back; a system call begins when it
 * is entered and ends when it returns; an allocation begins when it is made and ends when it is freed.
 *
 * Each pair has a key (a thread's id, an address); at most one pair of a key is open. Within a key, beginnings and ends must be in time order. If
 * records were lost, a pair may begin while one is open, or end while none is; this is reported, and the caller decides what it means.
 *
 * Costs an index lookup for each beginning and each end, and 48 bytes for each key ever used.
 */
#ifndef WICK_PROFILE_PAIRS_H
#define WICK_PROFILE_PAIRS_H

#include "base/base.h"

#define NO_SAMPLE UINT64_MAX

struct pair {
    uint64_t key;
    uint64_t began;
    uint64_t sample; /* the caller's number of the sample where it began, or NO_SAMPLE */
    uint64_t ender;  /* for the caller: what will end it, known before it ends; 0: unknown */
    int64_t kind;    /* for the caller: why a thread waits, or which call it is in */
    bool is_open;
};

/* Zero-initialised is empty. */
struct pairs {
    VECTOR(struct pair) all; /* one for each key */
    struct index index;      /* by key: numbers are places + 1 */
};

/* Return the open pair of a key, or NULL. It is valid until the next pairs_begin(). */
struct pair *pairs_open(const struct pairs *pairs, uint64_t key);
/* Open the pair of a key, without sample, ender and kind. If one was open, copy it to *torn, unless that is NULL, and return true. *begun is valid
   until the next call. */
bool pairs_begin(struct pairs *pairs, uint64_t key, uint64_t time, struct pair **begun,
                 struct pair *torn);
/* Close the pair of a key and copy it to *ended. Return false if none was open. */
bool pairs_end(struct pairs *pairs, uint64_t key, struct pair *ended);
/* Return the next open pair, in the order in which keys first appeared; NULL at the end. Set *at to 0 before the first call. */
const struct pair *pairs_next_open(const struct pairs *pairs, size_t *at);
void pairs_release(struct pairs *pairs);

#endif
