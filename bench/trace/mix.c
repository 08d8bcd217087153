#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
static uint32_t table[4096];
__attribute__((noinline)) static uint32_t mix(uint32_t a) {
    a ^= a >> 16;
    a *= 0x7feb352du;
    a ^= a >> 15;
    a *= 0x846ca68bu;
    return a ^ a >> 16;
}
__attribute__((noinline)) static int cmp(const void *a, const void *b) {
    uint32_t x = *(uint32_t *)a, y = *(uint32_t *)b;
    return x < y ? -1 : x > y;
}
__attribute__((noinline)) static unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__attribute__((noinline)) static double matrix(int n) {
    static double a[64][64], b[64][64], c[64][64];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            a[i][j] = i + j;
            b[i][j] = i - j;
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < n; k++)
                s += a[i][k] * b[k][j];
            c[i][j] = s;
        }
    return c[n / 2][n / 3];
}
__attribute__((noinline)) static int sieve(int n) {
    static uint8_t s[1 << 16];
    memset(s, 1, n);
    int c = 0;
    for (int i = 2; i < n; i++)
        if (s[i]) {
            c++;
            for (int j = 2 * i; j < n; j += i)
                s[j] = 0;
        }
    return c;
}
__attribute__((noinline)) static int state(int n) {
    int s = 0, x = 0;
    for (int i = 0; i < n; i++) {
        switch (s) {
        case 0:
            x += i;
            s = 1;
            break;
        case 1:
            x ^= i;
            s = x & 1 ? 2 : 3;
            break;
        case 2:
            x -= 3;
            s = 4;
            break;
        case 3:
            x <<= 1;
            s = 4;
            break;
        case 4:
            x += 7;
            s = 5;
            break;
        default:
            s = 0;
        }
    }
    return x;
}
int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    uint64_t sum = 0;
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < 4096; i++)
            table[i] = mix(i * r + r);
        qsort(table, 4096, 4, cmp);
        sum += table[17];
        sum += fib(22);
        sum += (uint64_t)matrix(48);
        sum += sieve(1 << 16);
        sum += state(200000);
    }
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
