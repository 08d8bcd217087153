/*
 * Bytes with a length. Names and paths come from files and may contain any bytes, including NUL.
 */
#include "base/base.h"

#include <stdlib.h>

int text_compare(struct text a, struct text b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

bool text_starts(struct text t, struct text prefix) {
    return t.length >= prefix.length && text_equal(text_upto(t, prefix.length), prefix);
}

bool text_ends(struct text t, struct text suffix) {
    return t.length >= suffix.length && text_equal(text_from(t, t.length - suffix.length), suffix);
}

size_t text_find(struct text t, char byte) {
    const char *found = t.length ? memchr(t.data, byte, t.length) : NULL;
    return found ? (size_t)(found - t.data) : SIZE_MAX;
}

size_t text_find_last(struct text t, char byte) {
    const char *found = t.length ? memrchr(t.data, byte, t.length) : NULL;
    return found ? (size_t)(found - t.data) : SIZE_MAX;
}

size_t text_search(struct text t, struct text needle) {
    if (needle.length == 0)
        return 0;
    const char *found = t.length ? memmem(t.data, t.length, needle.data, needle.length) : NULL;
    return found ? (size_t)(found - t.data) : SIZE_MAX;
}

/* Match one byte against one pattern element and set its length. A `[` without a `]` stands for itself. */
static bool element_matches(struct text pattern, unsigned char byte, size_t *length) {
    const unsigned char *p = (const unsigned char *)pattern.data;
    bool negated = pattern.length > 1 && (p[1] == '!' || p[1] == '^'), found = false;
    size_t first = negated ? 2 : 1, at = first;
    *length = p[0] == '\\' && pattern.length > 1 ? 2 : 1;
    if (p[0] != '[')
        return p[0] == '?' || p[*length - 1] == byte;
    for (; at < pattern.length && (p[at] != ']' || at == first); at++) {
        bool is_range = at + 2 < pattern.length && p[at + 1] == '-' && p[at + 2] != ']';
        found |= is_range ? byte >= p[at] && byte <= p[at + 2] : byte == p[at];
        at += is_range ? 2 : 0;
    }
    if (at >= pattern.length)
        return byte == '[';
    *length = at + 1;
    return found != negated;
}

/* After a mismatch only the last `*` takes another byte: earlier ones need not be retried. */
bool text_matches(struct text t, struct text pattern) {
    size_t at = 0, in_pattern = 0, star = SIZE_MAX, taken = 0, length;
    while (at < t.length) {
        if (in_pattern < pattern.length && pattern.data[in_pattern] == '*') {
            star = ++in_pattern;
            taken = at;
        } else if (in_pattern < pattern.length &&
                   element_matches(text_from(pattern, in_pattern), (unsigned char)t.data[at],
                                   &length)) {
            in_pattern += length;
            at++;
        } else if (star != SIZE_MAX) {
            in_pattern = star;
            at = ++taken;
        } else {
            return false;
        }
    }
    while (in_pattern < pattern.length && pattern.data[in_pattern] == '*')
        in_pattern++;
    return in_pattern == pattern.length;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct text text_trim(struct text t) {
    while (t.length && is_blank(t.data[0]))
        t = text_from(t, 1);
    while (t.length && is_blank(t.data[t.length - 1]))
        t.length--;
    return t;
}

bool text_to_u64(struct text t, uint64_t *value) {
    uint64_t result = 0;
    if (t.length == 0)
        return false;
    for (size_t i = 0; i < t.length; i++) {
        unsigned digit = (unsigned char)t.data[i] - '0';
        if (digit > 9 || !checked_multiply(result, 10, &result) ||
            !checked_add(result, digit, &result))
            return false;
    }
    *value = result;
    return true;
}

bool text_hex_to_u64(struct text t, uint64_t *value) {
    uint64_t result = 0;
    if (t.length == 0)
        return false;
    for (size_t i = 0; i < t.length; i++) {
        unsigned char c = (unsigned char)t.data[i];
        unsigned digit = c - '0';
        if (digit > 9)
            digit = (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10u : 16;
        if (digit > 15 || result >> 60)
            return false;
        result = result << 4 | digit;
    }
    *value = result;
    return true;
}

bool text_to_double(struct text t, double *value) {
    char copy[64], *end;
    if (t.length == 0 || t.length >= sizeof copy)
        return false;
    for (size_t i = 0; i < t.length; i++)
        if (!memchr("0123456789.eE+-", t.data[i], 15))
            return false;
    memcpy(copy, t.data, t.length);
    copy[t.length] = 0;
    *value = strtod(copy, &end);
    return *end == 0 && end != copy;
}

uint64_t double_to_u64(double value) {
    if (!(value > 0))
        return 0;
    return value >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)value;
}
