/* Each thread makes the next and ends: QEMU's numbers only grow. */
#include <pthread.h>
#include <stdlib.h>
static int left = 4200;
static void *work(void *a) {
    pthread_t next;
    if (!--left || pthread_create(&next, NULL, work, NULL) || pthread_detach(next))
        exit(left);
    return NULL;
}
int main(void) {
    pthread_t next;
    pthread_create(&next, NULL, work, NULL);
    pthread_detach(next);
    pthread_exit(NULL);
}
