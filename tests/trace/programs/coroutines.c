/* Two contexts that hand each other the processor: stacks must come back into step. */
#include <stdio.h>
#include <ucontext.h>
static ucontext_t home, other;
static char stack[65536];
static int turns;
__attribute__((noinline)) static void visit(int n) {
    for (int i = 0; i < n; i++) {
        turns++;
        swapcontext(&other, &home);
    }
}
static void body(void) {
    visit(10);
    visit(5);
}
int main(void) {
    getcontext(&other);
    other.uc_stack.ss_sp = stack;
    other.uc_stack.ss_size = sizeof stack;
    other.uc_link = &home;
    makecontext(&other, body, 0);
    for (int i = 0; i < 16; i++)
        swapcontext(&home, &other);
    printf("%d\n", turns);
    return 0;
}
