/*
 * Private to turn.c, which orders the threads, and watch.c, which observes them.
 */
#ifndef WICK_TRACE_QEMU_TURN_H
#define WICK_TRACE_QEMU_TURN_H

#include "trace/qemu/plugin.h"

#include <sys/types.h>

#define NOBODY UINT32_MAX
#define NEVER UINT64_MAX

enum turn_state {
    AWAY,  /* no such thread */
    MADE,  /* has not reached its first block */
    RUNS,  /* has the turn */
    WAITS, /* for the turn */
    CALLS, /* in a system call, without the turn */
    LET,   /* executes one block without the turn */
};

struct member {
    enum turn_state state;
    enum call_kind kind; /* of the call it is in; CALL_NONE: in none */
    bool in_code;        /* it waits at a point where QEMU can't stop it */
    bool is_back;        /* returned from its call, but may still wait for the lock */
    pid_t tid;
    uint64_t seen;     /* asleep when the number of calls was this */
    uint64_t grants;   /* when it made its call */
    uint64_t wakes_at; /* in instructions; 0: does not sleep */
    uint64_t since;    /* its count when it got the turn */
    pthread_cond_t go;
};

struct turn {
    bool is_on;
    bool is_pending; /* a thread waits for the turn, but not all are settled */
    pthread_mutex_t lock;
    pthread_cond_t watch;
    pthread_key_t key;
    bool is_signaled; /* a signal was sent: threads that wait for the turn must take it first */
    uint32_t holder, last;
    uint32_t keeper; /* had the turn and gets it back */
    uint32_t limit;  /* members that were used */
    uint32_t count;  /* that exist */
    uint64_t now;    /* in instructions of all */
    uint64_t calls;  /* that may have woken a thread */
    uint64_t calls_at_grant;
    uint64_t grants;
    struct member members[SHARED_THREADS];
};
extern struct turn turn;

static inline bool turn_is_on(void) {
    return __atomic_load_n(&turn.is_on, __ATOMIC_ACQUIRE);
}

static inline uint32_t turn_number(const struct member *member) {
    return (uint32_t)(member - turn.members);
}

/* Call all of these with the lock held. */
bool turn_anybody(enum turn_state state);
bool turn_is_due(const struct member *member); /* its sleep should be over */
bool turn_is_settled(const struct member *member);
/* Take the turn from its holder; give it to the next thread if all are settled, otherwise wake the watch. */
void turn_release(uint32_t number);
void turn_hand_over(void);
/* Permanently give up the order: all threads run as the host schedules them. */
void turn_give_up(void);

/* Start the watching thread; return false on failure. */
bool watch_start(void);

#endif
