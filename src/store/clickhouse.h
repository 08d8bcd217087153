/* Private to the ClickHouse engine: one server, asked over HTTP by the helper process. */
#ifndef WICK_STORE_CLICKHOUSE_H
#define WICK_STORE_CLICKHOUSE_H

#include "net/net.h"
#include "store/internal.h"

/* The queries, from clickhouse/NAME.sql. $name stands for what is filled in. */
extern const struct text clickhouse_schema, clickhouse_flame, clickhouse_heat, clickhouse_types,
    clickhouse_labels_of, clickhouse_stacks_of, clickhouse_names_of, clickhouse_later_names,
    clickhouse_span, clickhouse_oldest, clickhouse_unnamed, clickhouse_notes, clickhouse_known,
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
    bool modern;           /* has codecs, TTL and tokens; else it is of 2018 or so */
    bool clustered;        /* tables are distributed */
    bool partial;          /* something did not answer, and that is allowed */
    struct index sent; /* hashes of frames, stacks and label sets that this connection has sent */
    VECTOR(struct store_hash) sent_hashes;
};
static inline struct clickhouse_store *clickhouse_of(struct store *store) {
    return (struct clickhouse_store *)store;
}

/* ---- asking ---- */

/* One answer, mapped. Zero-initialised is none. */
struct answer_file {
    struct file file;
    struct text rest; /* what was not parsed yet */
    bool is_bad;      /* it ended in the middle of a value */
};
void answer_file_close(struct answer_file *answer);
/* Send a query that changes nothing, or DDL, as the body. */
bool clickhouse_ask(struct clickhouse_store *c, struct text sql, struct answer_file *answer,
                    struct error *error);
/* Send rows for INSERT INTO `into` in RowBinary; `token` may be empty. */
bool clickhouse_insert(struct clickhouse_store *c, const char *into, struct text rows,
                       struct text token, struct error *error);

/* ---- SQL ---- */

struct sql_value {
    const char *name;
    struct text value;
};
/* Append the template with each $name exchanged for its value, once. $db is always known. */
void sql_fill(const struct clickhouse_store *c, struct buffer *sql, struct text template,
              const struct sql_value *values, size_t count);
/* Append bytes as an expression: unhex('…'). Whatever they are, nothing of them is SQL. */
void sql_text(struct buffer *sql, struct text bytes);
/* The same of a pattern of text_matches(): `expression` equals it, or matches it. */
void sql_matches(struct buffer *sql, const char *expression, struct text pattern);
/* What the query chooses; by `time` or, of sums by the hour, by `hour`. `type`: as is_wanted() says, or empty. */
void sql_where(const struct clickhouse_store *c, struct buffer *sql,
               const struct store_query *query, const char *time, int64_t from, int64_t to,
               struct text type);

/* ---- rows ---- */

uint64_t row_varint(struct answer_file *answer);
uint64_t row_number(struct answer_file *answer, size_t width);
struct text row_text(struct answer_file *answer);
struct store_hash row_hash(struct answer_file *answer);
bool rows_left(const struct answer_file *answer);
/* False, and *error set, if the answer ended too early. */
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
/* Make the database and its tables, and what says which version they are, unless they are there. */
bool clickhouse_create(struct clickhouse_store *c, struct error *error);

#endif
