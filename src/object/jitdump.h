/*
 * jitdump: a file in which a runtime describes the code that it generates. perf's jitdump-specification.txt defines its records: loads with the
 * code itself, moves, lines, unwinding rules.
 *
 * Records have either byte order and any alignment, and the last one is often cut, because the process is still writing or was killed. Fields
 * that writers get wrong are ignored: Python 3.13 leaves the machine 0, and garbage in padding.
 */
#ifndef WICK_OBJECT_JITDUMP_H
#define WICK_OBJECT_JITDUMP_H

#include "object/made.h"

/* Whether a mapped file is a jitdump, by its name: …/jit-NUMBER.dump. */
bool path_is_jitdump(struct text path);

/* From `time` on, [start, start + size) of the process's memory holds the code at `place`, or none if `is_gone`. */
struct jitdump_change {
    uint64_t time; /* as in the dump: CLOCK_MONOTONIC, unless it has ticks */
    uint64_t start;
    uint64_t size;
    uint64_t place;
    bool is_gone;
};

struct jitdump {
    struct made *made;
    VECTOR(struct jitdump_change) changes; /* in the order of the file */
    bool has_ticks;                        /* times are ticks of the processor: not comparable */
};

/* Read a dump; release it with jitdump_release(). `machine`, EM_…, is used if the dump says 0. `dump->made` takes over `bytes`, which is empty
   afterwards. Return false and set *error if it is not a dump, or is damaged at that byte; everything read before is kept. `path` is for messages.
   Memory is limited in proportion to the dump's size. */
bool jitdump_read(struct jitdump *dump, struct buffer *bytes, uint16_t machine,
                  const struct budget_limits *limits, const char *path, struct error *error);
/* Read the dump at a recorded path, below `symfs` unless that is NULL, into `bytes`. Return false if there is none of at most `most` bytes that
   belongs to a trusted user. Links are not followed. */
bool jitdump_load(const char *symfs, struct text path, uint64_t most, struct buffer *bytes);
void jitdump_release(struct jitdump *dump); /* made_share() what is to outlive it */

#endif
