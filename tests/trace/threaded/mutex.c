/* Four threads that want one lock, with more to do in it than out of it. */
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long shared;
__attribute__((noinline)) static unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static void *work(void *a) {
    for (int i = 0; i < 300; i++) {
        pthread_mutex_lock(&lock);
        shared += fib(5 + (unsigned)i % 9);
        pthread_mutex_unlock(&lock);
        fib((unsigned)(i + (long)a) % 7);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%lu\n", shared);
    return 0;
}
