/* Makes code and tells of it in a jitdump in the working directory: `first_loop`, then `second_loop` in its place, then the latter moved
   to another page, each for a third of the time. Usage: dumper SECONDS [remove] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static FILE *dump;

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void put_u32(uint32_t value) {
    fwrite(&value, 4, 1, dump);
}

static void put_u64(uint64_t value) {
    fwrite(&value, 8, 1, dump);
}

static void put_prefix(uint32_t kind, uint32_t size) {
    put_u32(kind);
    put_u32(size);
    put_u64(now(CLOCK_MONOTONIC));
}

static void put_load(const char *name, const void *code, size_t size, uint64_t number) {
    put_prefix(0, (uint32_t)(56 + strlen(name) + 1 + size));
    put_u32((uint32_t)getpid());
    put_u32((uint32_t)getpid());
    put_u64((uint64_t)code);
    put_u64((uint64_t)code);
    put_u64(size);
    put_u64(number);
    fwrite(name, strlen(name) + 1, 1, dump);
    fwrite(code, size, 1, dump);
    fflush(dump);
}

static void put_move(const void *from, const void *to, size_t size, uint64_t number) {
    put_prefix(1, 64);
    put_u32((uint32_t)getpid());
    put_u32((uint32_t)getpid());
    put_u64((uint64_t)to);
    put_u64((uint64_t)from);
    put_u64((uint64_t)to);
    put_u64(size);
    put_u64(number);
    fflush(dump);
}

static void run(void *code, double seconds) {
    uint64_t end = now(CLOCK_PROCESS_CPUTIME_ID) + (uint64_t)(seconds * 1e9);
    while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
        ((void (*)(void))code)();
}

int main(int argc, char **argv) {
    /* push %rbp; mov %rsp,%rbp; mov $0x100000,%rax; 1: dec %rax; jnz 1b; pop %rbp; ret */
    static const unsigned char loop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xc7, 0xc0, 0,    0,    0x10,
                                         0,    0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3};
    double third = atof(argv[1]) / 3;
    char name[64];
    snprintf(name, sizeof name, "jit-%d.dump", (int)getpid());
    dump = fopen(name, "w+");
    char *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    put_u32(0x4A695444);
    put_u32(1);
    put_u32(40);
    put_u32(62);
    put_u32(0);
    put_u32((uint32_t)getpid());
    put_u64(now(CLOCK_MONOTONIC));
    put_u64(0);
    fflush(dump);
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    memcpy(code, loop, sizeof loop);
    put_load("first_loop", code, sizeof loop, 1);
    run(code, third);
    put_load("second_loop", code, sizeof loop, 2);
    /* A runtime that protects its memory tells of a new mapping each time. */
    mprotect(code, 4096, PROT_READ | PROT_WRITE);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    run(code, third);
    memcpy(code + 4096, loop, sizeof loop);
    put_move(code, code + 4096, sizeof loop, 2);
    run(code + 4096, third);
    put_prefix(3, 16);
    fclose(dump);
    if (argc > 2)
        unlink(name);
    return 0;
}
