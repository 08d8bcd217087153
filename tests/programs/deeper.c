/* A recursion of 400 calls with 256 bytes each, more than a sample copies, in the first thread and in another. Usage: deeper MILLISECONDS of CPU time */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static volatile uint64_t sink;
static double most;

static double spent(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

__attribute__((noinline)) static void bottom(void) {
    while (spent() < most)
        for (int i = 0; i < 100000; i++)
            sink = sink * 6364136223846793005u + 1;
}

__attribute__((noinline)) static void down(int left) {
    char room[256];
    memset(room, left, sizeof room);
    if (left)
        down(left - 1);
    else
        bottom();
    sink += (uint64_t)room[sink & 255];
}

static void *other(void *unused) {
    down(400);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    most = argc > 1 ? atof(argv[1]) : 300;
    pthread_create(&thread, NULL, other, NULL);
    down(400);
    return pthread_join(thread, NULL);
}
