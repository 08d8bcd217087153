/* What the files of wick's side share. */
#ifndef WICK_NET_INTERNAL_H
#define WICK_NET_INTERNAL_H

#include "net/message.h"
#include "net/net.h"

/* A request that is under way. */
struct waiting {
    struct waiting *next;
    uint32_t id;
    bool over;         /* done or failed */
    bool came;         /* done */
    int descriptor;    /* of the body, or -1 */
    unsigned status;   /* HTTP's */
    uint64_t size;     /* of the body; before it is over what has come so far … */
    uint64_t total;    /* … of so many, or 0 */
    struct buffer why; /* it failed; or headers */
};

/* Send a request and list it as waiting; false: *error says why. Lengths of texts are the message's. */
bool net_ask(struct net *net, struct waiting *waiting, struct net_message *message,
             const struct net_texts *texts, int descriptor, struct error *error);
/* Wait until it is over, or `deadline` (CLOCK_MONOTONIC, milliseconds), or `stop` says so, which is asked ten times a second. False: it is not over. */
bool net_wait(struct net *net, struct waiting *waiting, uint64_t deadline, bool (*stop)(void *user),
              void *user);
/* It is no longer waited for; what it holds is released. */
void net_forget(struct net *net, struct waiting *waiting);
const struct context *net_context(const struct net *net);
uint64_t net_now(void);
/* Bytes that have come for those that wait and that will, as far as servers say. */
void net_sum(struct net *net, uint64_t *done, uint64_t *total);
/* Take a message from the helper: true if it is an answer to `waiting` that makes sense. The descriptor is taken over or closed. */
bool net_take_answer(struct waiting *list, const uint8_t *bytes, size_t size, int descriptor);

#endif
