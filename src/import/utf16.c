/*
 * UTF-16 to UTF-8. PowerShell's `>`, and other Windows programs, write UTF-16 with a byte order mark.
 */
#include "import/reader.h"

static uint32_t unit_at(struct text t, size_t at, bool big) {
    uint8_t first = (uint8_t)t.data[at], second = (uint8_t)t.data[at + 1];
    return big ? (uint32_t)first << 8 | second : (uint32_t)second << 8 | first;
}

bool text_is_utf16(struct text t) {
    return text_starts(t, (struct text){"\xff\xfe", 2}) ||
           text_starts(t, (struct text){"\xfe\xff", 2});
}

void text_from_utf16(struct text t, struct buffer *out) {
    enum { HIGH = 0xd800, LOW = 0xdc00, BEHIND = 0xe000, UNKNOWN = 0xfffd };
    bool big = text_starts(t, (struct text){"\xfe\xff", 2});
    for (size_t at = 2; at + 1 < t.length; at += 2) {
        uint32_t c = unit_at(t, at, big),
                 next = at + 3 < t.length ? unit_at(t, at + 2, big) : UNKNOWN;
        if (c >= HIGH && c < LOW && next >= LOW && next < BEHIND) {
            c = 0x10000 + (c - HIGH) * 0x400 + (next - LOW);
            at += 2;
        } else if (c >= HIGH && c < BEHIND) {
            c = UNKNOWN;
        }
        buffer_add_utf8(out, c);
    }
}
