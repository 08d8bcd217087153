/* Signals that the program sends itself, that come at any moment, and one whose handler is left by siglongjmp. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks, raised;
static sigjmp_buf buffer;

__attribute__((noipa)) static void leaf(void) {
    raised++;
}

__attribute__((noipa)) static void on_raised(int number) {
    leaf();
    __asm__ volatile(""); /* no tail call */
}

__attribute__((noipa)) static void on_tick(int number) {
    ticks++;
}

__attribute__((noipa)) static void on_fault(int number) {
    siglongjmp(buffer, 1);
    __asm__ volatile("");
}

__attribute__((noipa)) static unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

__attribute__((noipa)) static unsigned busy(void) {
    unsigned sum = 0;
    while (ticks < 20)
        sum += fib(10);
    return sum;
}

__attribute__((noipa)) static unsigned after(unsigned n) {
    return fib(n) + 1;
}

__attribute__((noipa)) static void fault(void) {
    raise(SIGUSR2);
    __asm__ volatile("");
}

int main(void) {
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    signal(SIGUSR1, on_raised);
    signal(SIGUSR2, on_fault);
    signal(SIGALRM, on_tick);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    if (!sigsetjmp(buffer, 1))
        fault();
    setitimer(ITIMER_REAL, &often, NULL);
    unsigned sum = busy();
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d %u %d\n", raised, after(10), sum > 0);
    return 0;
}
