/* longjmp to an activation of a recursive function that is neither the first nor the last: each has a buffer of its own. */
#include <setjmp.h>
#include <stdio.h>

#define LEVELS 8

static jmp_buf buffers[LEVELS];
static volatile int landed, left;

__attribute__((noinline)) static void after(int level) {
    landed = landed * 10 + level;
}

__attribute__((noinline)) static void leap(int level) {
    left++;
    longjmp(buffers[level], 1);
}

__attribute__((noinline)) static int deeper(volatile int level, int to) {
    if (setjmp(buffers[level]))
        after(level);
    else if (level == LEVELS - 1)
        leap(to);
    else
        deeper(level + 1, to);
    after(level);
    return level;
}

int main(void) {
    for (int to = 0; to < LEVELS; to += 3)
        deeper(0, to);
    printf("%d %d\n", landed, left);
    return 0;
}
