/* What picolibc needs of a system, and what starts a program: two system calls. */
#include <stddef.h>
#include <stdio.h>

int main(int count, char **arguments);

static char heap[1 << 20];
__attribute__((used, aligned(64))) static char thread[4096];

static long call(long number, long a, const void *b, long c) {
    register long a0 __asm__("a0") = a;
    register const void *a1 __asm__("a1") = b;
    register long a2 __asm__("a2") = c;
    register long a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
    return a0;
}

__attribute__((noreturn)) void _exit(int status) {
    for (;;)
        call(93, status, NULL, 0);
}

void *sbrk(ptrdiff_t more) {
    static size_t used;
    char *old = heap + used;
    if (more < 0 || used + (size_t)more > sizeof heap)
        return (void *)-1;
    used += (size_t)more;
    return old;
}

static int put(char byte, FILE *file) {
    return call(64, 1, &byte, 1) == 1 ? 0 : EOF;
}

static int get(FILE *file) {
    unsigned char byte;
    return call(63, 0, &byte, 1) == 1 ? byte : EOF;
}

static FILE console = FDEV_SETUP_STREAM(put, get, NULL, _FDEV_SETUP_RW);
FILE *const stdin = &console, *const stdout = &console, *const stderr = &console;

__attribute__((used)) static void begin(long *stack) {
    _exit(main((int)stack[0], (char **)(stack + 1)));
}

/* The C library keeps errno where tp points. */
__asm__(".globl _start\n.type _start, @function\n_start:\n"
        ".option push\n.option norelax\nla gp, __global_pointer$\n.option pop\n"
        "la tp, thread\nmv a0, sp\nandi sp, sp, -16\ntail begin\n.size _start, .-_start\n");
