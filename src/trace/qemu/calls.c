/*
 * What a system call means for the order of threads: whether it may wait, for what, and what it does to other threads.
 *
 * The table lists calls that wait for another thread or for something outside, and some frequent ones that do nothing to others. Every other
 * call is brief and may do anything. So is waiting for a process: it is as if that process ran in its parent's turn.
 */
#include "trace/qemu/plugin.h"

#include <linux/futex.h>
#include <sys/stat.h>

#define GIVEN_MAX 64

static bool is_x86;

/* Pipes, sockets and terminals that the guest started with: what they deliver comes from outside. */
static struct {
    dev_t device;
    ino_t inode;
} given[GIVEN_MAX];
static size_t given_count;

static bool may_wait(const struct stat *status) {
    mode_t mode = status->st_mode;
    return S_ISFIFO(mode) || S_ISSOCK(mode) || S_ISCHR(mode) || !(mode & S_IFMT);
}

static void find_given(void) {
    struct stat status;
    for (int i = 0; i < 1024 && given_count < GIVEN_MAX; i++)
        if (fstat(i, &status) == 0 && may_wait(&status)) {
            given[given_count].device = status.st_dev;
            given[given_count++].inode = status.st_ino;
        }
}

static bool is_given(const struct stat *status) {
    for (size_t i = 0; i < given_count; i++)
        if (given[i].device == status->st_dev && given[i].inode == status->st_ino)
            return true;
    return false;
}

/* Numbers on x86_64, and on all others; -1: none. */
static const struct {
    int16_t x86, other;
    enum call_kind kind;
} calls[] = {
    {202, 98, CALL_FUTEX},    {-1, 422, CALL_FUTEX},
    {0, 63, CALL_READ},       {19, 65, CALL_READ},    /* readv */
    {35, 101, CALL_SLEEP},    {230, 115, CALL_SLEEP}, /* clock_nanosleep */
    {-1, 407, CALL_SLEEP},    {24, 124, CALL_YIELD},
    {56, 220, CALL_MAKE},     {57, -1, CALL_STOP},  /* clone, fork */
    {58, -1, CALL_STOP},      {231, 94, CALL_STOP}, /* vfork, exit_group */
    {60, 93, CALL_EXIT},      {72, 25, CALL_FCNTL},
    {7, -1, CALL_OUTSIDE},    {271, 73, CALL_OUTSIDE},  /* poll, ppoll */
    {-1, 414, CALL_OUTSIDE},  {23, -1, CALL_OUTSIDE},   /* select */
    {270, 72, CALL_OUTSIDE},  {-1, 413, CALL_OUTSIDE},  /* pselect */
    {232, -1, CALL_OUTSIDE},  {281, 22, CALL_OUTSIDE},  /* epoll_wait, epoll_pwait */
    {441, 441, CALL_OUTSIDE}, {34, -1, CALL_OUTSIDE},   /* pause */
    {130, 133, CALL_OUTSIDE}, {128, 137, CALL_OUTSIDE}, /* sigsuspend, sigtimedwait */
    {-1, 421, CALL_OUTSIDE},  {45, 207, CALL_OUTSIDE},  /* recvfrom */
    {47, 212, CALL_OUTSIDE},  {299, 243, CALL_OUTSIDE}, /* recvmsg, recvmmsg */
    {-1, 417, CALL_OUTSIDE},  {43, 202, CALL_OUTSIDE},  /* accept */
    {288, 242, CALL_OUTSIDE}, {42, 203, CALL_OUTSIDE},  /* accept4, connect */
    {73, 32, CALL_OUTSIDE},   {65, 193, CALL_OUTSIDE},  /* flock, semop */
    {220, 192, CALL_OUTSIDE}, {-1, 420, CALL_OUTSIDE},  /* semtimedop */
    {70, 188, CALL_OUTSIDE},  {69, 189, CALL_OUTSIDE},  /* msgrcv, msgsnd */
    {242, 182, CALL_OUTSIDE}, {-1, 418, CALL_OUTSIDE},  /* mq_timedsend */
    {243, 183, CALL_OUTSIDE}, {-1, 419, CALL_OUTSIDE},  /* mq_timedreceive */
    {62, 129, CALL_SIGNAL},   {200, 130, CALL_SIGNAL},  /* kill, tkill */
    {234, 131, CALL_SIGNAL},  {129, 138, CALL_SIGNAL},  /* tgkill, sigqueue */
    {297, 240, CALL_SIGNAL},  {9, 222, CALL_LOCAL},     /* mmap */
    {11, 215, CALL_LOCAL},    {10, 226, CALL_LOCAL},    /* munmap, mprotect */
    {12, 214, CALL_LOCAL},    {28, 233, CALL_LOCAL},    /* brk, madvise */
    {228, 113, CALL_LOCAL},   {-1, 403, CALL_LOCAL},    /* clock_gettime */
    {96, 169, CALL_LOCAL},    {39, 172, CALL_LOCAL},    /* gettimeofday, getpid */
    {186, 178, CALL_LOCAL},   {14, 135, CALL_LOCAL},    /* gettid, sigprocmask */
};

void calls_install(const char *machine) {
    is_x86 = strcmp(machine, "x86_64") == 0;
    find_given();
}

static enum call_kind futex_kind(uint64_t operation, uint64_t timeout) {
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_LOCK_PI:
    case 13: /* FUTEX_LOCK_PI2 */
    case FUTEX_WAIT_REQUEUE_PI:
        return timeout ? CALL_TIMED : CALL_WAIT;
    default:
        return CALL_WAKE;
    }
}

/* Reads from files never wait. For input from outside, it must not matter whether it has already arrived. Threads may use any other pipe or
   socket to talk to each other. */
static enum call_kind read_kind(uint64_t descriptor) {
    struct stat status;
    bool waits = fstat((int)descriptor, &status) == 0 && may_wait(&status) && !is_given(&status);
    return waits ? CALL_OUTSIDE : CALL_BRIEF;
}

/* A sleep until an absolute time depends on the clock. */
static enum call_kind sleep_kind(int64_t number, const uint64_t *arguments, uint64_t *sleeps) {
    bool has_clock = number != (is_x86 ? 35 : 101);
    uint64_t moment[2];
    if ((has_clock && arguments[1]) || !guest_read(arguments[has_clock ? 2 : 0], moment, 16))
        return CALL_OUTSIDE;
    if (moment[0] > UINT32_MAX || moment[1] >= 1000000000)
        return CALL_OUTSIDE;
    *sleeps = moment[0] * 1000000000 + moment[1];
    return CALL_SLEEP;
}

static enum call_kind make_kind(uint64_t flags) {
    const uint64_t shares_memory = 0x100, waits_for_exec = 0x4000;
    return flags & shares_memory && !(flags & waits_for_exec) ? CALL_MAKE : CALL_STOP;
}

enum call_kind call_kind(int64_t number, const uint64_t *arguments, uint64_t *sleeps) {
    enum call_kind kind = CALL_BRIEF;
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        if (number == (is_x86 ? calls[i].x86 : calls[i].other))
            kind = calls[i].kind;
    switch (kind) {
    case CALL_FUTEX:
        return futex_kind(arguments[1], arguments[3]);
    case CALL_READ:
        return read_kind(arguments[0]);
    case CALL_SLEEP:
        return sleep_kind(number, arguments, sleeps);
    case CALL_MAKE:
        return make_kind(arguments[0]);
    case CALL_FCNTL: /* F_SETLKW, F_OFD_SETLKW */
        return arguments[1] == 7 || arguments[1] == 38 ? CALL_OUTSIDE : CALL_BRIEF;
    default:
        return kind;
    }
}
