/*
 * Waits of known length, each kind in a function of its own, on the first thread. Around every wait it takes wall time and the
 * thread's CPU time; the difference is the time off the CPU, run queue included. The kernel begins to count CPU time when it wakes a
 * thread, not when that thread gets the CPU (after a disk's interrupt was dealt with, a quarter of a millisecond later), so this is the
 * least; the wall time of the call that waits is the most. At the end it prints both sums of each kind, in nanoseconds:
 * `wait_sleep 300123456 301234567`; and the same of the first thread as a whole: `thread 400123456 501234567`. usage: waits [ROUNDS] [FILE]
 *
 * On a virtual machine the host may take the CPU away. The kernel then takes that time off the thread's CPU time although it did not
 * switch, so that nobody can record it. While the thread computes, all that is neither CPU time nor time in the run queue was
 * stolen like this, and does not count as waited for.
 */
#define _GNU_SOURCE
#include "spin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAUSE = 5000000, BLOCK = 16 << 20 };

struct kind {
    const char *name;
    void (*wait)(void);
    bool meets;  /* the other thread first, outside of what is measured */
    int64_t off; /* nanoseconds */
    int64_t most;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meeting;
static int pipes[2], file, account;
static char *block;

static int64_t clock_of(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

KEEP static void pause_for(long nanoseconds) {
    struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
    RESULT(time.tv_nsec);
}

/* The truth of one wait. The functions below call these at both ends, so that their frames are on the stack all the time. */
struct moment {
    int64_t wall, off;
};

static struct moment moment_now(void) {
    int64_t wall = clock_of(CLOCK_MONOTONIC);
    return (struct moment){wall, wall - clock_of(CLOCK_THREAD_CPUTIME_ID)};
}

/* Nanoseconds that this thread stood in the run queue, or -1 where the kernel does not tell. */
static int64_t time_queued(void) {
    char text[96];
    long long ran, queued;
    ssize_t length = pread(account, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    return sscanf(text, "%lld %lld", &ran, &queued) == 2 ? queued : -1;
}

static long times_waited(void) {
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* A stretch of work, in which the thread does not mean to wait. */
struct work {
    int64_t off, queued;
    long waited;
};

static int64_t stolen;

static struct work work_begin(void) {
    int64_t queued = time_queued();
    return (struct work){moment_now().off, queued, times_waited()};
}

static void work_end(struct work before) {
    int64_t off = moment_now().off - before.off, queued = time_queued() - before.queued;
    if (before.queued >= 0 && times_waited() == before.waited && off > queued)
        stolen += off - queued;
}

static struct kind *measured;

static void measure_from(struct moment before) {
    struct moment after = moment_now();
    measured->off += after.off - before.off;
    measured->most += after.wall - before.wall;
}

/* The C library keeps no frame pointers, so a walk along them misses who calls it: these are there to be missed. */
KEEP static void take_lock(void) {
    pthread_mutex_lock(&lock);
    RESULT(0);
}

KEEP static bool write_disk(void) {
    bool fine = fdatasync(file) == 0;
    RESULT(fine);
    return fine;
}

KEEP static bool read_pipe(void) {
    char byte;
    bool fine = read(pipes[0], &byte, 1) == 1;
    RESULT(fine);
    return fine;
}

KEEP static void wait_sleep(void) {
    struct moment before = moment_now();
    pause_for(PAUSE);
    measure_from(before);
}

/* The other thread has the lock already when both have met, and keeps it for a while. */
KEEP static void wait_lock(void) {
    struct moment before = moment_now();
    take_lock();
    measure_from(before);
    pthread_mutex_unlock(&lock);
}

/* The bytes are there before: copying them is work. */
KEEP static void wait_disk(void) {
    struct moment before = moment_now();
    if (!write_disk())
        perror("waits: writing");
    measure_from(before);
}

KEEP static void wait_pipe(void) {
    struct moment before = moment_now();
    if (!read_pipe())
        perror("waits: reading");
    measure_from(before);
}

/* The one who is waited for: its own pauses are in these functions, whatever the first thread does. */
KEEP static void help_lock(void) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&meeting);
    pause_for(PAUSE);
    pthread_mutex_unlock(&lock);
}

KEEP static void help_pipe(void) {
    pthread_barrier_wait(&meeting);
    pause_for(PAUSE);
    if (write(pipes[1], "", 1) != 1)
        perror("waits: writing");
}

static int rounds = 40;

static void *help(void *unused) {
    prctl(PR_SET_NAME, "helper");
    for (int i = 0; i < rounds; i++) {
        help_lock();
        help_pipe();
    }
    return unused;
}

KEEP static unsigned long mix(unsigned long value) {
    for (int i = 0; i < 20000; i++)
        value = value * 6364136223846793005ul + 1442695040888963407ul;
    RESULT(value);
    return value;
}

int main(int argc, char **argv) {
    struct kind whole = {"thread", NULL, false, 0, 0};
    struct moment begun = moment_now();
    if (argc > 1)
        rounds = atoi(argv[1]);
    const char *path = argc > 2 ? argv[2] : "waits.tmp";
    struct kind kinds[] = {{"wait_sleep", wait_sleep, false, 0, 0},
                           {"wait_lock", wait_lock, true, 0, 0},
                           {"wait_disk", wait_disk, false, 0, 0},
                           {"wait_pipe", wait_pipe, true, 0, 0}};
    pthread_t helper;
    block = malloc(BLOCK);
    account = open("/proc/thread-self/schedstat", O_RDONLY);
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (!block || file < 0 || unlink(path) != 0 || pipe(pipes) != 0 ||
        pthread_barrier_init(&meeting, NULL, 2) != 0) {
        perror("waits");
        return 1;
    }
    pthread_create(&helper, NULL, help, NULL);
    for (int i = 0; i < rounds; i++) {
        struct work work = work_begin();
        memset(block, i, BLOCK);
        if (pwrite(file, block, BLOCK, 0) != BLOCK)
            perror("waits: writing");
        work_end(work);
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
            measured = &kinds[k];
            if (kinds[k].meets)
                pthread_barrier_wait(&meeting);
            kinds[k].wait();
            work = work_begin();
            spin(0.0005, mix); /* and something on the CPU in between */
            work_end(work);
        }
    }
    pthread_join(helper, NULL);
    measured = &whole;
    measure_from(begun);
    whole.off -= stolen;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        printf("%s %lld %lld\n", kinds[k].name, (long long)kinds[k].off, (long long)kinds[k].most);
    printf("%s %lld %lld\n", whole.name, (long long)whole.off, (long long)whole.most);
    return 0;
}
