/*
 * The watch over threads that take turns: one of the plugin's own threads.
 *
 * Only it reads /proc, with descriptors that the guest does not see: whether threads in a system call sleep there, so that the next one can
 * have its turn, and whether the thread that has the turn sleeps though it should not. It gives up the order before the guest would hang. It
 * counts its checks, not the time: a guest that was stopped for a while has lost nothing.
 */
#include "trace/qemu/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often the watch checks the thread that has the turn. */
#define LOOK_NS 2000000
#define LOOKS_STOPPED 3 /* asleep, in no call: QEMU wants all to stop */
#define LOOKS_STOLEN 50 /* asleep in a brief call */
#define LOOKS_HOPELESS 5000
#define NAPS_SHORT 50
#define NAPS_HOPELESS 10000 /* a millisecond each */

static bool read_task(pid_t tid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)tid, name);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = descriptor < 0 ? -1 : read(descriptor, text, size - 1);
    text[got > 0 ? got : 0] = 0;
    if (descriptor >= 0)
        close(descriptor);
    return got > 0;
}

/* Return the state as in /proc: R, S, D…; X if it is gone. */
static char state_of(pid_t tid) {
    char text[512];
    if (!read_task(tid, "stat", text, sizeof text))
        return errno == ENOENT || errno == ESRCH ? 'X' : '?';
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : '?';
}

/* Whether it waits for a notification by another thread, as QEMU does when it stops all, and not just for a lock. */
static bool waits_for_condition(pid_t tid) {
    char text[512];
    unsigned operation = FUTEX_WAIT_BITSET;
    if (read_task(tid, "syscall", text, sizeof text) && sscanf(text, "%*d %*x %x", &operation) != 1)
        return false;
    return (operation & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
}

static bool is_asleep(const struct member *member) {
    char state = state_of(member->tid);
    return state == 'S' || state == 'X' || state == 'Z';
}

/* Whether it sleeps in its call, and not because it has returned and waits for the lock. */
static bool is_asleep_there(const struct member *member) {
    return is_asleep(member) && !__atomic_load_n(&member->is_back, __ATOMIC_SEQ_CST);
}

/* A thread must be asleep in both passes: during the first, one that was checked late may have woken an earlier one on its way to sleep. */
static void look_at_all(void) {
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < turn.limit; i++) {
            struct member *member = &turn.members[i];
            bool asleep = member->state == CALLS   ? is_asleep_there(member)
                          : member->state == WAITS ? turn.is_signaled && is_asleep(member)
                                                   : false;
            member->seen = asleep && (!pass || member->seen == turn.calls) ? turn.calls : NEVER;
        }
}

/* Return true if only a sleep that is not over yet holds things up. */
static bool waits_for_sleep(void) {
    bool found = false;
    for (uint32_t i = 0; i < turn.limit; i++) {
        const struct member *member = &turn.members[i];
        bool sleeps = member->state == CALLS && member->seen == turn.calls && turn_is_due(member);
        if (!sleeps && !turn_is_settled(member))
            return false;
        found |= sleeps;
    }
    return found;
}

static void nap(unsigned naps) {
    struct timespec moment = {0, 1000000};
    pthread_mutex_unlock(&turn.lock);
    if (naps < NAPS_SHORT)
        sched_yield();
    else
        nanosleep(&moment, NULL);
    pthread_mutex_lock(&turn.lock);
}

static void settle(void) {
    for (unsigned naps = 0; turn_is_on() && turn.is_pending && turn.holder == NOBODY;) {
        look_at_all();
        turn_hand_over();
        if (!turn.is_pending)
            break;
        nap(naps);
        naps += !waits_for_sleep() || naps < NAPS_SHORT;
        if (naps > NAPS_HOPELESS)
            turn_give_up();
    }
}

/* QEMU waits for threads that wait for the turn in the middle of code: release them one after the other. */
static void let_one_go(void) {
    for (uint32_t i = 0; i < turn.limit; i++)
        if (turn.members[i].state == LET && state_of(turn.members[i].tid) != 'S')
            return;
    for (uint32_t i = 0; i < turn.limit; i++) {
        struct member *member = &turn.members[i];
        if (member->state == WAITS && member->in_code) {
            member->state = LET;
            pthread_cond_signal(&member->go);
            return;
        }
    }
}

/* Calls that involve neither QEMU nor a thread that starts or exits. */
static bool is_brief(enum call_kind kind) {
    return kind == CALL_BRIEF || kind == CALL_LOCAL || kind == CALL_WAKE || kind == CALL_SIGNAL;
}

/* The thread waits, perhaps for others, in a call that was expected to be brief. */
static void steal(struct member *member) {
    turn_release(turn_number(member));
    member->state = CALLS;
    member->seen = NEVER;
    member->grants = turn.grants;
    plugin.shared->unordered++;
    turn_hand_over();
}

/* The thread that has the turn should not sleep. Count for how long it did. */
static unsigned look_at_holder(unsigned looks) {
    struct member *member = &turn.members[turn.holder];
    looks = is_asleep(member) ? looks + 1 : 0;
    if (looks >= LOOKS_HOPELESS)
        turn_give_up();
    else if (looks >= LOOKS_STOPPED && (member->kind == CALL_NONE || member->kind == CALL_STOP) &&
             waits_for_condition(member->tid))
        let_one_go();
    else if (looks >= LOOKS_STOLEN && is_brief(member->kind))
        steal(member);
    return looks;
}

static bool wait_a_moment(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return pthread_cond_timedwait(&turn.watch, &turn.lock, &until) == ETIMEDOUT;
}

/* Use a separate, empty descriptor table: the guest must not find its numbers taken, nor its pipes held open. */
static bool leave_descriptors(void) {
    return syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) == 0;
}

static void *watch(void *nothing) {
    unsigned looks = 0;
    uint64_t grants = 0;
    bool fine = leave_descriptors();
    pthread_mutex_lock(&turn.lock);
    if (!fine)
        turn_give_up();
    while (turn_is_on()) {
        if (turn.is_pending && turn.holder == NOBODY) {
            settle();
        } else if (turn.holder == NOBODY || !turn_anybody(WAITS)) {
            pthread_cond_wait(&turn.watch, &turn.lock);
        } else if (wait_a_moment() && turn.holder != NOBODY) {
            looks = grants == turn.grants ? look_at_holder(looks) : 0;
            grants = turn.grants;
        }
    }
    pthread_mutex_unlock(&turn.lock);
    return NULL;
}

/* Block all signals: none of the guest's are for this thread. */
bool watch_start(void) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool fine = pthread_create(&thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (fine)
        pthread_detach(thread);
    return fine;
}
