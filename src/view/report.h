/* Private to the room: what the tables share. */
#ifndef WICK_VIEW_REPORT_H
#define WICK_VIEW_REPORT_H

#include "view/numbers.h"
#include "view/view.h"

/* A category as a CSV field. */
void report_add_category(struct buffer *line, struct text category);

/* The rows of a diff: largest change of self first, then of total. */
int report_order_change(const void *a, const void *b);
void report_diff_csv(struct out *out, const struct report *report,
                     const struct report_options *options);
/* What weights are called in the header of CSV: the unit, without what would end a field. */
void report_counted(const struct report *report, const struct report_options *options,
                    char *counted, size_t size);
/* What `name` ("self", "total") is of each side's whole, and how many times as much after: fields of an object that has others already. */
void report_diff_json(struct buffer *text, const struct report *report, const char *name,
                      uint64_t before, uint64_t after);
/* A weight as people say it: nanoseconds in larger units, others with their unit. */
void report_add_weight(struct buffer *line, const struct report *report, uint64_t weight);
/* Columns of growth, which a report without it does not have. */
enum { GROWTH_WIDTH = 22 };
void report_growth_text(struct buffer *line, const struct report *report,
                        const struct report_row *row);
void report_growth_csv(struct buffer *line, const struct report *report,
                       const struct report_row *row);
void report_growth_json(struct buffer *text, const struct report *report,
                        const struct report_row *row);
void report_markdown(struct out *out, const struct report *report,
                     const struct report_options *options);
void report_diff_text(struct out *out, const struct report *report,
                      const struct report_options *options);

#endif
