/*
 * Private to the room: wick-serve, the process that speaks HTTP.
 *
 * One thread of the HTTP library's reads requests and writes responses, and never waits for anything else. What needs a child goes to one of
 * a few threads (job.c) while its connection is suspended. The main thread waits for signals and looks after connections that
 * dawdle.
 */
#ifndef WICK_SERVE_HTTP_SERVER_H
#define WICK_SERVE_HTTP_SERVER_H

#include <microhttpd.h>
#include <pthread.h>
#include <sys/types.h>

#include "run/run.h"
#include "serve/serve.h"

enum {
    CONNECTIONS =
        64,        /* at once; beyond three quarters of it the one that waited longest is closed */
    JOBS = 4,      /* children at once */
    QUEUE = 32,    /* requests that wait for one; beyond: 503 */
    SLOW = 10,     /* seconds for a whole request to arrive, and between two */
    TOKEN = 32,    /* hexadecimal digits: 128 bits */
    LISTED = 1000, /* profiles in a list */
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
    uint64_t
        page_limit;   /* bytes of a profile for which a page holds all of it, and of such a page */
    uint32_t timeout; /* seconds for a child's answer */
    uint32_t idle_timeout; /* seconds without a request; 0: for ever */
    bool open_browser;
    bool no_sandbox; /* of the children */
    VECTOR(struct root) roots;
    char token[TOKEN * 4 + 1], share_token[TOKEN + 1];
    char page_policy[200]; /* Content-Security-Policy of pages that hold their profile */
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
/* Start a wick with these words (NULL-terminated, [0] is the program, [1] the command) and the files as /dev/fd/FIRST_FILE and on. */
enum { FIRST_FILE = 200 };
bool child_start(const struct server *server, struct child *child, const char *const *words,
                 const int *files, size_t file_count);
/* Close its pipes, end it if it has not ended, and return its status as waitpid() has it. */
int child_end(struct child *child, bool kill_it);

/* What a command said until it ended. */
struct said {
    struct buffer out, err;
    bool too_much, late;
    int status; /* its exit status; -1: it was ended, or did not start */
};
void said_release(struct said *said);
void child_run(const struct server *server, const char *const *words, const int *files,
               size_t file_count, size_t most, struct said *said);
/* Read once, before `end`. -1: time is over, 0: its output ended. */
ssize_t child_read(const struct server *server, int descriptor, void *data, size_t size,
                   int64_t end);

/* ---- profiles.c ---- */

struct listing *listing_new(const struct server *server);
void listing_free(struct listing *listing);
/* The list of profiles as JSON. */
void listing_add(struct listing *listing, struct buffer *body);
/* Open a profile that the list has. -1: it has none of that name. `*mark` changes when the file does. */
int listing_open(struct listing *listing, const char *name, uint64_t *size, uint64_t *mark);
/* The name of the only profile, where the operands are one file, else NULL. */
const char *listing_only(const struct listing *listing);

/* ---- worker.c ---- */

struct workers *workers_new(const struct server *server);
void workers_free(struct workers *workers);
/* What a worker knows: a profile or a store. */
struct worker_of {
    const char *name; /* and when it was changed: which worker it is */
    uint64_t mark;
    int descriptor;      /* of the profile, which is taken; -1: none */
    const char *mode;    /* how `wick serve` is told to be this worker */
    const char *operand; /* what it opens */
};
/* Ask the worker of something, which is started where there is none. Returns an HTTP status. */
int workers_ask(struct workers *workers, const struct worker_of *of, struct text question,
                struct buffer *body);

/* ---- job.c ---- */

/* One request, from its first line to its last byte. */
struct job {
    struct MHD_Connection *connection;
    struct target target;
    bool readable;  /* the target could be parsed */
    bool is_shared; /* it came by the other origin's token */
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
/* False: too much waits already. */
bool jobs_add(struct jobs *jobs, struct job *job);
void jobs_free(struct jobs *jobs);
void job_free(struct job *job);

/* ---- respond.c ---- */

extern const char type_html[], type_json[];
extern const char policy_own[]; /* of pages whose scripts and styles come from here */

/* What a child said, with profiles' names in place of descriptors. */
void respond_add_said(struct buffer *body, struct text said, const char *const *names,
                      size_t count);
void respond_failed(struct job *job, int status, struct text why);
/* A child failed, and said why; or was ended. */
void respond_said(struct job *job, const struct said *said, const char *const *names, size_t count);
/* A page that holds its profile; takes the child's output. */
void respond_page(const struct server *server, struct job *job, struct said *said);
/* The page that asks for what it shows. */
void respond_asking(struct job *job);

/* ---- fleet.c ---- */

/* Routes over a store. */
void work_fleet_flame(struct server *server, struct job *job);
void work_fleet_compare(struct server *server, struct job *job);
void work_fleet_movers(struct server *server, struct job *job);
void work_fleet_question(struct server *server, struct job *job); /* of the store itself */
void work_fleet_part(struct server *server, struct job *job);     /* of a selection's flame */

/* ---- route.c ---- */

/* Append a request as a worker is asked: without the token and the profile's name, with or without what selects from a store. */
void question_add(const struct job *job, bool with_selection, struct buffer *question);
/* Decide what a request gets: a response at once, or `work` to do for it. The token was seen. */
void route(struct server *server, struct job *job);

/* ---- connection.c ---- */

struct connections *connections_new(void);
void connections_free(struct connections *connections);
void connection_notify(void *context, struct MHD_Connection *connection, void **own,
                       enum MHD_ConnectionNotificationCode what);
/* A request of it is being answered, or it waits for the next one. */
void connection_busy(struct server *server, struct MHD_Connection *connection, bool busy);
/* Close those that are too slow. */
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
