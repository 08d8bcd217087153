/* Private to the room: shared declarations. */
#ifndef WICK_SANDBOX_INTERNAL_H
#define WICK_SANDBOX_INTERNAL_H

#include "sandbox/sandbox.h"

/* ---- landlock.c ---- */

enum rights { RIGHTS_READ, RIGHTS_WRITE, RIGHTS_MANAGE };

struct ruleset {
    int descriptor;
    int version; /* 0: there is no Landlock */
};
void ruleset_open(struct ruleset *ruleset);
/* Allow access to `name` below `directory`, and to everything below it. A path that does not exist, or can't, needs no rule. */
void ruleset_allow(const struct ruleset *ruleset, int directory, const char *name,
                   enum rights rights);
/* The same for a file of /proc or /sys; keeps it open, because the kernel may otherwise drop and recreate its inode. */
void ruleset_allow_held(const struct ruleset *ruleset, const char *path);
/* Enforce and close the ruleset. Return false if the kernel refuses. */
bool ruleset_enforce(struct ruleset *ruleset);

/* places.c: allow the places where programs, their debug information and maps of their code may be. */
void places_allow(const struct ruleset *ruleset);

/* syscalls.c: restrict system calls. `terminal`: allow setting the terminal's modes. Return false if the kernel refuses. */
bool syscalls_restrict(bool terminal);

#endif
