/* Private to the ClickHouse engine: one server, queried over HTTP through the helper process. */
#ifndef WICK_STORE_CLICKHOUSE_H
#define WICK_STORE_CLICKHOUSE_H

#include "net/net.h"
#include "store/internal.h"

/* The queries, from clickhouse/NAME.sql. $name is a placeholder. */
extern const struct text clickhouse_samples, clickhouse_days, clickhouse_first_day,
    clickhouse_schema, clickhouse_flame, clickhouse_heat, clickhouse_types, clickhouse_labels_of,
    clickhouse_stacks_of, clickhouse_names_of, clickhouse_later_names, clickhouse_span,
    clickhouse_oldest, clickhouse_unnamed, clickhouse_notes, clickhouse_known,
    clickhouse_half_known;

enum { CLICKHOUSE_SCHEMA = 1 }; /* the version of schema.sql; others are neither read nor written */

struct clickhouse_store {
    struct store store;
    struct net *net;
    bool owns_net;
    char *base; /* http://host:port/ */
    char *database;
    char *credentials;     /* or NULL */
    unsigned milliseconds; /* for one request */
    bool modern;           /* has codecs, TTL and tokens; otherwise it is from about 2018 */
    bool clustered;        /* tables are distributed */
    bool has_days;         /* there are also sums by the day */
    int64_t days_from;     /* complete from this day on, in Unix seconds */
    bool keeps_settings;   /* the user may not change settings (readonly = 1) */
    bool partial;          /* something did not answer, which is allowed */
    struct index sent; /* hashes of frames, stacks and label sets that this connection has sent */
    VECTOR(struct store_hash) sent_hashes;
};
static inline struct clickhouse_store *clickhouse_of(struct store *store) {
    return (struct clickhouse_store *)store;
}

/* ---- requests ---- */

/* One answer, mapped. Zero-initialised is empty. */
struct answer_file {
    struct file file;
    struct text rest; /* what was not parsed yet */
    bool is_bad;      /* it ended within a value */
};
void answer_file_close(struct answer_file *answer);
/* Send a query that changes nothing, or DDL, as the body. */
bool clickhouse_ask(struct clickhouse_store *c, struct text sql, struct answer_file *answer,
                    struct error *error);
/* Ask for one UInt64. */
bool clickhouse_ask_number(struct clickhouse_store *c, struct text sql, uint64_t *number,
                           struct error *error);
/* Count how many of these names, written as SQL strings, are tables of the database. */
bool clickhouse_count_tables(struct clickhouse_store *c, const char *names, uint64_t *count,
                             struct error *error);
/* Send rows for INSERT INTO `into` in RowBinary; `token` may be empty. */
bool clickhouse_insert(struct clickhouse_store *c, const char *into, struct text rows,
                       struct text token, struct error *error);

/* ---- SQL ---- */

struct sql_value {
    const char *name;
    struct text value;
};
/* Append the template with each $name replaced by its value, once. $db is always defined. */
void sql_fill(const struct clickhouse_store *c, struct buffer *sql, struct text template,
              const struct sql_value *values, size_t count);
/* Append bytes as an expression: unhex('…'). Whatever they are, they never become SQL. */
void sql_text(struct buffer *sql, struct text bytes);
/* The same for a pattern of text_matches(): `expression` equals it, or matches it. */
void sql_matches(struct buffer *sql, const char *expression, struct text pattern);
/* Append the query's conditions; by `time` or, for sums, by `hour` or `day`. `type`: a condition from is_wanted(), or
   empty. */
void sql_where(const struct clickhouse_store *c, struct buffer *sql,
               const struct store_query *query, const char *time, int64_t from, int64_t to,
               struct text type);

/* ---- rows ---- */

uint64_t row_varint(struct answer_file *answer);
uint64_t row_number(struct answer_file *answer, size_t width);
struct text row_text(struct answer_file *answer);
struct store_hash row_hash(struct answer_file *answer);
bool rows_left(const struct answer_file *answer);
/* Return false and set *error if the answer ended too early. */
bool rows_are_good(const struct clickhouse_store *c, const struct answer_file *answer,
                   struct error *error);
void put_row_text(struct buffer *rows, struct text text);
void put_row_hash(struct buffer *rows, const struct store_hash *hash);

/* clickhouse_put.c, clickhouse_read.c, clickhouse_keep.c */
bool clickhouse_put(struct store *store, const struct encoded *encoded,
                    const struct store_batch *batch, struct store_result *result,
                    struct error *error);
bool clickhouse_read(struct store *store, const struct store_query *query, struct answer *answer,
                     struct notes *notes, struct error *error);
bool clickhouse_sums(struct store *store, const struct store_query *query, struct store_rows *rows,
                     struct error *error);
bool clickhouse_span_of(struct store *store, const struct store_query *query, int64_t *from,
                        int64_t *to, struct error *error);
bool clickhouse_gc(struct store *store, const struct store_retention *retention, int64_t now,
                   struct store_removed *removed, struct error *error);
bool clickhouse_symbolize(struct store *store, store_finder *find, void *user, uint64_t *named,
                          uint64_t *unknown, struct error *error);
/* Create the database, its tables and their version, unless they exist. */
bool clickhouse_create(struct clickhouse_store *c, struct error *error);

#endif
