/* What the files of wick push share. */
#ifndef WICK_CMD_PUSH_H
#define WICK_CMD_PUSH_H

#include "cmd/cmd.h"

struct push_command {
    struct request request;
    const char *at;
    double timeout; /* seconds; 0: the receiver's default */
    bool threads;
};

/* One kind of receiver. `begin` returns what is passed to `send` and `end`, or NULL and sets *error. */
struct receiver {
    bool (*takes)(struct text url);
    void *(*begin)(struct push_command *push, const char *url, struct error *error);
    bool (*send)(void *state, struct push_command *push, const char *path,
                 const struct source *source, uint64_t time_ns, struct error *error);
    void (*end)(void *state);
};

/* push_service.c: Pyroscope, Parca, collectors. */
extern const struct receiver receiver_service;

#endif
