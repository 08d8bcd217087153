/*
 * System calls without errno, and the clock.
 */
#ifndef WICK_HEAP_SYSTEM_H
#define WICK_HEAP_SYSTEM_H

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

static inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
                     x2 __asm__("x2") = c, x3 __asm__("x3") = d, x4 __asm__("x4") = e,
                     x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "no system calls here"
#endif
}

static inline uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t); /* no system call: the kernel maps it into the process */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Return the thread's control block. If libc allocated the thread's stack, the stack lies below it. */
static inline uintptr_t thread_block(void) {
    uintptr_t block;
#if defined(__x86_64__)
    __asm__("mov %%fs:0, %0" : "=r"(block));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(block));
#endif
    return block;
}

#endif
