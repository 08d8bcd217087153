/*
 * Private to this room: compute from the context switches of threads how many nanoseconds each sample stands for.
 *
 * Pass 1 hands over everything about threads: samples at switch-out, SWITCH records, forks and exits, samples on the CPU, wakings. Each becomes
 * a mark of 40 bytes, but only if waits are requested. Sorted by (thread, time, position in the file), the marks are the history of each thread,
 * whatever buffers they came through. It is walked once (pairing.c):
 *
 *     waiting    from the sample at switch-out to the next sign that the thread runs: a SWITCH record, or a sched_switch to it
 *     running    the rest, from when the thread is first seen to its exit or the end of the recording
 *
 * Time on the CPU is distributed over the thread's samples in proportion to their weight, to the nanosecond. The result is a list of (sample,
 * nanoseconds, state) in file order, in which pass 2 looks up its samples, in parallel as always. Time that no sample stands for is counted on a
 * frame of its own.
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
    MARK_WAKING, /* it is woken: the waker's sample */
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

/* A sample of a wait or of a waker, by its time. */
struct timed {
    uint64_t time;
    uint64_t offset;
};

struct waits {
    struct reading *reading;
    VECTOR(struct mark) marks;
    struct pairs pairs; /* each thread's current wait */
    VECTOR(struct untold) untold;
    VECTOR(struct timed) ready, wakers;
    bool has_records; /* SWITCH records: nothing else ends a wait */
    bool has_switches;
    bool untimed;    /* no switches, and running samples have no duration: only waits are known */
    uint64_t newest; /* the last time in the recording */
    /* Offsets of fields in the payloads of sched_switch and sched_waking. */
    uint32_t previous_pid, previous_state, next_pid, woken_pid;
    /* for notes */
    uint64_t open, guessed, stackless, unwoken, sums;
};

/* Before pass 1: set the role of each event. Fail if the recording lacks what is requested. */
bool waits_begin(struct reading *reading, struct error *error);
/* For pass 1, only if reading->waits is set. */
bool waits_sample(struct waits *waits, const struct perfdata_record *record, uint32_t event,
                  uint64_t time, struct error *error);
bool waits_record(struct waits *waits, const struct perfdata_record *record,
                  struct error *error); /* SWITCH, FORK, EXIT */
void waits_lasted(struct waits *waits,
                  uint64_t newest); /* after pass 1: the latest time of all records */
/* Whether the time filter passes a time. */
bool waits_want(const struct waits *waits, uint64_t time);
/* pairing.c: compute costs from marks, after the events were chosen. */
void waits_pair(struct waits *waits);
/* For use after pass 2. */
void waits_add_untold(struct waits *waits);
void waits_add_wakers(
    struct waits *waits); /* if they were asked for: samples are kept until then */
void waits_free(struct waits *waits);
/* Free the waits and read on as if they had not been requested. */
void waits_forget(struct reading *reading);

/* tracepoint.c: return the offset of a field in a tracepoint's payload, or `otherwise` if the recording does not say. */
uint32_t tracepoint_field(struct text formats, const char *event, const char *field,
                          uint32_t otherwise);

#endif
