// Uses the CPU for a millisecond or two, so that a sampler with a period of a millisecond takes a sample.
#include <time.h>

int main(void) {
    struct timespec used;
    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    } while (used.tv_sec == 0 && used.tv_nsec < 1800000);
}
