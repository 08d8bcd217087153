/* Tail calls at -O2: to other functions, in a ring, through pointers. */
#include <stdio.h>
typedef unsigned long step(unsigned long value, unsigned long left);
static step first, second, third;
static step *const ring[] = {first, second, third};
__attribute__((noinline)) static unsigned long first(unsigned long v, unsigned long left) { return left ? second(v + 1, left - 1) : v; }
__attribute__((noinline)) static unsigned long second(unsigned long v, unsigned long left) { return left ? ring[v % 3](v * 3, left - 1) : v; }
__attribute__((noinline)) static unsigned long third(unsigned long v, unsigned long left) { return left ? first(v ^ 5, left - 1) : v; }
__attribute__((noinline)) static unsigned long outer(unsigned long n) { return first(n, n * 10); }
int main(void) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < 100; i++)
        sum += outer(i);
    printf("%lu\n", sum);
    return 0;
}
