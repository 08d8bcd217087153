/*
 * Four threads and one lock, that each holds for a millisecond: all wait for each other. Prints wall minus CPU time around the lock, summed
 * over the threads, in nanoseconds: `contended 712345678`. usage: locks [ROUNDS]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long off[THREADS];
static int rounds = 60;

static long long off_now(void) {
    struct timespec wall, cpu;
    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (wall.tv_sec - cpu.tv_sec) * 1000000000ll + wall.tv_nsec - cpu.tv_nsec;
}

__attribute__((noinline)) void contended(long long *sum) {
    long long before = off_now();
    pthread_mutex_lock(&lock);
    *sum += off_now() - before;
}

static void *compete(void *sum) {
    for (int i = 0; i < rounds; i++) {
        contended(sum);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    long long sum = 0;
    if (argc > 1)
        rounds = atoi(argv[1]);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, compete, &off[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += off[i];
    }
    printf("contended %lld\n", sum);
    return 0;
}
