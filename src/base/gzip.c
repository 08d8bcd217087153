/* Streaming gzip compression: compressed bytes are held until the caller takes them. */
#include "base/base.h"

#include <stdlib.h>
#include <zlib.h>

struct gzip {
    z_stream stream;
};

static void *gzip_alloc(void *context, uInt count, uInt size) {
    return memory_zero(count, size);
}
static void gzip_free(void *context, void *memory) {
    free(memory);
}

struct gzip *gzip_new(void) {
    struct gzip *gzip = memory_zero(1, sizeof *gzip);
    gzip->stream.zalloc = gzip_alloc;
    gzip->stream.zfree = gzip_free;
    int status = deflateInit2(&gzip->stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    assert(status == Z_OK);
    (void)status;
    return gzip;
}

static void gzip_step(struct gzip *gzip, int flush, struct buffer *packed) {
    enum { ROOM = 1 << 16 };
    z_stream *stream = &gzip->stream;
    do {
        vector_reserve(packed, packed->count + ROOM);
        stream->next_out = (Bytef *)packed->items + packed->count;
        stream->avail_out = ROOM;
        deflate(stream, flush);
        packed->count = (size_t)((char *)stream->next_out - packed->items);
    } while (stream->avail_out == 0);
}

void gzip_add(struct gzip *gzip, struct text plain, struct buffer *packed) {
    for (size_t most = 1 << 30; plain.length;) {
        size_t piece = plain.length < most ? plain.length : most;
        gzip->stream.next_in = (Bytef *)(uintptr_t)plain.data;
        gzip->stream.avail_in = (uInt)piece;
        gzip_step(gzip, Z_NO_FLUSH, packed);
        plain = text_from(plain, piece);
    }
}

void gzip_end(struct gzip *gzip, struct buffer *packed) {
    gzip_step(gzip, Z_FINISH, packed);
    deflateEnd(&gzip->stream);
    free(gzip);
}
