/*
 * jitdump: the file in which a runtime describes the code that it makes, record by record, as perf's documentation
 * (jitdump-specification.txt) has it: loads with the code itself, moves, lines, rules for unwinding.
 *
 * Records come in either byte order, at any alignment, and the last one is often cut, because the process is still writing or was
 * killed. What writers get wrong is not looked at: Python 3.13 leaves the machine 0, and rubbish in padding.
 */
#ifndef WICK_OBJECT_JITDUMP_H
#define WICK_OBJECT_JITDUMP_H

#include "object/made.h"

/* Whether a mapped file is a dump, by its name: …/jit-NUMBER.dump. */
bool path_is_jitdump(struct text path);

/* From `time` on, [start, start + size) of the process's memory holds the code at `place`, or, when it has moved away, none. */
struct jitdump_change {
    uint64_t time; /* as the dump has it: CLOCK_MONOTONIC, unless it has ticks */
    uint64_t start;
    uint64_t size;
    uint64_t place;
    bool is_gone;
};

struct jitdump {
    struct made *made;
    VECTOR(struct jitdump_change) changes; /* in the order of the file */
    bool has_ticks;                        /* times are the processor's, which nothing else has */
};

/* Reads a dump. `machine`, EM_…, holds where the dump says 0. The bytes go to `dump->made`; `bytes` is empty afterwards. False, and *error:
   it is none, or damaged at that byte; what was read before is there all the same. `path` is for messages. The memory is limited in proportion to the
   dump's size. Release with jitdump_release(). */
bool jitdump_read(struct jitdump *dump, struct buffer *bytes, uint16_t machine,
                  const struct budget_limits *limits, const char *path, struct error *error);
/* Puts the dump at a recorded path, below `symfs` unless that is NULL, into `bytes`. False: there is none of at most `most` bytes that belongs to a
   user we trust; a link is not followed. */
bool jitdump_load(const char *symfs, struct text path, uint64_t most, struct buffer *bytes);
void jitdump_release(struct jitdump *dump); /* made_share() what is to outlive it */

#endif
