/*
 * The recorder's side: the rings, the socket, and the records.
 *
 * Any process with access to the shared memory may change anything in it at any time. So each number is read from it once, and records are
 * copied before they are checked. An inconsistent ring is emptied, and that is counted.
 */
#include "heap/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { RING_SIZE = 256 << 10, RING_SIZE_EVERY = 2 << 20, HELLO_MS = 200, GENERATIONS = 64 };
enum { HELD_TOO_LONG = 50 }; /* drains during which the same thread held a lock */

struct asked {
    struct heap_asker by;
    enum heap_arenas arenas;
};

struct heap {
    int rings; /* descriptors */
    int listening;
    size_t size;
    uint64_t ring_size;
    struct heap_shared *shared;
    uint8_t *bytes;
    char name[40];
    char library[900];
    uint64_t seen_lost;
    uint64_t damaged;
    uint32_t held_by[HEAP_RINGS]; /* the thread that has held the lock since … */
    unsigned held[HEAP_RINGS];    /* … so many drains */
    int bell; /* an eventfd; the thread that waits for the target's bell signals it */
    pthread_t ringer;
    bool rings_bell;
    uint32_t closing;
    VECTOR(struct asked) asked;
    _Alignas(8) uint8_t record[HEAP_RECORD_MOST];
};

/* ---- making ---- */

/* Beside the program (in a build folder), or where it is installed. */
static bool find_library(struct heap *heap, struct error *error) {
    static const char name[] = "libwick-heap.so";
    char self[800];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    snprintf(heap->library, sizeof heap->library, "%.*s/%s", slash ? (int)(slash - self) : 0, self,
             name);
    if (slash && access(heap->library, R_OK) == 0)
        return true;
    snprintf(heap->library, sizeof heap->library, "%.*s/../lib/wick/%s",
             slash ? (int)(slash - self) : 0, self, name);
    if (slash && access(heap->library, R_OK) == 0)
        return true;
    snprintf(heap->library, sizeof heap->library, WICK_PLUGIN_DIR "/%s", name);
    return access(heap->library, R_OK) == 0 ||
           error_set(error, ERROR_DENIED, "%s: found neither beside wick nor in " WICK_PLUGIN_DIR,
                     name);
}

static bool make_rings(struct heap *heap, const struct heap_options *options, struct error *error) {
    heap->ring_size = options->mean == 1 ? RING_SIZE_EVERY : RING_SIZE;
    heap->size = HEAP_HEADER_SIZE + HEAP_RINGS * heap->ring_size;
    heap->rings = memfd_create("wick-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (heap->rings < 0 || ftruncate(heap->rings, (off_t)heap->size) != 0 ||
        fcntl(heap->rings, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return error_errno(error, "memory shared with the target");
    void *pages =
        mmap(NULL, heap->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, heap->rings, 0);
    if (pages == MAP_FAILED)
        return error_errno(error, "memory shared with the target");
    heap->shared = pages;
    heap->bytes = (uint8_t *)pages + HEAP_HEADER_SIZE;
    heap->shared->version = HEAP_VERSION;
    heap->shared->ring_size = heap->ring_size;
    heap->shared->mean = options->mean;
    heap->shared->maps = options->maps;
    heap->shared->magic = HEAP_MAGIC;
    return true;
}

static bool make_socket(struct heap *heap, struct error *error) {
    uint64_t random[2];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return error_errno(error, "random bytes");
    int length = snprintf(heap->name, sizeof heap->name, "wick-%016llx%016llx",
                          (unsigned long long)random[0], (unsigned long long)random[1]);
    memcpy(address.sun_path + 1, heap->name, (size_t)length);
    heap->listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return (heap->listening >= 0 && bind(heap->listening, (struct sockaddr *)&address, size) == 0 &&
            listen(heap->listening, 128) == 0) ||
           error_errno(error, "socket for the target");
}

/* A futex can't be polled, so a thread waits for it. */
static void *ringer_main(void *context) {
    struct heap *heap = context;
    struct timespec moment = {.tv_nsec = 200000000};
    uint32_t heard = __atomic_load_n(&heap->shared->bell, __ATOMIC_ACQUIRE);
    while (!__atomic_load_n(&heap->closing, __ATOMIC_ACQUIRE)) {
        uint32_t bell = __atomic_load_n(&heap->shared->bell, __ATOMIC_ACQUIRE);
        uint64_t one = 1;
        if (bell == heard)
            syscall(SYS_futex, &heap->shared->bell, FUTEX_WAIT, heard, &moment, NULL, 0);
        else
            (void)!write(heap->bell, &one, sizeof one);
        heard = bell;
    }
    return NULL;
}

static bool start_ringer(struct heap *heap, struct error *error) {
    sigset_t all, before;
    heap->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (heap->bell < 0)
        return error_errno(error, "eventfd");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the main thread handles signals */
    heap->rings_bell = pthread_create(&heap->ringer, NULL, ringer_main, heap) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return heap->rings_bell || error_errno(error, "thread");
}

struct heap *heap_open(const struct heap_options *options, struct error *error) {
    struct heap *heap = memory_zero(1, sizeof *heap);
    heap->rings = heap->listening = heap->bell = -1;
    if (find_library(heap, error) && make_rings(heap, options, error) && make_socket(heap, error) &&
        start_ringer(heap, error))
        return heap;
    heap_close(heap);
    return NULL;
}

void heap_end(struct heap *heap) {
    if (!heap || !heap->shared)
        return;
    __atomic_store_n(&heap->shared->ended, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < HEAP_RINGS; i++) {
        struct heap_ring *ring = &heap->shared->rings[i];
        __atomic_add_fetch(&ring->room, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &ring->room, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

void heap_close(struct heap *heap) {
    if (!heap)
        return;
    heap_end(heap);
    __atomic_store_n(&heap->closing, 1, __ATOMIC_RELEASE);
    if (heap->rings_bell) {
        __atomic_add_fetch(&heap->shared->bell, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &heap->shared->bell, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        pthread_join(heap->ringer, NULL);
    }
    if (heap->bell >= 0)
        close(heap->bell);
    if (heap->shared)
        munmap(heap->shared, heap->size);
    if (heap->rings >= 0)
        close(heap->rings);
    if (heap->listening >= 0)
        close(heap->listening);
    vector_release(&heap->asked);
    free(heap);
}

void heap_prepare_child(const struct heap *heap) {
    const char *before = getenv("LD_PRELOAD");
    char list[4096];
    bool some = before && *before;
    snprintf(list, sizeof list, "%s%s%s", heap->library, some ? ":" : "", some ? before : "");
    setenv("LD_PRELOAD", list, 1);
    setenv(HEAP_ENVIRONMENT, heap->name, 1);
}

/* ---- processes ---- */

int heap_descriptor(const struct heap *heap) {
    return heap->listening;
}

int heap_bell(const struct heap *heap) {
    return heap->bell;
}

/* Orphans of the target become children of the recorder. */
static bool is_descendant(pid_t pid) {
    for (int i = 0; i < GENERATIONS && pid > 1; i++)
        if ((pid = proc_status_id(pid, TEXT("PPid"))) == getpid())
            return true;
    return false;
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static bool send_rings(const struct heap *heap, int connection, pid_t pid) {
    struct heap_welcome welcome = {
        .magic = HEAP_MAGIC, .version = HEAP_VERSION, .pid = pid, .size = heap->size};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&welcome, sizeof welcome};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &heap->rings, sizeof(int));
    return sendmsg(connection, &message, MSG_NOSIGNAL) == sizeof welcome;
}

static void answer(struct heap *heap, int connection) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    struct heap_hello hello;
    struct timeval patience = {.tv_usec = HELLO_MS * 1000};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
        !is_descendant(peer.pid))
        return;
    if (recv(connection, &hello, sizeof hello, 0) != sizeof hello || hello.magic != HEAP_MAGIC ||
        hello.version != HEAP_VERSION)
        return;
    uint64_t time = now(); /* it may execute another program as soon as it has the rings */
    if (send_rings(heap, connection, peer.pid))
        vector_push(&heap->asked, ((struct asked){{peer.pid, time, hello.own_hooks != 0},
                                                  heap_arenas_of(peer.pid)}));
}

/* accept4() makes a socket before it finds that there is none to accept; poll() costs a tenth of that. */
void heap_answer(struct heap *heap) {
    struct pollfd asked = {.fd = heap->listening, .events = POLLIN};
    if (poll(&asked, 1, 0) == 0)
        return;
    for (int connection; (connection = accept4(heap->listening, NULL, NULL, SOCK_CLOEXEC)) >= 0;
         close(connection))
        answer(heap, connection);
}

bool heap_knows(const struct heap *heap, pid_t pid, bool *own) {
    for (size_t i = heap->asked.count; i-- > 0;) {
        if (heap->asked.items[i].by.pid == pid) {
            *own = heap->asked.items[i].by.has_allocator;
            return true;
        }
    }
    return false;
}

bool heap_asker(const struct heap *heap, size_t i, struct heap_asker *asker) {
    if (i < heap->asked.count)
        *asker = heap->asked.items[i].by;
    return i < heap->asked.count;
}

uint64_t heap_with_arenas(const struct heap *heap, enum heap_arenas arenas) {
    uint64_t count = 0;
    for (size_t i = 0; i < heap->asked.count; i++)
        count += heap->asked.items[i].arenas == arenas;
    return count;
}

/* ---- records ---- */

static void get(const struct heap *heap, const uint8_t *bytes, uint64_t at, void *to, size_t size) {
    size_t start = at & (heap->ring_size - 1), first = heap->ring_size - start;
    first = first < size ? first : size;
    memcpy(to, bytes + start, first);
    memcpy((uint8_t *)to + first, bytes, size - first);
}

static bool record_makes_sense(const struct heap_record *record) {
    switch (record->kind) {
    case HEAP_FREE:
        return record->size == HEAP_FREE_SIZE;
    case HEAP_UNMAP:
        return record->size == HEAP_UNMAP_SIZE;
    case HEAP_AGAIN:
    case HEAP_MAP_AGAIN:
    case HEAP_REMAP_AGAIN:
        return record->size == HEAP_AGAIN_SIZE && record->mean;
    case HEAP_ALLOC:
    case HEAP_MAP:
    case HEAP_REMAP:
        return record->size >= sizeof *record && record->mean &&
               record->stack_size == record->size - sizeof *record;
    }
    return false;
}

/* Return the record's size in the ring, or 0 if it is damaged. */
static size_t copy_record(struct heap *heap, const uint8_t *bytes, uint64_t at, uint64_t most) {
    struct heap_record *record = (struct heap_record *)heap->record;
    uint32_t size = 0;
    if (most < HEAP_FREE_SIZE)
        return 0;
    get(heap, bytes, at, &size, sizeof size);
    if (size < HEAP_FREE_SIZE || size > most || size > HEAP_RECORD_MOST || size % 8)
        return 0;
    memset(record, 0, sizeof *record);
    get(heap, bytes, at, record, size);
    record->size = size; /* it may have changed meanwhile */
    return record_makes_sense(record) ? size : 0;
}

static void wake_waiting(struct heap_ring *ring) {
    __atomic_add_fetch(&ring->room, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->waiting, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &ring->room, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool drain_ring(struct heap *heap, size_t number, heap_reader *reader, void *context,
                       unsigned *busy, struct error *error) {
    struct heap_ring *ring = &heap->shared->rings[number];
    const uint8_t *bytes = heap->bytes + number * heap->ring_size;
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE), tail = ring->tail;
    bool fine = true;
    if (head == tail)
        return true;
    if (head - tail > heap->ring_size) {
        heap->damaged++;
        tail = head;
    }
    unsigned full = (unsigned)((head - tail) * 100 / heap->ring_size);
    *busy = full > *busy ? full : *busy;
    while (fine && tail < head) {
        size_t size = copy_record(heap, bytes, tail, head - tail);
        if (!size) {
            heap->damaged++;
            tail = head;
            break;
        }
        fine = reader(context, (struct heap_record *)heap->record,
                      heap->record + sizeof(struct heap_record), error);
        tail += size;
    }
    __atomic_store_n(&ring->tail, tail, __ATOMIC_RELEASE);
    wake_waiting(ring);
    return fine;
}

/* Release the lock of a thread that was killed while holding it; nothing else needs cleaning up. */
static void free_lock(struct heap *heap, size_t number) {
    struct heap_ring *ring = &heap->shared->rings[number];
    uint32_t owner = __atomic_load_n(&ring->lock, __ATOMIC_RELAXED);
    if (!owner || owner != heap->held_by[number]) {
        heap->held_by[number] = owner;
        heap->held[number] = 0;
        return;
    }
    if (++heap->held[number] >= HELD_TOO_LONG && kill((pid_t)owner, 0) != 0 && errno == ESRCH)
        __atomic_compare_exchange_n(&ring->lock, &owner, 0, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED);
}

/* If allocations were lost, double the mean, so that fewer are sampled from now on. */
static void look_at_losses(struct heap *heap) {
    uint64_t lost = __atomic_load_n(&heap->shared->lost, __ATOMIC_RELAXED),
             mean = heap->shared->mean;
    if (lost == heap->seen_lost)
        return;
    heap->seen_lost = lost;
    if (mean > 1 && mean < (uint64_t)1 << 40)
        __atomic_store_n(&heap->shared->mean, mean * 2, __ATOMIC_RELAXED);
}

bool heap_drain(struct heap *heap, heap_reader *reader, void *context, unsigned *busy,
                struct error *error) {
    uint64_t unused;
    *busy = 0;
    (void)!read(heap->bell, &unused, sizeof unused);
    __atomic_add_fetch(&heap->shared->beat, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < HEAP_RINGS; i++) {
        if (!drain_ring(heap, i, reader, context, busy, error))
            return false;
        free_lock(heap, i);
    }
    look_at_losses(heap);
    return true;
}

struct heap_losses heap_losses(const struct heap *heap) {
    return (struct heap_losses){.allocations = heap->shared->lost,
                                .frees = heap->shared->lost_frees,
                                .damaged = heap->damaged,
                                .mean = heap->shared->mean};
}

uint64_t heap_weight(uint64_t bytes, uint64_t mean) {
    if (bytes >= mean || !bytes)
        return bytes;
    double weight = (double)bytes / -expm1(-(double)bytes / (double)mean);
    return (uint64_t)(weight + 0.5);
}
