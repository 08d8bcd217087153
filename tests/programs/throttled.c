/*
 * A library to be preloaded: ring buffers of perf events are not the kernel's, but hold what it writes when it throttles an event and when it drops
 * samples, once. Throttling for real takes a setting that the whole machine would feel.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

struct throttle {
    struct perf_event_header header;
    unsigned long long time, id, stream_id, trailer[3]; /* pid and tid, time, CPU */
};
struct dropped {
    struct perf_event_header header;
    unsigned long long lost, trailer[3];
};

static int is_event(int descriptor) {
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return descriptor >= 0 && readlink(path, target, sizeof target - 1) > 0 && strstr(target, "perf_event");
}

void *mmap64(void *address, size_t size, int protection, int flags, int descriptor, off_t offset) {
    static int told;
    void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap64");
    if (!(flags & MAP_SHARED) || !is_event(descriptor))
        return real(address, size, protection, flags, descriptor, offset);
    unsigned char *pages = real(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct perf_event_mmap_page *control = (void *)pages;
    control->data_offset = (unsigned long long)sysconf(_SC_PAGESIZE);
    control->data_size = size - control->data_offset;
    if (told++)
        return pages;
    struct throttle throttle = {{PERF_RECORD_THROTTLE, 0, sizeof throttle}, .time = 1};
    struct dropped dropped = {{PERF_RECORD_LOST_SAMPLES, 0, sizeof dropped}, .lost = 7};
    unsigned char *data = pages + control->data_offset;
    for (int i = 0; i < 3; i++)
        memcpy(data + (size_t)i * sizeof throttle, &throttle, sizeof throttle);
    memcpy(data + 3 * sizeof throttle, &dropped, sizeof dropped);
    control->data_head = 3 * sizeof throttle + sizeof dropped;
    return pages;
}

void *mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset) __attribute__((alias("mmap64")));
