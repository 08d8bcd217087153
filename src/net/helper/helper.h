/*
 * wick-net: the process that talks to other machines for wick. It reads requests from its socket, descriptor 3, answers there, and exits when
 * the socket is closed. It parses nothing except HTTP, which libcurl does.
 */
#ifndef WICK_NET_HELPER_H
#define WICK_NET_HELPER_H

#include "net/message.h"

enum { CHANNEL = 3 };

/* A request; its texts are NUL-terminated. */
struct job {
    struct job *next;
    struct net_message asked;
    char *texts[NET_TEXTS];
    int body;             /* descriptor, or -1 */
    uint64_t began, told; /* CLOCK_MONOTONIC, milliseconds */
};

/* Each of these answers its job once. */
void do_http(struct job *job);
void do_debuginfo(struct job *job);

/* The body is `size` bytes in a file; headers may be NULL. */
void answer_done(const struct job *job, unsigned status, int descriptor, uint64_t size,
                 const char *headers);
void answer_failed(const struct job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Report progress, at most ten times a second. */
void answer_progress(struct job *job, uint64_t size, uint64_t total);
/* Whether wick is gone, so that everything in progress must stop. */
bool ending(void);
uint64_t now(void);

struct curl_slist;
/* Append the header lines for a credentials file. Return false and set *why if the file is not used. */
bool add_credentials(const char *path, struct curl_slist **headers, const char **why);

#endif
