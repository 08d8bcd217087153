/* Private to the room: what the tables share. */
#ifndef WICK_VIEW_REPORT_H
#define WICK_VIEW_REPORT_H

#include "view/view.h"

extern const char *const report_titles[]; /* by enum report_by */

/* Of the whole; of a diff, of the whole after, whichever side is asked about. */
double report_per_cent(const struct report *report, uint64_t weight);
/* A category as a CSV field. */
void report_add_category(struct buffer *line, struct text category);
/* Cut to `columns` characters. */
void report_add_cut(struct buffer *line, struct text shown, size_t columns);

/* The rows of a diff: largest change of self first, then of total. */
int report_order_change(const void *a, const void *b);
void report_diff_csv(struct out *out, const struct report *report);
void report_diff_text(struct out *out, const struct report *report,
                      const struct report_options *options);

#endif
