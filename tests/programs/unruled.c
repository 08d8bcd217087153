/* Spends its time where rules for unwinding say nothing: in assembly without any, called by name, by a pointer and after it has pushed; and on a stack of makecontext(). Usage: unruled MILLISECONDS */
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

__asm__(".text\n"
        ".type unruled_leaf, @function\n"
        "unruled_leaf: mov $100000, %ecx\n"
        "1: dec %ecx\n"
        "jnz 1b\n"
        "ret\n"
        ".size unruled_leaf, . - unruled_leaf\n"
        ".type unruled_pushes, @function\n"
        "unruled_pushes: push %rbx\n"
        "push %rbp\n"
        "mov $100000, %ebp\n"
        "1: dec %ebp\n"
        "jnz 1b\n"
        "pop %rbp\n"
        "pop %rbx\n"
        "ret\n"
        ".size unruled_pushes, . - unruled_pushes\n");
void unruled_leaf(void);
void unruled_pushes(void);

static ucontext_t outside, inside;
static void (*volatile pointer)(void) = unruled_leaf;
static volatile unsigned long sink;

__attribute__((noinline)) static void by_name(void) { unruled_leaf(), sink++; }
__attribute__((noinline)) static void by_pointer(void) { pointer(), sink++; }
__attribute__((noinline)) static void pushed(void) { unruled_pushes(), sink++; }
__attribute__((noinline)) static void spin(void) {
    for (int i = 0; i < 50000; i++)
        sink++;
}
static void fiber(void) {
    for (;;) {
        spin();
        swapcontext(&inside, &outside);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    static char stack[1 << 16];
    double end = now() + (argc > 1 ? atof(argv[1]) : 300);
    getcontext(&inside);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = sizeof stack;
    makecontext(&inside, fiber, 0);
    while (now() < end) {
        by_name(), by_pointer(), pushed();
        swapcontext(&outside, &inside);
    }
    return 0;
}
