/* The query after the question mark of a URL, and where it begins. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "store/internal.h"

bool store_is_url(struct text url) {
    return text_starts(url, TEXT("clickhouse://")) || text_starts(url, TEXT("clickhouses://"));
}

bool store_is_file(struct text beginning) {
    return text_starts(beginning, (struct text){"SQLite format 3", 16});
}

static bool names_a_file(struct text path) {
    char *copy = memory_copy(path.data, path.length);
    bool found = access(copy, F_OK) == 0;
    free(copy);
    return found;
}

size_t store_url_query(const char *url) {
    struct text t = text_of(url);
    size_t mark = text_find(t, '?');
    if (mark == SIZE_MAX)
        return t.length;
    if (store_is_url(t))
        return mark;
    if (names_a_file(t))
        return t.length;
    for (size_t at = mark; at < t.length; at++)
        if (t.data[at] == '?' && names_a_file(text_upto(t, at)))
            return at;
    return t.length;
}

/* ---- times ---- */

/* Parse "-1d" as seconds. */
static bool parse_span(struct text t, int64_t *seconds) {
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
    uint64_t number;
    if (t.length < 2 || !text_to_u64(text_upto(t, t.length - 1), &number) || number > UINT32_MAX)
        return false;
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (t.data[t.length - 1] == units[i].letter) {
            *seconds = (int64_t)number * units[i].seconds;
            return true;
        }
    return false;
}

static bool parse_date(struct text t, int64_t *seconds) {
    static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S",
                                          "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%SZ"};
    char text[32];
    if (t.length >= sizeof text)
        return false;
    memcpy(text, t.data, t.length);
    text[t.length] = 0;
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        struct tm when = {0};
        const char *end = strptime(text, formats[i], &when);
        if (end && !*end) {
            *seconds = timegm(&when);
            return *seconds >= 0;
        }
    }
    return false;
}

static bool parse_time(struct text t, int64_t now, int64_t *seconds) {
    uint64_t number;
    int64_t span;
    if (text_is(t, "now"))
        *seconds = now;
    else if (text_to_u64(t, &number) && number <= UINT32_MAX)
        *seconds = (int64_t)number;
    else if (text_starts(t, TEXT("-")) && parse_span(text_from(t, 1), &span))
        *seconds = now - span > 0 ? now - span : 0;
    else
        return parse_date(t, seconds);
    return true;
}

/* ---- parameters ---- */

static int hex_digit(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decode percent signs. A NUL would end the text early, and no valid label has one. */
static bool decode(struct store_query *query, struct text t, struct text *decoded) {
    char *out = arena_alloc(&query->arena, t.length + 1);
    size_t length = 0;
    for (size_t i = 0; i < t.length; i++) {
        char c = t.data[i];
        if (c == '%') {
            bool whole = t.length - i > 2;
            int high = whole ? hex_digit(t.data[i + 1]) : -1,
                low = whole ? hex_digit(t.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (!c)
            return false;
        out[length++] = c;
    }
    out[length] = 0;
    *decoded = (struct text){out, length};
    return true;
}

void store_query_label(struct store_query *query, struct text key, struct text pattern) {
    struct label_filter filter = {arena_copy(&query->arena, key).data,
                                  arena_copy(&query->arena, pattern).data};
    vector_push(&query->labels, filter);
}

void store_query_by(struct store_query *query, struct text key) {
    query->has_by = true;
    if (key.length)
        vector_push(&query->by, arena_copy(&query->arena, key).data);
}

static void parse_by(struct store_query *query, struct text list) {
    query->has_by = true;
    while (list.length) {
        size_t comma = text_find(list, ',');
        store_query_by(query, text_upto(list, comma == SIZE_MAX ? list.length : comma));
        list = text_from(list, comma == SIZE_MAX ? list.length : comma + 1);
    }
}

static bool set_parameter(struct store_query *query, struct text key, struct text value,
                          int64_t now) {
    if (text_is(key, "from"))
        return parse_time(value, now, &query->from);
    if (text_is(key, "to"))
        return parse_time(value, now, &query->to);
    if (text_is(key, "step"))
        return parse_span(value, &query->step) && query->step > 0;
    if (text_is(key, "by"))
        parse_by(query, value);
    else if (text_is(key, "type"))
        query->type = value.data;
    else if (text_is(key, "service") || text_is(key, "version") || text_is(key, "host"))
        store_query_label(query, key, value);
    else if (text_starts(key, TEXT("label.")) && key.length > 6)
        store_query_label(query, text_from(key, 6), value);
    else
        return false;
    return true;
}

bool store_query_parse(struct store_query *query, struct text text, int64_t now,
                       struct error *error) {
    if (text.length > STORE_URL_MOST)
        return error_set(error, ERROR_USAGE, "the query of a URL is longer than %d bytes",
                         STORE_URL_MOST);
    while (text.length) {
        size_t end = text_find(text, '&');
        struct text part = text_upto(text, end == SIZE_MAX ? text.length : end), key, value;
        size_t equals = text_find(part, '=');
        if (equals == SIZE_MAX || !decode(query, text_upto(part, equals), &key) ||
            !decode(query, text_from(part, equals + 1), &value) ||
            !set_parameter(query, key, value, now))
            return error_set(error, ERROR_USAGE,
                             "'%.*s' is not a parameter of a query; use service, version, host, "
                             "type, from, to, by, step and label.KEY, such as from=-1d&service=web",
                             TEXT_ARGS(part));
        text = text_from(text, end == SIZE_MAX ? text.length : end + 1);
    }
    if (query->to && query->to < query->from)
        return error_set(error, ERROR_USAGE, "'to' is before 'from'");
    return true;
}

void store_query_release(struct store_query *query) {
    vector_release(&query->labels);
    vector_release(&query->by);
    arena_release(&query->arena);
}
