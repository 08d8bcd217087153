/* Private to wick report: the growth of a store's services, versions or hosts. */
#ifndef WICK_CMD_GROWTH_H
#define WICK_CMD_GROWTH_H

#include "cmd/cmd.h"

/* Return true if the rows are services, versions or hosts of one store, and all filters can be applied by the store
   itself. */
bool growth_is_known(const struct request *request, const struct source *source);
/* Query the store for sums of a recent time and of the same time some days before, and add them to the report. */
bool growth_add(const struct request *request, struct report *report, struct error *error);

#endif
