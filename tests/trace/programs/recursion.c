/* Recursion: direct, mutual, and deep enough to matter. */
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static int odd(unsigned n);
__attribute__((noinline)) static int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
__attribute__((noinline)) static int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
int main(void) { printf("%u %u %d\n", fib(15), ackermann(2, 9), even(1001)); return 0; }
