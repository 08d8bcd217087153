/* Function pointers and the library's sort. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef int compare(const void *, const void *);
static int up(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int down(const void *a, const void *b) { return up(b, a); }
static int by_digit(const void *a, const void *b) { return *(const int *)a % 10 - *(const int *)b % 10; }
int main(void) {
    compare *const orders[] = {up, down, by_digit};
    int numbers[500], sum = 0;
    for (int round = 0; round < 9; round++) {
        unsigned seed = (unsigned)round + 1;
        for (int i = 0; i < 500; i++)
            numbers[i] = (int)((seed = seed * 1103515245 + 12345) >> 16 & 0x3fff);
        qsort(numbers, 500, sizeof *numbers, orders[round % 3]);
        int key = numbers[77];
        sum += bsearch(&key, numbers, 500, sizeof *numbers, orders[round % 3]) != NULL;
        sum += numbers[3];
    }
    printf("%d\n", sum);
    return 0;
}
