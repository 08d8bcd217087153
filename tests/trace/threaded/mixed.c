/* What else threads do to each other: pipes, signals, cancelling, semaphores, rwlocks, a process forked among them, main that ends first. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int pipes[2][2];
static sem_t semaphore;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned shared;
static volatile sig_atomic_t signals;
static pthread_t main_thread;
__attribute__((noinline)) static unsigned fib(unsigned n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
static void on_signal(int number) {
    signals++;
}
static void *echo(void *a) {
    char c;
    while (read(pipes[0][0], &c, 1) == 1 && c)
        if (write(pipes[1][1], &c, 1) != 1)
            break;
    sem_post(&semaphore);
    return NULL;
}
static void *reader(void *a) {
    for (int i = 0; i < 50; i++) {
        pthread_rwlock_rdlock(&rwlock);
        fib(shared % 8);
        pthread_rwlock_unlock(&rwlock);
        if (i % 10 == 9) {
            pthread_rwlock_wrlock(&rwlock);
            shared++;
            pthread_rwlock_unlock(&rwlock);
        }
    }
    sem_post(&semaphore);
    return NULL;
}
static void *stuck(void *a) {
    for (;;) {
        pthread_testcancel();
        fib(9);
    }
    return NULL;
}
static void *last(void *a) {
    pthread_join(main_thread, NULL);
    printf("last %u %d\n", shared, (int)signals);
    fflush(stdout);
    exit(4);
}
int main(void) {
    pthread_t threads[4], canceled, end;
    main_thread = pthread_self();
    signal(SIGUSR1, on_signal);
    sem_init(&semaphore, 0, 0);
    if (pipe(pipes[0]) || pipe(pipes[1]))
        return 1;
    pthread_create(&threads[0], NULL, echo, NULL);
    for (int i = 1; i < 4; i++)
        pthread_create(&threads[i], NULL, reader, NULL);
    for (int i = 0; i < 20; i++) {
        char c = 1;
        if (write(pipes[0][1], &c, 1) != 1 || read(pipes[1][0], &c, 1) != 1)
            return 1;
        if (i < 5)
            pthread_kill(threads[0], SIGUSR1);
    }
    for (int i = 1; i < 4; i++)
        sem_wait(&semaphore);
    for (int i = 1; i < 4; i++)
        pthread_join(threads[i], NULL);
    int status = 0;
    pid_t pid = fork();
    if (!pid)
        _exit(fib(10) == 55 ? 0 : 1);
    waitpid(pid, &status, 0);
    if (write(pipes[0][1], "", 1) != 1)
        return 1;
    sem_wait(&semaphore);
    pthread_join(threads[0], NULL);
    pthread_create(&canceled, NULL, stuck, NULL);
    fib(20);
    pthread_cancel(canceled);
    pthread_join(canceled, NULL);
    pthread_create(&end, NULL, last, NULL);
    printf("main %d\n", status);
    fflush(stdout);
    pthread_exit(NULL);
}
