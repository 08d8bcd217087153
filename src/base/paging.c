/*
 * A thread that maps pages before they are needed, or unmaps them afterwards. A record with its copied stack is 16 kB
 * or more, so a reader of the records' headers takes a page fault for every fourth of them, and closing the file
 * unmaps the pages again: 80 and 40 ms for 2 GB, which one core pays while others wait.
 */
#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* A fault maps FAULT bytes around it, unless the kernel is configured otherwise; and each unmapping interrupts every
   core. */
enum { LEAST = 16 << 20, FAULT = 64 << 10, LET_GO = 256 << 20 };

struct paging {
    pthread_t thread;
    const struct file *file;
    atomic_bool stop;
};

/* Begin in the middle: meanwhile the reader maps the first half itself. */
static void *page_in(void *context) {
    struct paging *p = context;
    const volatile uint8_t *bytes = p->file->data;
    for (size_t at = p->file->size / 2; at < p->file->size && !atomic_load(&p->stop); at += FAULT)
        (void)bytes[at];
    return NULL;
}

static void *page_out(void *context) {
    struct paging *p = context;
    uintptr_t start = (uintptr_t)p->file->data;
    for (size_t at = 0; at < p->file->size && !atomic_load(&p->stop); at += LET_GO) {
        size_t left = p->file->size - at;
        madvise((void *)(start + at), left < LET_GO ? left : LET_GO, MADV_DONTNEED);
    }
    return NULL;
}

static struct paging *paging_begin(const struct file *file, void *(*run)(void *)) {
    struct paging *p = memory_zero(1, sizeof *p);
    p->file = file;
    if (pthread_create(&p->thread, NULL, run, p) == 0)
        return p;
    free(p);
    return NULL;
}

/* Pages that do not fit into memory would be evicted before they are read. */
static bool fits(size_t size) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 && size / (size_t)page < (size_t)pages / 2;
}

struct paging *file_page_in(const struct file *file) {
    return file->size >= LEAST && fits(file->size) ? paging_begin(file, page_in) : NULL;
}

struct paging *file_page_out(const struct file *file) {
    return file->size >= LEAST ? paging_begin(file, page_out) : NULL;
}

void paging_end(struct paging *paging) {
    if (!paging)
        return;
    atomic_store(&paging->stop, true);
    pthread_join(paging->thread, NULL);
    free(paging);
}
