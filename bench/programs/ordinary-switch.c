// Pairs of processes that wake each other through pipes, from stacks of several depths. usage: ordinary-switch SECONDS
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static KEEP int pass_on(int from, int to, int depth) {
    char byte = 0;
    int done;
    if (depth) {
        done = pass_on(from, to, depth - 1) + 1;
    } else {
        done = read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1 ? 1 : -1000;
    }
    __asm__ volatile("" : : : "memory");
    return done;
}

int main(int argc, char **argv) {
    double end = now() + (argc > 1 ? atof(argv[1]) : 1);
    for (int pair = 0; pair < 3; pair++) {
        int there[2], back[2];
        if (pipe(there) || pipe(back)) {
            return 1;
        }
        if (fork() == 0) {
            close(there[1]);
            close(back[0]);
            for (int turn = 0; pass_on(there[0], back[1], turn % 5) > 0; turn++) {
            }
            return 0;
        }
        if (fork() == 0) {
            close(there[0]);
            close(back[1]);
            if (write(there[1], "x", 1) != 1) {
                return 1;
            }
            for (int turn = 0; now() < end && pass_on(back[0], there[1], turn % 7) > 0; turn++) {
            }
            return 0;
        }
        close(there[0]);
        close(there[1]);
        close(back[0]);
        close(back[1]);
    }
    while (wait(NULL) > 0) {
    }
}
