/* Private to the room: what V8's profiles of time and of memory share. */
#ifndef WICK_IMPORT_V8_H
#define WICK_IMPORT_V8_H

#include "base/json.h"
#include "import/reader.h"

/* A callFrame: where a node is. Its buffers serve one node after the other. */
struct v8_frame {
    struct buffer name, url, key;
    double line; /* the function's first, from 0 on; -1: not known */
};
/* Reads the object that is next; false at nonsense. */
bool v8_frame_read(struct json *json, struct v8_frame *frame);
/* The tree's location of it. */
uint32_t v8_frame_location(struct stack *stack, const struct v8_frame *frame);
void v8_frame_release(struct v8_frame *frame);

#endif
