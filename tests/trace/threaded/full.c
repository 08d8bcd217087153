/* A writer that fills a pipe faster than its reader, which computes in between, takes it out. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int ends[2];
__attribute__((noinline)) static unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static void *writer(void *a) {
    static char bytes[100000];
    for (int i = 0; i < 10; i++)
        if (write(ends[1], bytes, sizeof bytes) != sizeof bytes)
            return a;
    close(ends[1]);
    return NULL;
}
int main(void) {
    static char bytes[50000];
    pthread_t thread;
    ssize_t size, sum = 0;
    if (pipe(ends) || pthread_create(&thread, NULL, writer, NULL))
        return 1;
    do {
        fib(20);
        size = read(ends[0], bytes, sizeof bytes);
        sum += size;
    } while (size > 0);
    pthread_join(thread, NULL);
    printf("%zd\n", sum);
    return 0;
}
