/* Protocol buffers, as far as profiles need them. */
#include "import/proto.h"

static bool proto_bytes(struct proto *p, uint64_t size, struct text *bytes) {
    if (size > (uint64_t)(p->end - p->at)) {
        p->damaged = true;
        p->at = p->end;
        return false;
    }
    *bytes = (struct text){(const char *)p->at, size};
    p->at += size;
    return true;
}

bool proto_next(struct proto *p, struct proto_field *field) {
    if (p->at == p->end)
        return false;
    uint64_t key = proto_number(p);
    *field = (struct proto_field){.number = (uint32_t)(key >> 3), .wire = key & 7};
    struct text bytes;
    switch (field->wire) {
    case WIRE_NUMBER:
        field->value = proto_number(p);
        break;
    case WIRE_TEXT:
        proto_bytes(p, proto_number(p), &field->text);
        break;
    case WIRE_EIGHT:
        if (proto_bytes(p, 8, &bytes))
            field->value = load_u64(bytes.data);
        break;
    case WIRE_FOUR:
        if (proto_bytes(p, 4, &bytes))
            field->value = load_u32(bytes.data);
        break;
    default: /* groups, which profiles have never used */
        p->damaged = true;
    }
    return !p->damaged;
}
