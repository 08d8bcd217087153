/* A handler on an alternate stack and one on the ordinary stack, each interrupting a busy function. Usage: signals MILLISECONDS */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static volatile uint64_t sink;

__attribute__((noinline)) static void burn(int rounds) {
    for (int i = 0; i < rounds; i++)
        sink = sink * 6364136223846793005u + 1;
}
__attribute__((noinline)) static void on_alternate(int number) {
    burn(200000);
    sink += number;
}
__attribute__((noinline)) static void on_ordinary(int number) {
    burn(200000);
    sink += number;
}
__attribute__((noinline)) static void busy(void) {
    burn(1000);
    sink++;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    double end = now() + (argc > 1 ? atof(argv[1]) : 300);
    stack_t alternate = {.ss_size = 65536, .ss_sp = malloc(65536)};
    struct sigaction action = {.sa_handler = on_alternate, .sa_flags = SA_ONSTACK | SA_RESTART};
    struct itimerval often = {{0, 3000}, {0, 3000}}, seldom = {{0, 5000}, {0, 5000}};
    sigaltstack(&alternate, NULL);
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = on_ordinary;
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    setitimer(ITIMER_PROF, &seldom, NULL);
    while (now() < end)
        busy();
    return 0;
}
