/* Threads that never end. */
#include <pthread.h>
#include <stdio.h>
static volatile unsigned sink;
static void *work(void *a) {
    for (unsigned i = 0;; i++) {
        sink++;
        if (a && i == 1000000) {
            puts("begun");
            fflush(stdout);
        }
    }
    return NULL;
}
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, i == 2 ? (void *)&sink : NULL);
    pthread_join(threads[0], NULL);
    return 0;
}
