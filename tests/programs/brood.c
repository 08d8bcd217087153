/*
 * Families that live for milliseconds, all the time: whoever attaches to them comes at a moment when some are being made. usage: brood
 *
 * A thread that is not the first, whose id is printed, has eight families at a time. A member works, makes a thread and a child with a child and so on, works
 * again and waits for both.
 */
#define _GNU_SOURCE
#include "spin.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAMILIES = 8, GENERATIONS = 3 };

KEEP static unsigned long member_work(unsigned long value) {
    for (int i = 0; i < 2000; i++) {
        value += value * 31 + 7;
        RESULT(value);
    }
    return value;
}

static void *thread_work(void *unused) {
    spin(0.0005, member_work);
    return unused;
}

static void live(int generations) {
    pthread_t thread;
    spin(0.0005, member_work);
    pthread_create(&thread, NULL, thread_work, NULL);
    pid_t child = generations ? fork() : -1;
    if (child == 0) {
        live(generations - 1);
        _exit(0);
    }
    spin(0.001, member_work);
    pthread_join(thread, NULL);
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void *bring_up(void *unused) {
    printf("%d\n", gettid());
    fflush(stdout);
    for (int families = 0;;) {
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            live(GENERATIONS);
            _exit(0);
        }
        families++;
        while (waitpid(-1, NULL, families >= FAMILIES ? 0 : WNOHANG) > 0)
            families--;
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, bring_up, NULL);
    pause();
    return 0;
}
