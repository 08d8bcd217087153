/* Private to this room: numbers as pictures and tables show them. */
#ifndef WICK_VIEW_NUMBERS_H
#define WICK_VIEW_NUMBERS_H

#include "base/base.h"

double per_cent(uint64_t part, uint64_t whole); /* 0 of nothing */
/* 1,234,567 */
void buffer_add_grouped(struct buffer *buffer, uint64_t value);
/* Append `value` with two decimals, correctly rounded, ties to even, in any locale. For 0 ≤ value < 2^50. */
void buffer_add_hundredths(struct buffer *buffer, double value);
/* Append after / before as "×1.50", or "new" or "gone"; nothing if both are 0. */
void buffer_add_factor(struct buffer *buffer, uint64_t before, uint64_t after);

#endif
