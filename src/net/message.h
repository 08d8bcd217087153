/*
 * The messages between wick and wick-net: a header of fixed size, then texts whose lengths are in the header. A
 * message is one datagram of a socket pair. Both sides come from one build, so numbers are in the machine's byte
 * order.
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
    NET_PROGRESS,      /* `size` of `total` bytes have been received */
    NET_DONE,   /* `status`; texts: none, headers; has a descriptor: `size` bytes of a body */
    NET_FAILED, /* texts: why */
};
/* Indexes of texts. */
enum { NET_METHOD, NET_URL, NET_HEADERS, NET_CREDENTIALS, NET_SOCKET };
enum { NET_BUILD_ID = 0, NET_WHY = 0, NET_ANSWERED = 1 };

struct net_message {
    uint32_t magic;
    uint32_t kind;
    uint32_t id; /* of the request; its answers have the same id */
    uint32_t status;
    uint32_t milliseconds; /* limit of a request */
    uint32_t lengths[NET_TEXTS];
    uint64_t size;  /* in a request: the size limit of the answer */
    uint64_t total; /* in progress: expected bytes, or 0; in a request: bytes of its body */
};

struct net_texts {
    const char *data[NET_TEXTS]; /* not NUL-terminated */
};

/* Encode a message into `bytes`, which has room for NET_MESSAGE_MOST. Return its size, or 0 if it is too long. The
   message has the lengths of the texts. */
size_t net_message_write(const struct net_message *message, const struct net_texts *texts,
                         uint8_t *bytes);
/* Decode a message; return false if it is invalid. Texts contain no control characters except LF in headers and
   reasons. */
bool net_message_read(const uint8_t *bytes, size_t size, struct net_message *message,
                      struct net_texts *texts);
/* Send a message with one descriptor or none (-1), or receive one. A received size of 0 is the end; the caller owns
   *descriptor if it is not -1. */
bool net_message_send(int channel, const uint8_t *bytes, size_t size, int descriptor);
size_t net_message_receive(int channel, uint8_t *bytes, int *descriptor);

#endif
