/* Threads that sleep different times and look at each other's work; a detached one that is still asleep at the end. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static unsigned done[4];
__attribute__((noinline)) static unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static void *work(void *a) {
    long me = (long)a;
    for (int i = 0; i < 8; i++) {
        if (me == 3)
            for (int k = 0; k < 40; k++)
                fib(10);
        else
            usleep(500 * (unsigned)(me + 1));
        done[me]++;
        fib(__atomic_load_n(&done[(me + 1) % 4], __ATOMIC_RELAXED));
    }
    return NULL;
}
static void *forever(void *a) {
    for (;;)
        sleep(1000);
    return a;
}
int main(void) {
    pthread_t threads[4], other;
    pthread_create(&other, NULL, forever, NULL);
    pthread_detach(other);
    for (long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%u %u %u %u\n", done[0], done[1], done[2], done[3]);
    return 0;
}
