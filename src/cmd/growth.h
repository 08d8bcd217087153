/* Private to wick report: how a store's services, versions or hosts have grown. */
#ifndef WICK_CMD_GROWTH_H
#define WICK_CMD_GROWTH_H

#include "cmd/cmd.h"

/* Whether the rows are services, versions or hosts of one store, and nothing is left out of them that the store itself can't leave out. */
bool growth_is_known(const struct request *request, const struct source *source);
/* Ask the store again, for sums of a recent time and the same time some days before, and put them into the report. */
bool growth_add(const struct request *request, struct report *report, struct error *error);

#endif
