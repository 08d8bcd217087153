/* A chain of calls in plain C, a thread that runs it too, and qsort and bsearch with callbacks. Usage: chain MILLISECONDS */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

static inline __attribute__((always_inline)) uint64_t mix(uint64_t x) {
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ x << 17;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

__attribute__((noinline)) static uint64_t leaf(uint64_t x, int rounds) {
    for (int i = 0; i < rounds; i++)
        x = mix(x + i);
    return x;
}

__attribute__((noinline)) static uint64_t middle(uint64_t x) {
    uint64_t local[20];
    for (int i = 0; i < 20; i++)
        local[i] = leaf(x + i, 40);
    return local[x % 20] + local[(x >> 5) % 20];
}

__attribute__((noinline)) static int compare(const void *a, const void *b) {
    uint64_t x = leaf(*(const uint64_t *)a, 3), y = leaf(*(const uint64_t *)b, 3);
    return (x > y) - (x < y);
}

__attribute__((noinline)) static int find(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    sink += leaf(x, 30);
    return (x > y) - (x < y);
}

__attribute__((noinline, unused)) static void sort_some(uint64_t seed) {
    uint64_t items[64];
    for (int i = 0; i < 64; i++)
        items[i] = seed = mix(seed + 1);
    qsort(items, 64, sizeof items[0], compare);
    sink += bsearch(&items[9], items, 64, sizeof items[0], find) != NULL;
}

__attribute__((noinline)) static void work(double milliseconds) {
    double end = now() + milliseconds;
    for (uint64_t i = 1; now() < end; i++) {
        sink += middle(i);
#ifndef WITHOUT_QSORT
        sort_some(i);
#endif
    }
}

static void *thread_main(void *milliseconds) {
    work(*(double *)milliseconds);
    return NULL;
}

int main(int argc, char **argv) {
    double milliseconds = argc > 1 ? atof(argv[1]) : 300;
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_main, &milliseconds) != 0)
        return 1;
    work(milliseconds);
    pthread_join(thread, NULL);
    return 0;
}
