/* Declarations shared by the files that run in wick (not in the helper). */
#ifndef WICK_NET_INTERNAL_H
#define WICK_NET_INTERNAL_H

#include "net/message.h"
#include "net/net.h"

/* A pending request. */
struct waiting {
    struct waiting *next;
    uint32_t id;
    bool over;         /* done or failed */
    bool came;         /* done */
    int descriptor;    /* of the body, or -1 */
    unsigned status;   /* HTTP's */
    uint64_t size;     /* of the body; while it is pending, bytes received so far … */
    uint64_t total;    /* … of this many, or 0 if unknown */
    struct buffer why; /* the reason if it failed, otherwise the headers */
};

/* Send a request and list it as pending; on failure return false and set *error. The message has the lengths of the
   texts. */
bool net_ask(struct net *net, struct waiting *waiting, struct net_message *message,
             const struct net_texts *texts, int descriptor, struct error *error);
/* Wait until the request is over, or `deadline` (CLOCK_MONOTONIC, milliseconds) passes, or `stop` returns true;
   `stop` is called ten times a second. Return false if the request is not over. */
bool net_wait(struct net *net, struct waiting *waiting, uint64_t deadline, bool (*stop)(void *user),
              void *user);
/* Remove a request from the list and release what it owns. */
void net_forget(struct net *net, struct waiting *waiting);
const struct context *net_context(const struct net *net);
uint64_t net_now(void);
/* Add up the bytes received for all pending requests, and the totals that servers announced. */
void net_sum(struct net *net, uint64_t *done, uint64_t *total);
/* Process a message from the helper; return true if it is a valid answer to a request in `list`. Takes over or closes
   the descriptor. */
bool net_take_answer(struct waiting *list, const uint8_t *bytes, size_t size, int descriptor);

#endif
