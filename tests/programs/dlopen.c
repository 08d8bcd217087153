/* Loads two libraries one after the other, several times. usage: dlopen FIRST SECOND [SECONDS] */
#include "spin.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    double seconds = argc > 3 ? atof(argv[3]) : 0.3;
    for (int turn = 0; turn < 6; turn++) {
        void *library = dlopen(argv[1 + turn % 2], RTLD_NOW);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        unsigned long (*work)(unsigned long) = (unsigned long (*)(unsigned long))dlsym(library, "plugin_work");
        unsigned long sum = spin(seconds / 6, work);
        RESULT(sum);
        dlclose(library);
    }
    return 0;
}
