/* Private to the room: patterns as the transforms use them. */
#ifndef WICK_STACKS_PATTERN_H
#define WICK_STACKS_PATTERN_H

#include "stacks/stacks.h"

/* Return what in a pattern that compiles means something else, or nothing, in JavaScript, and where; NULL: nothing does. */
const char *pattern_foreign(struct text pattern, size_t *at);

/* The memory that matching needs, and its limits. One thread uses it at a time. */
struct matcher;
struct matcher *matcher_new(void);
void matcher_free(struct matcher *matcher);
/* Say whether the name has the pattern in it; its mark (_[k]) is no part of a name, but of an exact one. False: the limits were met. */
bool matcher_find(struct matcher *matcher, const struct pattern *pattern, struct text name,
                  bool *found, struct error *error);

#endif
