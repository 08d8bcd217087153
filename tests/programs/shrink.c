/* Preloaded: whenever the program maps a file whose path ends in $SHRINK, the file is cut to $SHRINK_TO bytes right afterwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void cut(int descriptor) {
    const char *name = getenv("SHRINK"), *size = getenv("SHRINK_TO");
    char link[40], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!name || !size || length < (ssize_t)strlen(name))
        return;
    path[length] = 0;
    if (strcmp(path + length - strlen(name), name) == 0 && truncate(path, atol(size)) != 0)
        perror(path);
}

void *mmap(void *at, size_t size, int protection, int flags, int descriptor, long offset) {
    void *mapped = (void *)syscall(SYS_mmap, at, size, protection, flags, descriptor, offset);
    if (descriptor >= 0)
        cut(descriptor);
    return mapped;
}

void *mmap64(void *at, size_t size, int protection, int flags, int descriptor, long offset) {
    return mmap(at, size, protection, flags, descriptor, offset);
}
