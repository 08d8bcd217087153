/*
 * Everything that a stop from outside could break, with its own judgement. usage: restless waits|signals|exec|threads|forks|steady|pair|busy [N]
 *
 *     waits    system calls that wait a few milliseconds, none of which may fail early
 *     signals  N signals to itself, with and without a handler's help; each has to arrive, once
 *     exec     a thread that is not the first execs this program again (steady)
 *     threads  N threads that end at once, in turns of ten
 *     forks    N children that end at once, one after the other
 *     steady   N million turns of leaf_work, called by middle_work
 *     pair     leaf_work on two threads, for N milliseconds of CPU time each
 *     busy     threads and signals first, N of each, then leaf_work for 200 milliseconds
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "spin.h"

static int failures;

static void expect(const char *what, long got, long wanted) {
    if (got == wanted)
        return;
    printf("%s: %ld, not %ld (%s)\n", what, got, wanted, strerror(errno));
    failures++;
}

static void expect_error(const char *what, long got, int wanted) {
    int why = errno;
    expect(what, got, -1);
    expect(what, why, wanted);
}

static void wait_in_all(int rounds) {
    struct timespec pause = {0, 3000000}, left;
    struct timeval timeout = {0, 5000};
    struct sembuf take = {0, -1, 0};
    struct epoll_event event;
    sigset_t blocked;
    int sockets[2], word = 0;
    char byte;
    int events = epoll_create1(0), semaphores = semget(IPC_PRIVATE, 1, 0600);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    for (int i = 0; i < rounds; i++) {
        expect("nanosleep", nanosleep(&pause, &left), 0);
        expect("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, &left), 0);
        expect("epoll_wait", epoll_wait(events, &event, 1, 3), 0);
        expect("poll", poll(NULL, 0, 3), 0);
        timeout = (struct timeval){0, 3000};
        expect("select", select(0, NULL, NULL, NULL, &timeout), 0);
        expect_error("futex", syscall(SYS_futex, &word, FUTEX_WAIT, 0, &pause, NULL, 0), ETIMEDOUT);
        expect_error("semtimedop", semtimedop(semaphores, &take, 1, &pause), EAGAIN);
        expect_error("sigtimedwait", sigtimedwait(&blocked, NULL, &pause), EAGAIN);
        expect_error("recv", recv(sockets[0], &byte, 1, 0), EAGAIN);
    }
    semctl(semaphores, 0, IPC_RMID);
}

static volatile sig_atomic_t arrived;

static void on_signal(int signal) {
    (void)signal;
    arrived++;
}

static void signal_itself(int count) {
    struct sigaction action = {.sa_handler = on_signal};
    struct timespec pause = {0, 1000000};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < count; i++) {
        kill(getpid(), SIGUSR1);
        nanosleep(&pause, NULL);
    }
    expect("signals", arrived, count);
}

KEEP static unsigned long leaf_work(unsigned long turns) {
    unsigned long sum = turns;
    for (unsigned long i = 0; i < turns; i++) {
        sum = sum * 6364136223846793005ul + i;
        RESULT(sum);
    }
    return sum;
}

KEEP static unsigned long middle_work(unsigned long turns) {
    unsigned long sum = leaf_work(turns);
    RESULT(sum);
    return sum;
}

static void *spin_for(void *milliseconds) {
    double end = cpu_seconds(CLOCK_THREAD_CPUTIME_ID) + *(int *)milliseconds / 1e3;
    while (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) < end)
        middle_work(100000);
    return NULL;
}

static const char *program;

static void *exec_itself(void *unused) {
    execl(program, program, "steady", "200", NULL);
    perror("exec");
    exit(1);
    return unused;
}

static void *nothing(void *unused) {
    return unused;
}

static void start_threads(int count) {
    pthread_t threads[10];
    for (int i = 0; i < count; i += 10) {
        for (int j = 0; j < 10; j++)
            expect("pthread_create", pthread_create(&threads[j], NULL, nothing, NULL), 0);
        for (int j = 0; j < 10; j++)
            pthread_join(threads[j], NULL);
    }
}

/* Every one of these stops the first thread, for whoever traces it, while the tracer may be about to stop it itself. */
static void be_busy(int count) {
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < count; i += 10) {
        start_threads(10);
        for (int j = 0; j < 10; j++)
            raise(SIGUSR1);
    }
    spin_for(&(int){200});
}

static void fork_often(int count) {
    for (int i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        expect("waitpid", waitpid(child, NULL, 0), child);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "steady";
    int count = argc > 2 ? atoi(argv[2]) : 20;
    pthread_t thread;
    program = argv[0];
    if (strcmp(what, "waits") == 0) {
        wait_in_all(count);
    } else if (strcmp(what, "signals") == 0) {
        signal_itself(count);
    } else if (strcmp(what, "exec") == 0) {
        pthread_create(&thread, NULL, exec_itself, NULL);
        pause();
    } else if (strcmp(what, "threads") == 0) {
        start_threads(count);
    } else if (strcmp(what, "forks") == 0) {
        fork_often(count);
    } else if (strcmp(what, "busy") == 0) {
        be_busy(count);
    } else if (strcmp(what, "pair") == 0) {
        pthread_create(&thread, NULL, spin_for, &count);
        spin_for(&count);
        pthread_join(thread, NULL);
    } else {
        for (int i = 0; i < count; i++)
            middle_work(1000000);
    }
    return failures != 0;
}
