/* Maintenance of a file: retention, and names that are found later. */
#include <stdlib.h>

#include "store/sqlite.h"

enum { HOUR = 3600 };

/* ---- retention ---- */

/* Go series by series, which is the table's order. */
static bool remove_before(struct sqlite_store *s, const char *sql, int64_t limit, uint64_t *removed,
                          struct error *error) {
    sqlite3_stmt *statement = sqlite_prepare(s, text_of(sql), error);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, limit);
    bool fine = sqlite_once(s, statement, error);
    *removed = fine ? (uint64_t)sqlite3_changes64(s->db) : 0;
    sqlite3_finalize(statement);
    return fine;
}

static bool remember_limit(struct sqlite_store *s, int64_t limit, struct error *error) {
    sqlite3_stmt *statement = sqlite_prepare(
        s,
        TEXT("INSERT INTO meta VALUES ('samples_from', ?) ON CONFLICT DO UPDATE SET value = "
             "max(value, excluded.value)"),
        error);
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 1, limit);
    bool fine = sqlite_once(s, statement, error);
    sqlite3_finalize(statement);
    return fine;
}

static bool count_stacks(struct sqlite_store *s, uint64_t *count, struct error *error) {
    sqlite3_stmt *statement = sqlite_prepare(s, TEXT("SELECT count(*) FROM stack"), error);
    if (!statement)
        return false;
    bool fine = sqlite3_step(statement) == SQLITE_ROW || sqlite_error(s, error);
    *count = fine ? (uint64_t)sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return fine;
}

bool sqlite_gc(struct store *store, const struct store_retention *retention, int64_t now,
               struct store_removed *removed, struct error *error) {
    struct sqlite_store *s = sqlite_of(store);
    int64_t samples = floor_to(now - retention->samples, HOUR),
            hours = floor_to(now - retention->hours, HOUR);
    uint64_t before = 0, after = 0;
    if (samples < 0)
        samples = 0;
    bool fine =
        sqlite_run(s, "BEGIN IMMEDIATE", error) && count_stacks(s, &before, error) &&
        remove_before(s, "DELETE FROM sample WHERE series IN (SELECT id FROM series) AND time < ?1",
                      samples, &removed->samples, error) &&
        remove_before(s, "DELETE FROM hour WHERE series IN (SELECT id FROM series) AND time < ?1",
                      hours, &removed->hours, error) &&
        remove_before(s, "DELETE FROM batch WHERE time < ?1", samples, &removed->batches, error) &&
        sqlite_run(s, "DELETE FROM note WHERE batch NOT IN (SELECT id FROM batch)", error) &&
        (!removed->samples || remember_limit(s, samples, error)) &&
        sqlite_run_text(s, sqlite_gc_unused, error) && count_stacks(s, &after, error) &&
        sqlite_run(s, "COMMIT", error) && sqlite_run(s, "PRAGMA incremental_vacuum", error);
    if (!fine && !sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    removed->stacks = before - after;
    return fine;
}

/* ---- names ---- */

static bool add_name(struct sqlite_store *s, sqlite3_stmt *adding,
                     const struct store_unnamed *place, const struct store_name *name,
                     struct error *error) {
    sqlite_bind_blob_at(adding, 1, place->build_id);
    sqlite3_bind_int64(adding, 2, (int64_t)place->address);
    sqlite_bind_text_at(adding, 3, name->name);
    sqlite_bind_text_at(adding, 4, name->file);
    sqlite3_bind_int64(adding, 5, name->line);
    return sqlite_once(s, adding, error);
}

bool sqlite_symbolize(struct store *store, store_finder *find, void *user, uint64_t *named,
                      uint64_t *unknown, struct error *error) {
    struct sqlite_store *s = sqlite_of(store);
    bool fine = sqlite_run(s, "BEGIN IMMEDIATE", error);
    sqlite3_stmt *asking = fine ? sqlite_prepare(s, sqlite_unnamed, error) : NULL,
                 *adding = fine ? sqlite_prepare(
                                      s, TEXT("INSERT OR REPLACE INTO name VALUES (?, ?, ?, ?, ?)"),
                                      error)
                                : NULL;
    int code = SQLITE_DONE;
    fine = fine && asking && adding;
    while (fine && (code = sqlite3_step(asking)) == SQLITE_ROW) {
        struct store_unnamed place = {sqlite_blob_at(asking, 0), sqlite_text_at(asking, 1),
                                      (uint64_t)sqlite3_column_int64(asking, 2)};
        struct store_name name = {TEXT(""), TEXT(""), 0};
        if (find(user, &place, &name)) {
            fine = add_name(s, adding, &place, &name, error);
            ++*named;
        } else {
            ++*unknown;
        }
    }
    fine = fine && (code == SQLITE_DONE || sqlite_error(s, error));
    sqlite3_finalize(asking);
    sqlite3_finalize(adding);
    fine = fine && sqlite_run(s, "COMMIT", error);
    if (!fine && !sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return fine;
}
