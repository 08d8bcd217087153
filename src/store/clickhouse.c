/*
 * ClickHouse over HTTP. Rows are sent and received as RowBinary. The server's features are queried first: releases
 * from 22.3 on have codecs, TTL and tokens for deduplication; Debian's 18.16 has none of them.
 *
 * An answer is complete or an error: the server holds it back until it is complete (wait_end_of_query).
 */
#include "store/clickhouse.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    PORT = 8123,
    PORT_TLS = 8443,
    MILLISECONDS = 300000,
    MILLISECONDS_FIRST = 30000, /* for a query that takes no time */
    MODERN_FROM = 22 * 1000 + 3,
    MESSAGE_MOST = 2000,
    RETRY_MOST = 3600,
    READ_ONLY = 164,
    SHARD_DOWN = 279,   /* ALL_CONNECTION_TRIES_FAILED */
    SHARD_BEHIND = 369, /* ALL_REPLICAS_ARE_STALE */
};
#define ANSWER_MOST (UINT64_C(4) << 30)

/* ---- errors ---- */

/* Parse "Code: 279, e.displayText() = DB::NetException: …". */
static unsigned code_of(struct text message) {
    size_t at = text_search(message, TEXT("Code: "));
    uint64_t code = 0;
    for (size_t i = at == SIZE_MAX ? message.length : at + 6;
         i < message.length && message.data[i] >= '0' && message.data[i] <= '9' && code < 100000;
         i++)
        code = code * 10 + (uint64_t)(message.data[i] - '0');
    return (unsigned)code;
}

/* Errors for which a retry is useless: missing table or column, syntax, types, rights, passwords. */
static bool is_final(unsigned status, unsigned code) {
    static const unsigned codes[] = {6,   16,  26,  27,  33,  36,  41,  42,  43,
                                     44,  46,  47,  53,  60,  62,  70,  81,  115,
                                     117, 164, 192, 193, 194, 195, 291, 497, 516};
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        if (codes[i] == code)
            return true;
    return status >= 400 && status < 500 && status != 408 && status != 429;
}

static bool server_error(struct clickhouse_store *c, unsigned status, struct text message,
                         struct error *error) {
    struct text line = text_trim(message);
    size_t end = text_find(line, '\n');
    if (end != SIZE_MAX)
        line = text_upto(line, end);
    enum { SHOWN = 300 };
    if (line.length > SHOWN)
        line = text_upto(line, SHOWN);
    c->store.failure = is_final(status, code_of(message)) ? STORE_REJECTED : STORE_TRY_AGAIN;
    return error_set(error, ERROR_INPUT, "%s: the server answers %u: %.*s", c->store.where, status,
                     TEXT_ARGS(line));
}

/* ---- HTTP ---- */

static void add_encoded(struct buffer *url, struct text text) {
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.data[i];
        bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                     (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
        if (plain)
            buffer_add_char(url, (char)byte);
        else
            buffer_printf(url, "%%%02X", byte);
    }
}

void answer_file_close(struct answer_file *answer) {
    file_close(&answer->file);
    *answer = (struct answer_file){0};
}

static bool map_answer(struct clickhouse_store *c, const struct net_answer *from,
                       struct answer_file *answer, struct error *error) {
    if (!from->size)
        return true;
    if (!file_open_descriptor(&answer->file, from->descriptor, c->store.where,
                              c->store.options.context, error))
        return false;
    answer->rest = file_text(&answer->file);
    return true;
}

/* Parse a number of seconds; a date, the other form, is ignored. */
static void note_retry_after(struct clickhouse_store *c, const struct net_answer *answer) {
    uint64_t seconds;
    if (c->store.options.retry_after &&
        text_to_u64(net_header(answer, TEXT("retry-after")), &seconds))
        *c->store.options.retry_after = seconds < RETRY_MOST ? (uint32_t)seconds : RETRY_MOST;
}

/* Send one request. *code is the server's error code, if it refuses. */
static bool request(struct clickhouse_store *c, const char *url, struct text body,
                    struct answer_file *answer, unsigned *code, struct error *error) {
    struct net_request asked = {.method = "POST",
                                .url = url,
                                .headers = TEXT("Content-Type: application/octet-stream"),
                                .body_descriptor = -1,
                                .body = body,
                                .credentials = c->credentials,
                                .milliseconds = c->milliseconds,
                                .size_limit = ANSWER_MOST};
    struct net_answer got = {.descriptor = -1};
    struct buffer message = {0};
    *code = 0;
    c->store.failure = STORE_TRY_AGAIN;
    if (!net_http(c->net, &asked, &got, error))
        return false;
    bool fine = got.status == 200 && map_answer(c, &got, answer, error);
    if (got.status != 200)
        note_retry_after(c, &got);
    if (got.status != 200 && net_body(&got, MESSAGE_MOST, &message, error)) {
        *code = code_of(buffer_text(&message));
        server_error(c, got.status, buffer_text(&message), error);
    }
    buffer_release(&message);
    net_answer_release(&got);
    return fine;
}

/*
 * A replica that is more than 10 s behind the others of its shard would give sums that are too small. With these
 * settings the server asks another one, or fails if there is none. Writers accept any: a replica that is behind must
 * not keep batches out.
 */
static const char fresh_alone[] = "&max_replica_delay_for_distributed_queries=10"
                                  "&fallback_to_stale_replicas_for_distributed_queries=0";
static const char what_answers[] = "&skip_unavailable_shards=1";

static const char *settings_of(const struct clickhouse_store *c) {
    return c->partial                                                      ? what_answers
           : c->clustered && !c->keeps_settings && !c->store.options.write ? fresh_alone
                                                                           : "";
}

/* Return true if the request should be repeated with other settings. */
static bool is_changed(struct clickhouse_store *c, unsigned code, const char *settings) {
    if (code == READ_ONLY && settings == fresh_alone)
        return c->keeps_settings = true;
    if ((code != SHARD_DOWN && code != SHARD_BEHIND) || !c->store.options.allow_partial ||
        c->partial)
        return false;
    return c->partial = true;
}

bool clickhouse_ask(struct clickhouse_store *c, struct text sql, struct answer_file *answer,
                    struct error *error) {
    const char *settings;
    unsigned code = 0;
    bool fine;
    *answer = (struct answer_file){0};
    do {
        struct buffer url = {0};
        settings = settings_of(c);
        buffer_printf(&url, "%s?wait_end_of_query=1&buffer_size=1048576%s%c", c->base, settings, 0);
        fine = request(c, url.items, sql, answer, &code, error);
        buffer_release(&url);
    } while (!fine && is_changed(c, code, settings));
    return fine;
}

bool clickhouse_insert(struct clickhouse_store *c, const char *into, struct text rows,
                       struct text token, struct error *error) {
    struct buffer url = {0}, sql = {0};
    struct answer_file answer = {0};
    unsigned code;
    buffer_printf(&sql, "INSERT INTO %s.%s FORMAT RowBinary", c->database, into);
    /* Send one block, which is written whole or not at all. */
    buffer_printf(&url, "%s?insert_distributed_sync=1&max_insert_block_size=100000000", c->base);
    if (c->modern)
        buffer_printf(&url, "&async_insert=0&insert_deduplicate=1"
                            "&deduplicate_blocks_in_dependent_materialized_views=1"
                            "&min_insert_block_size_rows=100000000"
                            "&min_insert_block_size_bytes=4294967296");
    else
        buffer_printf(&url, "&min_insert_block_size_rows=100000000"
                            "&min_insert_block_size_bytes=4294967296");
    if (c->modern && token.length) {
        buffer_printf(&url, "&insert_deduplication_token=");
        add_encoded(&url, token);
    }
    buffer_printf(&url, "&query=");
    add_encoded(&url, buffer_text(&sql));
    buffer_add_char(&url, 0);
    bool fine = request(c, url.items, rows, &answer, &code, error);
    answer_file_close(&answer);
    buffer_release(&url);
    buffer_release(&sql);
    return fine;
}

/* ---- opening ---- */

bool clickhouse_ask_number(struct clickhouse_store *c, struct text sql, uint64_t *number,
                           struct error *error) {
    struct answer_file answer;
    if (!clickhouse_ask(c, sql, &answer, error))
        return false;
    *number = row_number(&answer, 8);
    bool fine = rows_are_good(c, &answer, error);
    answer_file_close(&answer);
    return fine;
}

static void set_patience(struct clickhouse_store *c, unsigned by_default) {
    c->milliseconds = c->store.options.milliseconds ? c->store.options.milliseconds : by_default;
}

/* Parse "22.3.1.2" as 22003. This is the first request, so a missing or hanging server is detected early. */
static bool ask_version(struct clickhouse_store *c, struct error *error) {
    struct answer_file answer;
    set_patience(c, MILLISECONDS_FIRST);
    if (!clickhouse_ask(c, TEXT("SELECT version() FORMAT RowBinary"), &answer, error))
        return false;
    struct text version = row_text(&answer);
    unsigned major = 0, minor = 0;
    bool dot = false, fine = rows_are_good(c, &answer, error);
    for (size_t i = 0; fine && i < version.length; i++) {
        char digit = version.data[i];
        if (digit == '.' && dot)
            break;
        if (digit == '.')
            dot = true;
        else if (digit >= '0' && digit <= '9' && major < 1000 && minor < 100)
            *(dot ? &minor : &major) = *(dot ? &minor : &major) * 10 + (unsigned)(digit - '0');
    }
    c->modern = major * 1000 + minor >= MODERN_FROM;
    set_patience(c, MILLISECONDS);
    answer_file_close(&answer);
    return fine;
}

bool clickhouse_count_tables(struct clickhouse_store *c, const char *names, uint64_t *count,
                             struct error *error) {
    struct buffer sql = {0};
    buffer_printf(&sql,
                  "SELECT toUInt64(count()) FROM system.tables WHERE database = '%s' AND name IN "
                  "(%s) FORMAT RowBinary",
                  c->database, names);
    bool fine = clickhouse_ask_number(c, buffer_text(&sql), count, error);
    buffer_release(&sql);
    return fine;
}

static bool check_version(struct clickhouse_store *c, struct error *error) {
    struct buffer sql = {0};
    uint64_t version = 0;
    buffer_printf(&sql, "SELECT toUInt64(version) FROM %s.schema_version FORMAT RowBinary",
                  c->database);
    bool fine = clickhouse_ask_number(c, buffer_text(&sql), &version, error);
    buffer_release(&sql);
    if (!fine || version == CLICKHOUSE_SCHEMA)
        return fine;
    c->store.failure = STORE_TRY_AGAIN; /* retry with a newer wick, from the spool */
    return store_version_error(c->store.where, (long long)version, CLICKHOUSE_SCHEMA, error);
}

/* Sums by the day exist if a modern server created them: with `wick store init`, for tables of an earlier wick. */
static bool find_days(struct clickhouse_store *c, struct error *error) {
    struct buffer sql = {0};
    uint64_t tables = 0, day = 0;
    if (!c->modern)
        return true;
    if (!clickhouse_count_tables(c, "'samples_1d', 'days_from'", &tables, error))
        return false;
    c->has_days = tables == 2;
    buffer_printf(&sql, "SELECT toUInt64(day) FROM %s.days_from FORMAT RowBinary", c->database);
    bool fine = !c->has_days || clickhouse_ask_number(c, buffer_text(&sql), &day, error);
    buffer_release(&sql);
    c->days_from = (int64_t)(day < UINT32_MAX ? day : UINT32_MAX);
    return fine;
}

/* Tables without a version were created before versions were recorded: they are the first version. */
static bool find_tables(struct clickhouse_store *c, struct error *error) {
    enum { TABLES = 8 };
    const struct store_options *options = &c->store.options;
    uint64_t tables = 0, local = 0, versions = 0;
    if (!clickhouse_count_tables(
            c,
            "'samples', 'samples_1h', 'stacks', 'frames', 'series', 'names', 'batches', "
            "'notes'",
            &tables, error) ||
        !clickhouse_count_tables(c, "'samples_local'", &local, error) ||
        !clickhouse_count_tables(c, "'schema_version'", &versions, error) ||
        (versions && !check_version(c, error)) || !find_days(c, error))
        return false;
    bool lacks_nothing = versions && (c->has_days || !c->modern);
    bool is_whole = tables == TABLES && (lacks_nothing || !options->upgrade);
    c->clustered = local > 0;
    if (!is_whole && options->write && options->create) {
        c->clustered |= options->cluster != NULL;
        return clickhouse_create(c, error) && find_days(c, error);
    }
    return tables == TABLES ||
           error_set(error, ERROR_INPUT,
                     "%s: has no tables of a store; create them with `wick store init %s`",
                     c->store.where, c->store.where);
}

/* Names of databases are never quoted, so only plain ones are accepted. */
static bool is_plain_name(struct text name) {
    for (size_t i = 0; i < name.length; i++) {
        char c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                     (i && c >= '0' && c <= '9');
        if (!plain)
            return false;
    }
    return name.length > 0 && name.length < 100;
}

static bool is_plain_host(struct text host) {
    for (size_t i = 0; i < host.length; i++) {
        char c = host.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
        if (!plain)
            return false;
    }
    return host.length > 0;
}

/* clickhouse[s]://host[:port]/database */
static bool parse_url(struct clickhouse_store *c, const char *url, struct error *error) {
    struct text t = text_of(url);
    bool tls = text_starts(t, TEXT("clickhouses://"));
    t = text_from(t, tls ? 14 : 13);
    size_t slash = text_find(t, '/');
    struct text host = text_upto(t, slash == SIZE_MAX ? t.length : slash);
    struct text database = slash == SIZE_MAX ? TEXT("") : text_from(t, slash + 1);
    if (text_find(host, '@') != SIZE_MAX)
        return error_set(error, ERROR_USAGE,
                         "a URL must not contain a user name or password: use --credentials FILE "
                         "or $WICK_STORE_CREDENTIALS");
    if (!database.length)
        database = TEXT("wick");
    if (!is_plain_host(host) || !is_plain_name(database))
        return error_set(error, ERROR_USAGE, "%s: not clickhouse://HOST[:PORT]/DATABASE", url);
    size_t colon = text_find_last(host, ':'), bracket = text_find_last(host, ']');
    bool has_port = colon != SIZE_MAX && (bracket == SIZE_MAX || colon > bracket);
    struct buffer base = {0};
    buffer_printf(&base, "%s://%.*s", tls ? "https" : "http", TEXT_ARGS(host));
    if (!has_port)
        buffer_printf(&base, ":%d", tls ? PORT_TLS : PORT);
    buffer_printf(&base, "/%c", 0);
    c->base = base.items;
    c->database = memory_copy(database.data, database.length);
    return true;
}

bool clickhouse_url_check(const char *url, struct error *error) {
    struct clickhouse_store parsed = {0};
    bool fine = parse_url(&parsed, url, error);
    free(parsed.base);
    free(parsed.database);
    return fine;
}

static void clickhouse_close(struct store *store) {
    struct clickhouse_store *c = clickhouse_of(store);
    if (c->owns_net)
        net_stop(c->net);
    index_release(&c->sent);
    vector_release(&c->sent_hashes);
    free(c->base);
    free(c->database);
    free(c->credentials);
    free(c->store.where);
    free(c);
}

static const struct store_engine clickhouse_engine = {
    clickhouse_close,   clickhouse_put, clickhouse_read,     clickhouse_sums,
    clickhouse_span_of, clickhouse_gc,  clickhouse_symbolize};

static bool start_net(struct clickhouse_store *c, const struct store_options *options,
                      struct error *error) {
    c->owns_net = !options->net;
    c->net = options->net ? options->net : net_start(NULL, options->context, error);
    return c->net;
}

struct store *clickhouse_open(const char *url, const struct store_options *options,
                              struct error *error) {
    struct clickhouse_store *c = memory_zero(1, sizeof *c);
    c->store = (struct store){&clickhouse_engine, *options, memory_copy(url, strlen(url))};
    const char *credentials =
        options->credentials ? options->credentials : getenv("WICK_STORE_CREDENTIALS");
    if (credentials && *credentials)
        c->credentials = memory_copy(credentials, strlen(credentials));
    if (options->cluster && !is_plain_name(text_of(options->cluster)))
        error_set(error, ERROR_USAGE, "--cluster %s: not a plain name", options->cluster);
    else if (parse_url(c, url, error) && start_net(c, options, error) && ask_version(c, error) &&
             find_tables(c, error))
        return &c->store;
    clickhouse_close(&c->store);
    return NULL;
}
