/* What the test programs share: run something for a given CPU time, so that a recording has a few hundred samples. */
#ifndef SPIN_H
#define SPIN_H

#include <stdlib.h>
#include <time.h>

static inline double cpu_seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Calls work(n) until this thread has used `seconds` of CPU time. */
static inline unsigned long spin(double seconds, unsigned long (*work)(unsigned long)) {
    unsigned long sum = 0, turn = 0;
    double end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < end) {
        sum += work(turn++);
    }
    return sum;
}

/* A call that the optimizer may not turn into a jump or fold away. */
#define KEEP __attribute__((noinline, noclone))
#define RESULT(value) __asm__ volatile("" : : "r"(value) : "memory")

#endif
