/* Threads that wait for each other without the kernel: in turn, and at a barrier of their own, some of them with sched_yield. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_uint turn, arrived, phase;
static void *work(void *a) {
    unsigned me = (unsigned)(unsigned long)a;
    for (unsigned i = 0; i < 5; i++) {
        while (atomic_load(&turn) % 3 != me)
            ;
        atomic_fetch_add(&turn, 1);
    }
    for (unsigned i = 0; i < 20; i++) {
        if (atomic_fetch_add(&arrived, 1) == 2) {
            atomic_store(&arrived, 0);
            atomic_fetch_add(&phase, 1);
        } else {
            while (atomic_load(&phase) == i)
                sched_yield();
        }
    }
    return NULL;
}
int main(void) {
    pthread_t threads[3];
    for (long i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%u %u\n", atomic_load(&turn), atomic_load(&phase));
    return 0;
}
