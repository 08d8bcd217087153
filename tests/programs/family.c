/*
 * A target that makes processes and threads all the time, while somebody attaches to it. usage: family [MOST]
 *
 * Each member touches a new page every 50 ms or later: one page fault in touch_page(). A member is made every millisecond, by turns a process, a
 * thread and a process with a child of its own, until SIGUSR1 comes. When all have then touched three pages more, "PID TID" of every member
 * is printed and an empty line; with the end of standard input the family ends.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct member {
    atomic_int pid, tid, touched;
};

static struct member *members; /* shared by all */
static atomic_int *member_count;
static int most = 1500;
static volatile sig_atomic_t enough;

static void on_enough(int signal) {
    enough = signal;
}

static void pause_for(long milliseconds) {
    struct timespec left = {0, milliseconds * 1000000};
    while (nanosleep(&left, &left) != 0)
        ;
}

__attribute__((noinline)) static void touch_page(volatile char *page) {
    page[0] = 1;
}

static void *live(void *unused) {
    struct member *self = &members[atomic_fetch_add(member_count, 1)];
    self->pid = getpid();
    self->tid = gettid();
    while (1) {
        char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        madvise(page, 4096, MADV_DONTFORK); /* a fork in between would take it away for copying: a second fault */
        touch_page(page);
        munmap(page, 4096);
        self->touched++;
        pause_for(50);
    }
    return unused;
}

static void make_process(int with_child) {
    pid_t parent = getpid();
    if (fork() != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    if (with_child)
        make_process(0);
    live(NULL);
    _exit(0);
}

static void make_thread(void) {
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    pthread_create(&thread, &attr, live, NULL);
}

static void wait_for_touches(int count) {
    int *before = calloc((size_t)count, sizeof *before);
    for (int i = 0; i < count; i++)
        before[i] = members[i].touched;
    for (int i = 0; i < count; i++)
        while (members[i].touched < before[i] + 3)
            pause_for(5);
    free(before);
}

int main(int argc, char **argv) {
    if (argc > 1)
        most = atoi(argv[1]);
    size_t size = sizeof *member_count + (size_t)most * sizeof *members;
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    member_count = shared;
    members = (struct member *)(member_count + 1);
    signal(SIGUSR1, on_enough);
    puts("ready");
    fflush(stdout);
    for (int i = 0, made = 0; !enough; i++) {
        pause_for(1);
        if (made + 2 > most)
            continue;
        made += i % 3 == 2 ? 2 : 1;
        if (i % 3 == 1)
            make_thread();
        else
            make_process(i % 3 == 2);
    }
    pause_for(100);
    int count = *member_count;
    wait_for_touches(count);
    for (int i = 0; i < count; i++)
        printf("%d %d\n", members[i].pid, members[i].tid);
    puts("");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
