/* Request targets, and checks of who may send requests. All of it is strict: input that a browser or curl would not
   send is refused, not repaired. */
#include "serve/serve.h"

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Append the decoded `raw` and a NUL. The buffer has room for all of a target, so that texts into it stay valid. */
static bool decode(struct target *target, struct text raw, bool plus_is_space, struct text *text) {
    size_t begin = target->bytes.count;
    for (size_t i = 0; i < raw.length; i++) {
        unsigned char c = (unsigned char)raw.data[i];
        if (c == '%') {
            int high = raw.length - i > 2 ? hex_digit(raw.data[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(raw.data[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (unsigned char)(high * 16 + low);
            i += 2;
            if (c < ' ' || c == 0x7f)
                return false;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c <= ' ' || c >= 0x7f || c == '"' || c == '<' || c == '>' || c == '\\') {
            return false;
        }
        buffer_add_char(&target->bytes, (char)c);
    }
    *text = (struct text){target->bytes.items + begin, target->bytes.count - begin};
    buffer_add_char(&target->bytes, 0);
    return true;
}

static bool parse_path(struct target *target, struct text path) {
    if (!path.length || path.data[0] != '/')
        return false;
    path = text_from(path, 1);
    while (true) {
        size_t slash = text_find(path, '/');
        if (target->part_count == TARGET_PARTS ||
            !decode(target, slash == SIZE_MAX ? path : text_upto(path, slash), false,
                    &target->parts[target->part_count]))
            return false;
        target->part_count++;
        if (slash == SIZE_MAX)
            return true;
        path = text_from(path, slash + 1);
    }
}

static bool parse_value(struct target *target, struct text word) {
    size_t equals = text_find(word, '=');
    if (equals == SIZE_MAX || target->value_count == TARGET_VALUES)
        return false;
    struct target_value value;
    if (!decode(target, text_upto(word, equals), true, &value.key) ||
        !decode(target, text_from(word, equals + 1), true, &value.value) || !value.key.length ||
        target_get(target, value.key.data).data)
        return false;
    target->values[target->value_count++] = value;
    return true;
}

bool target_parse(struct target *target, struct text raw) {
    *target = (struct target){0};
    if (raw.length > TARGET_MOST)
        return false;
    vector_grow((void **)&target->bytes.items, &target->bytes.capacity,
                raw.length + TARGET_PARTS + 2 * TARGET_VALUES + 8, 1);
    size_t question = text_find(raw, '?');
    if (!parse_path(target, question == SIZE_MAX ? raw : text_upto(raw, question)))
        return false;
    struct text query = question == SIZE_MAX ? TEXT("") : text_from(raw, question + 1);
    while (query.length) {
        size_t end = text_find(query, '&');
        if (!parse_value(target, end == SIZE_MAX ? query : text_upto(query, end)))
            return false;
        query = end == SIZE_MAX ? TEXT("") : text_from(query, end + 1);
    }
    return true;
}

void target_release(struct target *target) {
    buffer_release(&target->bytes);
}

struct text target_get(const struct target *target, const char *key) {
    for (size_t i = 0; i < target->value_count; i++)
        if (text_equal(target->values[i].key, text_of(key)))
            return target->values[i].value;
    return (struct text){NULL, 0};
}

bool target_number(const struct target *target, const char *key, uint64_t otherwise, uint64_t most,
                   uint64_t *value) {
    struct text text = target_get(target, key);
    *value = otherwise;
    return !text.data || (text_to_u64(text, value) && *value <= most);
}

void target_add_encoded(struct buffer *buffer, struct text value) {
    static const char digits[] = "0123456789ABCDEF", plain[] = "-._~/";
    for (size_t i = 0; i < value.length; i++) {
        unsigned char c = (unsigned char)value.data[i];
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (is_plain || (c && strchr(plain, c))) {
            buffer_add_char(buffer, (char)c);
        } else {
            buffer_add_char(buffer, '%');
            buffer_add_char(buffer, digits[c >> 4]);
            buffer_add_char(buffer, digits[c & 15]);
        }
    }
}

/* ---- origins and hosts ---- */

bool token_equal(struct text a, struct text b) {
    unsigned char different = a.length != b.length;
    for (size_t i = 0; i < a.length; i++)
        different |= (unsigned char)(a.data[i] ^ (b.length ? b.data[i % b.length] : 1));
    return !different && a.length;
}

static bool is_word(struct text text, const char *word) {
    if (text.length != strlen(word))
        return false;
    for (size_t i = 0; i < text.length; i++) {
        char c = text.data[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != word[i])
            return false;
    }
    return true;
}

/* Match "" or ":" and a number. */
static bool is_port(struct text text) {
    uint64_t port;
    return !text.length || (text.data[0] == ':' && text.length <= 6 &&
                            text_to_u64(text_from(text, 1), &port) && port && port <= 65535);
}

bool host_is_loopback(struct text host) {
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        size_t length = strlen(names[i]);
        if (host.length >= length && is_word(text_upto(host, length), names[i]))
            return is_port(text_from(host, length));
    }
    return false;
}

bool origin_is_whole(struct text origin) {
    struct text rest = text_starts(origin, TEXT("https://"))  ? text_from(origin, 8)
                       : text_starts(origin, TEXT("http://")) ? text_from(origin, 7)
                                                              : TEXT("");
    size_t colon = text_find(rest, ':');
    struct text host = colon == SIZE_MAX ? rest : text_upto(rest, colon);
    for (size_t i = 0; i < host.length; i++) {
        char c = host.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-'))
            return false;
    }
    return host.length && is_port(colon == SIZE_MAX ? TEXT("") : text_from(rest, colon));
}

bool header_can_be_trusted(struct text name) {
    static const char *const others[] = {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "date",
        "dnt",
        "expect",
        "host",
        "keep-alive",
        "origin",
        "pragma",
        "range",
        "referer",
        "te",
        "trailer",
        "upgrade",
        "user-agent",
        "via",
        "cache-control",
        "content-language",
        "save-data",
        "viewport-width",
        "transfer-encoding",
        "if-none-match",
        "if-modified-since",
        "last-event-id",
    };
    if (!name.length || name.length > 100)
        return false;
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-'))
            return false;
    }
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (is_word(name, others[i]))
            return false;
    return !(name.length > 4 && is_word(text_upto(name, 4), "sec-")) &&
           !(name.length > 7 && is_word(text_upto(name, 7), "access-"));
}
