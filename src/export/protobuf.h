/* Private to the room: a protocol buffers writer, as far as profiles need it. A message is a buffer that fields are
   appended to; fields that are 0 are omitted, which readers take for 0. */
#ifndef WICK_EXPORT_PROTOBUF_H
#define WICK_EXPORT_PROTOBUF_H

#include "base/base.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static inline void proto_u64(struct buffer *message, unsigned field, uint64_t value) {
    if (!value)
        return;
    buffer_add_varint(message, field << 3 | WIRE_VARINT);
    buffer_add_varint(message, value);
}

/* Append strings, messages and packed numbers, also if empty, because their index in a table counts. */
static inline void proto_bytes(struct buffer *message, unsigned field, struct text bytes) {
    buffer_add_varint(message, field << 3 | WIRE_BYTES);
    buffer_add_varint(message, bytes.length);
    buffer_add(message, bytes);
}

#endif
