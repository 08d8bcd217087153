/* Maintenance of a server's tables: creating them, retention, and names that are found later. */
#include <stdlib.h>

#include "store/clickhouse.h"

enum { DAY = 86400, SAMPLE_DAYS = 14, HOUR_DAYS = 400 };

/* ---- tables ---- */

static bool run(struct clickhouse_store *c, struct text sql, struct error *error) {
    struct answer_file answer;
    bool fine = clickhouse_ask(c, sql, &answer, error);
    answer_file_close(&answer);
    return fine;
}

/* Find the tables' cluster, from the engine of the distributed table. */
static bool find_cluster(struct clickhouse_store *c, struct buffer *on, struct error *error) {
    struct buffer sql = {0};
    struct answer_file answer;
    buffer_printf(&sql,
                  "SELECT engine_full FROM system.tables WHERE database = '%s' AND name = "
                  "'samples' FORMAT RowBinary",
                  c->database);
    bool fine = !c->clustered || clickhouse_ask(c, buffer_text(&sql), &answer, error);
    if (fine && c->clustered) {
        struct text full = row_text(&answer);
        size_t start = text_find(full, '('), end = text_find(full, ',');
        buffer_add(on, TEXT("ON CLUSTER "));
        for (size_t i = start; start != SIZE_MAX && end != SIZE_MAX && i < end; i++)
            if (full.data[i] != '(' && full.data[i] != '\'' && full.data[i] != ' ')
                buffer_add_char(on, full.data[i]);
        answer_file_close(&answer);
    }
    buffer_release(&sql);
    return fine;
}

static struct text local_suffix(const struct clickhouse_store *c) {
    return c->clustered ? TEXT("_local") : TEXT("");
}

/* Append "ReplacingMergeTree()", or its replicated form in a cluster, with the columns that it adds up. */
static struct text engine(struct arena *arena, const struct clickhouse_store *c, const char *kind,
                          const char *table, const char *columns) {
    struct buffer text = {0};
    if (c->clustered)
        buffer_printf(&text, "Replicated%sMergeTree('/wick/%s/{shard}/%s', '{replica}'%s%s)", kind,
                      c->database, table, *columns ? ", " : "", columns);
    else
        buffer_printf(&text, "%sMergeTree(%s)", kind, columns);
    struct text copy = arena_copy(arena, buffer_text(&text));
    buffer_release(&text);
    return copy;
}

/* Run each statement of a file, with the server's features filled in. */
static bool run_file(struct clickhouse_store *c, struct text file, struct text on,
                     struct error *error) {
    struct arena arena = {0};
    bool modern = c->modern;
    struct buffer sql = {0}, schema = {0};
    buffer_add_u64(&schema, CLICKHOUSE_SCHEMA);
    const struct text sums_settings =
        modern ? TEXT(" SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = "
                      "10000")
               : TEXT("");
    const struct sql_value values[] = {
        {"on", on},
        {"schema", buffer_text(&schema)},
        {"local", local_suffix(c)},
        {"text", modern ? TEXT("LowCardinality(String)") : TEXT("String")},
        {"delta", modern ? TEXT(" CODEC(Delta, ZSTD(1))") : TEXT("")},
        {"zstd", modern ? TEXT(" CODEC(ZSTD(1))") : TEXT("")},
        {"t64", modern ? TEXT(" CODEC(T64, ZSTD(1))") : TEXT("")},
        {"chunk", modern ? TEXT("intDiv(toUInt32(time), 21600)") : TEXT("toStartOfHour(time)")},
        {"batch", modern ? TEXT("") : TEXT(", batch UInt64")},
        {"keep_samples", modern ? TEXT(" TTL time + INTERVAL 14 DAY") : TEXT("")},
        {"keep_hours", modern ? TEXT(" TTL hour + INTERVAL 400 DAY") : TEXT("")},
        {"keep_days", modern ? TEXT(" TTL day + INTERVAL 400 DAY") : TEXT("")},
        {"settings", sums_settings},
        {"merge_samples", engine(&arena, c, "", "samples", "")},
        {"sum_samples_1h", engine(&arena, c, "Summing", "samples_1h", "(samples, value)")},
        {"sum_samples_1d", engine(&arena, c, "Summing", "samples_1d", "(samples, value)")},
        {"replace_stacks", engine(&arena, c, "Replacing", "stacks", "")},
        {"replace_frames", engine(&arena, c, "Replacing", "frames", "")},
        {"replace_series", engine(&arena, c, "Replacing", "series", "")},
        {"replace_names", engine(&arena, c, "Replacing", "names", "")},
        {"replace_batches", engine(&arena, c, "Replacing", "batches", "")},
        {"replace_notes", engine(&arena, c, "Replacing", "notes", "")},
    };
    bool fine = true;
    while (fine && text_find(file, ';') != SIZE_MAX) {
        size_t end = text_find(file, ';');
        sql.count = 0;
        sql_fill(c, &sql, text_upto(file, end), values, COUNT_OF(values));
        file = text_from(file, end + 1);
        fine = run(c, buffer_text(&sql), error);
    }
    buffer_release(&sql);
    buffer_release(&schema);
    arena_release(&arena);
    return fine;
}

/*
 * Record from which day on sums by the day are complete. The view that makes them exists already, so that they
 * include every later batch.
 */
static bool set_first_day(struct clickhouse_store *c, struct text on, struct error *error) {
    struct buffer sql = {0};
    uint64_t day = 0, hours = 0; /* a new cluster has no distributed table yet, and no samples */
    sql_fill(c, &sql, clickhouse_first_day, NULL, 0);
    bool fine = clickhouse_count_tables(c, "'samples_1h'", &hours, error) &&
                (!hours || clickhouse_ask_number(c, buffer_text(&sql), &day, error));
    sql.count = 0;
    buffer_printf(&sql,
                  "CREATE VIEW IF NOT EXISTS %s.days_from %.*s AS SELECT toUInt64(%llu) AS day",
                  c->database, TEXT_ARGS(on), (unsigned long long)day);
    fine = fine && run(c, buffer_text(&sql), error);
    buffer_release(&sql);
    return fine;
}

/* The tables of names come last: a writer that finds them also finds the views that add up. */
static bool create_tables(struct clickhouse_store *c, struct text on, struct error *error) {
    return run_file(c, clickhouse_samples, on, error) &&
           (!c->modern ||
            (run_file(c, clickhouse_days, on, error) && set_first_day(c, on, error))) &&
           run_file(c, clickhouse_schema, on, error);
}

/* Create a distributed table over all shards for each local one. A stack and a host stay on one shard. */
static bool distribute(struct clickhouse_store *c, struct text on, struct error *error) {
    static const struct {
        const char *table, *key;
    } tables[] = {{"samples_1d", "cityHash64(stack)"}, /* old servers have none */
                  {"samples", "cityHash64(host)"},     {"samples_1h", "cityHash64(stack)"},
                  {"stacks", "cityHash64(id)"},        {"frames", "cityHash64(id)"},
                  {"series", "cityHash64(id)"},        {"names", "cityHash64(build_id)"},
                  {"batches", "cityHash64(id)"},       {"notes", "cityHash64(batch)"}};
    struct text cluster = text_from(on, sizeof "ON CLUSTER " - 1);
    bool fine = true;
    for (size_t i = !c->modern; i < COUNT_OF(tables) && fine; i++) {
        struct buffer sql = {0};
        buffer_printf(&sql,
                      "CREATE TABLE IF NOT EXISTS %s.%s %.*s AS %s.%s_local ENGINE = "
                      "Distributed(%.*s, %s, %s_local, %s)",
                      c->database, tables[i].table, TEXT_ARGS(on), c->database, tables[i].table,
                      TEXT_ARGS(cluster), c->database, tables[i].table, tables[i].key);
        fine = run(c, buffer_text(&sql), error);
        buffer_release(&sql);
    }
    return fine;
}

bool clickhouse_create(struct clickhouse_store *c, struct error *error) {
    const char *cluster = c->store.options.cluster;
    struct buffer on = {0}, sql = {0};
    if (cluster)
        buffer_printf(&on, "ON CLUSTER %s", cluster);
    else if (!find_cluster(c, &on, error))
        return false;
    struct text where = on.count ? buffer_text(&on) : TEXT("");
    buffer_printf(&sql, "CREATE DATABASE IF NOT EXISTS %s %.*s", c->database, TEXT_ARGS(where));
    bool fine = run(c, buffer_text(&sql), error) && create_tables(c, where, error) &&
                (!where.length || distribute(c, where, error));
    buffer_release(&on);
    buffer_release(&sql);
    return fine;
}

/* ---- retention ---- */

/* Drop whole partitions, which costs nothing: days of samples, months of hours. */
static bool drop_before(struct clickhouse_store *c, struct text on, const char *table,
                        int64_t limit, bool months, uint64_t *removed, struct error *error) {
    struct buffer sql = {0};
    struct answer_file answer;
    const char *local = local_suffix(c).data;
    buffer_printf(&sql,
                  "SELECT partition, sum(rows) FROM system.parts WHERE database = '%s' AND table = "
                  "'%s%s' AND active GROUP BY partition HAVING partition < toString(%s(toDateTime("
                  "%lld))) FORMAT RowBinary",
                  c->database, table, local, months ? "toYYYYMM" : "toDate", (long long)limit);
    bool fine = clickhouse_ask(c, buffer_text(&sql), &answer, error);
    while (fine && rows_left(&answer)) {
        struct text partition = row_text(&answer);
        uint64_t rows = row_number(&answer, 8);
        sql.count = 0;
        buffer_printf(&sql, "ALTER TABLE %s.%s%s %.*s DROP PARTITION ", c->database, table, local,
                      TEXT_ARGS(on));
        for (size_t i = 0; i < partition.length; i++)
            if ((partition.data[i] >= '0' && partition.data[i] <= '9') || partition.data[i] == '-')
                buffer_printf(&sql, "%s%c", i || months ? "" : "'", partition.data[i]);
        buffer_add(&sql, months ? TEXT("") : TEXT("'"));
        *removed += rows;
        fine = !answer.is_bad && run(c, buffer_text(&sql), error);
    }
    fine = fine && rows_are_good(c, &answer, error);
    answer_file_close(&answer);
    buffer_release(&sql);
    return fine;
}

bool clickhouse_gc(struct store *store, const struct store_retention *retention, int64_t now,
                   struct store_removed *removed, struct error *error) {
    struct clickhouse_store *c = clickhouse_of(store);
    int64_t samples = now - retention->samples, hours = now - retention->hours;
    uint64_t days = 0; /* not reported: they are part of the hours */
    struct buffer on = {0};
    bool fine = find_cluster(c, &on, error);
    struct text where = on.count ? buffer_text(&on) : TEXT("");
    fine =
        fine &&
        drop_before(c, where, "samples", samples > 0 ? samples : 0, false, &removed->samples,
                    error) &&
        drop_before(c, where, "samples_1h", hours > 0 ? hours : 0, true, &removed->hours, error) &&
        (!c->has_days ||
         drop_before(c, where, "samples_1d", hours > 0 ? hours : 0, true, &days, error));
    buffer_release(&on);
    return fine;
}

/* ---- names ---- */

bool clickhouse_symbolize(struct store *store, store_finder *find, void *user, uint64_t *named,
                          uint64_t *unknown, struct error *error) {
    struct clickhouse_store *c = clickhouse_of(store);
    struct buffer sql = {0}, rows = {0};
    struct answer_file answer;
    sql_fill(c, &sql, clickhouse_unnamed, NULL, 0);
    bool fine = clickhouse_ask(c, buffer_text(&sql), &answer, error);
    while (fine && rows_left(&answer)) {
        struct store_unnamed place = {0};
        place.build_id = row_text(&answer);
        place.object = row_text(&answer);
        place.address = row_number(&answer, 8);
        struct store_name name = {TEXT(""), TEXT(""), 0};
        if (answer.is_bad)
            break;
        if (!find(user, &place, &name)) {
            ++*unknown;
            continue;
        }
        put_row_text(&rows, place.build_id);
        buffer_put_u64(&rows, place.address);
        put_row_text(&rows, name.name);
        put_row_text(&rows, name.file);
        buffer_put_u32(&rows, name.line);
        ++*named;
    }
    fine = fine && rows_are_good(c, &answer, error) &&
           (!rows.count || clickhouse_insert(c, "names", buffer_text(&rows), TEXT(""), error));
    answer_file_close(&answer);
    buffer_release(&sql);
    buffer_release(&rows);
    return fine;
}
