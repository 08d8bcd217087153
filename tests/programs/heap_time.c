/*
 * Allocates in three phases and prints when each began and when the last ended, in seconds. In phase n (from 1 on) site_kept allocates 10 blocks of 1000 n bytes that
 * stay, site_next 5 of 100 n bytes that are freed in the next phase, at least 20 ms later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone))

static void *volatile kept[30], *next[3][5];
static char text[200];

SITE static void site_kept(int i, int phase) {
    kept[10 * (phase - 1) + i] = malloc(1000 * (size_t)phase);
}

SITE static void site_next(int i, int phase) {
    next[phase - 1][i] = malloc(100 * (size_t)phase);
}

static void say_time(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%lld.%09ld\n", (long long)t.tv_sec, t.tv_nsec);
}

int main(void) {
    const struct timespec pause = {.tv_nsec = 20000000};
    for (int phase = 1; phase <= 3; phase++) {
        say_time();
        for (int i = 0; i < 10; i++)
            site_kept(i, phase);
        for (int i = 0; i < 5; i++)
            site_next(i, phase);
        for (int i = 0; phase > 1 && i < 5; i++)
            free(next[phase - 2][i]);
        nanosleep(&pause, NULL);
    }
    say_time();
    return write(1, text, strlen(text)) < 0;
}
