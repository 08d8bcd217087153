/*
 * The messages between wick and wick-net: a header of fixed size, then texts, whose lengths are in the header. One message is one datagram of a socket pair.
 * Both sides are of one build and one machine, so that numbers are as the machine has them.
 */
#ifndef WICK_NET_MESSAGE_H
#define WICK_NET_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_MAGIC = 0x31746e77, NET_MESSAGE_MOST = 64 << 10, NET_TEXTS = 5 };

enum net_message_kind {
    NET_ASK_HTTP =
        1, /* texts: method, URL, headers, credentials' path, socket's path; may have a descriptor: the body */
    NET_ASK_DEBUGINFO, /* texts: build id in hexadecimal; `status`: enum net_kind */
    NET_PROGRESS,      /* `size` of `total` bytes have come */
    NET_DONE,   /* `status`; texts: none, headers; has a descriptor: `size` bytes of a body */
    NET_FAILED, /* texts: why */
};
/* Places of texts. */
enum { NET_METHOD, NET_URL, NET_HEADERS, NET_CREDENTIALS, NET_SOCKET };
enum { NET_BUILD_ID = 0, NET_WHY = 0, NET_ANSWERED = 1 };

struct net_message {
    uint32_t magic;
    uint32_t kind;
    uint32_t id; /* of the request; answers have the same */
    uint32_t status;
    uint32_t milliseconds; /* limit of a request */
    uint32_t lengths[NET_TEXTS];
    uint64_t size;  /* of a request: the limit of its answer */
    uint64_t total; /* of progress: bytes there will be, or 0; of a request: bytes of its body */
};

struct net_texts {
    const char *data[NET_TEXTS]; /* without a NUL behind them */
};

/* Put a message together in `bytes`, which has room for NET_MESSAGE_MOST. Its size, or 0: it is too long. Lengths are the message's. */
size_t net_message_write(const struct net_message *message, const struct net_texts *texts,
                         uint8_t *bytes);
/* Take one apart. False: it is none. Texts hold no control characters but, in headers and reasons, LF. */
bool net_message_read(const uint8_t *bytes, size_t size, struct net_message *message,
                      struct net_texts *texts);
/* Send one with at most one descriptor (or -1); receive one. A size of 0 is the end; *descriptor is -1 or the receiver's. */
bool net_message_send(int channel, const uint8_t *bytes, size_t size, int descriptor);
size_t net_message_receive(int channel, uint8_t *bytes, int *descriptor);

#endif
