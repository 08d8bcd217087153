/* Four threads that do different amounts of the same; with an argument also a forked process, which must not be counted. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__attribute__((noinline)) int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) unsigned sorted(unsigned n) {
    int *v = malloc(n * sizeof *v);
    for (unsigned i = 0; i < n; i++)
        v[i] = (int)(i * 7919 % 1013);
    qsort(v, n, sizeof *v, compare);
    unsigned middle = (unsigned)v[n / 2];
    free(v);
    return middle;
}
__attribute__((noinline)) void *work(void *a) {
    unsigned long n = (unsigned long)a;
    return (void *)(unsigned long)(fib(6 + (unsigned)n) + sorted(30 * ((unsigned)n + 1)));
}
__attribute__((noinline)) void forked(void) {
    _exit(fib(15) == 610 ? 0 : 1);
}
int main(int count, char **arguments) {
    pthread_t threads[4];
    unsigned long sum = 0;
    int status = 0;
    if (count > 1) {
        pid_t pid = fork();
        if (!pid)
            forked();
        waitpid(pid, &status, 0);
    }
    for (unsigned long i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (unsigned long)result;
    }
    printf("%lu\n", sum);
    return status;
}
