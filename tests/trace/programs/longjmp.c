/* setjmp and longjmp across several frames, from recursion, more than once. */
#include <setjmp.h>
#include <stdio.h>
static jmp_buf outer, inner;
static volatile int passes;
__attribute__((noinline)) static void deep(int n) {
    if (n == 0)
        longjmp(passes % 2 ? inner : outer, 1);
    deep(n - 1);
    passes += 1000;
}
__attribute__((noinline)) static int work(int rounds) {
    volatile int sum = 0;
    for (volatile int i = 0; i < rounds; i++) {
        if (setjmp(inner) == 0)
            deep(i % 7 + 3);
        else
            sum += i;
        passes += 2;
    }
    return sum;
}
__attribute__((noinline)) static int activation(int n) {
    if (n == 5 && setjmp(outer))
        return 100;
    if (n == 0)
        deep(4);
    return 1 + activation(n - 1);
}
int main(void) {
    passes = 1;
    int sum = work(50);
    passes = 2;
    sum += activation(9);
    printf("%d %d\n", sum, passes);
    return 0;
}
