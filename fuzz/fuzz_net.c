/* Parse any bytes as messages of the helper process, each prefixed with its length: handle them as answers to waiting
   requests, then look up their headers. */
#include "net/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A message that can be parsed is written back the same. */
static void again(const uint8_t *bytes, size_t size) {
    struct net_message message;
    struct net_texts texts;
    static uint8_t written[NET_MESSAGE_MOST];
    if (net_message_read(bytes, size, &message, &texts))
        assert(net_message_write(&message, &texts, written) == size &&
               memcmp(bytes, written, size) == 0);
}

/* Send them through a channel, like the helper, with a descriptor. */
static void take(struct waiting *waiting, const uint8_t *bytes, size_t length) {
    static uint8_t message[NET_MESSAGE_MOST];
    int channel[2], sent = open("/dev/null", O_RDONLY | O_CLOEXEC), received;
    if (sent < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) != 0)
        abort();
    bool fine = net_message_send(channel[0], bytes, length, sent);
    close(sent);
    close(channel[0]);
    size_t size = net_message_receive(channel[1], message, &received);
    close(channel[1]);
    if (fine && size) {
        uint8_t *whole = (uint8_t *)memory_copy(message, size); /* detects overreads */
        again(whole, size);
        net_take_answer(waiting, whole, size, received);
        free(whole);
    } else if (received >= 0) {
        close(received);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct waiting waiting[3] = {{.id = 1, .descriptor = -1, .next = &waiting[1]},
                                 {.id = 2, .descriptor = -1, .next = &waiting[2]},
                                 {.id = 3, .descriptor = -1}};
    for (size_t at = 0; at + 2 <= size;) {
        size_t length = load_u16(data + at);
        length = length < size - at - 2 ? length : size - at - 2;
        take(waiting, data + at + 2, length);
        at += 2 + length;
    }
    for (size_t i = 0; i < COUNT_OF(waiting); i++) {
        struct net_answer answer = {.headers = waiting[i].why, .descriptor = waiting[i].descriptor};
        struct text value = net_header(&answer, TEXT("retry-after"));
        assert(value.length <= answer.headers.count);
        net_answer_release(&answer);
    }
    return 0;
}
