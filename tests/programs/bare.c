/* Spends its time in bare.S. Usage: bare MILLISECONDS */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

uint64_t bare_loop(uint64_t rounds);
static volatile uint64_t sink;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}
__attribute__((noinline)) static void call_it(void) { sink += bare_loop(100000); }

int main(int argc, char **argv) {
    double end = now() + (argc > 1 ? atof(argv[1]) : 300);
    while (now() < end)
        call_it();
    return 0;
}
