/* What a query selects and distinguishes, the same for every engine. */
#include "store/internal.h"

const struct text ending_texts[ENDING_UNKNOWN + 1] = {TEXT("complete"), TEXT("truncated"),
                                                      TEXT("broken"), TEXT("unknown")};

bool is_column(struct text key) {
    return text_is(key, "service") || text_is(key, "version") || text_is(key, "host") ||
           text_is(key, "type");
}

struct text series_column(const struct series_row *series, struct text key) {
    return text_is(key, "service")   ? series->service
           : text_is(key, "version") ? series->version
           : text_is(key, "host")    ? series->host
                                     : series->type;
}

const struct pair_row *pair_find(const struct pair_row *pairs, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++)
        if (text_is(pairs[i].key, key))
            return &pairs[i];
    return NULL;
}

struct text pair_value(const struct pair_row *pairs, size_t count, const char *key) {
    const struct pair_row *pair = pair_find(pairs, count, key);
    return pair ? pair->value : TEXT("");
}

/* Return a label's value, or the default that is not stored. */
static struct text label_value(const struct series_row *series, const struct pair_row *pairs,
                               size_t count, const char *key) {
    if (is_column(text_of(key)))
        return series_column(series, text_of(key));
    struct text value = pair_value(pairs, count, key);
    if (!value.length && strcmp(key, "state") == 0)
        return state_name(STATE_ON);
    if (!value.length && strcmp(key, "ending") == 0)
        return ending_texts[ENDING_COMPLETE];
    return value;
}

static bool key_passes(const struct store_query *query, const char *key, struct text value) {
    for (size_t i = 0; i < query->labels.count; i++)
        if (strcmp(query->labels.items[i].key, key) == 0 &&
            text_matches(value, text_of(query->labels.items[i].pattern)))
            return true;
    return false;
}

bool query_passes(const struct store_query *query, const struct series_row *series,
                  const struct pair_row *pairs, size_t count) {
    for (size_t i = 0; i < query->labels.count; i++) {
        const char *key = query->labels.items[i].key;
        if (!key_passes(query, key, label_value(series, pairs, count, key)))
            return false;
    }
    return true;
}

bool query_keeps(const struct store_query *query, struct text key) {
    if (!query->has_by)
        return !text_is(key, "host");
    for (size_t i = 0; i < query->by.count; i++)
        if (text_matches(key, text_of(query->by.items[i])))
            return true;
    return false;
}

bool type_is_called(struct text type, struct text event, struct text wanted) {
    size_t slash = text_find_last(type, '/');
    return text_equal(type, wanted) || (event.length && text_equal(event, wanted)) ||
           (slash != SIZE_MAX && text_equal(text_upto(type, slash), wanted));
}

bool set_is_of_times(const struct pair_row *pairs, size_t count) {
    return pair_value(pairs, count, "__times").length != 0;
}

const struct text *choose_type(const struct text *types, size_t count, const char *where,
                               struct error *error) {
    for (size_t i = 0; i < count; i++)
        if (count == 1 || text_is(types[i], "cpu/nanoseconds"))
            return &types[i];
    struct buffer names = {0};
    for (size_t i = 0; i < count; i++) {
        buffer_add(&names, i ? TEXT(", ") : TEXT(""));
        buffer_add(&names, types[i]);
    }
    error_set(error, ERROR_INPUT,
              "%s: contains several types (%.*s); choose one, such as ?type=%.*s", where,
              TEXT_ARGS(buffer_text(&names)), TEXT_ARGS(types[0]));
    buffer_release(&names);
    return NULL;
}

static bool filters_by(const struct store_query *query, const char *key) {
    for (size_t i = 0; i < query->labels.count; i++)
        if (strcmp(query->labels.items[i].key, key) == 0)
            return true;
    return false;
}

bool query_is_whole(const struct store_query *query) {
    return !query->labels.count;
}

bool query_hours(const struct store_query *query, int64_t *from, int64_t *to) {
    enum { HOUR = 3600 };
    bool alone =
        !query_keeps(query, TEXT("host")) && !filters_by(query, "host") && query->step % HOUR == 0;
    *from = floor_to(query->from + HOUR - 1, HOUR);
    *to = query->to ? floor_to(query->to, HOUR) : INT64_MAX;
    return alone && *from < *to;
}

bool query_has_one_service(const struct store_query *query) {
    size_t count = 0;
    bool is_plain = true;
    for (size_t i = 0; i < query->labels.count; i++)
        if (strcmp(query->labels.items[i].key, "service") == 0) {
            count++;
            is_plain &= !strpbrk(query->labels.items[i].pattern, "*?[\\");
        }
    return count == 1 && is_plain;
}

bool query_keeps_sets(const struct store_query *query) {
    if (!query->has_by)
        return true;
    for (size_t i = 0; i < query->by.count; i++)
        if (!is_column(text_of(query->by.items[i])))
            return true;
    return false;
}
