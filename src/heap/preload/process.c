/*
 * Which process this is, and the rings of its recorder.
 *
 * The environment names an abstract socket, which works after a chroot and after all descriptors were closed. The rings arrive as a
 * descriptor that is mapped and closed at once. A page that the kernel wipes in a forked child marks a new process: the child forgets what
 * its parent recorded and asks for the rings again, because the recorder may see it under another pid.
 */
#include "heap/preload/preload.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { STATE_NEW, STATE_BUSY, STATE_READY, STATE_NONE };
enum { ANSWER_SECONDS = 10 };
#define LOOK_NS 100000000ull
#define SILENCE_NS 2000000000ull

static struct process unwiped; /* used before there is a page, or if there can be none */
struct process *process = &unwiped;
struct heap_shared *shared;
uint8_t *ring_bytes;
static int32_t recorder; /* its pid, if this process can see it */
static bool wipes;

static bool failed(long result) {
    return result < 0 && result > -4096;
}

static const char *environment(const char *name) {
    for (char **entry = environ; *entry; entry++) {
        const char *a = *entry, *b = name;
        while (*b && *a == *b)
            a++, b++;
        if (!*b && *a == '=')
            return a + 1;
    }
    return NULL;
}

static int connect_to(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = 0;
    for (; length < sizeof address.sun_path - 2 && name[length]; length++)
        address.sun_path[1 + length] = name[length];
    long descriptor = system_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, 0, 0);
    if (failed(descriptor))
        return -1;
    struct timeval patience = {.tv_sec = ANSWER_SECONDS};
    system_call(SYS_setsockopt, descriptor, SOL_SOCKET, SO_RCVTIMEO, (long)&patience,
                sizeof patience, 0);
    if (!failed(system_call(SYS_connect, descriptor, (long)&address,
                            (long)(offsetof(struct sockaddr_un, sun_path) + 1 + length), 0, 0, 0)))
        return (int)descriptor;
    system_call(SYS_close, descriptor, 0, 0, 0, 0, 0);
    return -1;
}

/* The recorder must run as this user or root; no other user may read this process's stacks. */
static bool peer_is_trusted(int descriptor) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    if (failed(system_call(SYS_getsockopt, descriptor, SOL_SOCKET, SO_PEERCRED, (long)&peer,
                           (long)&size, 0)))
        return false;
    recorder = peer.pid;
    return peer.uid == 0 || peer.uid == (uid_t)system_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) ||
           peer.uid == (uid_t)system_call(SYS_getuid, 0, 0, 0, 0, 0, 0);
}

/* Return the descriptor of the rings, or -1. */
static int receive(int descriptor, struct heap_welcome *welcome) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {welcome, sizeof *welcome};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    long got = system_call(SYS_recvmsg, descriptor, (long)&message, MSG_CMSG_CLOEXEC, 0, 0, 0);
    struct cmsghdr *header = got == sizeof *welcome ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
        return -1;
    int rings;
    __builtin_memcpy(&rings, CMSG_DATA(header), sizeof rings);
    return rings;
}

static bool map_rings(int rings, const struct heap_welcome *welcome) {
    long made = system_call(SYS_mmap, 0, (long)welcome->size, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_POPULATE, rings, 0);
    if (failed(made))
        return false;
    struct heap_shared *found = (struct heap_shared *)made;
    if (found->magic != HEAP_MAGIC || found->version != HEAP_VERSION ||
        HEAP_HEADER_SIZE + HEAP_RINGS * found->ring_size != welcome->size) {
        system_call(SYS_munmap, made, (long)welcome->size, 0, 0, 0, 0);
        return false;
    }
    ring_bytes = (uint8_t *)made + HEAP_HEADER_SIZE;
    shared = found;
    return true;
}

/* A forked child already has the rings and only learns its pid. */
static bool greet(const char *name, int32_t *shown) {
    struct heap_welcome welcome = {0};
    struct heap_hello hello = {HEAP_MAGIC, HEAP_VERSION, process->pid,
                               real_is_in_executable("malloc")};
    int descriptor = connect_to(name);
    if (descriptor < 0)
        return false;
    int rings = -1;
    if (peer_is_trusted(descriptor) &&
        system_call(SYS_sendto, descriptor, (long)&hello, sizeof hello, MSG_NOSIGNAL, 0, 0) ==
            sizeof hello)
        rings = receive(descriptor, &welcome);
    bool fine = rings >= 0 && welcome.magic == HEAP_MAGIC && (shared || map_rings(rings, &welcome));
    if (fine)
        *shown = welcome.pid;
    if (rings >= 0)
        system_call(SYS_close, rings, 0, 0, 0, 0, 0);
    system_call(SYS_close, descriptor, 0, 0, 0, 0, 0);
    return fine;
}

static void page_make(void) {
    long made =
        system_call(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (failed(made))
        return;
    wipes = !failed(system_call(SYS_madvise, made, 4096, MADV_WIPEONFORK, 0, 0, 0));
    process = (struct process *)made;
}

static uint32_t begin(void) {
    const char *name = environment(HEAP_ENVIRONMENT);
    bool is_child = shared != NULL;
    process->pid = process->shown = (int32_t)system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    if (is_child && shared->mean > 1)
        table_clear();
    bool answered = name && greet(name, &process->shown);
    if (!shared || (!answered && !is_child))
        return STATE_NONE;
    if (shared->mean == 1)
        filter_take_all();
    else
        table_prepare();
    return STATE_READY;
}

/* If the kernel can't wipe pages (before Linux 4.14), compare the pid. */
static void notice_fork(void) {
    if (!wipes && process->state == STATE_READY &&
        system_call(SYS_getpid, 0, 0, 0, 0, 0, 0) != process->pid)
        process->state = STATE_NEW;
}

bool process_is_known(void) {
    notice_fork();
    return process->state == STATE_READY && shared &&
           !__atomic_load_n(&shared->ended, __ATOMIC_RELAXED);
}

bool process_is_hopeless(void) {
    return process->state == STATE_NONE || (shared && shared->ended);
}

bool process_is_recorded(void) {
    uint32_t state = STATE_NEW;
    notice_fork();
    if (LIKELY(process->state == STATE_READY))
        return !__atomic_load_n(&shared->ended, __ATOMIC_RELAXED);
    if (process->state == STATE_NONE || !environ) /* libc is not initialized */
        return false;
    if (process == &unwiped)
        page_make();
    if (!__atomic_compare_exchange_n(&process->state, &state, STATE_BUSY, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false; /* another thread is connecting, or there is no recorder */
    uint32_t result = begin();
    __atomic_store_n(&process->state, result, __ATOMIC_RELEASE);
    return result == STATE_READY;
}

/* Check the recorder's pid if it is visible; otherwise the recorder increases `beat` several times a second. Allow longer for one that is
   stopped. */
bool recorder_lives(uint32_t *beat, uint64_t *since) {
    uint32_t current = __atomic_load_n(&shared->beat, __ATOMIC_RELAXED);
    uint64_t time = now();
    if (shared->ended)
        return false;
    if (!*since || current != *beat) {
        *beat = current;
        *since = time;
        return true;
    }
    uint64_t silence = time - *since;
    if (silence < LOOK_NS)
        return true;
    bool gone = recorder > 0 && system_call(SYS_kill, recorder, 0, 0, 0, 0, 0) == -ESRCH;
    if (!gone && silence < (recorder > 0 ? 5 : 1) * SILENCE_NS)
        return true;
    __atomic_store_n(&shared->ended, 1, __ATOMIC_RELAXED);
    return false;
}

__attribute__((constructor)) static void loaded(void) {
    process_is_recorded();
}
