/*
 * net: all network access.
 *
 * Network access runs in a separate process, wick-net, which is linked with libcurl and libdebuginfod; wick itself is
 * linked with neither and opens no socket except the pair that connects the two. wick parses untrusted files and
 * wick-net talks to untrusted servers; neither does both. wick-net is started before anything is parsed, receives
 * requests as framed messages, and answers with a status and a file descriptor. wick checks the lengths in an answer
 * itself, and parses the file like any other.
 *
 * Functions may be called from any thread; several requests run at once.
 */
#ifndef WICK_NET_H
#define WICK_NET_H

#include "base/base.h"

struct net;

struct net_options {
    /* For net_debuginfo(): URLs of debuginfod servers, separated by spaces, or NULL for none. */
    const char *debuginfod;
};

/* Start the helper. Fails with ERROR_DENIED if it is not installed or can't be started. `options` may be NULL.
   `context` must outlive the result. */
struct net *net_start(const struct net_options *options, const struct context *context,
                      struct error *error);
/* Stop the helper and its requests. `net` may be NULL. */
void net_stop(struct net *net);

/* ---- HTTP ---- */

struct net_request {
    const char *method; /* "GET", "POST", … */
    const char *url;    /* http:// or https://; one with a user name or a password is refused */
    const char *socket; /* path of a Unix socket to connect to instead of the URL's host; or NULL */
    /* Lines of "Name: value" without an empty line; or empty. */
    struct text headers;
    /* The body: the whole file of this descriptor, which stays the caller's; or, if it is -1, the text. 0 is a valid
       descriptor, so always set it. */
    int body_descriptor;
    struct text body;
    /* A file with a token, or "USER:PASSWORD" (or both in two lines), or header lines ("Name: value"); or NULL. Only
       the helper reads it. It is refused if others may read it. */
    const char *credentials;
    unsigned milliseconds; /* time limit; 0: 30 s */
    uint64_t size_limit;   /* most bytes of the answer; 0: 16 MiB */
};

struct net_answer {
    unsigned status; /* HTTP's */
    int descriptor;  /* the body, a file of `size` bytes, at offset 0; owned by the caller */
    uint64_t size;
    struct buffer headers; /* the answer's header lines, LF between them */
};

/* Send a request and wait for its answer. Return false and set *error if there is none (ERROR_INPUT: the network or
   the server; ERROR_USAGE: the URL; ERROR_DENIED: the helper). Any status is an answer. Certificates are always
   verified. Redirects are followed only for GET and HEAD, at most five, never from https to http, and never with
   credentials. Proxies are taken from the environment as curl does. */
bool net_http(struct net *net, const struct net_request *request, struct net_answer *answer,
              struct error *error);
/* Return the value of an answer's header, or an empty text. The case of `name` does not matter. */
struct text net_header(const struct net_answer *answer, struct text name);
/* Append the body's first bytes, at most `most`, to `into`. */
bool net_body(const struct net_answer *answer, uint64_t most, struct buffer *into,
              struct error *error);
void net_answer_release(struct net_answer *answer);
/* Check that net_http() accepts a URL: its scheme, no user name, no control characters. */
bool net_url_check(const char *url, struct error *error);

/* ---- debuginfod ---- */

enum net_kind { NET_DEBUGINFO, NET_EXECUTABLE };
enum { NET_BUILD_ID_MOST = 64 };

struct net_file {
    uint8_t build_id[NET_BUILD_ID_MOST]; /* of the requested file */
    unsigned build_id_size;
    enum net_kind kind;
    int descriptor;    /* the file, or -1; owned by the caller */
    uint64_t size;     /* its bytes */
    char message[200]; /* the reason if there is no file */
};
/* Request a file and wait for it; several threads may do so at once. Sets *file and reports the progress of all
   downloads to the context. The content is not checked: it may be any file. */
bool net_debuginfo(struct net *net, struct net_file *file, unsigned milliseconds,
                   uint64_t size_limit);

#endif
