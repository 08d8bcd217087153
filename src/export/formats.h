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

/* False, with an error that says what to do, where it would be huge and was not asked for. */
bool export_fits(const struct outline *outline, uint64_t size, struct error *error);

/* `value` with its last `digits` behind a point, without zeroes at the end: nanoseconds as milliseconds, exactly. */
void buffer_add_decimal(struct buffer *buffer, uint64_t value, unsigned digits);
/*
 * How long it is from `start` to `end`, both in nanoseconds, in microseconds. Readers add up such lengths as floating-point numbers, and what ends must end
 * where the next begins: so both ends are at multiples of 1/8192, which such numbers hold exactly, and which are fine enough to tell
 * nanoseconds.
 */
void buffer_add_microseconds(struct buffer *buffer, uint64_t start, uint64_t end);
/* Writes out what is in the buffer, once that is worth it. */
static inline void buffer_flush(struct buffer *buffer, struct out *out) {
    if (buffer->count < 1 << 16)
        return;
    out_text(out, buffer_text(buffer));
    buffer->count = 0;
}

#endif
