/*
 * Messages, for both sides. This file does not use base, to keep the helper small.
 */
#include "net/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

size_t net_message_write(const struct net_message *message, const struct net_texts *texts,
                         uint8_t *bytes) {
    size_t size = sizeof *message;
    memcpy(bytes, message, size);
    for (int i = 0; i < NET_TEXTS; i++) {
        if (message->lengths[i] > NET_MESSAGE_MOST - size)
            return 0;
        if (message->lengths[i])
            memcpy(bytes + size, texts->data[i], message->lengths[i]);
        size += message->lengths[i];
    }
    return size;
}

static bool is_clean(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (((uint8_t)text[i] < ' ' && text[i] != '\n' && text[i] != '\t') || text[i] == 0x7f)
            return false;
    return true;
}

bool net_message_read(const uint8_t *bytes, size_t size, struct net_message *message,
                      struct net_texts *texts) {
    size_t at = sizeof *message;
    if (size < at || size > NET_MESSAGE_MOST)
        return false;
    memcpy(message, bytes, at);
    if (message->magic != NET_MAGIC || message->kind < NET_ASK_HTTP || message->kind > NET_FAILED)
        return false;
    for (int i = 0; i < NET_TEXTS; i++) {
        texts->data[i] = (const char *)bytes + at;
        if (message->lengths[i] > size - at || !is_clean(texts->data[i], message->lengths[i]))
            return false;
        at += message->lengths[i];
    }
    return at == size;
}

bool net_message_send(int channel, const uint8_t *bytes, size_t size, int descriptor) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec vector = {(void *)bytes, size};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    ssize_t sent;
    do
        sent = sendmsg(channel, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

/* Return the first descriptor that arrived; close the others. */
static int take_descriptor(struct msghdr *message) {
    int found = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + CMSG_LEN(sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(c) + at, sizeof descriptor);
            if (found < 0)
                found = descriptor;
            else
                close(descriptor);
        }
    }
    return found;
}

size_t net_message_receive(int channel, uint8_t *bytes, int *descriptor) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec vector = {bytes, NET_MESSAGE_MOST};
    struct msghdr message;
    ssize_t size;
    *descriptor = -1;
    do {
        message = (struct msghdr){.msg_iov = &vector,
                                  .msg_iovlen = 1,
                                  .msg_control = control.room,
                                  .msg_controllen = sizeof control.room};
        size = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size < 0)
        return 0;
    *descriptor = take_descriptor(&message);
    if (size == 0 && *descriptor >= 0) { /* an empty message is the end, and nobody takes it */
        close(*descriptor);
        *descriptor = -1;
    }
    return (size_t)size;
}
