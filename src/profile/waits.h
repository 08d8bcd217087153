/*
 * Private to the room: from the switches of threads to the nanoseconds that each sample stands for.
 *
 * Pass 1 hands over what it sees of threads: samples at switch-out, SWITCH records, forks and exits, samples on the CPU, wakings. Each
 * becomes a mark of 40 bytes; only recordings whose waits are asked for pay for them. Sorted by (thread, time, place in the file) they
 * are one story for each thread, whatever buffer each came through, and told once (pairing.c):
 *
 *     a wait     from the sample at switch-out to the next thing that says the thread runs: a SWITCH record, or a sched_switch to it
 *     running    the rest, from when the thread is first seen to its exit or the end of the recording
 *
 * Time on the CPU is spread over the thread's samples in proportion to their weight, to the nanosecond. What comes out is a list of
 * (sample, nanoseconds, state) in order of the file, in which pass 2 finds its samples; so its work is shared among threads as
 * always. Time that no sample stands for is counted on a frame of its own.
 */
#ifndef WICK_PROFILE_WAITS_H
#define WICK_PROFILE_WAITS_H

#include "profile/pairs.h"
#include "profile/reading.h"

enum mark_kind {
    MARK_START,  /* a fork made the thread */
    MARK_END,    /* it exits */
    MARK_IN,     /* it gets the CPU */
    MARK_OUT,    /* it leaves: the sample with its stack */
    MARK_LEFT,   /* it has left: the record that may follow that sample */
    MARK_SEEN,   /* a sample of it, running */
    MARK_WAKING, /* somebody wakes it: that one's sample */
};

/* Beyond enum state. */
enum { STATE_UNTOLD = 8, STATE_DEAD };

struct mark {
    uint64_t time;
    uint64_t offset;
    uint64_t weight; /* MARK_SEEN */
    int32_t pid, tid;
    uint32_t event;
    uint8_t kind;
    uint8_t state;
};

/* Time of a thread that no sample stands for. */
struct untold {
    uint64_t time, weight;
    int32_t pid, tid;
    uint8_t state;
};

/* A sample that is a wait, or of who ended one, by its time. */
struct timed {
    uint64_t time;
    uint64_t offset;
};

struct waits {
    struct reading *reading;
    VECTOR(struct mark) marks;
    struct pairs pairs; /* the wait that each thread is in */
    VECTOR(struct untold) untold;
    VECTOR(struct timed) ready, wakers;
    bool has_records; /* SWITCH records: nothing else ends a wait */
    bool has_switches;
    bool untimed;    /* no switches, and what ran does not say for how long: only waits are known */
    uint64_t newest; /* the last time in the recording */
    /* Where things are in the payload of a switch and of a waking. */
    uint32_t previous_pid, previous_state, next_pid, woken_pid;
    /* for notes */
    uint64_t open, guessed, stackless, unwoken, sums;
};

/* Before pass 1: what each event is for, and whether the recording can answer. */
bool waits_begin(struct reading *reading, struct error *error);
/* Pass 1, only if reading->waits. */
bool waits_sample(struct waits *waits, const struct perfdata_record *record, uint32_t event,
                  uint64_t time, struct error *error);
bool waits_record(struct waits *waits, const struct perfdata_record *record,
                  struct error *error); /* SWITCH, FORK, EXIT */
void waits_lasted(struct waits *waits,
                  uint64_t newest); /* after it: the latest time of all records */
/* Whether a moment is one of those asked for. */
bool waits_want(const struct waits *waits, uint64_t time);
/* pairing.c: after the events were chosen, from marks to costs. */
void waits_pair(struct waits *waits);
/* After pass 2. */
void waits_add_untold(struct waits *waits);
void waits_add_wakers(
    struct waits *waits); /* if they were asked for: samples are kept until then */
void waits_free(struct waits *waits);
/* As if nobody had asked for them. */
void waits_forget(struct reading *reading);

/* tracepoint.c: where a field is in the payload of a tracepoint, or `otherwise` if the recording does not say. */
uint32_t tracepoint_field(struct text formats, const char *event, const char *field,
                          uint32_t otherwise);

#endif
