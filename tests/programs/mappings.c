/* Maps a file of its own as code in many places, each at another offset, then works until it is killed: mappings FILE COUNT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    enum { PAGE = 65536 };
    long places = count > 2 ? atol(words[2]) : 0;
    int file = count > 2 ? open(words[1], O_RDWR | O_CREAT | O_TRUNC, 0700) : -1;
    if (file < 0 || ftruncate(file, 2 * PAGE * places) != 0)
        return 1;
    for (long i = 0; i < places; i++)
        if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 2 * PAGE * i) == MAP_FAILED)
            return 1;
    puts("ready");
    fflush(stdout);
    for (volatile unsigned long work = 0;; work++)
        if (getppid() == 1)
            return 0;
}
