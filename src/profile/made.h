/*
 * Private to this room: when and where processes generated code.
 *
 * Readers of runtimes' descriptions (jitdumps, snapshots of a JVM's code cache) describe the code as a `struct made` (object/made.h), make an
 * object of it with made_object(), and report with made_happens() which memory held which piece, and from when on. Pass 1 applies these moments
 * to the spaces, in time order among the records. Generated code replaces whatever was at its addresses, other code and anonymous memory; later
 * anonymous mappings of the process leave it in place.
 */
#ifndef WICK_PROFILE_MADE_H
#define WICK_PROFILE_MADE_H

#include "object/made.h"
#include "space/space.h"

/* From `time` on, [start, end) of the process's memory holds the code at `place` of an object; object 0: it holds none. */
struct made_moment {
    uint64_t time; /* of the recording's clock; 0: from the beginning */
    uint64_t start, end;
    uint64_t place;
    uint32_t object; /* OBJECT_MADE */
    int32_t pid;     /* as the recording has it */
};

/* Zero-initialised is empty. */
struct made_moments {
    VECTOR(struct made_moment)
    list; /* by time once sorted; moments of the same time stay in the order of the calls */
    size_t applied;
    struct index pids; /* numbers are the index of a process's first moment, + 1 */
};

struct reading;

/* Add an object for a process's code. `path` is shown as its module. Takes over the reference to `made`. */
uint32_t made_object(struct reading *reading, int32_t pid, struct text path, struct made *made);
void made_happens(struct made_moments *moments, const struct made_moment *moment);

/* Call it after the last made_happens() and before the first made_apply(). */
void made_sort(struct made_moments *moments);
/* Apply all moments before `time`. */
void made_apply(struct reading *reading, uint64_t time);
/* Whether there is a moment of the process. */
bool made_has(const struct made_moments *moments, int32_t pid);
void made_release(struct made_moments *moments);

#endif
