/* SQL built from a query, and rows in RowBinary. */
#include "store/clickhouse.h"

/* ---- templates ---- */

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9');
}

void sql_fill(const struct clickhouse_store *c, struct buffer *sql, struct text template,
              const struct sql_value *values, size_t count) {
    for (size_t i = 0; i < template.length;) {
        if (template.data[i] != '$') {
            buffer_add_char(sql, template.data[i++]);
            continue;
        }
        size_t end = i + 1;
        while (end < template.length && is_name(template.data[end]))
            end++;
        struct text name = text_from(text_upto(template, end), i + 1);
        if (text_is(name, "db"))
            buffer_add(sql, text_of(c->database));
        for (size_t k = 0; k < count; k++)
            if (text_is(name, values[k].name))
                buffer_add(sql, values[k].value);
        i = end;
    }
}

/* ---- texts ---- */

void sql_text(struct buffer *sql, struct text bytes) {
    buffer_add(sql, TEXT("unhex('"));
    for (size_t i = 0; i < bytes.length; i++)
        buffer_printf(sql, "%02X", (unsigned char)bytes.data[i]);
    buffer_add(sql, TEXT("')"));
}

static void add_literal(struct buffer *regex, char c) {
    unsigned char byte = (unsigned char)c;
    bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                 (byte >= '0' && byte <= '9') || byte >= 0x80;
    if (plain)
        buffer_add_char(regex, c);
    else
        buffer_printf(regex, "\\x%02x", byte);
}

/* Parse "[a-z]" or "[!a-z]" at `at`; return where it ends, or `at` if it is something else. */
static size_t add_class(struct buffer *regex, struct text pattern, size_t at) {
    size_t end = at + 1;
    bool negated = end < pattern.length && pattern.data[end] == '!';
    end += negated;
    size_t first = end;
    while (end < pattern.length && (pattern.data[end] != ']' || end == first))
        end++;
    if (end >= pattern.length)
        return at;
    buffer_add(regex, negated ? TEXT("[^") : TEXT("["));
    for (size_t i = first; i < end; i++)
        if (pattern.data[i] == '-' && i > first && i + 1 < end)
            buffer_add_char(regex, '-');
        else
            add_literal(regex, pattern.data[i]);
    buffer_add_char(regex, ']');
    return end + 1;
}

/* Return true if the pattern is a plain text, which is then in `plain`. */
static bool translate(struct text pattern, struct buffer *regex, struct buffer *plain) {
    bool is_plain = true;
    buffer_add(regex, TEXT("^(?s:"));
    for (size_t i = 0; i < pattern.length;) {
        char c = pattern.data[i];
        size_t end = c == '[' ? add_class(regex, pattern, i) : i;
        is_plain &= c != '*' && c != '?' && end == i;
        if (end > i) {
            i = end;
            continue;
        }
        if (c == '*')
            buffer_add(regex, TEXT(".*"));
        else if (c == '?')
            buffer_add_char(regex, '.');
        else {
            i += c == '\\' && i + 1 < pattern.length;
            add_literal(regex, pattern.data[i]);
            buffer_add_char(plain, pattern.data[i]);
        }
        i++;
    }
    buffer_add(regex, TEXT(")$"));
    return is_plain;
}

void sql_matches(struct buffer *sql, const char *expression, struct text pattern) {
    struct buffer regex = {0}, plain = {0};
    if (translate(pattern, &regex, &plain)) {
        buffer_printf(sql, "%s = ", expression);
        sql_text(sql, buffer_text(&plain));
    } else {
        buffer_printf(sql, "match(%s, ", expression);
        sql_text(sql, buffer_text(&regex));
        buffer_add_char(sql, ')');
    }
    buffer_release(&regex);
    buffer_release(&plain);
}

/* ---- where ---- */

/* Append a label as SQL: a column, or a lookup in the set. */
static void label_expression(struct buffer *sql, struct text key) {
    if (is_column(key)) {
        buffer_add(sql, key);
        return;
    }
    struct buffer value = {0};
    buffer_add(&value, TEXT("vals[indexOf(keys, "));
    sql_text(&value, key);
    buffer_add(&value, TEXT(")]"));
    const char *rule = text_is(key, "state") ? "on-cpu" : text_is(key, "ending") ? "complete" : "";
    if (*rule)
        buffer_printf(sql, "if(%.*s = '', '%s', %.*s)", TEXT_ARGS(buffer_text(&value)), rule,
                      TEXT_ARGS(buffer_text(&value)));
    else
        buffer_add(sql, buffer_text(&value));
    buffer_release(&value);
}

static bool is_first_of_key(const struct store_query *query, size_t at) {
    for (size_t i = 0; i < at; i++)
        if (strcmp(query->labels.items[i].key, query->labels.items[at].key) == 0)
            return false;
    return true;
}

/* Patterns of one key are alternatives. */
static void add_key(struct buffer *sql, const struct store_query *query, size_t at) {
    const char *key = query->labels.items[at].key;
    struct buffer expression = {0};
    label_expression(&expression, text_of(key));
    buffer_add_char(&expression, 0);
    buffer_add_char(sql, '(');
    for (size_t i = at; i < query->labels.count; i++) {
        if (strcmp(query->labels.items[i].key, key) != 0)
            continue;
        buffer_add(sql, i > at ? TEXT(" OR ") : TEXT(""));
        sql_matches(sql, expression.items, text_of(query->labels.items[i].pattern));
    }
    buffer_add_char(sql, ')');
    buffer_release(&expression);
}

void sql_where(const struct clickhouse_store *c, struct buffer *sql,
               const struct store_query *query, const char *time, int64_t from, int64_t to,
               struct text type) {
    bool open = false;
    buffer_printf(sql, "%s >= toDateTime(%lld) AND %s < toDateTime(%lld)", time, (long long)from,
                  time, (long long)to);
    for (size_t i = 0; i < query->labels.count; i++)
        if (is_column(text_of(query->labels.items[i].key)) && is_first_of_key(query, i)) {
            buffer_add(sql, TEXT(" AND "));
            add_key(sql, query, i);
        }
    for (size_t i = 0; i < query->labels.count; i++) {
        if (is_column(text_of(query->labels.items[i].key)) || !is_first_of_key(query, i))
            continue;
        if (!open)
            buffer_printf(sql, " AND labels GLOBAL IN (SELECT id FROM %s.series WHERE ",
                          c->database);
        buffer_add(sql, open ? TEXT(" AND ") : TEXT(""));
        add_key(sql, query, i);
        open = true;
    }
    buffer_add(sql, open ? TEXT(")") : TEXT(""));
    buffer_printf(sql,
                  " AND (labels GLOBAL %s (SELECT id FROM %s.series WHERE has(keys, '__times'))",
                  query->waits ? "IN" : "NOT IN", c->database);
    buffer_add(sql, query->waits ? TEXT(" OR ") : TEXT(" AND "));
    buffer_add(sql, type.length ? type : TEXT("1"));
    buffer_add_char(sql, ')');
}

/* ---- rows ---- */

uint64_t row_varint(struct answer_file *answer) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && answer->rest.length; shift += 7) {
        uint8_t byte = (uint8_t)answer->rest.data[0];
        answer->rest = text_from(answer->rest, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    answer->is_bad = true;
    return 0;
}

static struct text row_bytes(struct answer_file *answer, uint64_t size) {
    if (size > answer->rest.length) {
        answer->is_bad = true;
        answer->rest = TEXT("");
        return TEXT("");
    }
    struct text bytes = text_upto(answer->rest, size);
    answer->rest = text_from(answer->rest, size);
    return bytes;
}

uint64_t row_number(struct answer_file *answer, size_t width) {
    uint64_t value = 0;
    struct text bytes = row_bytes(answer, width);
    memcpy(&value, bytes.data, bytes.length);
    return value;
}

struct text row_text(struct answer_file *answer) {
    return row_bytes(answer, row_varint(answer));
}

struct store_hash row_hash(struct answer_file *answer) {
    struct store_hash hash = {0};
    struct text bytes = row_bytes(answer, sizeof hash.bytes);
    memcpy(hash.bytes, bytes.data, bytes.length);
    return hash;
}

bool rows_left(const struct answer_file *answer) {
    return answer->rest.length && !answer->is_bad;
}

bool rows_are_good(const struct clickhouse_store *c, const struct answer_file *answer,
                   struct error *error) {
    return !answer->is_bad || error_at(error, c->store.where, answer->file.size,
                                       "the server's answer ends in the middle of a row");
}

void put_row_text(struct buffer *rows, struct text text) {
    buffer_add_varint(rows, text.length);
    buffer_add(rows, text);
}

void put_row_hash(struct buffer *rows, const struct store_hash *hash) {
    buffer_add(rows, store_hash_text(hash));
}
