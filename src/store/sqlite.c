/*
 * A store in one file. A file that is read may come from a stranger: it is opened read-only, with its schema
 * distrusted, views and triggers off, its tables checked to be tables, and a budget for every query.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    APPLICATION = 0x7769636b, /* "wick" */
    SCHEMA = 2,               /* value of user_version */
    FIRST_SCHEMA = 1,         /* also read and written, as it is; other versions are neither */
    BUSY_MILLISECONDS = 10000,
    TEXT_MOST = 64 << 20, /* of one value */
    STEPS_BETWEEN = 1000, /* SQLite's virtual machine steps between two checks of the budget */
    HEADER = 100,
};

/* ---- errors and statements ---- */

static bool is_passing(int code) {
    int primary = code & 0xff;
    return primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_FULL ||
           primary == SQLITE_IOERR || primary == SQLITE_NOMEM || primary == SQLITE_CANTOPEN;
}

bool sqlite_error(struct sqlite_store *s, struct error *error) {
    int code = sqlite3_extended_errcode(s->db);
    s->store.failure = is_passing(code) ? STORE_TRY_AGAIN : STORE_REJECTED;
    if (s->budget && budget_exceeded(s->budget))
        return budget_error(s->budget, s->store.where, error);
    return error_set(error, ERROR_INPUT, "%s: %s", s->store.where, sqlite3_errmsg(s->db));
}

bool sqlite_run(struct sqlite_store *s, const char *sql, struct error *error) {
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK || sqlite_error(s, error);
}

bool sqlite_run_text(struct sqlite_store *s, struct text sql, struct error *error) {
    char *copy = memory_copy(sql.data, sql.length);
    bool fine = sqlite_run(s, copy, error);
    free(copy);
    return fine;
}

sqlite3_stmt *sqlite_prepare(struct sqlite_store *s, struct text sql, struct error *error) {
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(s->db, sql.data, (int)sql.length, &statement, NULL) != SQLITE_OK)
        sqlite_error(s, error);
    return statement;
}

void sqlite_bind_text_at(sqlite3_stmt *statement, int place, struct text text) {
    sqlite3_bind_text64(statement, place, text.length ? text.data : "", text.length, SQLITE_STATIC,
                        SQLITE_UTF8);
}

void sqlite_bind_blob_at(sqlite3_stmt *statement, int place, struct text bytes) {
    sqlite3_bind_blob64(statement, place, bytes.length ? bytes.data : "", bytes.length,
                        SQLITE_STATIC);
}

/* Return the raw bytes, whatever type a stranger gave the value. */
struct text sqlite_blob_at(sqlite3_stmt *statement, int column) {
    const void *data = sqlite3_column_blob(statement, column);
    int size = sqlite3_column_bytes(statement, column);
    return data && size > 0 ? (struct text){data, (size_t)size} : TEXT("");
}

struct text sqlite_text_at(sqlite3_stmt *statement, int column) {
    return sqlite_blob_at(statement, column);
}

bool sqlite_once(struct sqlite_store *s, sqlite3_stmt *statement, struct error *error) {
    int code = sqlite3_step(statement);
    bool fine = code == SQLITE_DONE || code == SQLITE_ROW || sqlite_error(s, error);
    sqlite3_reset(statement);
    return fine;
}

static bool ask_number(struct sqlite_store *s, const char *sql, int64_t *number,
                       struct error *error) {
    sqlite3_stmt *statement = sqlite_prepare(s, text_of(sql), error);
    if (!statement)
        return false;
    int code = sqlite3_step(statement);
    *number = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    bool fine = code == SQLITE_ROW || code == SQLITE_DONE || sqlite_error(s, error);
    sqlite3_finalize(statement);
    return fine;
}

/* ---- values ---- */

bool sqlite_pack(uint64_t samples, uint64_t value, int64_t each, int64_t *stored) {
    int64_t usual;
    return samples <= INT64_MAX && value <= INT64_MAX &&
           !__builtin_mul_overflow((int64_t)samples, each, &usual) &&
           !__builtin_sub_overflow((int64_t)value, usual, stored);
}

bool sqlite_unpack(int64_t samples, int64_t stored, int64_t each, uint64_t *value) {
    int64_t sum;
    bool fine = !__builtin_mul_overflow(samples, each, &sum) &&
                !__builtin_add_overflow(sum, stored, &sum) && samples >= 0 && sum >= 0;
    *value = fine ? (uint64_t)sum : 0;
    return fine;
}

/* ---- the budget ---- */

static int on_progress(void *context) {
    struct sqlite_store *s = context;
    if (context_cancelled(s->store.options.context))
        return 1;
    return s->budget && !budget_take_steps(s->budget, STEPS_BETWEEN, NO_OFFSET);
}

/* ---- opening ---- */

static void distrust(struct sqlite_store *s) {
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(s->db, SQLITE_LIMIT_LENGTH, TEXT_MOST);
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
}

/* Create the tables, or what they lack, and set their version. */
static bool run_schema(struct sqlite_store *s, struct text sql, struct error *error) {
    struct buffer marks = {0};
    buffer_printf(&marks, "PRAGMA application_id = %d; PRAGMA user_version = %d%c", APPLICATION,
                  SCHEMA, 0);
    bool fine = sqlite_run(s, "BEGIN IMMEDIATE", error) && sqlite_run_text(s, sql, error) &&
                sqlite_run(s, marks.items, error) && sqlite_run(s, "COMMIT", error);
    buffer_release(&marks);
    return fine;
}

static bool create_schema(struct sqlite_store *s, struct error *error) {
    return sqlite_run(s, "PRAGMA auto_vacuum = INCREMENTAL", error) &&
           run_schema(s, sqlite_schema, error);
}

/* A view, a virtual table or a generated column would run what a stranger wrote, and one call of a function may take hours. */
static bool check_tables(struct sqlite_store *s, struct error *error) {
    enum { TABLES = 12 };
    int64_t count;
    if (!ask_number(
            s,
            "SELECT count(*) FROM sqlite_schema s WHERE type = 'table' AND rootpage > 0 AND "
            "name IN ('meta', 'batch', 'object', 'frame', 'stack', 'labels', 'label', "
            "'series', 'sample', 'hour', 'name', 'note') AND NOT EXISTS (SELECT 1 FROM "
            "pragma_table_xinfo(s.name) WHERE hidden <> 0)",
            &count, error))
        return false;
    return count == TABLES ||
           error_set(error, ERROR_INPUT, "%s: its tables are not those of a store", s->store.where);
}

static bool check_version(struct sqlite_store *s, int64_t version, struct error *error) {
    s->is_first = version == FIRST_SCHEMA;
    return version == SCHEMA || s->is_first ||
           store_version_error(s->store.where, (long long)version, SCHEMA, error);
}

static bool upgrade(struct sqlite_store *s, struct error *error) {
    bool wanted = s->is_first && s->store.options.write && s->store.options.upgrade;
    if (wanted && !run_schema(s, sqlite_upgrade, error))
        return false;
    s->is_first &= !wanted;
    return true;
}

static bool check_schema(struct sqlite_store *s, struct error *error) {
    int64_t application, version, tables;
    const char *where = s->store.where;
    if (!ask_number(s, "PRAGMA application_id", &application, error) ||
        !ask_number(s, "PRAGMA user_version", &version, error) ||
        !ask_number(s, "SELECT count(*) FROM sqlite_schema", &tables, error))
        return false;
    if (tables == 0 && s->store.options.write && s->store.options.create)
        return create_schema(s, error);
    if (application != APPLICATION)
        return error_set(error, ERROR_INPUT, "%s: a SQLite file, but not a store of wick", where);
    return check_version(s, version, error) && check_tables(s, error) && upgrade(s, error) &&
           ask_number(s, "SELECT value FROM meta WHERE key = 'samples_from'", &s->samples_from,
                      error);
}

/* A file that is not SQLite's gets our own error, and no journal is looked for beside it. */
static bool check_header(const char *path, bool may_be_new, struct error *error) {
    uint8_t header[HEADER];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    if (file < 0 && errno == ENOENT && may_be_new)
        return true;
    if (file < 0 || fstat(file, &status) != 0) {
        error_errno(error, path);
        if (file >= 0)
            close(file);
        return false;
    }
    ssize_t size = S_ISREG(status.st_mode) ? read(file, header, sizeof header) : -1;
    close(file);
    if (size == 0 && may_be_new)
        return true;
    if (size < HEADER || !store_is_file((struct text){(const char *)header, sizeof header}))
        return error_set(error, ERROR_INPUT, "%s: not a store: not a SQLite file", path);
    if (header[18] != 1 || header[19] != 1)
        return error_set(error, ERROR_INPUT,
                         "%s: has a write-ahead log, which stores do not use; remove it with "
                         "\"PRAGMA journal_mode = DELETE\"",
                         path);
    return true;
}

static bool connect_file(struct sqlite_store *s, bool write, struct error *error) {
    /* Prefix "./" because SQLite takes names such as file:… for URLs. */
    struct buffer name = {0};
    buffer_printf(&name, "%s%s%c", s->store.where[0] == '/' ? "" : "./", s->store.where, 0);
    int flags = !write                    ? SQLITE_OPEN_READONLY
                : s->store.options.create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                          : SQLITE_OPEN_READWRITE;
    int code = sqlite3_open_v2(name.items, &s->db, flags | SQLITE_OPEN_PRIVATECACHE, NULL);
    buffer_release(&name);
    if (code != SQLITE_OK)
        return s->db ? sqlite_error(s, error)
                     : error_set(error, ERROR_INPUT, "%s: can't be opened", s->store.where);
    distrust(s);
    sqlite3_busy_timeout(s->db, BUSY_MILLISECONDS);
    sqlite3_progress_handler(s->db, STEPS_BETWEEN, on_progress, s);
    return sqlite_run(s, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = 2",
                      error);
}

/* Roll back what a writer that died has left half written, if the file is the user's own. */
static void recover(struct sqlite_store *s) {
    struct error ignored;
    struct sqlite_store writer = {.store = s->store};
    writer.store.options.create = false;
    if (connect_file(&writer, true, &ignored))
        sqlite_run(&writer, "BEGIN IMMEDIATE; COMMIT", &ignored);
    sqlite3_close(writer.db);
}

/* The journal is beside the file itself, even if the path is a link. */
static bool has_journal(const char *path) {
    struct buffer name = {0};
    char *real = realpath(path, NULL);
    buffer_printf(&name, "%s-journal%c", real ? real : path, 0);
    bool found = access(name.items, F_OK) == 0;
    buffer_release(&name);
    free(real);
    return found;
}

bool store_needs_recovery(const char *path) {
    struct stat status;
    return has_journal(path) && stat(path, &status) == 0 && user_is_trusted(status.st_uid) &&
           access(path, W_OK) == 0;
}

static void sqlite_close(struct store *store) {
    struct sqlite_store *s = sqlite_of(store);
    sqlite3_close(s->db);
    free(s->store.where);
    free(s);
}

static const struct store_engine sqlite_engine = {sqlite_close,    sqlite_put,     sqlite_read,
                                                  sqlite_sums,     sqlite_span_of, sqlite_gc,
                                                  sqlite_symbolize};

struct store *sqlite_open(const char *path, const struct store_options *options,
                          struct error *error) {
    struct sqlite_store *s = memory_zero(1, sizeof *s);
    s->store = (struct store){&sqlite_engine, *options, memory_copy(path, strlen(path))};
    bool may_be_new = options->write && options->create;
    if (check_header(path, may_be_new, error)) {
        if (!options->write && store_needs_recovery(path))
            recover(s);
        if (connect_file(s, options->write, error) && check_schema(s, error))
            return &s->store;
    }
    sqlite_close(&s->store);
    return NULL;
}
