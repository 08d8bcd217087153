/*
 * Maps memory in known ways and prints its own truth, as heap.cpp does:   site NAME bytes count live-bytes live-count   and   peak BYTES
 * usage: heap_maps [MEAN ROUNDS attached]: the last waits, as heap.cpp does, until somebody has attached
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone))
enum { PAGE = 4096 };

static long alive, peak;
static char text[4000];
static size_t filled;

static void changed(long bytes) {
    alive += bytes;
    peak = alive > peak ? alive : peak;
}

static void site(const char *name, long bytes, long count, long live, long live_count) {
    filled += (size_t)snprintf(text + filled, sizeof text - filled, "site %s %ld %ld %ld %ld\n",
                               name, bytes, count, live, live_count);
}

static void *map(size_t size, void *place, int more) {
    void *made =
        mmap(place, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | more, -1, 0);
    if (made == MAP_FAILED)
        exit(1);
    return made;
}

/* Ten mappings of 25 pages, the last not a whole one; of each, pages 5 to 9 go, then the first two, then of all but three the rest. */
SITE static void site_parts(void) {
    for (int i = 0; i < 10; i++) {
        char *made = map(25 * PAGE - 100, NULL, 0);
        changed(25 * PAGE);
        munmap(made + 5 * PAGE, 5 * PAGE);
        munmap(made, 2 * PAGE);
        changed(-7 * PAGE);
        if (i < 7) {
            munmap(made, 25 * PAGE); /* also what is gone already */
            changed(-18 * PAGE);
        }
    }
    site("site_parts", 250 * PAGE, 10, 3 * 18 * PAGE, 3);
}

/* Two mappings beside each other, and one call that unmaps the end of the first and the beginning of the second. */
SITE static void site_beside(void) {
    char *whole = map(40 * PAGE, NULL, 0);
    map(20 * PAGE, whole + 20 * PAGE, MAP_FIXED);
    changed(40 * PAGE);
    munmap(whole + 15 * PAGE, 10 * PAGE);
    changed(-10 * PAGE);
    site("site_beside", 60 * PAGE, 2, 30 * PAGE, 2);
}

/* Grown and shrunk by mremap(): each is an end and a new mapping, as with realloc(). */
SITE static void site_remap(void) {
    char *made = map(10 * PAGE, NULL, 0);
    changed(10 * PAGE);
    made = mremap(made, 10 * PAGE, 300 * PAGE, MREMAP_MAYMOVE);
    changed(290 * PAGE);
    made = mremap(made, 300 * PAGE, 100 * PAGE, MREMAP_MAYMOVE);
    changed(-200 * PAGE);
    munmap(made + 50 * PAGE, 50 * PAGE);
    changed(-50 * PAGE);
    if (mremap(made, 50 * PAGE, 1l << 46, 0) != MAP_FAILED) /* fails: nothing changes */
        exit(1);
    site("site_remap", 410 * PAGE, 3, 50 * PAGE, 1);
}

/* What does not count: files, also where they are moved; addresses without access. A file over a mapping is its end. */
SITE static void site_none(int file) {
    char *made = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE, file, 0);
    mremap(made, 4 * PAGE, 16 * PAGE, MREMAP_MAYMOVE);
    mmap(NULL, 1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    site("site_none", 0, 0, 0, 0);
}

SITE static void site_covered(int file) {
    char *made = map(8 * PAGE, NULL, 0);
    changed(8 * PAGE);
    mmap(made + 2 * PAGE, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, 0);
    changed(-4 * PAGE);
    site("site_covered", 8 * PAGE, 1, 4 * PAGE, 1);
}

/* In bytes, not in pages. */
SITE static void site_break(void) {
    char *before = sbrk(50000);
    if (before == (char *)-1) /* musl's has none */
        return;
    changed(50000);
    sbrk(-20000);
    changed(-20000);
    if (brk(before + 70000) != 0)
        exit(1);
    changed(40000);
    site("site_break", 90000, 2, 70000, 2);
}

SITE static void site_peak(void) {
    char *made = map(1000 * PAGE, NULL, 0);
    changed(1000 * PAGE);
    munmap(made, 1000 * PAGE);
    changed(-1000 * PAGE);
    site("site_peak", 1000 * PAGE, 1, 0, 0);
}

/* The allocator's own mappings are not counted beside the blocks in them. */
SITE static void site_malloc(void) {
    char *volatile block = malloc(3000000);
    memset(block, 1, 3000000);
    changed(3000000);
    site("site_malloc", 3000000, 1, 3000000, 1);
}

enum { THREADS = 4, ROUNDS = 300 };

SITE static void *site_threads(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        char *made = map(6 * PAGE, NULL, 0);
        munmap(made + PAGE, 2 * PAGE);
        munmap(made, 6 * PAGE);
    }
    return unused;
}

static void wait_for_recorder(void) {
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 10) == 0)
        munmap(map(PAGE, NULL, 0), PAGE);
}

int main(int argc, char **argv) {
    int file = open("/proc/self/exe", O_RDONLY);
    if (argc > 3)
        wait_for_recorder();
    pthread_t threads[THREADS];
    site_break(); /* first: nothing else has grown it yet, so that brk() may */
    site_malloc();
    site_parts();
    site_beside();
    site_remap();
    site_none(file);
    site_covered(file);
    site_peak();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, site_threads, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    site("site_threads", THREADS * ROUNDS * 6 * PAGE, THREADS * ROUNDS, 0, 0);
    filled += (size_t)snprintf(text + filled, sizeof text - filled, "peak %ld\n", peak);
    return write(1, text, filled) < 0;
}
