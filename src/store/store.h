/*
 * store: profiles of many machines over time, behind one interface: a SQLite file, or ClickHouse over HTTP.
 *
 * The unit of writing is one resolved tree, a batch. Its cells become sample rows: (time, service, version, host, value type, other
 * labels, stack) → samples and weight. Frames, stacks and sets of labels are stored once, by 128-bit hashes of their content, so that every
 * writer may send them again. Rows are written in the order frames, stacks, labels, samples: a writer that dies leaves unused names, never
 * samples without names. A batch has an id, and a batch that is sent twice counts once.
 *
 * The labels service, version and host are columns. `time` (decimal Unix seconds) is the start of a window, so that
 * one batch may hold several windows; series without it have the batch's time. All other labels, the event, comm,
 * thread, state and ending are stored as one set. Threads multiply the sets: a continuous writer omits them.
 *
 * Reading gives a tree. The engine only adds up by stack and label set, so both engines give the same bytes
 * as the recordings themselves. Samples are also added up by the hour, without hosts; data older than the samples'
 * retention is read from there.
 *
 * A store is not thread-safe: open one for each thread.
 */
#ifndef WICK_STORE_H
#define WICK_STORE_H

#include "base/base.h"
#include "tree/tree.h"

/* ---- where it is --------------------------------------------------------------------------- */

enum { STORE_URL_MOST = 1 << 16 };

/* Return true if the scheme of `url` is that of a store: clickhouse:// or clickhouses://. */
bool store_is_url(struct text url);
/* Return true if a file with this beginning is a SQLite file. store_open() checks whether it is a store. */
bool store_is_file(struct text beginning);
/* Return true if a writer died while writing this file and the user may repair it: store_open() then writes to it and
   beside it, even for reading. */
bool store_needs_recovery(const char *path);
/* Return the index of the question mark that begins the query of a path or URL, or its length if there is none. A
   file name may contain one: a path that names an existing file has no query. */
size_t store_url_query(const char *url);

/* ---- what to read -------------------------------------------------------------------------- */

/*
 * A query. All texts live in its arena. Zero-initialised selects everything.
 *
 * `labels` selects by any label, fixed ones (comm, state, …) included, with patterns as in text_matches(); several of
 * one key are alternatives. `type` is NAME, NAME/UNIT or an event's name. `by` names the labels that the tree
 * distinguishes: NULL means all except host.
 */
struct store_query {
    int64_t from, to; /* Unix seconds, from ≤ time < to; `to` 0: no end */
    const char *type; /* NULL: the only type, or cpu if there are several */
    VECTOR(struct label_filter) labels;
    bool has_by;
    VECTOR(const char *) by; /* used if has_by; empty: distinguish no label */
    bool all_types;          /* no type is chosen: the tree has an event for each */
    bool waits;              /* also read on-CPU and off-CPU time, for tree_keep_times() */
    int64_t step;            /* seconds; > 0: series get the label `time`, the start of each step */
    struct arena arena;
};
/*
 * Parse `service=api&version=42&from=-1d&to=now&type=cpu&label.KEY=VALUE&by=service,comm&by=host&step=1h`, percent-encoded. Times are `now`, Unix
 * seconds, `-1d` (s, m, h, d, w before now), 2026-11-16 or 2026-11-16T12:30:00Z. `now` is in Unix seconds.
 */
bool store_query_parse(struct store_query *query, struct text text, int64_t now,
                       struct error *error);
void store_query_label(struct store_query *query, struct text key, struct text pattern);
void store_query_by(struct store_query *query, struct text key);
void store_query_release(struct store_query *query);

/* ---- opening ------------------------------------------------------------------------------- */

struct net;

struct store_options {
    const struct context *context;
    const char *
        credentials; /* a file: USER:PASSWORD, or header lines; NULL: $WICK_STORE_CREDENTIALS or none */
    const char *
        cluster; /* store_init() of ClickHouse: make Replicated and Distributed tables on this cluster; NULL: on one server */
    unsigned milliseconds; /* for one request to a server; 0: 30 s for the first, then 300 s */
    struct net *net; /* the helper process that asks servers; the caller's. NULL: one is started */
    bool write;      /* otherwise it is opened read-only */
    bool create;     /* with `write`: create the file and the tables if they are missing */
    bool upgrade;    /* with `create`: add what the tables of an earlier wick lack */
    bool allow_partial; /* a shard that does not answer is a note, not an error */
    uint32_t *
        retry_after; /* gets the seconds that a server asks to be left alone for when it refuses; or NULL */
};

/* Return true if this text has the form of a store. Makes no request. */
bool store_url_check(const char *url, struct error *error);
struct store;
/*
 * Open a store: a path, or clickhouse://host[:port]/database; remove its query part first. A URL with a user or
 * password is refused. A file for reading is opened read-only, with its schema distrusted.
 */
struct store *store_open(const char *url, const struct store_options *options, struct error *error);
void store_close(struct store *store);

/* ---- writing ------------------------------------------------------------------------------- */

struct store_batch {
    struct text id;       /* not empty; always the same for one batch */
    uint64_t time_ns;     /* Unix: of series without the label `time` */
    uint64_t duration_ns; /* kept with the batch; 0: not known */
    /* Labels for series that lack them; empty: none. */
    struct text service, version, host;
};

struct store_result {
    bool known;              /* a batch with this id was already stored: nothing was written */
    uint64_t rows;           /* samples written */
    uint64_t stacks, frames; /* new ones, or those sent if the engine does not report new ones */
};

/* What a writer can do about an error: wait and send the same bytes again, or put the batch aside. */
enum store_failure { STORE_FINE, STORE_TRY_AGAIN, STORE_REJECTED };

/*
 * Store all cells of a resolved tree under the batch's id. A failed write is completed by the next attempt with the
 * same id; nothing is stored twice. On failure, store_failure() says what to do.
 */
bool store_put(struct store *store, const struct tree *tree, const struct store_batch *batch,
               struct store_result *result, struct error *error);
enum store_failure store_failure(const struct store *store);

/* Append an id for a batch without one: the hex digits of a hash of these texts, such as a file's bytes and the
   labels that are set. */
void store_batch_id(struct buffer *id, const struct text *parts, size_t count);

/* ---- reading ------------------------------------------------------------------------------- */

/*
 * Read what the query selects into `tree`, which must be empty; its notes say what was omitted. The same content
 * gives the same tree with either engine. An empty result is not an error.
 */
bool store_read(struct store *store, const struct store_query *query, struct tree *tree,
                struct error *error);

/* One row of an answer: up to two keys and the sums. The answer owns the texts. */
struct store_row {
    struct text key;
    int64_t time;
    uint64_t samples, value;
};
struct store_rows {
    VECTOR(struct store_row) items;
    struct arena arena;
};
void store_rows_release(struct store_rows *rows);

/*
 * Get the distinct values of a label, in order, among samples that pass the query: "service", "version", "host", "type" (value types, NAME/UNIT), or any
 * other. Samples and value are sums, except of labels that are not columns, where they are 0.
 */
bool store_values(struct store *store, const struct store_query *query, const char *label,
                  struct store_rows *rows, struct error *error);
/* Get sums by value of a label (service, version, host or type) and by steps of time (`query->step`, 600 if that is
   0), ordered by key, then time. */
bool store_heat(struct store *store, const struct store_query *query, const char *label,
                struct store_rows *rows, struct error *error);
/* Get the first and last time of samples that pass the query, of all types if it names none; return false without an
   error (kind ERROR_NONE) if there are none. */
bool store_span(struct store *store, const struct store_query *query, int64_t *from, int64_t *to,
                struct error *error);

/* ---- maintenance --------------------------------------------------------------------------- */

struct store_retention {
    int64_t samples; /* seconds; 0: 14 days */
    int64_t hours;   /* of the sums by the hour; 0: 400 days */
};
struct store_removed {
    uint64_t samples, hours, batches, stacks;
};
/* Remove older data, as of `now` (Unix seconds). Files shrink. */
bool store_gc(struct store *store, const struct store_retention *retention, int64_t now,
              struct store_removed *removed, struct error *error);

/* A code address that was stored without a name. */
struct store_unnamed {
    struct text build_id; /* bytes */
    struct text object;   /* path */
    uint64_t address;     /* as locations have it: a file offset */
};
/*
 * Name addresses without a name: `find` is called once for each build id and address, and sets the name, and file and
 * line if known; it returns false if it does not know. The names go into a separate table, which is used when
 * reading; samples are not changed.
 */
struct store_name {
    struct text name, file;
    uint32_t line;
};
typedef bool store_finder(void *user, const struct store_unnamed *place, struct store_name *name);
bool store_symbolize(struct store *store, store_finder *find, void *user, uint64_t *named,
                     uint64_t *unknown, struct error *error);

#endif
