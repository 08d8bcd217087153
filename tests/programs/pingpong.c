/*
 * Two threads that hand a byte to and fro through pipes for some seconds: as many switches as the machine can do. Prints how often the byte
 * went round. usage: pingpong SECONDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static int take(int from) {
    char byte;
    return read(from, &byte, 1) == 1;
}

static void give(int to) {
    if (write(to, "", 1) != 1)
        exit(1);
}

__attribute__((noinline)) void ping(void) {
    give(there[1]);
    if (!take(back[0]))
        exit(1);
}

__attribute__((noinline)) int pong(void) {
    if (!take(there[0]))
        return 0;
    give(back[1]);
    return 1;
}

static void *other(void *unused) {
    prctl(PR_SET_NAME, "pong");
    while (pong())
        ;
    return unused;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    long rounds = 0;
    pthread_t thread;
    if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&thread, NULL, other, NULL) != 0)
        return 1;
    for (; now() < end; rounds++)
        ping();
    close(there[1]);
    pthread_join(thread, NULL);
    printf("%ld\n", rounds);
    return 0;
}
