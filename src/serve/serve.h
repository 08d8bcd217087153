/*
 * serve: the page over HTTP, only for this machine.
 *
 * Three kinds of process share the work. `wick serve` reads the command line and becomes `wick-serve` (http/), the only program that is linked
 * with an HTTP library. wick-serve speaks HTTP and reads file names, but never a profile: it opens one, beneath the
 * directories that it was given, and passes the descriptor to a child. A child is an ordinary wick: `wick flame
 * --html` for a page that contains its whole profile, or, for a profile that is too large for that, a worker that
 * keeps the flame and answers requests for parts of it. A hostile profile therefore ends a child, whose time and
 * output are limited, and not the server.
 *
 * A worker reads one request per line, in the form of an HTTP target (`nodes?at=0&depth=20`), and answers each with a
 * line `STATUS LENGTH` and that many bytes of JSON. This header has what the server and the worker share, and the
 * parts of the server with unit tests.
 */
#ifndef WICK_SERVE_H
#define WICK_SERVE_H

#include "base/base.h"
#include "stacks/stacks.h"
#include "store/store.h"
#include "view/view.h"

/* ---- requests -------------------------------------------------------------------------------- */

enum { TARGET_MOST = 8192, TARGET_VALUES = 24, TARGET_PARTS = 3 };

/* A request's target: `/part/part?key=value&…`, with percent-encoding undone. All texts are NUL-terminated and owned
   by the target. */
struct target {
    struct text parts[TARGET_PARTS];
    size_t part_count;
    struct target_value {
        struct text key, value;
    } values[TARGET_VALUES];
    size_t value_count;
    struct buffer bytes;
};
/* Parse an untrusted target: return false if it is too long, has too many parts or values, a key twice, a control
   character, a NUL, a byte that should be encoded, or a `%` that encodes none. Encoded slashes do not separate parts.
   Release it in any case. */
bool target_parse(struct target *target, struct text raw);
void target_release(struct target *target);
/* Return the value of a key; its data is NULL if there is none. */
struct text target_get(const struct target *target, const char *key);
/* The same for a number, which is `otherwise` if the key is missing. Return false if it is not a number, or more than
   `most`. */
bool target_number(const struct target *target, const char *key, uint64_t otherwise, uint64_t most,
                   uint64_t *value);
/* Append a value, percent-encoded. */
void target_add_encoded(struct buffer *buffer, struct text value);

/* Compare two texts in a time that depends only on their lengths. */
bool token_equal(struct text a, struct text b);
/* Return true if a Host header names this machine's loopback, with any port or none. A page of another site whose
   name resolves to 127.0.0.1 sends its own name. */
bool host_is_loopback(struct text host);
/* Return true if `origin` is `https://host` or `http://host`, with or without a port, and nothing else. */
bool origin_is_whole(struct text origin);
/* Return true if only a proxy or a local program can set a header of this name, but not a page of another site
   without permission. */
bool header_can_be_trusted(struct text name);

/* ---- a worker's answers ---------------------------------------------------------------------- */

struct answers {
    const struct flame *flame;
    const char *kind;    /* of file */
    uint64_t samples;    /* that were counted */
    struct notes *notes; /* of reading it */
    /* Set by answers_begin(). */
    uint32_t *numbers; /* by node: its depth-first number, which clients use */
    uint32_t *nodes;   /* the reverse */
    struct categories *categories;
    struct report *table;
};
bool answers_begin(struct answers *answers, struct error *error);
void answers_end(struct answers *answers);

/*
 * Answer one request about the flame, as JSON. Return an HTTP status; the body of an error is {"error": why}. Requests:
 *
 *   info                                    what the profile is
 *   nodes    at= depth= width=              what is below a node: levels, and nodes of at least 1/width of it
 *   table    sort=self|total filter= from= count=
 *   around   function= callers=0|1 depth= width=
 *   search   for=                           a regular expression: matching functions and their share
 */
int answers_ask(struct answers *answers, const struct target *question, struct buffer *body);

/* ---- parts of a profile ---------------------------------------------------------------------- */

/*
 * Answers about one thread or one range of time. Every question takes these further keys:
 *
 *   thread= since= until=       the name of a thread; nanoseconds from the first sample
 *
 * and there are two more questions:
 *
 *   threads                     the names and weights of all threads, and the time that the samples span
 *   timeline count= thread=     the weight in each of `count` equal ranges of time
 */
struct chooser {
    const struct tree *tree;
    struct answers *all; /* about the whole profile */
    /* Make the flame of a tree that has some of the cells; return NULL on failure. */
    struct flame *(*make)(void *user, const struct tree *tree, struct error *error);
    void *user;
    /* Set by chooser_begin(). */
    struct strings *names; /* of threads */
    uint32_t *thread_of;   /* by series */
    uint64_t first, last;  /* times of samples */
    struct answers part;   /* the last part requested, if `flame` is set */
    struct flame *flame;
    struct buffer key;
};
void chooser_begin(struct chooser *chooser);
void chooser_end(struct chooser *chooser);
int chooser_ask(struct chooser *chooser, const struct target *question, struct buffer *body);

/* ---- requests to a store --------------------------------------------------------------------- */

/* Return true if a key selects from a store: service, version, host, type, from, to or label.KEY. */
bool selection_has(struct text key);
/* Append what a client selected to a store's query, percent-encoded: the values of such keys with `prefix` before
   them. Keys in the query `fixed` keep their value there: no client gets more than the server was given. */
void selection_add(const struct target *target, const char *prefix, struct text fixed,
                   struct buffer *query);

struct fleet {
    struct store *store;
    struct text fixed; /* the query that every request has */
};
/*
 * Answer one request about a store, with the selection in its keys:
 *
 *   span                           from when to when it has samples
 *   values   label=                the values of a label, with sums
 *   heat     by= step=             sums by a label's value and by step
 *   share    function= step=       for each step, the total and the function's part
 */
int fleet_ask(struct fleet *fleet, const struct target *question, struct buffer *body);

/* ---- the worker's loop ----------------------------------------------------------------------- */

/* Answer requests from standard input on standard output, until the input ends. */
typedef int answer_function(void *user, const struct target *question, struct buffer *body);
void answers_serve(answer_function *answer, void *user);
/* Set the body to {"error": why} and return `status`. */
int answer_error(struct buffer *body, int status, const char *why);

#endif
