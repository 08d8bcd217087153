/*
 * Requests for Pyroscope and Parca: a pprof in JSON, with the labels of its series. Both also accept protocol buffers
 * and gzip, with the same result; the pprof inside is already compressed.
 */
#include "push/internal.h"

#include <ctype.h>

static void add_base64(struct buffer *buffer, struct text bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *in = (const uint8_t *)bytes.data;
    for (size_t at = 0; at < bytes.length; at += 3) {
        size_t left = bytes.length - at;
        uint32_t bits = (uint32_t)in[at] << 16 | (left > 1 ? (uint32_t)in[at + 1] << 8 : 0) |
                        (left > 2 ? in[at + 2] : 0);
        buffer_add_char(buffer, digits[bits >> 18]);
        buffer_add_char(buffer, digits[bits >> 12 & 63]);
        buffer_add_char(buffer, left > 1 ? digits[bits >> 6 & 63] : '=');
        buffer_add_char(buffer, left > 2 ? digits[bits & 63] : '=');
    }
}

/* Label names consist of letters, digits and _, and do not begin with a digit. */
static void add_label_name(struct buffer *buffer, struct text key) {
    if (!key.length || isdigit((unsigned char)key.data[0]))
        buffer_add_char(buffer, '_');
    for (size_t i = 0; i < key.length; i++)
        buffer_add_char(buffer, isalnum((unsigned char)key.data[i]) && (uint8_t)key.data[i] < 0x80
                                    ? key.data[i]
                                    : '_');
}

static void add_pair(struct buffer *body, bool *any, struct text key, struct text value) {
    struct buffer name = {0};
    add_label_name(&name, key);
    buffer_printf(body, "%s{\"name\":\"%.*s\",\"value\":", *any ? "," : "",
                  TEXT_ARGS(buffer_text(&name)));
    buffer_add_json_text(body, value);
    buffer_add_char(body, '}');
    buffer_release(&name);
    *any = true;
}

/* No name appears twice; wick's service and host have other names there. */
static void add_labels(const struct push_options *options, struct text name, struct buffer *body) {
    bool any = false;
    add_pair(body, &any, TEXT("__name__"), name);
    add_pair(body, &any, TEXT("host"), text_of(options->host));
    add_pair(body, &any, TEXT("service_name"), text_of(options->service));
    for (size_t i = 0; i < options->label_count; i++) {
        struct text key = text_of(options->labels[i].key);
        bool known = text_equal(key, TEXT("host")) || text_equal(key, TEXT("service")) ||
                     text_equal(key, TEXT("service_name")) || text_starts(key, TEXT("__"));
        for (size_t j = 0; j < i && !known; j++)
            known = text_equal(key, text_of(options->labels[j].key));
        if (!known)
            add_pair(body, &any, key, text_of(options->labels[i].pattern));
    }
}

void encode_series(enum push_kind kind, const struct push_options *options, struct text name,
                   struct text pprof, struct buffer *body) {
    bool parca = kind == PUSH_PARCA;
    buffer_add(body, parca ? TEXT("{\"series\":[{\"labels\":{\"labels\":[")
                           : TEXT("{\"series\":[{\"labels\":["));
    add_labels(options, name, body);
    buffer_add(body, parca ? TEXT("]},\"samples\":[{\"rawProfile\":\"")
                           : TEXT("],\"samples\":[{\"rawProfile\":\""));
    add_base64(body, pprof);
    buffer_add(body, TEXT("\"}]}]}"));
}

struct text profile_name(const struct tree *tree, struct buffer *name) {
    struct text event = TEXT("cpu");
    for (size_t i = 1; i < tree->series.count; i++) {
        event = strings_get(tree->strings, tree_event(tree, tree->series.items[i].event)->name);
        break;
    }
    name->count = 0;
    if (text_search(event, TEXT("alloc")) != SIZE_MAX ||
        text_search(event, TEXT("inuse")) != SIZE_MAX)
        buffer_add(name, TEXT("memory"));
    else if (text_search(event, TEXT("cpu")) != SIZE_MAX ||
             text_search(event, TEXT("cycles")) != SIZE_MAX ||
             text_search(event, TEXT("clock")) != SIZE_MAX)
        buffer_add(name, TEXT("process_cpu"));
    else
        add_label_name(name, event);
    return buffer_text(name);
}
