/*
 * What an x86_64 program does, found out another way than wick's: linked into it, this makes the processor stop after each instruction, and
 * tells the stack by the stack pointer alone. A frame begins with a call and lives until the stack pointer is above its return address. The
 * environment's STEPS names a file of lines `START END NAME`, in hexadecimal and ascending order; functions whose name is "-" are followed
 * but left out of the stacks. Writes to descriptor 3 how many instructions each stack has whose innermost frame has a name. Without
 * STEPS it does nothing.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define FUNCTIONS 100000
#define DEPTH 100000
#define STACKS 100000

static struct function {
    unsigned long start, end;
    char name[200];
} functions[FUNCTIONS];
static size_t function_count;

/* A stack of names: the one below it, and the innermost. */
static struct stack {
    size_t below;
    const char *name;
    unsigned long count;
} stacks[STACKS] = {{0, "", 0}};
static size_t stack_count = 1;

static struct frame {
    unsigned long sp; /* of its return address */
    const struct function *function;
    size_t below; /* the stack without it */
} frames[DEPTH] = {{~0ul, NULL, 0}};
static size_t depth = 1;

static void read_functions(const char *path) {
    FILE *file = fopen(path, "r");
    struct function *f = functions;
    while (file && function_count < FUNCTIONS && fscanf(file, "%lx %lx %199s", &f->start, &f->end, f->name) == 3)
        function_count++, f++;
    if (!file || !function_count)
        exit(2);
    fclose(file);
}

static const struct function *function_at(unsigned long pc) {
    static const struct function *last = functions;
    if (pc >= last->start && pc < last->end)
        return last;
    size_t low = 0, high = function_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (functions[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || pc >= functions[low - 1].end)
        return NULL;
    return last = &functions[low - 1];
}

static size_t stack_of(size_t below, const char *name) {
    if (strcmp(name, "-") == 0)
        return below;
    for (size_t i = 1; i < stack_count; i++)
        if (stacks[i].below == below && strcmp(stacks[i].name, name) == 0)
            return i;
    if (stack_count == STACKS)
        exit(2);
    stacks[stack_count] = (struct stack){below, name, 0};
    return stack_count++;
}

static size_t stack_of_frame(const struct frame *frame) {
    return frame->function ? stack_of(frame->below, frame->function->name) : frame->below;
}

/* The instruction at pc is about to be executed. */
static void step(unsigned long pc, unsigned long sp) {
    static unsigned long from, sp_before;
    while (depth > 1 && frames[depth - 1].sp < sp)
        depth--;
    unsigned long back = sp == sp_before - 8 ? *(unsigned long *)sp : 0;
    if (back > from && back <= from + 15 && back != pc && depth < DEPTH) {
        frames[depth] = (struct frame){sp, NULL, stack_of_frame(&frames[depth - 1])};
        depth++;
    }
    struct frame *top = &frames[depth - 1];
    const struct function *function = function_at(pc);
    if (function)
        top->function = function; /* a tail call, if it was another */
    if (function && function->name[0] != '-' && from != pc) /* the same again: it repeats itself, and is one */
        stacks[stack_of_frame(top)].count++;
    from = pc;
    sp_before = sp;
}

static void on_step(int number, siginfo_t *info, void *context) {
    const greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    step((unsigned long)registers[REG_RIP], (unsigned long)registers[REG_RSP]);
}

#define TRAP_FLAG 0x100l
static void switch_steps(int on) {
    if (on)
        __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"r"(TRAP_FLAG) : "memory", "cc");
    else
        __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"r"(~TRAP_FLAG) : "memory", "cc");
}

__attribute__((constructor)) static void begin(void) {
    static char own_stack[65536];
    const char *path = getenv("STEPS");
    if (!path)
        return;
    read_functions(path);
    sigaltstack(&(stack_t){.ss_sp = own_stack, .ss_size = sizeof own_stack}, NULL);
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGTRAP, &action, NULL);
    switch_steps(1);
}

static void print(size_t stack, FILE *out) {
    if (stacks[stack].below) {
        print(stacks[stack].below, out);
        fputc(';', out);
    }
    fputs(stacks[stack].name, out);
}

__attribute__((destructor)) static void end(void) {
    if (!function_count)
        return;
    switch_steps(0);
    FILE *out = fdopen(3, "w");
    for (size_t i = 1; out && i < stack_count; i++)
        if (stacks[i].count) {
            print(i, out);
            fprintf(out, " %lu\n", stacks[i].count);
        }
    if (!out || fclose(out) != 0)
        _exit(2);
}
