/* JSON as a stream of values, for readers that want a few of them. No tree, no recursion. */
#ifndef WICK_BASE_JSON_H
#define WICK_BASE_JSON_H

#include "base/base.h"

struct json {
    struct text rest;
};

static inline bool json_is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}
/* The first byte of the next value or of what closes the one we are in; 0 at the end. */
static inline char json_peek(struct json *json) {
    while (json->rest.length && json_is_space(json->rest.data[0]))
        json->rest = text_from(json->rest, 1);
    return json->rest.length ? json->rest.data[0] : 0;
}
/* Steps over `c`, if it is next. */
static inline bool json_take(struct json *json, char c) {
    if (json_peek(json) != c || !json->rest.length)
        return false;
    json->rest = text_from(json->rest, 1);
    return true;
}
/* A string, unescaped, appended to `out`. False, and nothing read, if none is next. */
bool json_string(struct json *json, struct buffer *out);
/* A number as it stands. */
bool json_number(struct json *json, struct text *number);
/* Whatever value is next. False where the text ends too early or is no JSON. */
bool json_skip(struct json *json);
/* In an object: the next member's name, in `name`, with its value next. False at its end, which is taken, or at nonsense. */
bool json_member(struct json *json, struct buffer *name);
/* In an array, whose '[' was taken: whether there is one more element, which is next then. Its end is taken. */
bool json_element(struct json *json);
/* A whole number that is not negative and has 32 bits. False, and nothing read, of anything else. */
bool json_index(struct json *json, uint32_t *index);
/* Any number. False, and nothing read, of anything else. */
bool json_double(struct json *json, double *value);

#endif
