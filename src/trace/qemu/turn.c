/*
 * The guest's threads take turns, in an order that is the same in every run.
 *
 * What threads do to each other, such as whether a lock is free or which one allocates the next part of the heap, depends on when each of
 * them runs. So from the second thread on, only the thread that has the turn executes the guest's code. It loses the turn when it makes a
 * system call that waits, and after a fixed number of instructions. The next thread is the next in a ring of those that want the turn. Which
 * threads want it must not depend on the host either, so all threads must be settled first. A thread is settled when it waits for the turn,
 * or really sleeps in the kernel; one that was just woken is not, from the moment the call that woke it has returned.
 *
 * A sleep lasts as many instructions as it has nanoseconds, and ends at once if no other thread can continue, so the clock does not decide
 * when it ends. Input from outside can't be ordered, nor can a wait that the clock ends: those are counted, and wick reports them.
 *
 * QEMU sometimes stops all threads, to discard translations, to fork or to exit. It can't stop a thread that waits for the turn between two
 * blocks. Such a thread is released for one block, at whose end QEMU stops it.
 *
 * One of the plugin's own threads watches the others (watch.c).
 */
#include "trace/qemu/turn.h"

#include <errno.h>
#include <unistd.h>

#define QUANTUM 100000

struct turn turn = {.lock = PTHREAD_MUTEX_INITIALIZER,
                    .watch = PTHREAD_COND_INITIALIZER,
                    .holder = NOBODY,
                    .keeper = NOBODY};

static uint64_t executed_by(uint32_t number) {
    return plugin.shared->threads[number].count;
}

/* ---- choosing the next --------------------------------------------------------------------- */

bool turn_is_due(const struct member *member) {
    return member->wakes_at && member->wakes_at <= turn.now;
}

bool turn_is_settled(const struct member *member) {
    switch (member->state) {
    case CALLS:
        return member->seen == turn.calls && !turn_is_due(member);
    case WAITS:
        return member->seen == turn.calls || !turn.is_signaled;
    default:
        return member->state == AWAY;
    }
}

bool turn_anybody(enum turn_state state) {
    for (uint32_t i = 0; i < turn.limit; i++)
        if (turn.members[i].state == state)
            return true;
    return false;
}

static bool all_settled(void) {
    for (uint32_t i = 0; i < turn.limit; i++)
        if (!turn_is_settled(&turn.members[i]))
            return false;
    return true;
}

static uint32_t choose(void) {
    if (turn.keeper != NOBODY)
        return turn.keeper;
    for (uint32_t i = 1; i <= turn.limit; i++) {
        uint32_t number = (turn.last + i) % turn.limit;
        const struct member *member = &turn.members[number];
        if (member->state == WAITS && member->wakes_at <= turn.now)
            return number;
    }
    return NOBODY;
}

/* Only sleeping threads can continue: advance the time to the first one's end. */
static bool advance(void) {
    uint64_t first = NEVER;
    for (uint32_t i = 0; i < turn.limit; i++) {
        const struct member *member = &turn.members[i];
        if ((member->state == WAITS || member->state == CALLS) && member->wakes_at > turn.now &&
            member->wakes_at < first)
            first = member->wakes_at;
    }
    if (first != NEVER)
        turn.now = first;
    return first != NEVER;
}

static void give(uint32_t number) {
    struct member *member = &turn.members[number];
    turn.holder = turn.last = number;
    turn.grants++;
    turn.calls_at_grant = turn.calls;
    turn.keeper = NOBODY;
    turn.is_signaled = false;
    member->state = RUNS;
    member->wakes_at = 0;
    member->since = executed_by(number);
    pthread_cond_signal(&member->go);
}

/* Call when no thread has the turn. */
void turn_hand_over(void) {
    uint32_t next = NOBODY;
    bool settled;
    do {
        settled = all_settled();
        next = settled ? choose() : NOBODY;
    } while (settled && next == NOBODY && advance());
    turn.is_pending = !settled && turn_anybody(WAITS);
    if (next != NOBODY)
        give(next);
    if (turn.is_pending)
        pthread_cond_signal(&turn.watch);
}

void turn_release(uint32_t number) {
    turn.now += executed_by(number) - turn.members[number].since;
    turn.holder = NOBODY;
}

/* Wait until it is this thread's turn, or until it is released for a block. */
static void want(uint32_t number, bool in_code) {
    struct member *member = &turn.members[number];
    struct shared_thread *thread = &plugin.shared->threads[number];
    member->state = WAITS;
    member->in_code = in_code;
    if (turn.holder == NOBODY) {
        turn_hand_over();
    } else {
        pthread_cond_signal(&turn.members[turn.holder].go); /* it may wait for threads it created */
        pthread_cond_signal(&turn.watch);
    }
    while (turn_is_on() && member->state == WAITS)
        pthread_cond_wait(&member->go, &turn.lock);
    thread->until = thread->count + (member->state == LET ? 1 : QUANTUM);
}

/* ---- called by the threads ----------------------------------------------------------------- */

void turn_over(unsigned cpu) {
    struct member *member = &turn.members[cpu];
    if (!turn_is_on()) {
        plugin.shared->threads[cpu].until = NO_ADDRESS;
        return;
    }
    pthread_mutex_lock(&turn.lock);
    if (!member->tid) {
        member->tid = gettid();
        pthread_setspecific(turn.key, member);
    }
    if (turn.holder == cpu)
        turn_release(cpu);
    want(cpu, true);
    pthread_mutex_unlock(&turn.lock);
}

static bool gives_up(enum call_kind kind) {
    return kind == CALL_WAIT || kind == CALL_TIMED || kind == CALL_OUTSIDE || kind == CALL_SLEEP ||
           kind == CALL_YIELD;
}

static bool may_wake(enum call_kind kind) {
    return kind == CALL_OUTSIDE || (kind != CALL_LOCAL && !gives_up(kind));
}

void turn_call(unsigned cpu, int64_t number, const uint64_t *arguments) {
    struct member *member = &turn.members[cpu];
    uint64_t sleeps = 0;
    if (!turn_is_on())
        return;
    pthread_mutex_lock(&turn.lock);
    if (turn.holder != cpu)
        want(cpu, false);
    member->kind = call_kind(number, arguments, &sleeps);
    member->is_back = false;
    turn.calls += may_wake(member->kind);
    turn.calls_at_grant += member->kind == CALL_OUTSIDE;
    if (gives_up(member->kind) && turn.count > 1 && turn.holder == cpu) {
        turn_release(cpu);
        member->state = CALLS;
        member->seen = NEVER;
        member->grants = turn.grants;
        member->wakes_at = member->kind == CALL_SLEEP ? turn.now + sleeps : 0;
        turn_hand_over();
    }
    pthread_mutex_unlock(&turn.lock);
}

static bool waits_outside(const struct member *member) {
    return member->state == CALLS && (member->kind == CALL_OUTSIDE || member->kind == CALL_TIMED);
}

/* The next actions of this thread might reach threads that the call woke while they are still waking up. A signal may be on its way to any
   thread. */
static bool must_settle(enum call_kind kind) {
    bool found = kind == CALL_SIGNAL;
    for (uint32_t i = 0; i < turn.limit && kind == CALL_BRIEF; i++)
        found |= turn.members[i].state == CALLS && turn.members[i].kind == CALL_OUTSIDE;
    return found && turn.count > 1;
}

/* Keep the turn, but continue only when all threads are settled. */
static void settle_all(uint32_t number, bool signaled) {
    turn_release(number);
    turn.calls++;
    turn.keeper = number;
    turn.is_signaled = signaled;
    uint64_t until = plugin.shared->threads[number].until;
    want(number, false);
    plugin.shared->threads[number].until = until; /* still the same turn */
}

/* Return true if others ran while this one waited and none of them can have woken it; or if several wait for something outside, and one of
   them came first. */
static bool was_woken_from_outside(const struct member *member, int64_t result) {
    uint32_t waiting = 0;
    if (!waits_outside(member) || member->grants == turn.grants)
        return false;
    for (uint32_t i = 0; i < turn.limit; i++)
        waiting += waits_outside(&turn.members[i]);
    if (turn.holder == NOBODY && waiting == 1)
        return false;
    return result == -ETIMEDOUT || turn.calls == turn.calls_at_grant;
}

/* The thread created last did not start. */
static void forget_made(void) {
    for (uint32_t i = 0; i < turn.limit; i++)
        if (turn.members[i].state == MADE) {
            turn.members[i].state = AWAY;
            turn.count--;
        }
}

void turn_called(unsigned cpu, int64_t result) {
    struct member *member = &turn.members[cpu];
    if (!turn_is_on())
        return;
    __atomic_store_n(&member->is_back, true, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&turn.lock);
    if (member->state == CALLS) {
        plugin.shared->unordered += was_woken_from_outside(member, result);
        turn.calls += may_wake(member->kind);
        turn.calls_at_grant += member->kind == CALL_OUTSIDE;
        if (result != 0)
            member->wakes_at = 0; /* interrupted */
        want(cpu, false);
    } else if (member->kind == CALL_MAKE) {
        if (result < 0)
            forget_made();
        while (turn_is_on() && turn_anybody(MADE))
            pthread_cond_wait(&member->go, &turn.lock);
    } else if (must_settle(member->kind)) {
        settle_all(cpu, member->kind == CALL_SIGNAL);
    }
    member->kind = CALL_NONE;
    pthread_mutex_unlock(&turn.lock);
}

/* The last thing a thread does, after its exit has taken effect on others. */
static void on_gone(void *data) {
    struct member *member = data;
    if (!turn_is_on())
        return;
    pthread_mutex_lock(&turn.lock);
    member->state = AWAY;
    turn.count--;
    if (turn.holder == turn_number(member)) {
        turn_release(turn.holder);
        turn_hand_over();
    }
    pthread_mutex_unlock(&turn.lock);
}

void turn_give_up(void) {
    plugin.shared->is_free = 1;
    __atomic_store_n(&turn.is_on, false, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < turn.limit; i++)
        pthread_cond_signal(&turn.members[i].go);
}

/* ---- beginning ---------------------------------------------------------------------------- */

/* The first thread is about to create a second one. */
static void begin(void) {
    static bool is_begun;
    struct member *first = &turn.members[0];
    if (is_begun || plugin.shared->parallel)
        return;
    is_begun = true;
    for (uint32_t i = 0; i < SHARED_THREADS; i++)
        pthread_cond_init(&turn.members[i].go, NULL);
    first->tid = gettid();
    first->kind = CALL_MAKE;
    first->state = RUNS;
    first->since = executed_by(0);
    plugin.shared->threads[0].until = first->since + QUANTUM;
    turn.holder = 0;
    turn.limit = turn.count = 1;
    turn.is_on = pthread_key_create(&turn.key, on_gone) == 0;
    pthread_setspecific(turn.key, first);
    if (turn.is_on && !watch_start())
        turn_give_up();
}

void turn_made(unsigned cpu) {
    plugin.shared->threads[cpu].until = 0;
    if (!cpu)
        return;
    begin();
    if (!turn_is_on())
        return;
    pthread_mutex_lock(&turn.lock);
    struct member *member = &turn.members[cpu];
    turn.count += member->state == AWAY;
    member->state = MADE;
    member->kind = CALL_NONE;
    member->tid = 0;
    member->wakes_at = 0;
    if (turn.limit <= cpu)
        turn.limit = cpu + 1;
    pthread_mutex_unlock(&turn.lock);
}

void turn_forked(void) {
    turn.is_on = false;
    plugin.shared->parallel = 1;
}
