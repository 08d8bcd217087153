/* Any bytes as messages of the helper process, each with a length in front: taken as answers to requests that wait, whose headers are then asked for. */
#include "net/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct waiting waiting[3] = {{.id = 1, .descriptor = -1, .next = &waiting[1]},
                                 {.id = 2, .descriptor = -1, .next = &waiting[2]},
                                 {.id = 3, .descriptor = -1}};
    for (size_t at = 0; at + 2 <= size;) {
        size_t length = load_u16(data + at);
        length = length < size - at - 2 ? length : size - at - 2;
        uint8_t *message = (uint8_t *)memory_copy(data + at + 2, length);
        net_take_answer(waiting, message, length, open("/dev/null", O_RDONLY | O_CLOEXEC));
        free(message);
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
