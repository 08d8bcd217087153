/* The system calls that a C library starts and lives with, asked for by number. Prints what every Linux answers; with an argument, writes to memory that
   was made read-only, or that is no longer there. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096

static void say(const char *what, int fine) {
    printf("%s %s\n", what, fine ? "yes" : "NO");
}

static void memory(void) {
    char *start = (char *)syscall(SYS_brk, 0), *end = (char *)syscall(SYS_brk, start + 3 * PAGE + 5);
    say("brk grows", end == start + 3 * PAGE + 5 && (end[-1] = 7) == 7);
    say("brk shrinks", (char *)syscall(SYS_brk, start + PAGE) == start + PAGE);
    char *pages = (char *)syscall(SYS_mmap, 0, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    say("mmap gives zeroes", !((uintptr_t)pages % PAGE) && !pages[0] && !pages[3 * PAGE - 1]);
    memset(pages, 1, 3 * PAGE);
    say("munmap", syscall(SYS_munmap, pages + PAGE, PAGE) == 0 && pages[0] == 1 && pages[2 * PAGE] == 1);
    char *again = (char *)syscall(SYS_mmap, pages + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0L);
    say("mmap where it was told", again == pages + PAGE && !again[0]);
    say("mprotect", syscall(SYS_mprotect, again, PAGE, PROT_READ | PROT_WRITE) == 0 && (again[0] = 5) == 5);
    say("mmap of nothing", syscall(SYS_mmap, 0, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L) == -1 && errno == EINVAL);
}

static void identity(const char *self) {
    char path[PAGE] = "";
    uint8_t chance[16] = {0}, none[16] = {0};
    int word = 0;
    struct rlimit64 limit = {0};
    long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof path - 1);
    say("readlinkat", length == (long)strlen(self) && strcmp(path, self) == 0);
    say("getrandom", syscall(SYS_getrandom, chance, 16, 0) == 16 && memcmp(chance, none, 16) != 0);
    say("set_tid_address", syscall(SYS_set_tid_address, &word) == syscall(SYS_gettid));
    say("prlimit64", syscall(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur >= 1 << 20);
}

static void times(void) {
    struct timespec first, then;
    int fine = syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &first) == 0;
    for (volatile int i = 0; i < 1000; i++)
        ;
    fine &= syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &then) == 0;
    say("clock goes on", fine && (then.tv_sec > first.tv_sec || (then.tv_sec == first.tv_sec && then.tv_nsec > first.tv_nsec)));
    say("clock has a date", syscall(SYS_clock_gettime, CLOCK_REALTIME, &then) == 0 && then.tv_sec > 1500000000);
}

static void files(void) {
    struct stat status;
    char text[3];
    struct iovec parts[2] = {{"writev ", 7}, {"yes\n", 4}};
    fflush(stdout);
    say("read", syscall(SYS_read, 0, text, 3) == 3 && memcmp(text, "the", 3) == 0);
    fflush(stdout);
    say("writev", syscall(SYS_writev, 1, parts, 2) == 11);
    say("newfstatat", syscall(SYS_newfstatat, 1, "", &status, AT_EMPTY_PATH) == 0);
    say("openat of what is not there", syscall(SYS_openat, AT_FDCWD, "/nowhere/at/all", O_RDONLY) == -1 && errno == ENOENT);
    say("write from nowhere", syscall(SYS_write, 1, (void *)16, 5) == -1 && errno == EFAULT);
    say("write to nowhere", syscall(SYS_write, 77, text, 1) == -1 && errno == EBADF);
}

static void fault(const char *how) {
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[0] = 1;
    if (how[0] == 'p')
        mprotect(page, PAGE, PROT_READ);
    else
        munmap(page, PAGE);
    *(volatile char *)page = 2;
}

int main(int count, char **arguments) {
    if (count > 1)
        fault(arguments[1]);
    memory();
    identity(arguments[0]);
    times();
    files();
    fflush(stdout);
    syscall(SYS_exit_group, 9);
}
