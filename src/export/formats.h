/* Private to the room: the formats' writers, and what they share. */
#ifndef WICK_EXPORT_FORMATS_H
#define WICK_EXPORT_FORMATS_H

#include "export/outline.h"

bool speedscope_write(struct out *out, const struct outline *outline, struct error *error);
bool callgrind_write(struct out *out, const struct outline *outline, struct error *error);
bool callgrind_write_graph(struct out *out, const struct tree *tree, const struct naming *naming,
                           const struct export_options *options, struct error *error);
bool chrome_write(struct out *out, const struct outline *outline, struct error *error);
bool cpuprofile_write(struct out *out, const struct outline *outline, struct error *error);
bool firefox_write(struct out *out, const struct outline *outline, struct error *error);
bool otlp_write(struct out *out, const struct outline *outline, struct error *error);
bool pprof_write(struct out *out, const struct outline *outline, struct error *error);

/* Return false, with an error that says what to do, if the output would be huge and --force was not given. */
bool export_fits(const struct outline *outline, uint64_t size, struct error *error);

/* Append `value` with its last `digits` after a point, without trailing zeroes: nanoseconds as exact milliseconds. */
void buffer_add_decimal(struct buffer *buffer, uint64_t value, unsigned digits);
/*
 * Append the duration from `start` to `end`, both in nanoseconds, in microseconds. Readers add up durations in
 * floating point, and one must end exactly where the next begins: so both ends are multiples of 1/8192, which
 * floating point holds exactly and which is fine enough to distinguish nanoseconds.
 */
void buffer_add_microseconds(struct buffer *buffer, uint64_t start, uint64_t end);
/* Write the buffer once it is large enough. */
static inline void buffer_flush(struct buffer *buffer, struct out *out) {
    if (buffer->count < 1 << 16)
        return;
    out_text(out, buffer_text(buffer));
    buffer->count = 0;
}

#endif
