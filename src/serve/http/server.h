/*
 * Private to the room: wick-serve, the process that speaks HTTP.
 *
 * One thread of the HTTP library reads requests and writes responses, and never waits for anything else. Requests
 * that need a child go to one of a few threads (job.c) while their connection is suspended. The main thread waits for
 * signals and closes slow connections.
 */
#ifndef WICK_SERVE_HTTP_SERVER_H
#define WICK_SERVE_HTTP_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <sys/types.h>

#include "run/run.h"
#include "serve/serve.h"

enum {
    CONNECTIONS = 64, /* at once; beyond three quarters, the longest waiting one is closed */
    JOBS = 4,         /* children at once */
    QUEUE = 32,       /* requests that wait for one; beyond: 503 */
    SLOW = 10,        /* seconds for a whole request to arrive, and between two */
    TOKEN = 32,       /* hexadecimal digits: 128 bits */
    LISTED = 1000,    /* profiles in a list */
};

/* An operand: a file, or a directory with profiles below it. */
struct root {
    const char *path;
    int directory; /* -1: a file */
};

struct job;
struct server {
    const char *wick; /* the program that children run */
    uint32_t port;
    const char *store; /* instead of profiles; NULL: none */
    const char *socket_path;
    const char *token_file;
    const char *trust_header;
    const char *share_with, *share_as;
    uint64_t page_limit;   /* bytes of a profile that a page may contain, and of such a page */
    uint32_t timeout;      /* seconds for a child's answer */
    uint32_t idle_timeout; /* seconds without a request; 0: forever */
    bool open_browser;
    bool no_sandbox; /* of the children */
    VECTOR(struct root) roots;
    char token[TOKEN * 4 + 1], share_token[TOKEN + 1];
    char page_policy[200]; /* Content-Security-Policy of pages that contain their profile */
    struct MHD_Daemon *daemon;
    struct connections *connections;
    struct jobs *jobs;
    struct listing *listing;
    struct workers *workers;
    _Atomic int64_t last_request; /* milliseconds */
    _Atomic bool ending;
};

int64_t milliseconds(void);

/* ---- child.c ---- */

struct child {
    pid_t pid; /* 0: none */
    int in, out, err;
};
/* Start wick with these arguments (NULL-terminated, [0] is the program, [1] the command) and the files as
   /dev/fd/FIRST_FILE and following. */
enum { FIRST_FILE = 200 };
bool child_start(const struct server *server, struct child *child, const char *const *words,
                 const int *files, size_t file_count);
/* Close its pipes, kill it if it is still running, and return its status as from waitpid(). */
int child_end(struct child *child, bool kill_it);

/* The output of a command that has ended. */
struct said {
    struct buffer out, err;
    bool too_much, late;
    int status; /* its exit status; -1: it was killed, or did not start */
};
void said_release(struct said *said);
void child_run(const struct server *server, const char *const *words, const int *files,
               size_t file_count, size_t most, struct said *said);
/* Read once, before `end`. Return -1 if the time is over, 0 if its output ended. */
ssize_t child_read(const struct server *server, int descriptor, void *data, size_t size,
                   int64_t end);

/* ---- profiles.c ---- */

struct listing *listing_new(const struct server *server);
void listing_free(struct listing *listing);
/* Write the list of profiles as JSON. */
void listing_add(struct listing *listing, struct buffer *body);
/* Open a profile of the list; return -1 if there is none with that name. `*mark` changes when the file does. */
int listing_open(struct listing *listing, const char *name, uint64_t *size, uint64_t *mark);
/* Return the name of the only profile if the operands are one file, else NULL. */
const char *listing_only(const struct listing *listing);

/* ---- worker.c ---- */

struct workers *workers_new(const struct server *server);
void workers_free(struct workers *workers);
/* What a worker answers questions about: a profile or a store. */
struct worker_of {
    const char *name; /* and its time of change: identifies the worker */
    uint64_t mark;
    int descriptor;      /* of the profile, which is taken over; -1: none */
    const char *mode;    /* the option of `wick serve` that starts this worker */
    const char *operand; /* what it opens */
};
/* Send a request to the worker, which is started if it is not running. Return an HTTP status. */
int workers_ask(struct workers *workers, const struct worker_of *of, struct text question,
                struct buffer *body);

/* ---- job.c ---- */

/* One request, from its first line to its last byte. */
struct job {
    struct MHD_Connection *connection;
    struct target target;
    bool readable;  /* the target could be parsed */
    bool is_shared; /* it has the other origin's token */
    bool done;
    int status;
    const char *type;
    const char *policy; /* Content-Security-Policy */
    const char *allow_origin;
    char *location;
    struct buffer body;
    struct text fixed; /* a body that lives as long as the program, instead */
    void (*work)(struct server *server, struct job *job);
    struct job *next;
};
struct jobs *jobs_new(struct server *server);
/* Return false if too many requests are waiting. */
bool jobs_add(struct jobs *jobs, struct job *job);
void jobs_free(struct jobs *jobs);
void job_free(struct job *job);

/* ---- respond.c ---- */

extern const char type_html[], type_json[];
extern const char policy_own[]; /* for pages whose scripts and styles come from here */

/* Append a child's output, with profiles' names in place of descriptors. */
void respond_add_said(struct buffer *body, struct text said, const char *const *names,
                      size_t count);
void respond_failed(struct job *job, int status, struct text why);
/* Respond that a child failed, with its message, or was killed. */
void respond_said(struct job *job, const struct said *said, const char *const *names, size_t count);
/* Respond with a page that contains its profile; takes over the child's output. */
void respond_page(const struct server *server, struct job *job, struct said *said);
/* Respond with the page that requests what it shows. */
void respond_asking(struct job *job);

/* ---- fleet.c ---- */

/* Routes of a store. */
void work_fleet_flame(struct server *server, struct job *job);
void work_fleet_compare(struct server *server, struct job *job);
void work_fleet_movers(struct server *server, struct job *job);
void work_fleet_question(struct server *server, struct job *job); /* of the store itself */
void work_fleet_part(struct server *server, struct job *job);     /* of a selection's flame */

/* ---- route.c ---- */

/* Append a request in the worker's form: without the token and the profile's name, with or without the selection from
   a store. */
void question_add(const struct job *job, bool with_selection, struct buffer *question);
/* Decide how to handle a request: a response at once, or `work` to do. The token was already checked. */
void route(struct server *server, struct job *job);

/* ---- connection.c ---- */

struct connections *connections_new(void);
void connections_free(struct connections *connections);
void connection_notify(void *context, struct MHD_Connection *connection, void **own,
                       enum MHD_ConnectionNotificationCode what);
/* Mark that a request is being answered, or that the connection waits for the next one. */
void connection_busy(struct server *server, struct MHD_Connection *connection, bool busy);
/* Close connections that are too slow. */
void connections_look(struct connections *connections);

/* ---- request.c ---- */

/* The library's callbacks. */
void *request_begin(void *server, const char *uri, struct MHD_Connection *connection);
enum MHD_Result request_answer(void *context, struct MHD_Connection *connection, const char *url,
                               const char *method, const char *version, const char *data,
                               size_t *size, void **own);
void request_end(void *context, struct MHD_Connection *connection, void **own,
                 enum MHD_RequestTerminationCode why);

#endif
