/*
 * LD_PRELOAD: the allocation of wick's own whose number NO_MEMORY says fails, once; all others succeed. Without NO_MEMORY, or with 0, allocations are counted, and
 * their number goes into the file that COUNT_MEMORY names.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

static void *(*real_malloc)(size_t), *(*real_calloc)(size_t, size_t),
    *(*real_realloc)(void *, size_t);
static atomic_ulong count;
static unsigned long failing;
static int told = -1; /* opened before the sandbox closes */
static _Atomic int ready;
static char early[4096]; /* dlsym() may allocate before it has found calloc() */
static atomic_size_t early_used;

__attribute__((constructor)) static void begin(void) {
    const char *number = getenv("NO_MEMORY");
    real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
    real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
    failing = number ? strtoul(number, NULL, 10) : 0;
    const char *path = getenv("COUNT_MEMORY");
    told = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    unsetenv("LD_PRELOAD"); /* only wick itself */
    ready = 1;
}

__attribute__((destructor)) static void end(void) {
    char text[32];
    if (told >= 0)
        (void)!write(told, text, (size_t)snprintf(text, sizeof text, "%lu", (unsigned long)count));
}

/* Only wick's own: elfutils does not survive without memory, and nothing can be done about that here. */
static int is_own(const void *caller) {
    Dl_info where;
    static const void *program;
    if (!program)
        program = (void *)getauxval(AT_ENTRY);
    Dl_info self;
    return dladdr(caller, &where) && dladdr(program, &self) && where.dli_fbase == self.dli_fbase;
}

static int fails(const void *caller) {
    if (!ready || !is_own(caller) || ++count != failing)
        return 0;
    errno = ENOMEM;
    return 1;
}

static void *take_early(size_t size) {
    size_t at = atomic_fetch_add(&early_used, (size + 15) & ~(size_t)15);
    return at + size <= sizeof early ? early + at : NULL;
}

void *malloc(size_t size) {
    if (!real_malloc)
        return take_early(size);
    return fails(__builtin_return_address(0)) ? NULL : real_malloc(size);
}

void *calloc(size_t number, size_t size) {
    if (!real_calloc)
        return take_early(number * size);
    return fails(__builtin_return_address(0)) ? NULL : real_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    if (!real_realloc || ((char *)old >= early && (char *)old < early + sizeof early))
        return malloc(size);
    return fails(__builtin_return_address(0)) ? NULL : real_realloc(old, size);
}
