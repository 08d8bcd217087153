/* Calls itself and spends its time at the bottom. Usage: recursion MILLISECONDS DEPTH */
#include <stdlib.h>
#include <time.h>

static volatile unsigned sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

__attribute__((noinline)) static unsigned spend(double end) {
    while (now() < end)
        for (int i = 0; i < 10000; i++)
            sink += i;
    return sink;
}

__attribute__((noinline)) static unsigned recurse(int depth, double end) {
    volatile unsigned local = depth;
    return depth > 0 ? recurse(depth - 1, end) + local : spend(end);
}

int main(int argc, char **argv) {
    return recurse(argc > 2 ? atoi(argv[2]) : 2000, now() + (argc > 1 ? atof(argv[1]) : 200)) & 0;
}
