/* usage: LD_PRELOAD=…: takes thread-specific keys before anything else can, so that an interpreter gets a late one. */
#include <pthread.h>

__attribute__((constructor)) static void take_keys(void) {
    pthread_key_t key;
    for (int i = 0; i < 100; i++)
        pthread_key_create(&key, 0);
}
