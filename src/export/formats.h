/* Private to the room: the formats' writers, and what they share. */
#ifndef WICK_EXPORT_FORMATS_H
#define WICK_EXPORT_FORMATS_H

#include "export/outline.h"

bool speedscope_write(struct out *out, const struct outline *outline, struct error *error);
bool pprof_write(struct out *out, const struct outline *outline, struct error *error);

/* False, with an error that says what to do, where it would be huge and was not asked for. */
bool export_fits(const struct outline *outline, uint64_t size, struct error *error);

/* Writes out what is in the buffer, once that is worth it. */
static inline void buffer_flush(struct buffer *buffer, struct out *out) {
    if (buffer->count < 1 << 16)
        return;
    out_text(out, buffer_text(buffer));
    buffer->count = 0;
}

#endif
