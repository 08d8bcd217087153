/* Private to this room: patterns, for transform.c. */
#ifndef WICK_STACKS_PATTERN_H
#define WICK_STACKS_PATTERN_H

#include "stacks/stacks.h"

/* Return which part of a valid pattern has another meaning, or none, in JavaScript, and set *at to its offset; NULL if there is none. */
const char *pattern_foreign(struct text pattern, size_t *at);

/* The memory that matching needs, and its limits. One thread uses it at a time. */
struct matcher;
struct matcher *matcher_new(void);
void matcher_free(struct matcher *matcher);
/* Set *found to whether the pattern matches the name. The name's mark (_[k]) counts only for exact patterns. Return false if limits are exceeded. */
bool matcher_find(struct matcher *matcher, const struct pattern *pattern, struct text name,
                  bool *found, struct error *error);

#endif
