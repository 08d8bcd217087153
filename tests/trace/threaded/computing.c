/* Long computations side by side that never end: main forks among them, and then ends all, by exit or abort. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile unsigned sink;
__attribute__((noinline)) static unsigned mix(unsigned n, unsigned times) {
    while (times--)
        n = (n ^ n >> 15) * 0x846ca68bu;
    return n;
}
static void *work(void *a) {
    for (;;)
        sink += mix(sink + (unsigned)(unsigned long)a, 1000);
    return NULL;
}
int main(int count, char **arguments) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    sink += mix(7, 1000000);
    signal(SIGCHLD, SIG_IGN);
    if (!fork())
        _exit(0);
    sink += mix(8, 1000000);
    puts("main is done");
    fflush(stdout);
    if (count > 1)
        abort();
    exit(3);
}
