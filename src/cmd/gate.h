/*
 * Private to wick diff: --fail-if, and sides that are several runs.
 */
#ifndef WICK_CMD_GATE_H
#define WICK_CMD_GATE_H

#include "cmd/cmd.h"

/* The exit status if a limit is exceeded. */
enum { STATUS_EXCEEDED = 6 };

struct gate_request {
    text_list fail_if; /* the rules, as given */
    double threshold;  /* per cent */
    bool shares, exact;
    enum report_format format;
    size_t limit;
    const struct categories *categories;
    enum report_by by;
};

/* Add the runs of a side to `runs`: the path itself, or, if it is a directory of runs or profiles, its entries by
   name. */
bool side_expand(struct request *request, const char *path, text_list *runs, struct error *error);
/* Compare the two operands' runs and write the verdict. */
bool gate_run(struct request *request, const struct gate_request *wanted, struct notes *notes,
              bool *exceeded, struct error *error);

#endif
