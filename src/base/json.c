#include "base/json.h"

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Return true for any byte that a number may contain. */
static bool is_of_number(char c) {
    return is_digit(c) || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

static bool hex4(struct text t, uint32_t *value) {
    uint64_t number;
    if (t.length < 4 || !text_hex_to_u64(text_upto(t, 4), &number))
        return false;
    *value = (uint32_t)number;
    return true;
}

/* Append the character that the escape after a backslash encodes. Return the bytes read, or 0 if it is not an escape.
   Half of a surrogate pair becomes U+FFFD. */
static size_t add_escape(struct buffer *out, struct text t) {
    static const char codes[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    uint32_t point, low;
    if (!t.length)
        return 0;
    for (size_t i = 0; i + 1 < sizeof codes; i += 2) {
        if (t.data[0] == codes[i]) {
            buffer_add_char(out, codes[i + 1]);
            return 1;
        }
    }
    if (t.data[0] != 'u' || !hex4(text_from(t, 1), &point))
        return 0;
    bool pair = point >= 0xd800 && point < 0xdc00 && t.length >= 11 && t.data[5] == '\\' &&
                t.data[6] == 'u' && hex4(text_from(t, 7), &low) && low >= 0xdc00 && low < 0xe000;
    if (pair)
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    else if (point >= 0xd800 && point < 0xe000)
        point = 0xfffd;
    buffer_add_utf8(out, point);
    return pair ? 11 : 5;
}

bool json_string(struct json *json, struct buffer *out) {
    if (!json_take(json, '"'))
        return false;
    for (;;) {
        size_t plain = 0;
        while (plain < json->rest.length && json->rest.data[plain] != '"' &&
               json->rest.data[plain] != '\\')
            plain++;
        buffer_add(out, text_upto(json->rest, plain));
        json->rest = text_from(json->rest, plain);
        if (!json->rest.length)
            return false;
        char c = json->rest.data[0];
        json->rest = text_from(json->rest, 1);
        if (c == '"')
            return true;
        size_t used = add_escape(out, json->rest);
        if (!used)
            return false;
        json->rest = text_from(json->rest, used);
    }
}

bool json_text(struct json *json, struct buffer *out) {
    out->count = 0;
    return json_peek(json) == '"' ? json_string(json, out) : json_skip(json);
}

bool json_number(struct json *json, struct text *number) {
    json_peek(json);
    size_t length = 0;
    while (length < json->rest.length && is_of_number(json->rest.data[length]))
        length++;
    *number = text_upto(json->rest, length);
    json->rest = text_from(json->rest, length);
    return length > 0;
}

/* Skip to the end of a string without unescaping it. */
static bool skip_string(struct json *json) {
    json->rest = text_from(json->rest, 1);
    for (size_t i = 0; i < json->rest.length; i++) {
        if (json->rest.data[i] == '\\') {
            i++;
        } else if (json->rest.data[i] == '"') {
            json->rest = text_from(json->rest, i + 1);
            return true;
        }
    }
    return false;
}

static bool ends_word(char c) {
    return c == ',' || c == ']' || c == '}' || c == ':' || c == '"' || c == '[' || c == '{' ||
           json_is_space(c);
}

bool json_skip(struct json *json) {
    size_t depth = 0;
    do {
        char c = json_peek(json);
        if (c == 0 && !json->rest.length)
            return false;
        if (c == '"') {
            if (!skip_string(json))
                return false;
            continue;
        }
        if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return false;
            depth--;
        } else if (c != ',' && c != ':') {
            size_t length = 0;
            while (length < json->rest.length && !ends_word(json->rest.data[length]))
                length++;
            json->rest = text_from(json->rest, length ? length : 1);
            continue;
        } else if (depth == 0) {
            return false;
        }
        json->rest = text_from(json->rest, 1);
    } while (depth);
    return true;
}

bool json_member(struct json *json, struct buffer *name) {
    json_take(json, ',');
    name->count = 0;
    if (json_take(json, '}'))
        return false;
    return json_string(json, name) && json_take(json, ':');
}

bool json_element(struct json *json) {
    char c = json_peek(json);
    if (c == ',') {
        json->rest = text_from(json->rest, 1);
        c = json_peek(json);
    }
    if (c == ']') {
        json->rest = text_from(json->rest, 1);
        return false;
    }
    return json->rest.length > 0;
}

bool json_index(struct json *json, uint32_t *index) {
    json_peek(json);
    uint64_t value = 0;
    size_t length = 0;
    for (; length < json->rest.length && length < 11; length++) {
        unsigned digit = (unsigned char)json->rest.data[length] - '0';
        if (digit > 9)
            break;
        value = value * 10 + digit;
    }
    bool ends = length == json->rest.length || !is_of_number(json->rest.data[length]);
    if (length == 0 || value > UINT32_MAX || !ends)
        return false;
    json->rest = text_from(json->rest, length);
    *index = (uint32_t)value;
    return true;
}

/* Parse 123.456, as most fractions are written. Up to 15 digits are an integer that a double holds exactly, and so is
   the power of ten that it is divided by: the result is rounded once, as by strtod(). Return the bytes read, or 0 for
   anything else. */
static size_t short_fraction(struct text t, double *value) {
    enum { DIGITS = 15 };
    static const double tens[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    size_t at = 0, point = 0;
    for (; at < t.length && at <= DIGITS; at++) {
        if (is_digit(t.data[at]))
            digits = digits * 10 + (uint64_t)(t.data[at] - '0');
        else if (t.data[at] == '.' && at && !point)
            point = at;
        else
            break;
    }
    bool ends = at == t.length || !is_of_number(t.data[at]);
    if (!ends || !point || at == point + 1)
        return 0;
    *value = (double)digits / tens[at - point - 1];
    return at;
}

bool json_double(struct json *json, double *value) {
    struct json before = *json;
    struct text number;
    uint32_t small;
    if (json_index(json, &small)) {
        *value = small;
        return true;
    }
    size_t used = short_fraction(json->rest, value);
    if (used) {
        json->rest = text_from(json->rest, used);
        return true;
    }
    if (json_number(json, &number) && text_to_double(number, value))
        return true;
    *json = before;
    return false;
}
