/* Forks children that fork, exec this program under other names, and work before, between and after. usage: forks [SECONDS] */
#include "spin.h"

#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

KEEP static unsigned long parent_work(unsigned long value) {
    for (int i = 0; i < 20000; i++) {
        value += value * 31 + 7;
        RESULT(value);
    }
    return value;
}

KEEP static unsigned long child_work(unsigned long value) { return parent_work(value) + 1; }
KEEP static unsigned long exec_work(unsigned long value) { return parent_work(value) + 2; }

KEEP static void descend(const char *self, double seconds, int depth) {
    spin(seconds, child_work);
    pid_t child = depth > 0 ? fork() : -1;
    if (child == 0) {
        char name[16];
        snprintf(name, sizeof name, "level %d", depth);
        prctl(PR_SET_NAME, name);
        descend(self, seconds, depth - 1);
        _exit(0);
    }
    if (child > 0) {
        waitpid(child, NULL, 0);
    }
    if (depth % 2 == 0) { /* half of the levels become another program */
        char text[32];
        snprintf(text, sizeof text, "%g", seconds);
        execl(self, "renamed", text, "leaf", (char *)NULL);
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 0.05;
    if (argc > 2 && !strcmp(argv[2], "leaf")) {
        spin(seconds, exec_work);
        return 0;
    }
    spin(seconds, parent_work);
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            descend("/proc/self/exe", seconds, 2 + i);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
