/*
 * net: everything that talks to other machines.
 *
 * All network access runs in one other process, wick-net, which is linked with libcurl and libdebuginfod; wick itself is linked with neither
 * and opens no socket but the pair that connects the two. wick parses what strangers wrote, and wick-net talks to strangers: neither
 * does both. wick-net is started before anything is parsed, gets requests as framed messages, and answers with a status
 * and a file descriptor. wick believes nothing of an answer but its own checks of the lengths; what the descriptor holds is
 * parsed like any other file.
 *
 * Functions may be called from any thread; several requests run at once.
 */
#ifndef WICK_NET_H
#define WICK_NET_H

#include "base/base.h"

struct net;

struct net_options {
    /* For net_debuginfo(): URLs of debuginfod servers, separated by spaces; NULL: none is asked. */
    const char *debuginfod;
};

/* Start the helper. ERROR_DENIED: it is not installed, or can't be started. `options` may be NULL. `context` must outlive it. */
struct net *net_start(const struct net_options *options, const struct context *context,
                      struct error *error);
/* End the helper and what it is doing. NULL is fine. */
void net_stop(struct net *net);

/* ---- HTTP ---- */

struct net_request {
    const char *method; /* "GET", "POST", … */
    const char *url;    /* http:// or https://; one with a user name or a password is refused */
    const char *socket; /* path of a Unix socket to connect to instead of the URL's host; or NULL */
    /* "Name: value" each, in lines without an empty one; or empty. */
    struct text headers;
    /* The body: all of this descriptor, which stays the caller's; or, if it is -1, this text. A descriptor of 0 counts, so set it. */
    int body_descriptor;
    struct text body;
    /* A file that holds a token, or "USER:PASSWORD" (or both in two lines), or header lines ("Name: value"); or NULL. Only the helper reads it. It is refused if others may read it. */
    const char *credentials;
    unsigned milliseconds; /* for all of it; 0: 30 s */
    uint64_t size_limit;   /* bytes of the answer; 0: 16 MiB */
};

struct net_answer {
    unsigned status; /* HTTP's */
    int descriptor;  /* the body, a file of `size` bytes, at its beginning; the caller's */
    uint64_t size;
    struct buffer headers; /* the answer's header lines, LF between them */
};

/* Send a request and wait for its answer. False: there is none, and *error says why (ERROR_INPUT: the network or the server; ERROR_USAGE: the URL;
   ERROR_DENIED: the helper). Any status is an answer. Certificates are always verified. Redirects are followed for GET and HEAD alone, at
   most five, never from https to http, and never with credentials. Proxies are taken from the environment as curl does. */
bool net_http(struct net *net, const struct net_request *request, struct net_answer *answer,
              struct error *error);
/* The value of an answer's header, or empty text. `name` in any case. */
struct text net_header(const struct net_answer *answer, struct text name);
/* Append the body's first bytes, at most `most`, to `into`. */
bool net_body(const struct net_answer *answer, uint64_t most, struct buffer *into,
              struct error *error);
void net_answer_release(struct net_answer *answer);
/* Whether a URL is one that net_http() takes: its scheme, no user name, no control characters. */
bool net_url_check(const char *url, struct error *error);

/* ---- debuginfod ---- */

enum net_kind { NET_DEBUGINFO, NET_EXECUTABLE };
enum { NET_BUILD_ID_MOST = 64 };

struct net_file {
    uint8_t build_id[NET_BUILD_ID_MOST]; /* asked for */
    unsigned build_id_size;
    enum net_kind kind;
    int descriptor;    /* what came, or -1; the caller's */
    uint64_t size;     /* its bytes */
    char message[200]; /* why none came */
};
/* Ask for a file and wait for it, while other threads ask for others; *file says what came. Tells the context how far all of them are. Nobody has
   looked at what comes: it may be any file at all. */
bool net_debuginfo(struct net *net, struct net_file *file, unsigned milliseconds,
                   uint64_t size_limit);

#endif
