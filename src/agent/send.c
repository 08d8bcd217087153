/*
 * Sending: the oldest batch first, one at a time, and again after a pause if the store can't take it. The pause doubles from one second to
 * one minute, with a random part, so that a thousand hosts do not retry at the same moment. A server that sends Retry-After is left alone for
 * at least that long.
 */
#include "agent/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

static const uint64_t second = 1000000000u;
enum { PAUSE_MOST = 60 };

struct sender {
    const struct agent_options *options;
    struct context context;
    struct spool_directory *spool;
    struct child deliverer;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool fresh;           /* the spool has a new batch */
    bool ending;          /* end when everything is sent, or … */
    uint64_t deadline;    /* … at that time, CLOCK_MONOTONIC */
    atomic_int given_up;  /* cancels the current request at the deadline */
    bool ended;           /* the thread is about to */
    bool failing;         /* and this was reported */
    uint32_t retry_after; /* seconds, as requested by the store when it refused */
};

/* ---- one batch ---- */

/* A cancelled request is not the batch's fault. */
static enum store_failure refuse(struct sender *sender, const struct spooled *batch,
                                 const struct error *error) {
    if (context_cancelled(&sender->context))
        return STORE_TRY_AGAIN;
    agent_say(sender->options, "batch %llu was moved to rejected: %s",
              (unsigned long long)batch->number, error->message);
    return STORE_REJECTED;
}

static enum store_failure send_one(struct sender *sender, const struct spooled *batch,
                                   int descriptor, struct error *error) {
    if (descriptor < 0)
        return STORE_TRY_AGAIN; /* too many open files, say: it is not lost */
    enum store_failure failure = deliver(&sender->deliverer, sender->options, batch, descriptor,
                                         &sender->context, &sender->retry_after, error);
    close(descriptor);
    return failure == STORE_REJECTED ? refuse(sender, batch, error) : failure;
}

/* ---- all of them ---- */

/* Report when the store stops answering and when it answers again, not every failure. */
static void say_state(struct sender *sender, bool failing, const struct error *error) {
    if (failing && !sender->failing)
        agent_say(sender->options, "the store does not accept batches: %s; they wait in the spool",
                  error->message);
    else if (!failing && sender->failing)
        agent_say(sender->options, "the store accepts batches again");
    sender->failing = failing;
}

static bool send_oldest(struct sender *sender, bool *again) {
    struct agent_counts *counts = sender->spool->counts;
    struct spooled batch;
    struct error error;
    *again = false;
    if (!spool_oldest(sender->spool, &batch))
        return false;
    int descriptor =
        openat(sender->spool->directory, batch.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT) /* the spool's limits dropped it meanwhile */
        return true;
    if (descriptor < 0)
        error_errno(&error, batch.name);
    switch (send_one(sender, &batch, descriptor, &error)) {
    case STORE_FINE:
        spool_remove(sender->spool, &batch);
        counts->sent++;
        counts->last_sent = agent_now(CLOCK_REALTIME) / second;
        say_state(sender, false, NULL);
        break;
    case STORE_REJECTED:
        spool_reject(sender->spool, &batch);
        break;
    case STORE_TRY_AGAIN:
        counts->retried++;
        say_state(sender, true, &error);
        *again = true;
    }
    return true;
}

/* Wait for a batch, for the end of a pause (seconds; 0: none), or for the agent's end. Return false to end. */
static bool wait_for_more(struct sender *sender, unsigned pause) {
    uint64_t until = 0;
    if (pause) {
        uint32_t random = 0;
        (void)!getrandom(&random, sizeof random, GRND_NONBLOCK);
        until = agent_now(CLOCK_MONOTONIC) + pause * second / 2 +
                (uint64_t)((double)random / UINT32_MAX * pause * 1e9) +
                sender->retry_after * second;
    }
    pthread_mutex_lock(&sender->lock);
    while (!sender->ending && (until ? agent_now(CLOCK_MONOTONIC) < until : !sender->fresh)) {
        uint64_t wake = until ? until : agent_now(CLOCK_MONOTONIC) + 3600 * second;
        struct timespec time = {(time_t)(wake / second), (long)(wake % second)};
        pthread_cond_timedwait(&sender->changed, &sender->lock, &time);
    }
    sender->fresh = false;
    bool over = sender->ending && (pause || agent_now(CLOCK_MONOTONIC) >= sender->deadline);
    pthread_mutex_unlock(&sender->lock);
    return !over;
}

static bool is_ending(struct sender *sender) {
    pthread_mutex_lock(&sender->lock);
    bool ending = sender->ending;
    pthread_mutex_unlock(&sender->lock);
    return ending;
}

static void *run(void *context) {
    struct sender *sender = context;
    unsigned pause = 0;
    for (bool more = true; more;) {
        bool again;
        bool ending = is_ending(sender); /* asked first: what comes later is not missed */
        sender->retry_after = 0;
        bool found = send_oldest(sender, &again);
        pause = again ? (pause ? pause * 2 : 1) : 0;
        if (pause > PAUSE_MOST)
            pause = PAUSE_MOST;
        if (found && !again)
            continue;
        more = !(ending && !found) && wait_for_more(sender, pause);
    }
    child_end(&sender->deliverer);
    pthread_mutex_lock(&sender->lock);
    sender->ended = true;
    pthread_cond_broadcast(&sender->changed);
    pthread_mutex_unlock(&sender->lock);
    return NULL;
}

/* ---- the thread ---- */

uint64_t sender_cpu(const struct sender *sender) {
    return child_cpu(&sender->deliverer);
}

uint64_t sender_memory(const struct sender *sender) {
    pid_t pid = sender->deliverer.pid;
    return pid > 0 ? agent_memory(pid) : 0;
}

struct sender *sender_new(const struct agent_options *options, struct spool_directory *spool) {
    struct sender *sender = memory_zero(1, sizeof *sender);
    pthread_condattr_t clock;
    *sender =
        (struct sender){.options = options, .context = agent_patient(options), .spool = spool};
    sender->context.cancelled = &sender->given_up;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&sender->lock, NULL);
    pthread_cond_init(&sender->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&sender->thread, NULL, run, sender) != 0) {
        free(sender);
        return NULL;
    }
    return sender;
}

void sender_wake(struct sender *sender) {
    pthread_mutex_lock(&sender->lock);
    sender->fresh = true;
    pthread_cond_signal(&sender->changed);
    pthread_mutex_unlock(&sender->lock);
}

void sender_end(struct sender *sender, uint64_t patience) {
    if (!sender)
        return;
    pthread_mutex_lock(&sender->lock);
    sender->ending = true;
    sender->deadline = agent_now(CLOCK_MONOTONIC) + patience;
    pthread_cond_broadcast(&sender->changed);
    struct timespec until = {(time_t)(sender->deadline / second),
                             (long)(sender->deadline % second)};
    bool is_server = store_is_url(text_of(sender->options->store));
    while (is_server && !sender->ended && agent_now(CLOCK_MONOTONIC) < sender->deadline)
        pthread_cond_timedwait(&sender->changed, &sender->lock, &until);
    pthread_mutex_unlock(&sender->lock);
    atomic_store_explicit(&sender->given_up, is_server, memory_order_relaxed);
    pthread_join(sender->thread, NULL);
    pthread_cond_destroy(&sender->changed);
    pthread_mutex_destroy(&sender->lock);
    free(sender);
}
