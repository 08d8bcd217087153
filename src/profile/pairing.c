/*
 * Reconstruct when each thread was off the CPU, and why, and when it was running, from its marks in time order.
 *
 * Recordings lose records, so any mark may be missing. Any sign that a thread runs ends its wait; but if there are SWITCH records, only they do,
 * because a sample can fall into the switch itself. A wait whose end was not recorded ends at the next mark of its thread; a wait that was not
 * over at the end of the recording is counted until then; a wait without a sample is time without a stack. Notes report how many there are of
 * each.
 */
#include "profile/waits.h"

#include <stdlib.h>

/* A hardware counter may interrupt the very switch: what is seen of a thread so soon after it has left is no sign that it is back. */
enum { SWITCH_TAKES = 50000 };

static const struct note_kind note_open = {
    "waits-open", "# wait{ was|s were} not over when the recording ended; counted until then"};
static const struct note_kind note_guessed = {
    "waits-end-unknown", "# wait{ has|s have} no recorded end and {is|are} assumed to last until "
                         "{its|their} thread is seen again; record with --switch-events"};
static const struct note_kind note_stackless = {
    "waits-without-stack",
    "# wait{ has|s have} no sample with a stack; {it is|they are} shown as [no stack]"};
static const struct note_kind note_unwoken = {
    "waits-without-waker",
    "# wait{ has|s have} no recorded waker: an interrupt, or a thread that was not recorded"};
static const struct note_kind note_sums = {"waits-summed-up",
                                           "--min and --max were applied to # sum{|s} of waits: "
                                           "the recording does not contain single waits"};

enum phase { PHASE_NEW, PHASE_ON, PHASE_OFF, PHASE_GONE };

/* One life of a thread. */
struct life {
    enum phase phase;
    uint64_t since;   /* when this phase began; of PHASE_OFF its wait, an open pair, tells */
    uint64_t running; /* nanoseconds until then, cut to the filter */
    struct pair *
        wait; /* of PHASE_OFF: its sample is an offset, its ender the waker's offset + 1, its kind a state */
    bool has_left; /* the record of its beginning was seen, too */
    int32_t pid, tid;
    VECTOR(const struct mark *) samples;
};

static int mark_order(const void *a, const void *b) {
    const struct mark *x = a, *y = b;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static int cost_order(const void *a, const void *b) {
    const struct cost *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int timed_order(const void *a, const void *b) {
    const struct timed *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Return how much of an interval passes --time. */
static uint64_t within(const struct waits *w, uint64_t from, uint64_t to) {
    const struct filter *filter = &w->reading->options->filter;
    if (filter->has_time) {
        from = from < filter->time_from ? filter->time_from : from;
        to = to > filter->time_to ? filter->time_to : to;
    }
    return to > from ? to - from : 0;
}

static void add_cost(struct waits *w, uint64_t offset, uint64_t weight, uint8_t state,
                     uint64_t waker) {
    struct cost cost = {.offset = offset, .weight = weight, .waker = waker, .state = state};
    if (waker)
        vector_push(&w->reading->costs,
                    ((struct cost){.offset = waker - 1, .state = STATE_UNTOLD}));
    vector_push(&w->reading->costs, cost);
}

/* ---- waits ---- */

static void wait_begin(struct waits *w, struct life *life, const struct mark *mark,
                       uint64_t sample) {
    life->phase = PHASE_OFF;
    pairs_begin(&w->pairs, (uint32_t)life->tid, mark->time, &life->wait, NULL);
    life->wait->sample = sample;
    life->wait->kind = mark->state;
    life->has_left = sample == NO_SAMPLE;
}

static void wait_end(struct waits *w, struct life *life, uint64_t time) {
    const struct profile_options *options = w->reading->options;
    struct pair wait;
    life->wait = NULL;
    if (!pairs_end(&w->pairs, (uint32_t)life->tid, &wait))
        return;
    uint64_t length = time - wait.began, counted = within(w, wait.began, time);
    uint8_t state = wait.kind == STATE_UNTOLD ? STATE_SLEEP : (uint8_t)wait.kind;
    bool fits =
        length >= options->least_wait && (!options->most_wait || length <= options->most_wait);
    life->phase = PHASE_ON;
    life->since = time;
    if (!fits || !counted)
        return;
    w->unwoken += !wait.ender && state != STATE_PREEMPTED;
    if (wait.sample != NO_SAMPLE) {
        add_cost(w, wait.sample, counted, state, wait.ender);
        return;
    }
    struct untold untold = {.time = time - length,
                            .weight = counted,
                            .pid = life->pid,
                            .tid = life->tid,
                            .state = state};
    vector_push(&w->untold, untold);
    w->stackless++;
}

/* The CPU was its own since then. */
static void run_end(struct waits *w, struct life *life, uint64_t time) {
    if (life->phase == PHASE_ON)
        life->running += within(w, life->since, time);
    life->since = time;
}

/* ---- running ---- */

/* `all` in proportion to the samples' weights. What each gets is the difference of two rounded sums, so nothing is lost or added. */
static void spread(struct waits *w, const struct life *life) {
    __uint128_t total = 0, before = 0;
    for (size_t i = 0; i < life->samples.count; i++)
        total += life->samples.items[i]->weight;
    bool weightless = total == 0;
    if (weightless)
        total = life->samples.count;
    uint64_t given = 0;
    for (size_t i = 0; i < life->samples.count; i++) {
        const struct mark *mark = life->samples.items[i];
        before += weightless ? 1 : mark->weight;
        /* the quotient is at most `running`; the product may pass 128 bits, the ratio of doubles would not be exact */
        __uint128_t whole = before / total, part = before % total;
        uint64_t share = (uint64_t)(whole * life->running);
        share += total <= UINT64_MAX ? (uint64_t)(part * life->running / total)
                                     : (uint64_t)((part >> 64) * life->running / (total >> 64));
        if (share > given)
            add_cost(w, mark->offset, share - given, STATE_ON, 0);
        given = share > given ? share : given;
    }
}

/* Whatever it had until now belongs to the samples that were taken of it. */
static void life_end(struct waits *w, struct life *life) {
    if (w->reading->tells_running && life->running) {
        if (life->samples.count)
            spread(w, life);
        else if (life->pid >= 0)
            vector_push(&w->untold, ((struct untold){.time = life->since,
                                                     .weight = life->running,
                                                     .pid = life->pid,
                                                     .tid = life->tid,
                                                     .state = STATE_ON}));
    }
    life->running = 0;
    life->samples.count = 0;
    life->pid = -1;
}

/* ---- marks ---- */

static void meet_in(struct waits *w, struct life *life, const struct mark *mark) {
    if (life->phase == PHASE_OFF)
        wait_end(w, life, mark->time);
    else if (life->phase == PHASE_NEW)
        *life = (struct life){.phase = PHASE_ON,
                              .since = mark->time,
                              .pid = life->pid,
                              .tid = life->tid,
                              .samples = life->samples};
}

/* Whatever it was before, it runs now, or has just stopped to: a wait that nothing ended is over. */
static void is_up(struct waits *w, struct life *life, uint64_t time) {
    if (life->phase == PHASE_OFF) {
        w->guessed++;
        wait_end(w, life, time);
    }
    run_end(w, life, time);
}

static void meet_out(struct waits *w, struct life *life, const struct mark *mark) {
    bool late = life->phase == PHASE_OFF && life->wait->sample == NO_SAMPLE &&
                mark->time - life->wait->began <= SWITCH_TAKES;
    if (mark->state == STATE_DEAD) {
        if (!late)
            is_up(w, life, mark->time);
        life_end(w, life);
        life->phase = PHASE_GONE;
        return;
    }
    if (late) { /* the record came before the sample */
        life->wait->sample = mark->offset;
        if (mark->state != STATE_UNTOLD)
            life->wait->kind = mark->state;
        return;
    }
    is_up(w, life, mark->time);
    wait_begin(w, life, mark, mark->offset);
}

static void meet_left(struct waits *w, struct life *life, const struct mark *mark) {
    if (life->phase == PHASE_OFF && !life->has_left) {
        life->has_left = true;
        if (life->wait->kind == STATE_UNTOLD)
            life->wait->kind = mark->state;
        return;
    }
    is_up(w, life, mark->time);
    wait_begin(w, life, mark, NO_SAMPLE);
}

static void meet_seen(struct waits *w, struct life *life, const struct mark *mark) {
    bool counts = w->reading->events.items[mark->event].is_read && waits_want(w, mark->time);
    if (life->phase == PHASE_NEW)
        meet_in(w, life, mark);
    if (life->phase == PHASE_OFF && !w->has_records &&
        mark->time - life->wait->began > SWITCH_TAKES)
        is_up(w, life, mark->time);
    if (counts && w->reading->tells_running)
        vector_push(&life->samples, mark);
}

static void meet_end(struct waits *w, struct life *life, const struct mark *mark, enum phase then) {
    is_up(w, life, mark->time);
    life_end(w, life);
    life->phase = then;
}

/* Only its next fork revives a thread that has exited. If the exit was lost, its time is unknown, and the last wait does not count. */
static void meet(struct waits *w, struct life *life, const struct mark *mark) {
    if (mark->kind == MARK_START) {
        life->phase = life->phase == PHASE_OFF ? PHASE_GONE : life->phase;
        meet_end(w, life, mark, PHASE_NEW);
        return;
    }
    if (life->phase == PHASE_GONE)
        return;
    if (mark->pid >= 0)
        life->pid = mark->pid;
    switch (mark->kind) {
    case MARK_END:
        meet_end(w, life, mark, PHASE_GONE);
        break;
    case MARK_IN:
        meet_in(w, life, mark);
        break;
    case MARK_OUT:
        meet_out(w, life, mark);
        break;
    case MARK_LEFT:
        meet_left(w, life, mark);
        break;
    case MARK_SEEN:
        meet_seen(w, life, mark);
        break;
    case MARK_WAKING:
        if (life->phase == PHASE_OFF && !life->wait->ender)
            life->wait->ender = mark->offset + 1;
        break;
    }
}

static void pair_thread(struct waits *w, struct life *life, const struct mark *marks,
                        size_t count) {
    *life = (struct life){.pid = -1, .tid = marks[0].tid, .samples = life->samples};
    for (size_t i = 0; i < count; i++)
        meet(w, life, &marks[i]);
    if (life->phase == PHASE_OFF) {
        w->open++;
        wait_end(w, life, w->newest);
    }
    run_end(w, life, w->newest);
    life_end(w, life);
}

/* ---- samples that are waits ---- */

static struct cost *cost_at(struct reading *reading, size_t count, uint64_t offset) {
    struct cost key = {.offset = offset};
    return bsearch(&key, reading->costs.items, count, sizeof key, cost_order);
}

/* The two are known by their time, which no other has. In a damaged file others may: each waker is taken once, or one long
   stack would be hung below every wait. */
static void join_wakers(struct waits *w) {
    struct reading *reading = w->reading;
    size_t count = reading->costs.count, next = 0;
    if (!w->wakers.count || !w->ready.count)
        return;
    qsort(w->wakers.items, w->wakers.count, sizeof *w->wakers.items, timed_order);
    qsort(w->ready.items, w->ready.count, sizeof *w->ready.items, timed_order);
    for (size_t i = 0; i < w->ready.count; i++) {
        while (next < w->wakers.count && w->wakers.items[next].time < w->ready.items[i].time)
            next++;
        if (next == w->wakers.count || w->wakers.items[next].time != w->ready.items[i].time)
            continue;
        uint64_t waker = w->wakers.items[next++].offset;
        cost_at(reading, count, w->ready.items[i].offset)->waker = waker + 1;
        vector_push(&reading->costs, ((struct cost){.offset = waker, .state = STATE_UNTOLD}));
    }
}

/* Without switches, only the samples say how long a thread ran. */
static void take_samples(struct waits *w) {
    for (size_t i = 0; i < w->marks.count; i++) {
        const struct mark *mark = &w->marks.items[i];
        if (mark->kind == MARK_SEEN && w->reading->events.items[mark->event].is_read &&
            waits_want(w, mark->time))
            add_cost(w, mark->offset, mark->weight, STATE_ON, 0);
    }
}

/* ---- all of it ---- */

static void pair_all(struct waits *w) {
    struct life life = {0};
    for (size_t first = 0, end;
         first < w->marks.count && !context_cancelled(w->reading->options->context); first = end) {
        for (end = first; end < w->marks.count; end++)
            if (w->marks.items[end].tid != w->marks.items[first].tid)
                break;
        pair_thread(w, &life, &w->marks.items[first], end - first);
    }
    vector_release(&life.samples);
}

static void add_notes(const struct waits *w) {
    const struct profile_options *options = w->reading->options;
    uint8_t views = w->reading->each ? times_view(TIMES_WAITING) | times_view(TIMES_BOTH) : 0;
    const struct {
        const struct note_kind *kind;
        uint64_t count;
    } notes[] = {{&note_open, w->open},
                 {&note_guessed, w->guessed},
                 {&note_stackless, w->stackless},
                 {&note_unwoken, options->wakers ? w->unwoken : 0},
                 {&note_sums, options->least_wait || options->most_wait ? w->sums : 0}};
    for (size_t i = 0; i < COUNT_OF(notes); i++)
        if (notes[i].count)
            notes_add_for(&w->reading->profile->tree->notes, views, notes[i].kind, notes[i].count);
}

void waits_pair(struct waits *w) {
    if (w->marks.count)
        qsort(w->marks.items, w->marks.count, sizeof *w->marks.items, mark_order);
    join_wakers(w); /* while the costs are only theirs, and in order */
    if (w->has_switches)
        pair_all(w);
    else if (w->reading->tells_running && !w->untimed)
        take_samples(w);
    if (w->reading->costs.count)
        qsort(w->reading->costs.items, w->reading->costs.count, sizeof *w->reading->costs.items,
              cost_order);
    vector_release(&w->marks);
    add_notes(w);
}
