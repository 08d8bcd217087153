/* JSON as a stream of values, for readers that need few of them. No tree, no recursion. */
#ifndef WICK_BASE_JSON_H
#define WICK_BASE_JSON_H

#include "base/base.h"

struct json {
    struct text rest;
};

static inline bool json_is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
/* Return the first byte of the next value, or the byte that closes the current one; 0 at the end. */
static inline char json_peek(struct json *json) {
    while (json->rest.length && json_is_space(json->rest.data[0]))
        json->rest = text_from(json->rest, 1);
    return json->rest.length ? json->rest.data[0] : 0;
}
/* Skip `c` if it is next. */
static inline bool json_take(struct json *json, char c) {
    if (json_peek(json) != c || !json->rest.length)
        return false;
    json->rest = text_from(json->rest, 1);
    return true;
}
/* Append the next string, unescaped, to `out`. Return false and read nothing if no string is next. */
bool json_string(struct json *json, struct buffer *out);
/* Set `out` to the next value if it is a string; else empty `out` and skip the value. */
bool json_text(struct json *json, struct buffer *out);
/* Read a number as text. */
bool json_number(struct json *json, struct text *number);
/* Skip the next value. Return false if the text ends too early or is not JSON. */
bool json_skip(struct json *json);
/* In an object, read the next member's name; its value is next. Return false at the object's end, which is skipped,
   or on invalid input. */
bool json_member(struct json *json, struct buffer *name);
/* In an array, after its '[': return true if another element is next. Skips the array's end. */
bool json_element(struct json *json);
/* Read a non-negative integer of 32 bits. Return false and read nothing for anything else. */
bool json_index(struct json *json, uint32_t *index);
/* Read any number. Return false and read nothing for anything else. */
bool json_double(struct json *json, double *value);

#endif
