/* Recursion as deep as it is told. */
#include <stdlib.h>
static volatile unsigned sum;
__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static unsigned deep(unsigned n) {
    return n ? deep(n - 1) + sum : 1;
}
int main(int count, char **arguments) {
    sum = deep((unsigned)atoi(arguments[1]));
    return 0;
}
