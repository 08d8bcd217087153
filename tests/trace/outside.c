/* Two threads that each wait for a pipe from outside. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static void *work(void *a) {
    char c;
    int n = 0;
    while (read(atoi(a), &c, 1) == 1)
        n += (int)fib((unsigned)c % 10);
    return NULL;
}
int main(int count, char **arguments) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, arguments[1 + i]);
    sched_yield(); /* in their order, both come to their pipes before this goes on */
    puts("begun");
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    puts("end");
    return 0;
}
