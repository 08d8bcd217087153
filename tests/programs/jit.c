/* Spends its time in the vdso, in code made at run time that a perf map names, and in some that nothing names. Usage: jit MILLISECONDS */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* push %rbp; mov %rsp,%rbp; mov %rdi,%rcx; 1: dec %rcx; jnz 1b; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};
typedef void made(unsigned long rounds);

static volatile long sink;

static made *make(void) {
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    memcpy(memory, code, sizeof code);
    return (made *)memory;
}

static void name(made *function) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (!map)
        exit(1);
    fprintf(map, "%lx %zx made_and_named\n", (unsigned long)function, sizeof code);
    fclose(map);
}

static double used(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static long ask(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_nsec;
}

__attribute__((noinline)) static void call_made(made *function, int which) {
    function(100000);
    sink += which;
}

__attribute__((noinline)) static void call_vdso(void) {
    for (int i = 0; i < 5000; i++)
        sink += ask();
}

int main(int argc, char **argv) {
    double end = used() + (argc > 1 ? atof(argv[1]) : 300);
    made *named = make();
    /* Another mapping of its own, so that perf's map does not reach it. */
    made *nameless = make();
    name(named);
    while (used() < end) {
        call_made(named, 1);
        call_made(nameless, 2);
        call_vdso();
    }
    return 0;
}
