/* A plain C program: static and global functions, recursion, libc, the vdso, system calls. usage: plain [SECONDS] */
#include "spin.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#ifndef VARIANT
#define VARIANT 1 /* another number makes another program with another build id */
#endif

static int compare(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

KEEP static unsigned long sort_numbers(unsigned long seed) {
    static int numbers[400];
    for (int i = 0; i < 400; i++) {
        numbers[i] = (int)((seed * 2654435761u + (unsigned)i * 40503u) % 100003) * VARIANT;
    }
    qsort(numbers, 400, sizeof numbers[0], compare);
    return (unsigned long)numbers[200];
}

KEEP unsigned long fibonacci(unsigned long n) {
    unsigned long result = n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    RESULT(result);
    return result;
}

KEEP static unsigned long read_zeros(void) {
    static char buffer[65536];
    int fd = open("/dev/zero", O_RDONLY);
    ssize_t got = 0;
    for (int i = 0; i < 4 && fd >= 0; i++) {
        got += read(fd, buffer, sizeof buffer);
    }
    close(fd);
    return (unsigned long)got;
}

KEEP static unsigned long ask_clock(void) {
    double sum = 0;
    for (int i = 0; i < 500; i++) {
        sum += cpu_seconds(CLOCK_MONOTONIC);
    }
    return (unsigned long)sum;
}

KEEP static unsigned long copy_bytes(void) {
    static char from[20000], to[20000];
    memcpy(to, from, sizeof to);
    memset(from, to[7], sizeof from);
    return strlen(to);
}

KEEP unsigned long one_turn(unsigned long turn) {
    unsigned long sum = sort_numbers(turn) + fibonacci(14) + copy_bytes() + ask_clock();
    if (turn % 4 == 0) {
        sum += read_zeros();
    }
    RESULT(sum);
    return sum;
}

int main(int argc, char **argv) {
    if (argc > 2 && !strcmp(argv[2], "unlink")) {
        unlink(argv[0]);
    }
    unsigned long sum = spin(argc > 1 ? atof(argv[1]) : 0.3, one_turn);
    RESULT(sum);
    return 0;
}
