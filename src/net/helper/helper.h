/*
 * wick-net: the process that talks to other machines for wick. It reads requests from its socket, descriptor 3, answers there, and ends when
 * the socket is closed. It parses nothing but HTTP, which libcurl does.
 */
#ifndef WICK_NET_HELPER_H
#define WICK_NET_HELPER_H

#include "net/message.h"

enum { CHANNEL = 3 };

/* A request, with texts that end in a NUL. */
struct job {
    struct job *next;
    struct net_message asked;
    char *texts[NET_TEXTS];
    int body;             /* descriptor, or -1 */
    uint64_t began, told; /* CLOCK_MONOTONIC, milliseconds */
};

/* Each answers its job, once. */
void do_http(struct job *job);
void do_debuginfo(struct job *job);

/* The body is `size` bytes in a file; headers may be NULL. */
void answer_done(const struct job *job, unsigned status, int descriptor, uint64_t size,
                 const char *headers);
void answer_failed(const struct job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* At most ten times a second. */
void answer_progress(struct job *job, uint64_t size, uint64_t total);
/* Whether wick is gone: whatever is under way stops. */
bool ending(void);
uint64_t now(void);

struct curl_slist;
/* Append the header lines that a credentials file stands for. False, with the reason in *why: it is not used. */
bool add_credentials(const char *path, struct curl_slist **headers, const char **why);

#endif
