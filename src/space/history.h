/* history: the data that spaces.c builds and at.c queries. Private to this room. */
#ifndef WICK_SPACE_HISTORY_H
#define WICK_SPACE_HISTORY_H

#include "space/maps.h"

/*
 * Every change has a number, its *ordinal*: 1 for the first, and `keys[ordinal]` is when it happened. A space or
 * a thread is stored as a list of states, each valid from its ordinal on. So a query's key is
 * converted to an ordinal once, and the rest compares small integers.
 *
 * While building, states are appended to one list for all owners; sealing sorts them by owner, in linear time, so that
 * the states of owner i are items[first[i]] … items[first[i + 1] - 1], in ascending order.
 */
struct state {
    uint32_t owner;
    uint32_t ordinal;
    uint32_t value[2]; /* of a space: root, epoch; of a life: comm, space; of a tid: life */
};
struct states {
    VECTOR(struct state) list;
    uint32_t *first; /* after sealing: owners + 1 of them */
};

/* One life of a thread, and its present state while building. */
struct life {
    uint32_t leader; /* the life of its process's first thread; its own number for a leader */
    uint32_t space;
    uint32_t comm;
    uint32_t slot;
};

/* The current state of an address space. Space 0 is the kernel's. */
struct space_now {
    uint32_t root;
    uint32_t epoch;
};

struct spaces {
    struct quirks quirks;
    bool sealed;
    bool numbered;           /* the present record's key has its ordinal */
    struct key key;          /* the present record's */
    VECTOR(struct key) keys; /* [0] is before everything */
    struct maps maps;
    VECTOR(struct space_now) spaces;
    VECTOR(struct life) lives;
    VECTOR(struct space_thread) threads; /* beside `lives` */
    VECTOR(uint32_t) slots;              /* [0] unused; for each tid its present life */
    struct index by_tid;                 /* to slots */
    struct states space_states;
    struct states life_states;
    struct states slot_states;
    uint32_t user_epochs;
    uint32_t kernel_epochs;
};

uint64_t spaces_hash_tid(int32_t tid);
uint32_t spaces_slot(const struct spaces *spaces, int32_t tid); /* 0 when no record named it */

#endif
