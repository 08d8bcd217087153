/* 100 blocks of 1000 bytes are kept, 500 of 500 freed. Prints "done" and ends with status 7. With any argument it first waits for its input and
   allocates meanwhile, so that whoever attaches sees it. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define SITE __attribute__((noinline, noclone))

static void *volatile sink;
static void *kept[100];

SITE void site_kept(int i) {
    volatile unsigned long looks_like_kernel_code = 0xffffffff81000000; /* the stack is copied */
    (void)looks_like_kernel_code;
    kept[i] = malloc(1000);
    sink = kept[i];
}

SITE void site_freed(void) {
    void *p = malloc(500);
    sink = p;
    free(p);
}

static void wait_for_input(void) {
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 10) == 0) {
        void *p = malloc(3 << 20);
        sink = p;
        free(p);
    }
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1)
        wait_for_input();
    for (int i = 0; i < 100; i++)
        site_kept(i);
    for (int i = 0; i < 500; i++)
        site_freed();
    puts("done");
    return 7;
}
