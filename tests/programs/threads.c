/* Threads whose names hold what breaks parsers: spaces, parentheses, digits, brackets, colons; with -DBROKEN line
   ends, too. usage: threads [SECONDS] */
#include "spin.h"

#include <pthread.h>
#include <sys/prctl.h>

static const char *const names[] = {
    "two words", "(paren) s", "a) b (c", "io 12 x", " lead", "trail ", "tab\there", "semi;colon", "k:v [001]", "1/2", "",
    "caf\xc3\xa9 \xff",
#ifdef BROKEN
    "new\nline", "\n", "x\n1 [0] 1.5: y:", "\r\n",
#endif
};
#define COUNT (sizeof names / sizeof names[0])

static double seconds = 0.05;

KEEP static unsigned long mix(unsigned long value) {
    for (int i = 0; i < 20000; i++) {
        value = value * 6364136223846793005ul + 1442695040888963407ul;
    }
    RESULT(value);
    return value;
}

KEEP static void *work(void *name) {
    spin(seconds / 2, mix); /* still under the parent's name */
    prctl(PR_SET_NAME, name);
    unsigned long sum = spin(seconds, mix);
    RESULT(sum);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        seconds = atof(argv[1]) / COUNT;
    }
    pthread_t threads[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        pthread_create(&threads[i], NULL, work, (void *)names[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
