/*
 * usage: liar SECONDS. A program that looks like CPython, exports its symbols, and has invalid memory: frames that lead in circles,
 * then nowhere, with code objects that are none. LIE says which: 0 no thread's state at all, 1 a circle of frames, 2 a wild pointer, 3 a build without the global
 * lock, as its runtime says.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef LIE
#define LIE 1
#endif

__attribute__((visibility("default"))) uint64_t _PyRuntime[1000];
__attribute__((visibility("default"))) const uint32_t Py_Version = 0x030b00f0;
__attribute__((visibility("default"))) uint64_t PyCode_Type[50];

static uint64_t state[100], holder[10], frames[3][20];

int main(int count, char **words) {
    pthread_key_t key;
    struct timespec now;
    double seconds = count > 1 ? atof(words[1]) : 1;
    pthread_key_create(&key, NULL);
    for (int i = 0; i < 3; i++) {
        frames[i][4] = (uint64_t)&state[i];
        frames[i][6] = (uint64_t)frames[(i + 1) % 3];
    }
    if (LIE == 3) {
        memcpy(_PyRuntime, "xdebugpy", 8);
        _PyRuntime[1] = 0x030e00f0;
        _PyRuntime[2] = 1;
    }
    if (LIE == 2)
        frames[2][6] = 0x7ffff0000008;
    holder[1] = (uint64_t)frames[0];
    state[7] = (uint64_t)holder;
    _PyRuntime[592 / 8] = 1 | (uint64_t)key << 32;
    if (LIE)
        pthread_setspecific(key, state);
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while ((double)now.tv_sec + (double)now.tv_nsec / 1e9 < seconds);
    return 0;
}
