/* Stands in for .NET's libcoreclr.so, or with CONTAINED for the runtime in a program of one file: makes a function in memory that is mapped twice, as .NET does,
   runs it for half a second of CPU time and, if the environment says so, tells of it in a perf map and writes the list that .NET writes beside it. Prints
   its pid and the setting. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef CONTAINED
int DotNetRuntimeInfo = 1; /* exported by such a program */
#endif

static FILE *temporary(const char *format) {
    char name[64];
    snprintf(name, sizeof name, format, (int)getpid());
    return fopen(name, "w");
}

int managed_main(void) {
    /* push %rbp; mov %rsp,%rbp; mov $0x100000,%rax; 1: dec %rax; jnz 1b; pop %rbp; ret */
    static const unsigned char loop[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xc7, 0xc0, 0,    0,
                                         0x10, 0,    0x48, 0xff, 0xc8, 0x75, 0xfb, 0x5d, 0xc3};
    const char *setting = getenv("DOTNET_PerfMapEnabled");
    int file = memfd_create("doublemapper", 0);
    if (file < 0 || write(file, loop, sizeof loop) != sizeof loop)
        return 1;
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    if (setting && atoi(setting)) {
        FILE *map = temporary("/tmp/perf-%d.map"), *list = temporary("/tmp/perfinfo-%d.map");
        fprintf(map, "%lx %lx void [app] Program::Main(string[])[Tier0]\n", (unsigned long)code,
                (unsigned long)sizeof loop);
        fprintf(list, "ImageLoad;app.dll\n");
        fclose(map);
        fclose(list);
    }
    printf("%d %s\n", (int)getpid(), setting ? setting : "none");
    fflush(stdout);
    while (clock() < CLOCKS_PER_SEC / 2)
        ((void (*)(void))(void *)code)();
    return 0;
}
