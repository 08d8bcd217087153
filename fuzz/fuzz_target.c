/* Client input that wick parses itself: a request's target, its Host, an origin. What was parsed, encoded again, must
   parse to the same. */
#include <stdlib.h>

#include "serve/serve.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct target *target, struct buffer *raw) {
    for (size_t i = 0; i < target->part_count; i++) {
        buffer_add_char(raw, '/');
        for (size_t k = 0; k < target->parts[i].length; k++) /* a slash in a part, too */
            buffer_printf(raw, "%%%02x", (unsigned char)target->parts[i].data[k]);
    }
    for (size_t i = 0; i < target->value_count; i++) {
        buffer_add_char(raw, i ? '&' : '?');
        target_add_encoded(raw, target->values[i].key);
        buffer_add_char(raw, '=');
        target_add_encoded(raw, target->values[i].value);
    }
}

static void check_same(const struct target *a, const struct target *b) {
    if (a->part_count != b->part_count || a->value_count != b->value_count)
        abort();
    for (size_t i = 0; i < a->part_count; i++)
        if (!text_equal(a->parts[i], b->parts[i]) || strlen(a->parts[i].data) != a->parts[i].length)
            abort();
    for (size_t i = 0; i < a->value_count; i++)
        if (!text_equal(a->values[i].key, b->values[i].key) ||
            !text_equal(a->values[i].value, b->values[i].value) ||
            !target_get(a, a->values[i].key.data).data)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct text text = {(const char *)data, size};
    struct target target, again;
    if (target_parse(&target, text)) {
        struct buffer raw = {0};
        encode(&target, &raw);
        if (raw.count <= TARGET_MOST) {
            if (!target_parse(&again, buffer_text(&raw)))
                abort();
            check_same(&target, &again);
            target_release(&again);
        }
        buffer_release(&raw);
    }
    target_release(&target);
    if (host_is_loopback(text) && size > strlen("localhost:65535"))
        abort();
    origin_is_whole(text);
    header_can_be_trusted(text);
    if (token_equal(text, TEXT("0123456789abcdef")) != text_equal(text, TEXT("0123456789abcdef")))
        abort();
    return 0;
}
