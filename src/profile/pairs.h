/*
 * Private to the room: what begins and ends. A wait begins when a thread leaves the CPU and ends when it is back; a system call begins when it
 * is entered and ends when it returns; an allocation, made and freed, is of the same shape.
 *
 * Each has a key (a thread's id, an address) under which at most one is open. Beginnings and ends are handed over in order of time within a key. What was
 * lost is the caller's to judge: a beginning where one is open, and an end where none is, are told, not mended.
 *
 * Costs a look into an index for each beginning and each end, and 48 bytes for each key that ever was.
 */
#ifndef WICK_PROFILE_PAIRS_H
#define WICK_PROFILE_PAIRS_H

#include "base/base.h"

#define NO_SAMPLE UINT64_MAX

struct pair {
    uint64_t key;
    uint64_t began;
    uint64_t sample; /* that tells where it began, as the caller numbers them, or NO_SAMPLE */
    uint64_t ender;  /* what is known to end it before it has: the caller's; 0: nothing */
    int64_t kind;    /* why a thread waits, which call it is in: the caller's */
    bool is_open;
};

/* Zero-initialised is empty. */
struct pairs {
    VECTOR(struct pair) all; /* one for each key */
    struct index index;      /* by key: numbers are places + 1 */
};

/* The pair of this key that is open, or NULL. Good until the next beginning. */
struct pair *pairs_open(const struct pairs *pairs, uint64_t key);
/* Opens the pair of a key, without sample, ender and kind. Returns true if one was open: then that is copied to *torn, if it is not NULL. *begun is good until
   the next beginning. */
bool pairs_begin(struct pairs *pairs, uint64_t key, uint64_t time, struct pair **begun,
                 struct pair *torn);
/* Closes the pair of a key and copies it to *ended. False: none was open. */
bool pairs_end(struct pairs *pairs, uint64_t key, struct pair *ended);
/* The next pair that is open, in the order in which keys were met; NULL: no more. *at is 0 at first. */
const struct pair *pairs_next_open(const struct pairs *pairs, size_t *at);
void pairs_release(struct pairs *pairs);

#endif
