/* Tail calls at -O2: to other functions, in a ring, through pointers. */
#include <stdio.h>
typedef long step(long value, long left);
static step first, second, third;
static step *const ring[] = {first, second, third};
__attribute__((noinline)) static long first(long v, long left) { return left ? second(v + 1, left - 1) : v; }
__attribute__((noinline)) static long second(long v, long left) { return left ? ring[v % 3](v * 3, left - 1) : v; }
__attribute__((noinline)) static long third(long v, long left) { return left ? first(v ^ 5, left - 1) : v; }
__attribute__((noinline)) static long outer(long n) { return first(n, n * 10); }
int main(void) {
    long sum = 0;
    for (long i = 0; i < 100; i++)
        sum += outer(i);
    printf("%ld\n", sum);
    return 0;
}
