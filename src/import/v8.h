/* Private to the room: shared by V8's CPU and heap profiles. */
#ifndef WICK_IMPORT_V8_H
#define WICK_IMPORT_V8_H

#include "base/json.h"
#include "import/reader.h"

/* A callFrame: the place of a node. Its buffers are reused for the next node. */
struct v8_frame {
    struct buffer name, url, key;
    double line; /* the function's first line, from 0; -1: unknown */
};
/* Read the object that is next; return false if it is invalid. */
bool v8_frame_read(struct json *json, struct v8_frame *frame);
/* Return its location in the tree. */
uint32_t v8_frame_location(struct stack *stack, const struct v8_frame *frame);
void v8_frame_release(struct v8_frame *frame);

/* A chunk of a CPU profile in Chrome's traces; chunks of one profile have the same process and id. */
struct v8_chunk {
    int64_t process, id;
    int64_t thread; /* INT64_MIN: not in this chunk; the profile's first chunk has it */
    uint64_t time;  /* nanoseconds */
    size_t order;   /* position in the file */
    struct text data;
};
/* Count the profile that consists of these chunks, in their order, under the thread and event that are set; add its
   number of samples to *samples. */
bool v8_count_chunks(struct reader *r, const struct v8_chunk *chunks, size_t count,
                     size_t *samples);

#endif
