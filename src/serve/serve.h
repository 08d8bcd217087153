/*
 * serve: the page over HTTP, for this machine alone.
 *
 * Three kinds of process share the work. `wick serve` reads the command line and becomes `wick-serve` (http/), the only program that is linked
 * with an HTTP library. wick-serve speaks HTTP and looks at names of files, but never into a profile: it opens one, beneath the
 * directories that it was given, and hands the descriptor to a child. A child is an ordinary wick: `wick flame --html` for a page that
 * holds its whole profile, or, for a profile that is too large for that, a worker that keeps the flame and answers questions about parts
 * of it. A hostile profile therefore ends a child, which has a limit of time and of output, and not the server.
 *
 * A worker reads one question a line, in the form of a request's target (`nodes?at=0&depth=20`), and answers each with a line
 * `STATUS LENGTH` and that many bytes of JSON. This header has what the server and the worker share, and what of the server is tested alone.
 */
#ifndef WICK_SERVE_H
#define WICK_SERVE_H

#include "base/base.h"
#include "stacks/stacks.h"
#include "store/store.h"
#include "view/view.h"

/* ---- what a client asks for ------------------------------------------------------------------ */

enum { TARGET_MOST = 8192, TARGET_VALUES = 24, TARGET_PARTS = 3 };

/* A request's target: `/part/part?key=value&…`, with percent-encoding undone. All texts are NUL-terminated and the target's. */
struct target {
    struct text parts[TARGET_PARTS];
    size_t part_count;
    struct target_value {
        struct text key, value;
    } values[TARGET_VALUES];
    size_t value_count;
    struct buffer bytes;
};
/* Parse one, of which nothing is believed: false if it is too long, has too many parts or values, a key twice, a control character, a NUL, a byte that
   should be encoded, or a `%` that encodes none. Slashes that are encoded are not parts' ends. Release it in any case. */
bool target_parse(struct target *target, struct text raw);
void target_release(struct target *target);
/* The value of a key; its data is NULL if there is none. */
struct text target_get(const struct target *target, const char *key);
/* The same of a number, which is `otherwise` where the key is missing. False: it is not a number, or more than `most`. */
bool target_number(const struct target *target, const char *key, uint64_t otherwise, uint64_t most,
                   uint64_t *value);
/* Append a value, percent-encoded. */
void target_add_encoded(struct buffer *buffer, struct text value);

/* Whether both are the same, in a time that depends on their lengths alone. */
bool token_equal(struct text a, struct text b);
/* Whether a Host header names this machine's loopback, with any port or none: a page of another site that has its name resolved to 127.0.0.1 sends its own
   name. */
bool host_is_loopback(struct text host);
/* Whether `origin` is `https://host`, or http, with or without a port, and nothing behind it. */
bool origin_is_whole(struct text origin);
/* Whether a header of this name can only be set by a proxy or a local program, never by a page of another site without being allowed to. */
bool header_can_be_trusted(struct text name);

/* ---- what a worker answers ------------------------------------------------------------------- */

struct answers {
    const struct flame *flame;
    const char *kind;    /* of file */
    uint64_t samples;    /* that were counted */
    struct notes *notes; /* of reading it */
    /* Set by answers_begin(). */
    uint32_t *numbers; /* by node: its place depth first, which is how clients call it */
    uint32_t *nodes;   /* the reverse */
    struct categories *categories;
    struct report *table;
};
bool answers_begin(struct answers *answers, struct error *error);
void answers_end(struct answers *answers);

/*
 * Answer one question about the flame, as JSON. Returns an HTTP status; of an error the body is {"error": why}. Questions:
 *
 *   info                                    what the profile is
 *   nodes    at= depth= width=              what is below a node: levels, and nodes of at least 1/width of it
 *   table    sort=self|total filter= from= count=
 *   around   function= callers=0|1 depth= width=
 *   search   for=                           a regular expression: which functions, and their share
 */
int answers_ask(struct answers *answers, const struct target *question, struct buffer *body);

/* ---- what a store is asked ------------------------------------------------------------------- */

/* Whether a key selects from a store: service, version, host, type, from, to or label.KEY. */
bool selection_has(struct text key);
/* Append what a client selected to a store's query, percent-encoded: the values of such keys with `prefix` before them. Keys that `fixed`, a query, has
   stay as they are there: nobody asks for more than the server was given. */
void selection_add(const struct target *target, const char *prefix, struct text fixed,
                   struct buffer *query);

struct fleet {
    struct store *store;
    struct text fixed; /* the query that every question has */
};
/*
 * Answer one question about a store, with the selection in its keys:
 *
 *   span                           from when to when it has samples
 *   values   label=                what a label says, with sums
 *   heat     by= step=             sums by a label's value and by step
 *   share    function= step=       of each step, the whole and what is spent in the function
 */
int fleet_ask(struct fleet *fleet, const struct target *question, struct buffer *body);

/* ---- the conversation ------------------------------------------------------------------------ */

/* Questions from standard input to standard output, until it ends. */
typedef int answer_function(void *user, const struct target *question, struct buffer *body);
void answers_serve(answer_function *answer, void *user);
/* {"error": why} in the body; returns `status`. */
int answer_error(struct buffer *body, int status, const char *why);

#endif
