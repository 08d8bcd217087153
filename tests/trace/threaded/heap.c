/* Many threads that allocate, and free what others allocated; made and joined in rounds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *_Atomic slots[64];
static void *work(void *a) {
    unsigned random = (unsigned)(unsigned long)a * 2654435761u + 1;
    for (int i = 0; i < 400; i++) {
        random = random * 1103515245u + 12345;
        size_t size = 16 + (random >> 12) % 3000;
        char *new = malloc(size);
        memset(new, 1, size);
        void *old = __atomic_exchange_n(&slots[(random >> 24) % 64], new, __ATOMIC_ACQ_REL);
        free(old);
    }
    return malloc(100);
}
int main(void) {
    for (long round = 0; round < 3; round++) {
        pthread_t threads[6];
        for (long i = 0; i < 6; i++)
            pthread_create(&threads[i], NULL, work, (void *)(round * 6 + i));
        for (int i = 0; i < 6; i++) {
            void *result;
            pthread_join(threads[i], &result);
            free(result);
        }
    }
    puts("done");
    return 0;
}
