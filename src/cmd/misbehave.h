/*
 * Only for tests/sandbox, in a program that is never installed: what an attacker would try after taking over a parser.
 *
 * WICK_MISBEHAVE names one deed and what to do it with, such as "open /etc/shadow". The exit status is 40 if it succeeded, 41 if it failed.
 */
#ifndef WICK_MISBEHAVE_H
#define WICK_MISBEHAVE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static bool deed_connect(const char *port) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return descriptor >= 0 && connect(descriptor, (struct sockaddr *)&there, sizeof there) == 0;
}

/* Use a socket that was already open: only Landlock prevents this. */
static bool deed_connect_open(const char *port) {
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(3, (struct sockaddr *)&there, sizeof there) == 0;
}

static bool deed_fork(const char *unused) {
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    return child > 0;
}

static bool deed_peek(const char *pid) {
    return ptrace(PTRACE_SEIZE, atoi(pid), 0, 0) == 0;
}

static bool deed_spawn(const char *path) {
    execl(path, path, (char *)NULL);
    return false;
}

static bool deed_open(const char *path) {
    return open(path, O_RDONLY) >= 0;
}

static bool deed_write(const char *path) {
    return open(path, O_WRONLY | O_CREAT, 0666) >= 0;
}

static bool deed_remove(const char *path) {
    return unlink(path) == 0;
}

static bool deed_link(const char *path) {
    return symlink("/etc/passwd", path) == 0;
}

static bool deed_kill(const char *pid) {
    return kill(atoi(pid), SIGTERM) == 0;
}

static bool deed_trace(const char *unused) {
    struct perf_event_attr attribute = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attribute};
    return syscall(__NR_perf_event_open, &attribute, 0, -1, -1, 0) >= 0;
}

static bool deed_memory(const char *unused) {
    return mmap(NULL, 1ull << 44, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
}

/* These must still work. */
static bool deed_send(const char *unused) {
    struct iovec piece = {(void *)"hello", 5};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    return sendmsg(3, &message, 0) == 5;
}

static void misbehave(void) {
    static const struct {
        const char *name;
        bool (*deed)(const char *argument);
    } deeds[] = {
        {"open", deed_open},       {"write", deed_write},
        {"remove", deed_remove},   {"link", deed_link},
        {"exec", deed_spawn},      {"fork", deed_fork},
        {"connect", deed_connect}, {"connect-open", deed_connect_open},
        {"ptrace", deed_peek},     {"kill", deed_kill},
        {"perf", deed_trace},      {"memory", deed_memory},
        {"send", deed_send},
    };
    const char *wanted = getenv("WICK_MISBEHAVE");
    for (size_t i = 0; wanted && i < COUNT_OF(deeds); i++) {
        size_t length = strlen(deeds[i].name);
        if (strncmp(wanted, deeds[i].name, length) == 0 && strchr(" ", wanted[length]))
            _exit(deeds[i].deed(wanted + length + (wanted[length] == ' ')) ? 40 : 41);
    }
}

#endif
