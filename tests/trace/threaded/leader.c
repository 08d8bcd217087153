/* The first thread ends before the second one loads a library. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_t first;
static void *work(void *a) {
    pthread_join(first, NULL);
    usleep(20000); /* what is left of it ends too */
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*root)(double) = (double (*)(double))dlsym(library, "cbrt");
    printf("%g\n", root(8));
    exit(5);
}
int main(void) {
    pthread_t second;
    first = pthread_self();
    pthread_create(&second, NULL, work, NULL);
    pthread_exit(NULL);
}
