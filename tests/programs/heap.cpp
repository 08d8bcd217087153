/*
 * Allocates in known ways and prints its own truth. usage: heap MEAN ROUNDS [after-exec | attached]
 *
 * For each site, a function of that name:   site NAME bytes count live-bytes live-count
 * and what sampling with the given mean leaves open:   spread NAME variance-of-bytes variance-of-count variance-of-live
 * and last:                                 peak BYTES
 * A forked child and the program that it becomes at the end print lines of their own, which add up.
 */
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#define SITE extern "C" __attribute__((noinline, noclone))

struct site {
    const char *name;
    std::atomic<uint64_t> bytes{0}, count{0}, live{0}, live_count{0};
    double spread = 0, spread_count = 0, spread_live = 0;
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    explicit site(const char *n) : name(n) {}
};

static double mean;
static std::atomic<uint64_t> alive{0}, peak{0};

static double taken(double size) {
    return size >= mean ? 1 : 1 - std::exp(-size / mean);
}

static void got(site &s, size_t size) {
    size = size ? size : 1;
    double p = taken((double)size);
    s.bytes += size, s.count += 1, s.live += size, s.live_count += 1;
    while (s.busy.test_and_set())
        ;
    s.spread += (double)size * (double)size * (1 - p) / p;
    s.spread_count += (1 - p) / p;
    s.spread_live += (double)size * (double)size * (1 - p) / p;
    s.busy.clear();
    uint64_t now = alive += size, most = peak;
    while (now > most && !peak.compare_exchange_weak(most, now))
        ;
}

static void gone(site &s, size_t size) {
    size = size ? size : 1;
    double p = taken((double)size);
    s.live -= size, s.live_count -= 1, alive -= size;
    while (s.busy.test_and_set())
        ;
    s.spread_live -= (double)size * (double)size * (1 - p) / p;
    s.busy.clear();
}

static site all[] = {site("site_malloc"),  site("site_calloc"),    site("site_realloc"), site("site_array"),  site("site_aligned"),
                     site("site_new"),     site("site_new_array"), site("site_temporary"), site("site_leak"), site("site_large"),
                     site("site_threads"), site("site_passed"),    site("site_deep"),    site("site_peak"),   site("site_child"),
                     site("site_empty"),   site("site_exec")};
enum { MALLOC, CALLOC, REALLOC, ARRAY, ALIGNED, NEW, NEW_ARRAY, TEMPORARY, LEAK, LARGE, THREADS, PASSED, DEEP, PEAK, CHILD, EMPTY, EXEC };

static void *volatile sink; /* so that no compiler drops an allocation */

SITE void *site_malloc(size_t n) { void *p = malloc(n); sink = p; got(all[MALLOC], n); return p; }
SITE void *site_calloc(size_t n) { void *p = calloc(n / 8, 8); sink = p; got(all[CALLOC], n / 8 * 8); return p; }
SITE void *site_realloc(void *old, size_t before, size_t n) {
    void *p = realloc(old, n);
    sink = p;
    if (old)
        gone(all[REALLOC], before);
    got(all[REALLOC], n);
    return p;
}
SITE void *site_array(void *old, size_t before, size_t n) {
    void *p = reallocarray(old, n, 16);
    sink = p;
    if (old)
        gone(all[ARRAY], before * 16);
    got(all[ARRAY], n * 16);
    return p;
}
SITE void *site_aligned(size_t n, int how) {
    void *p = nullptr;
    if (how == 0 && posix_memalign(&p, 64, n) != 0)
        abort();
    else if (how == 1)
        p = aligned_alloc(128, n);
    else if (how == 2)
        p = memalign(256, n);
    else if (how == 3)
        p = valloc(n);
    sink = p;
    got(all[ALIGNED], n);
    return p;
}
SITE void *site_new(size_t n) { void *p = ::operator new(n); sink = p; got(all[NEW], n); return p; }
SITE char *site_new_array(size_t n) { char *p = new char[n]; sink = p; got(all[NEW_ARRAY], n); return p; }
SITE void site_temporary(size_t n) {
    void *p = malloc(n);
    sink = p;
    got(all[TEMPORARY], n);
    free(p);
    gone(all[TEMPORARY], n);
}
SITE void *site_leak(size_t n) { void *p = malloc(n); sink = p; got(all[LEAK], n); return p; }
SITE void *site_large(size_t n) { void *p = malloc(n); sink = p; got(all[LARGE], n); return p; }
SITE void *site_threads(size_t n) { void *p = malloc(n); sink = p; got(all[THREADS], n); return p; }
SITE void *site_passed(size_t n) { void *p = malloc(n); sink = p; got(all[PASSED], n); return p; }
SITE void *site_deep(size_t n, int depth) {
    char room[64];
    memset(room, depth, sizeof room);
    if (depth) {
        void *deeper = site_deep(n, depth - 1);
        sink = room;
        return deeper;
    }
    void *p = malloc(n);
    sink = p;
    got(all[DEEP], n);
    return p;
}
SITE void *site_peak(size_t n) { void *p = malloc(n); sink = p; got(all[PEAK], n); return p; }
SITE void *site_child(size_t n) { void *p = malloc(n); sink = p; got(all[CHILD], n); return p; }
SITE void *site_empty() { void *p = malloc(0); sink = p; got(all[EMPTY], 0); return p; }
SITE void *site_exec(size_t n) { void *p = malloc(n); sink = p; got(all[EXEC], n); return p; }

static void drop(site &s, void *p, size_t n) {
    free(p);
    gone(s, n);
}

static char text[20000]; /* stdio allocates */
static size_t filled;

static void print(bool with_peak) {
    for (site &s : all) {
        filled += (size_t)snprintf(text + filled, sizeof text - filled, "site %s %llu %llu %llu %llu\n", s.name, (unsigned long long)s.bytes,
                                   (unsigned long long)s.count, (unsigned long long)s.live, (unsigned long long)s.live_count);
        filled += (size_t)snprintf(text + filled, sizeof text - filled, "spread %s %.0f %.0f %.0f\n", s.name, s.spread, s.spread_count, s.spread_live);
    }
    if (with_peak)
        filled += (size_t)snprintf(text + filled, sizeof text - filled, "peak %llu\n", (unsigned long long)peak);
    if (write(1, text, filled) != (ssize_t)filled)
        _exit(1);
    filled = 0;
}

static void forget() {
    for (site &s : all) {
        s.bytes = s.count = s.live = s.live_count = 0;
        s.spread = s.spread_count = s.spread_live = 0;
    }
}

static void thread_main(int rounds) {
    void *kept[16] = {};
    size_t sizes[16] = {};
    for (int i = 0; i < rounds; i++) {
        int k = i % 16;
        if (kept[k])
            drop(all[THREADS], kept[k], sizes[k]);
        sizes[k] = (size_t)(16 + i * 37 % 900);
        kept[k] = site_threads(sizes[k]);
    }
    for (int k = 0; k < 16; k++)
        if (kept[k])
            drop(all[THREADS], kept[k], sizes[k]);
}

/* Allocated by one thread, freed by another. */
static void pass_along(int rounds) {
    enum { SLOTS = 64 };
    static std::atomic<void *> slots[SLOTS];
    std::thread taker([=] {
        for (int i = 0; i < rounds; i++) {
            void *p;
            while (!(p = slots[i % SLOTS].exchange(nullptr)))
                std::this_thread::yield();
            drop(all[PASSED], p, 300);
        }
    });
    for (int i = 0; i < rounds; i++) {
        void *p = site_passed(300), *none = nullptr;
        while (!slots[i % SLOTS].compare_exchange_weak(none, p)) {
            none = nullptr;
            std::this_thread::yield();
        }
    }
    taker.join();
}

static void reach_peak() {
    enum { BLOCKS = 200 };
    static void *kept[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        kept[i] = site_peak(100000 + (size_t)i);
    for (int i = 0; i < BLOCKS; i++)
        drop(all[PEAK], kept[i], 100000 + (size_t)i);
}

static void fork_child(int rounds, void *inherited) {
    pid_t child = fork();
    if (child == 0) {
        forget();
        free(inherited); /* the parent's */
        for (int i = 0; i < rounds; i++) {
            void *p = site_child(700);
            if (i % 2)
                drop(all[CHILD], p, 700);
        }
        print(false);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0)
        _exit(3);
}

/* For bench/heap: what the target alone has used, in the file that the environment names. */
static void tell_cpu() {
    const char *path = getenv("HEAP_CPU");
    struct rusage self, children;
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    FILE *file = path ? fopen(path, "w") : nullptr;
    if (!file)
        return;
    fprintf(file, "%.6f\n", (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec + children.ru_stime.tv_sec) +
                                (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec + children.ru_stime.tv_usec) / 1e6);
    fclose(file);
}

/* Until somebody who attaches has seen that it allocates, and writes to its input. */
static void wait_for_recorder() {
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 10) == 0) {
        void *p = malloc(3 << 20);
        sink = p;
        free(p);
    }
}

int main(int argc, char **argv) {
    mean = atof(argv[1]);
    int rounds = atoi(argv[2]);
    bool attached = argc > 3 && strcmp(argv[3], "attached") == 0;
    if (attached) {
        wait_for_recorder();
        argc--;
    }
    if (argc > 3) {
        for (int i = 0; i < rounds; i++)
            site_exec(400);
        print(false);
        tell_cpu();
        return 0;
    }
    for (int i = 0; i < rounds; i++) {
        size_t n = (size_t)(33 + i * 7919 % 2000);
        drop(all[MALLOC], site_malloc(n), n);
        drop(all[CALLOC], site_calloc(n), n / 8 * 8);
        site_temporary(n);
        void *p = site_new(n);
        ::operator delete(p);
        gone(all[NEW], n);
        char *c = site_new_array(n);
        delete[] c;
        gone(all[NEW_ARRAY], n);
        if (i % 4 == 0) {
            size_t aligned = (n + 255) / 256 * 256;
            drop(all[ALIGNED], site_aligned(aligned, i / 4 % 4), aligned);
            drop(all[DEEP], site_deep(n, 48), n);
            drop(all[EMPTY], site_empty(), 0);
        }
        if (i % 10 == 0)
            site_leak(120);
        if (i % 500 == 0)
            drop(all[LARGE], site_large(200000), 200000);
    }
    void *grown = nullptr, *array = nullptr;
    size_t before = 0, count = 0;
    for (int i = 0; i < rounds / 10; i++) {
        size_t n = (size_t)(64 + i % 50 * 100);
        grown = site_realloc(grown, before, n);
        array = site_array(array, count, n / 16);
        before = n, count = n / 16;
    }
    std::thread threads[4];
    for (std::thread &t : threads)
        t = std::thread(thread_main, rounds / 2);
    for (std::thread &t : threads)
        t.join();
    pass_along(rounds / 4);
    reach_peak();
    if (attached) {
        print(true);
        return 0;
    }
    fork_child(rounds / 2, grown);
    print(true);
    char *arguments[] = {argv[0], argv[1], argv[2], const_cast<char *>("after-exec"), nullptr};
    execv("/proc/self/exe", arguments);
    return 2;
}
