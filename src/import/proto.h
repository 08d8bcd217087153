/* Private to the room: a protocol buffers parser that reads field by field. */
#ifndef WICK_IMPORT_PROTO_H
#define WICK_IMPORT_PROTO_H

#include "base/base.h"

enum { WIRE_NUMBER = 0, WIRE_EIGHT = 1, WIRE_TEXT = 2, WIRE_FOUR = 5 };

/* A message, or the rest of it. */
struct proto {
    const uint8_t *at, *end;
    bool damaged; /* a field exceeds the message, or has an obsolete wire type */
};

struct proto_field {
    uint32_t number;
    uint32_t wire;
    uint64_t value;   /* of numbers */
    struct text text; /* of strings, messages and packed numbers */
};

static inline struct proto proto_begin(struct text message) {
    const uint8_t *data = (const uint8_t *)(message.length ? message.data : "");
    return (struct proto){.at = data, .end = data + message.length};
}

/* Seven bits a byte, the lowest first. */
static inline uint64_t proto_number(struct proto *p) {
    uint64_t value = 0;
    for (unsigned shift = 0; p->at < p->end && shift < 64; shift += 7) {
        uint8_t byte = *p->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    p->damaged = true;
    p->at = p->end;
    return 0;
}

/* Read the next field. Return false at the end, or if the message is damaged. */
bool proto_next(struct proto *p, struct proto_field *field);

/* Read the next value of a repeated number: packed values one after the other, others one per field. Return false if
   the field has no more. */
static inline bool proto_repeated(struct proto_field *field, uint64_t *value, bool *damaged) {
    if (field->wire == WIRE_NUMBER) {
        *value = field->value;
        field->wire = WIRE_FOUR; /* taken */
        return true;
    }
    if (field->wire != WIRE_TEXT || !field->text.length)
        return false;
    struct proto packed = proto_begin(field->text);
    *value = proto_number(&packed);
    *damaged |= packed.damaged;
    field->text = (struct text){(const char *)packed.at, (size_t)(packed.end - packed.at)};
    return !packed.damaged;
}

#endif
