/* Private to this room: shared by the tables. */
#ifndef WICK_VIEW_REPORT_H
#define WICK_VIEW_REPORT_H

#include "view/numbers.h"
#include "view/view.h"

/* Append a category as a CSV field. */
void report_add_category(struct buffer *line, struct text category);

/* Order the rows of a diff: largest change of self first, then of total. */
int report_order_change(const void *a, const void *b);
void report_diff_csv(struct out *out, const struct report *report,
                     const struct report_options *options);
/* Get the name of weights for the CSV header: the unit, without characters that would end a field. */
void report_counted(const struct report *report, const struct report_options *options,
                    char *counted, size_t size);
/* Append JSON fields with the share of `name` ("self", "total") on each side, and the factor. The object must have other fields already. */
void report_diff_json(struct buffer *text, const struct report *report, const char *name,
                      uint64_t before, uint64_t after);
/* Append a weight for people: nanoseconds in larger units, others with their unit. */
void report_add_weight(struct buffer *line, const struct report *report, uint64_t weight);
/* A name in text that goes to a file or a pipe is shortened if it is longer; CSV and JSON have all of it. */
enum { PIPED_NAME = 150 };
/* Append the columns of growth; nothing if the report has none. */
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
