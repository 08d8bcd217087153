/*
 * Private to the room: when and where processes made code.
 *
 * Readers of what runtimes say of their code (jitdumps, snapshots of a JVM's code cache) describe the code as a `struct made`
 * (object/made.h), make an object of it with made_object(), and tell with made_happens() which memory held which of its pieces, from when
 * on. Pass 1 applies these moments to the spaces in their order among the records. Code covers what was at its addresses before,
 * other code and anonymous memory; a process's later mappings of anonymous memory go around it.
 */
#ifndef WICK_PROFILE_MADE_H
#define WICK_PROFILE_MADE_H

#include "object/made.h"
#include "space/space.h"

/* From `time` on, [start, end) of the process's memory holds the code at `place` of an object; object 0: it holds none any more. */
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
    list; /* by time once sorted; of one time, in the order in which they were told */
    size_t applied;
    struct index pids; /* numbers are those of the moment that first named a process, + 1 */
};

struct reading;

/* The object of a process's code; `path` is how it is shown, as a module. Takes the reference to `made` over. */
uint32_t made_object(struct reading *reading, int32_t pid, struct text path, struct made *made);
void made_happens(struct made_moments *moments, const struct made_moment *moment);

/* After the last, before the first is applied. */
void made_sort(struct made_moments *moments);
/* Applies all that happened before `time`. */
void made_apply(struct reading *reading, uint64_t time);
/* Whether the process ever makes code that is told of. */
bool made_has(const struct made_moments *moments, int32_t pid);
void made_release(struct made_moments *moments);

#endif
