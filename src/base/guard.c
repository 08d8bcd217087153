/*
 * The guard: a mapped file that shrinks reads as zeroes from there on and is marked as changed, instead of raising
 * SIGBUS.
 *
 * Every mapping is in a table; the handler looks up the faulting address, maps zero pages over the rest of that mapping
 * and marks it. Adding takes a lock; the handler only reads atomics, and the table grows by blocks that are never moved
 * or freed. Mappings that a library makes are not in the table: a thread announces calls to such a library, and a fault
 * there gets one zero page at a time. Any other SIGBUS goes to the previous handler.
 */
#include "base/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_GUARDS = 256 };

struct file_guard {
    atomic_uintptr_t start; /* 0: free */
    atomic_size_t size;
    atomic_bool changed;
};

struct block {
    struct file_guard guards[BLOCK_GUARDS];
    _Atomic(struct block *) next;
};

static struct block first_block;
static pthread_mutex_t guards_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous_action;
static _Thread_local bool *watched; /* where to mark faults outside the table, or NULL */
static atomic_uintptr_t page_size;  /* the system's: 4 kB, on Arm also 16 or 64 */

static void zero_pages(uintptr_t start, uintptr_t end) {
    if (mmap((void *)start, end - start, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
        _exit(ERROR_INTERNAL);
}

static struct file_guard *guard_at(uintptr_t address, uintptr_t *end) {
    for (struct block *block = &first_block; block; block = atomic_load(&block->next))
        for (size_t i = 0; i < BLOCK_GUARDS; i++) {
            uintptr_t start = atomic_load(&block->guards[i].start);
            size_t size = atomic_load(&block->guards[i].size);
            if (!start || address < start || address - start >= size)
                continue;
            uintptr_t page = atomic_load(&page_size);
            *end = (start + size + page - 1) & ~(page - 1);
            return &block->guards[i];
        }
    return NULL;
}

static void guard_fault(int signal, siginfo_t *info, void *context) {
    uintptr_t size = atomic_load(&page_size), page = (uintptr_t)info->si_addr & ~(size - 1), end;
    struct file_guard *guard = guard_at((uintptr_t)info->si_addr, &end);
    if (guard) {
        zero_pages(page, end);
        atomic_store(&guard->changed, true);
    } else if (watched && info->si_code == BUS_ADRERR) {
        zero_pages(page, page + size);
        __atomic_store_n(watched, true, __ATOMIC_RELAXED);
    } else if (previous_action.sa_flags & SA_SIGINFO) {
        previous_action.sa_sigaction(signal, info, context);
    } else {
        sigaction(SIGBUS, &previous_action, NULL);
        raise(SIGBUS);
    }
}

/* Install the handler again if another one has replaced it. */
static void guard_install(void) {
    struct sigaction action = {.sa_sigaction = guard_fault, .sa_flags = SA_SIGINFO}, now;
    atomic_store(&page_size, (uintptr_t)sysconf(_SC_PAGESIZE));
    sigaction(SIGBUS, NULL, &now);
    if (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != guard_fault)
        sigaction(SIGBUS, &action, &previous_action);
}

static struct file_guard *guard_free_one(void) {
    struct block *block = &first_block;
    for (;;) {
        for (size_t i = 0; i < BLOCK_GUARDS; i++)
            if (!atomic_load(&block->guards[i].start))
                return &block->guards[i];
        struct block *next = atomic_load(&block->next);
        if (!next) {
            next = memory_zero(1, sizeof *next);
            atomic_store(&block->next, next);
        }
        block = next;
    }
}

struct file_guard *guard_enter(const void *data, size_t size) {
    pthread_mutex_lock(&guards_lock);
    guard_install();
    struct file_guard *guard = guard_free_one();
    atomic_store(&guard->changed, false);
    atomic_store(&guard->size, size);
    atomic_store(&guard->start, (uintptr_t)data);
    pthread_mutex_unlock(&guards_lock);
    return guard;
}

void guard_leave(struct file_guard *guard) {
    if (guard)
        atomic_store(&guard->start, 0);
}

/* The rest of the last page that is left reads as zeroes without a fault. */
static bool is_shorter(const struct file *file) {
    struct stat status;
    return file->inode && stat(file->path, &status) == 0 && status.st_ino == file->inode &&
           status.st_dev == file->device && (uint64_t)status.st_size < file->size;
}

bool file_changed(const struct file *file, struct error *error) {
    if (!file->guard || !(atomic_load(&file->guard->changed) || is_shorter(file)))
        return false;
    error_set(error, ERROR_INPUT, "%s: changed while reading", file->path);
    return true;
}

void file_watch(bool *changed) {
    watched = changed;
}
