/* Makers and takers around a queue of four places; barriers between the rounds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static unsigned *queue[4], filled, sum;
static void put(unsigned *item) {
    pthread_mutex_lock(&lock);
    while (filled == 4)
        pthread_cond_wait(&not_full, &lock);
    queue[filled++] = item;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&lock);
}
static unsigned *take(void) {
    pthread_mutex_lock(&lock);
    while (!filled)
        pthread_cond_wait(&not_empty, &lock);
    unsigned *item = queue[--filled];
    pthread_cond_broadcast(&not_full);
    pthread_mutex_unlock(&lock);
    return item;
}
static void *maker(void *a) {
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 60; i++) {
            unsigned *item = malloc(sizeof *item + i);
            *item = i;
            put(item);
        }
        pthread_barrier_wait(&barrier);
    }
    return a;
}
static void *taker(void *a) {
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 40; i++) {
            unsigned *item = take();
            __atomic_fetch_add(&sum, *item, __ATOMIC_RELAXED);
            free(item);
        }
        pthread_barrier_wait(&barrier);
    }
    return a;
}
int main(void) {
    pthread_t threads[5];
    pthread_barrier_init(&barrier, NULL, 5);
    for (int i = 0; i < 5; i++)
        pthread_create(&threads[i], NULL, i < 2 ? maker : taker, NULL);
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
    printf("%u\n", sum);
    return 0;
}
