/* What the files of this room share. */
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
/* Allows this for what `name` below `directory` is, and for all below it. What is not there, or can't be, needs no rule. */
void ruleset_allow(const struct ruleset *ruleset, int directory, const char *name,
                   enum rights rights);
/* The same for a file of /proc or /sys, which the kernel may forget and make anew unless somebody holds it. */
void ruleset_allow_held(const struct ruleset *ruleset, const char *path);
/* False: the kernel refuses. Closes it. */
bool ruleset_enforce(struct ruleset *ruleset);

/* places.c: where programs, their debug information and maps of their code may be. */
void places_allow(const struct ruleset *ruleset);

/* syscalls.c. `terminal`: its modes may be set. False: the kernel refuses. */
bool syscalls_restrict(bool terminal);

#endif
