/* Private to the SQLite engine: one open file, and statements that clean up after themselves. */
#ifndef WICK_STORE_SQLITE_H
#define WICK_STORE_SQLITE_H

#include <sqlite3.h>

#include "store/internal.h"

/* The queries, from sqlite/NAME.sql. */
extern const struct text sqlite_schema, sqlite_upgrade, sqlite_series_1, sqlite_flame,
    sqlite_flame_long, sqlite_heat, sqlite_heat_long, sqlite_series, sqlite_labels_of,
    sqlite_stacks_of, sqlite_names_of, sqlite_span, sqlite_unnamed, sqlite_gc_unused, sqlite_notes;

struct sqlite_store {
    struct store store;
    sqlite3 *db;
    struct budget *budget; /* for what is being read, or NULL */
    int64_t samples_from;  /* samples before this were removed */
    bool is_first;         /* of version 1: its series have no `each` */
};
static inline struct sqlite_store *sqlite_of(struct store *store) {
    return (struct sqlite_store *)store;
}

/* Set an error for the file, and whether to try again. Return false. */
bool sqlite_error(struct sqlite_store *s, struct error *error);
bool sqlite_run(struct sqlite_store *s, const char *sql, struct error *error);
/* Run all statements of a text. */
bool sqlite_run_text(struct sqlite_store *s, struct text sql, struct error *error);
/* Return NULL and set *error on failure. Finalize it. */
sqlite3_stmt *sqlite_prepare(struct sqlite_store *s, struct text sql, struct error *error);
void sqlite_bind_text_at(sqlite3_stmt *statement, int place, struct text text);
void sqlite_bind_blob_at(sqlite3_stmt *statement, int place, struct text bytes);
struct text sqlite_text_at(sqlite3_stmt *statement, int column); /* valid until the next step */
struct text sqlite_blob_at(sqlite3_stmt *statement, int column);
/* Step once and reset. Return true if it succeeded. */
bool sqlite_once(struct sqlite_store *s, sqlite3_stmt *statement, struct error *error);

/* Convert a row's value to its stored form, and back, sums included; return false if a store can't hold the number. */
bool sqlite_pack(uint64_t samples, uint64_t value, int64_t each, int64_t *stored);
bool sqlite_unpack(int64_t samples, int64_t stored, int64_t each, uint64_t *value);

/* sqlite_put.c, sqlite_read.c, sqlite_keep.c */
bool sqlite_put(struct store *store, const struct encoded *encoded, const struct store_batch *batch,
                struct store_result *result, struct error *error);
bool sqlite_read(struct store *store, const struct store_query *query, struct answer *answer,
                 struct notes *notes, struct error *error);
bool sqlite_sums(struct store *store, const struct store_query *query, struct store_rows *rows,
                 struct error *error);
bool sqlite_span_of(struct store *store, const struct store_query *query, int64_t *from,
                    int64_t *to, struct error *error);
bool sqlite_gc(struct store *store, const struct store_retention *retention, int64_t now,
               struct store_removed *removed, struct error *error);
bool sqlite_symbolize(struct store *store, store_finder *find, void *user, uint64_t *named,
                      uint64_t *unknown, struct error *error);

#endif
