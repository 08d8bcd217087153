/*
 * The part of Linux that a static program needs: enough for newlib, musl and glibc to start, allocate, read, print and exit.
 *
 * Nothing here depends on the machine that wick runs on: time is the instruction count, random numbers are always the same, files are those
 * given. So the same program with the same input gives the same counts. A call that is not in the table is a fault that names it; the few
 * that programs try and can do without return "not implemented".
 */
#include "trace/riscv/guest.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_MAX (1u << 20)

typedef int64_t system_call(struct guest *g, const uint64_t *a);

static uint8_t *guest_at(struct guest *g, uint64_t address, uint64_t size, unsigned rights) {
    static uint8_t nothing[1];
    return size ? memory_at(&g->machine.memory, address, size, rights) : nothing;
}

/* Return memory that the system writes to; translated code there is dropped. */
static uint8_t *guest_out(struct guest *g, uint64_t address, uint64_t size) {
    uint8_t *at = guest_at(g, address, size, PAGE_WRITE);
    if (at && size && memory_has_code(&g->machine.memory, address, size))
        machine_flush(&g->machine);
    return at;
}

/* Return the text at address, or an empty one; at most a page. */
static struct text guest_text(struct guest *g, uint64_t address) {
    uint64_t length = 0;
    const uint8_t *at = NULL;
    while (length < PAGE_SIZE && (at = guest_at(g, address + length, 1, PAGE_READ)) && *at)
        length++;
    return (struct text){(const char *)g->machine.memory.base + (at ? address : 0),
                         at ? length : 0};
}

static struct guest_descriptor *descriptor_of(struct guest *g, uint64_t number) {
    if (number >= COUNT_OF(g->descriptors) || g->descriptors[number].kind == DESCRIPTOR_CLOSED)
        return NULL;
    return &g->descriptors[number];
}

/* ---- reading and writing ------------------------------------------------------------------ */

static int64_t write_all(int descriptor, const uint8_t *data, uint64_t size) {
    uint64_t done = 0;
    while (done < size) {
        ssize_t n = write(descriptor, data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return done ? (int64_t)done : -(int64_t)errno;
        done += (uint64_t)n;
    }
    return (int64_t)done;
}

static int64_t sys_write(struct guest *g, const uint64_t *a) {
    struct guest_descriptor *d = descriptor_of(g, a[0]);
    const uint8_t *data = guest_at(g, a[1], a[2], PAGE_READ);
    if (!d || d->kind != DESCRIPTOR_HOST)
        return -EBADF;
    return data ? write_all(d->host, data, a[2]) : -EFAULT;
}

static int64_t read_file(struct guest_descriptor *d, uint8_t *data, uint64_t size,
                         uint64_t position) {
    if (position >= d->file->size)
        return 0;
    uint64_t rest = d->file->size - position, n = size < rest ? size : rest;
    memcpy(data, d->file->data + position, n);
    return (int64_t)n;
}

static int64_t sys_read(struct guest *g, const uint64_t *a) {
    struct guest_descriptor *d = descriptor_of(g, a[0]);
    uint8_t *data = guest_out(g, a[1], a[2]);
    if (!d)
        return -EBADF;
    if (!data)
        return -EFAULT;
    if (d->kind == DESCRIPTOR_HOST) {
        ssize_t n = read(d->host, data, a[2]);
        return n < 0 ? -(int64_t)errno : n;
    }
    int64_t n = read_file(d, data, a[2], d->position);
    d->position += (uint64_t)n;
    return n;
}

static int64_t sys_pread(struct guest *g, const uint64_t *a) {
    struct guest_descriptor *d = descriptor_of(g, a[0]);
    uint8_t *data = guest_out(g, a[1], a[2]);
    if (!d || d->kind != DESCRIPTOR_FILE)
        return -EBADF;
    return data ? read_file(d, data, a[2], a[3]) : -EFAULT;
}

/* Each part is a call of its own: a short one ends it. */
static int64_t vectored(struct guest *g, const uint64_t *a, system_call *call) {
    uint64_t word = g->machine.xlen / 8, total = 0;
    if (a[2] > 1024)
        return -EINVAL;
    for (uint64_t i = 0; i < a[2]; i++) {
        const uint8_t *part = guest_at(g, a[1] + i * 2 * word, 2 * word, PAGE_READ);
        if (!part)
            return -EFAULT;
        uint64_t arguments[3] = {a[0], word == 8 ? load_u64(part) : load_u32(part),
                                 word == 8 ? load_u64(part + 8) : load_u32(part + 4)};
        int64_t n = call(g, arguments);
        if (n < 0)
            return total ? (int64_t)total : n;
        total += (uint64_t)n;
        if ((uint64_t)n < arguments[2])
            break;
    }
    return (int64_t)total;
}
static int64_t sys_writev(struct guest *g, const uint64_t *a) {
    return vectored(g, a, sys_write);
}
static int64_t sys_readv(struct guest *g, const uint64_t *a) {
    return vectored(g, a, sys_read);
}

/* ---- files -------------------------------------------------------------------------------- */

static const struct file *file_named(struct guest *g, struct text path) {
    for (size_t i = 0; i < g->options->file_count; i++)
        if (path.length && text_equal(path, text_of(g->options->files[i].guest)))
            return &g->files[i];
    return NULL;
}

static int64_t open_file(struct guest *g, uint64_t path, uint64_t flags) {
    const struct file *file = file_named(g, guest_text(g, path));
    if (!file)
        return -ENOENT;
    if (flags & 3)
        return -EACCES; /* files are read-only */
    for (size_t i = 3; i < COUNT_OF(g->descriptors); i++)
        if (g->descriptors[i].kind == DESCRIPTOR_CLOSED) {
            g->descriptors[i] = (struct guest_descriptor){DESCRIPTOR_FILE, -1, file, 0};
            return (int64_t)i;
        }
    return -EMFILE;
}
static int64_t sys_openat(struct guest *g, const uint64_t *a) {
    return open_file(g, a[1], a[2]);
}
static int64_t sys_open(struct guest *g, const uint64_t *a) {
    return open_file(g, a[0], a[1]);
}

static int64_t sys_close(struct guest *g, const uint64_t *a) {
    struct guest_descriptor *d = descriptor_of(g, a[0]);
    if (!d)
        return -EBADF;
    d->kind = DESCRIPTOR_CLOSED;
    return 0;
}

static int64_t sys_lseek(struct guest *g, const uint64_t *a) {
    struct guest_descriptor *d = descriptor_of(g, a[0]);
    if (!d)
        return -EBADF;
    if (d->kind != DESCRIPTOR_FILE)
        return -ESPIPE;
    uint64_t from = a[2] == 0 ? 0 : a[2] == 1 ? d->position : d->file->size;
    int64_t offset = g->machine.xlen == 32 ? (int32_t)a[1] : (int64_t)a[1], to;
    if (a[2] > 2 || __builtin_add_overflow((int64_t)from, offset, &to) || to < 0)
        return -EINVAL;
    d->position = (uint64_t)to;
    return to;
}

/* Linux's layout for new architectures; 0, 1 and 2 always look like pipes. */
static int64_t put_status(struct guest *g, uint64_t address, const struct file *file) {
    bool is64 = g->machine.xlen == 64;
    uint8_t *at = guest_out(g, address, is64 ? 128 : 104);
    uint32_t mode = file ? 0100444 : 010600, links = 1, block = 4096;
    uint64_t size = file ? file->size : 0, node = file ? 2 : 1, blocks = (size + 511) / 512;
    if (!at)
        return -EFAULT;
    memset(at, 0, is64 ? 128 : 104);
    memcpy(at + 8, &node, 8);
    memcpy(at + 16, &mode, 4);
    memcpy(at + 20, &links, 4);
    memcpy(at + 48, &size, 8);
    memcpy(at + 56, &block, 4);
    memcpy(at + 64, &blocks, 8);
    return 0;
}

static int64_t sys_fstat(struct guest *g, const uint64_t *a) {
    struct guest_descriptor *d = descriptor_of(g, a[0]);
    return d ? put_status(g, a[1], d->kind == DESCRIPTOR_FILE ? d->file : NULL) : -EBADF;
}

static int64_t sys_newfstatat(struct guest *g, const uint64_t *a) {
    struct text path = guest_text(g, a[1]);
    if (!path.length && (a[3] & 0x1000)) {
        const uint64_t arguments[2] = {a[0], a[2]};
        return sys_fstat(g, arguments);
    }
    const struct file *file = file_named(g, path);
    return file ? put_status(g, a[2], file) : -ENOENT;
}

/* newlib's stat, without a directory. */
static int64_t sys_stat(struct guest *g, const uint64_t *a) {
    const uint64_t arguments[4] = {0, a[0], a[1], 0};
    return sys_newfstatat(g, arguments);
}

static int64_t sys_faccessat(struct guest *g, const uint64_t *a) {
    return file_named(g, guest_text(g, a[1])) ? (a[2] & 2 ? -EACCES : 0) : -ENOENT;
}

static int64_t sys_access(struct guest *g, const uint64_t *a) {
    const uint64_t arguments[3] = {0, a[0], a[1]};
    return sys_faccessat(g, arguments);
}

/* Any call that would change a file. */
static int64_t sys_read_only(struct guest *g, const uint64_t *a) {
    return -EROFS;
}

static int64_t sys_readlinkat(struct guest *g, const uint64_t *a) {
    const char *target = g->real_path ? g->real_path : g->options->path;
    if (!text_equal(guest_text(g, a[1]), TEXT("/proc/self/exe")))
        return -ENOENT;
    uint64_t length = strlen(target) < a[3] ? strlen(target) : a[3];
    uint8_t *at = guest_out(g, a[2], length);
    if (!at)
        return -EFAULT;
    memcpy(at, target, length);
    return (int64_t)length;
}

static int64_t sys_getcwd(struct guest *g, const uint64_t *a) {
    uint8_t *at = guest_out(g, a[0], 2);
    if (a[1] < 2 || !at)
        return a[1] < 2 ? -ERANGE : -EFAULT;
    memcpy(at, "/", 2);
    return 2;
}

static int64_t sys_ioctl(struct guest *g, const uint64_t *a) {
    return descriptor_of(g, a[0]) ? -ENOTTY : -EBADF;
}

static int64_t sys_fcntl(struct guest *g, const uint64_t *a) {
    if (!descriptor_of(g, a[0]))
        return -EBADF;
    return a[1] == 1 || a[1] == 2 || a[1] == 4 ? 0
           : a[1] == 3                         ? (a[0] == 0 || a[0] > 2 ? 0 : 1)
                                               : -EINVAL;
}

/* ---- memory ------------------------------------------------------------------------------- */

static int64_t sys_brk(struct guest *g, const uint64_t *a) {
    uint64_t wanted = a[0], now = (g->break_now + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    uint64_t end = saturating_add(wanted, PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    struct guest_memory *memory = &g->machine.memory;
    if (wanted < g->break_start || end > g->stack_low)
        return (int64_t)g->break_now;
    if (end > now && (!memory_is_free(memory, now, end - now) ||
                      !memory_map(memory, now, end - now, PAGE_READ | PAGE_WRITE)))
        return (int64_t)g->break_now;
    if (end < now)
        memory_unmap(memory, end, now - end);
    g->break_now = wanted;
    return (int64_t)wanted;
}

static unsigned rights_of(uint64_t protection) {
    return (protection & 1 ? PAGE_READ : 0) | (protection & 2 ? PAGE_WRITE : 0) |
           (protection & 4 ? PAGE_EXECUTE : 0);
}

/* Anonymous memory, or a private copy of a given file. */
static int64_t sys_mmap(struct guest *g, const uint64_t *a) {
    struct guest_memory *memory = &g->machine.memory;
    uint64_t size = saturating_add(a[1], PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE, address = a[0];
    bool fixed = a[3] & 0x10, anonymous = a[3] & 0x20;
    struct guest_descriptor *d = anonymous ? NULL : descriptor_of(g, a[4]);
    if (!a[1] || (address & (PAGE_SIZE - 1)) || (a[5] & (PAGE_SIZE - 1) && g->machine.xlen == 64))
        return -EINVAL;
    if (!anonymous && (!d || d->kind != DESCRIPTOR_FILE))
        return -EBADF;
    if (!fixed && (!address || !memory_is_free(memory, address, size) || address < PAGE_SIZE))
        address = memory_find(memory, size, g->break_now + PAGE_SIZE, g->stack_low);
    if (!address || address + size > GUEST_SIZE || size > GUEST_SIZE)
        return -ENOMEM;
    if (fixed && memory_has_code(memory, address, size))
        machine_flush(&g->machine);
    if (!memory_map(memory, address, size, rights_of(a[2])))
        return -ENOMEM;
    uint64_t offset = g->machine.xlen == 64 ? a[5] : a[5] * 4096;
    if (d && offset < d->file->size)
        read_file(d, memory->base + address, size, offset);
    return (int64_t)address;
}

static bool whole_pages(const uint64_t *a) {
    return !(a[0] & (PAGE_SIZE - 1)) && a[0] <= GUEST_SIZE && a[1] <= GUEST_SIZE - a[0];
}

static int64_t sys_munmap(struct guest *g, const uint64_t *a) {
    if (!whole_pages(a) || !a[1])
        return -EINVAL;
    if (memory_has_code(&g->machine.memory, a[0], a[1]))
        machine_flush(&g->machine);
    memory_unmap(&g->machine.memory, a[0], a[1]);
    return 0;
}

static int64_t sys_mprotect(struct guest *g, const uint64_t *a) {
    if (!whole_pages(a))
        return -EINVAL;
    if (!a[1])
        return 0;
    if (memory_has_code(&g->machine.memory, a[0], a[1]))
        machine_flush(&g->machine);
    return memory_protect(&g->machine.memory, a[0], a[1], rights_of(a[2])) ? 0 : -ENOMEM;
}

/* The guest can see the effect of only one advice, "not needed": its pages are zero afterwards. */
static int64_t sys_madvise(struct guest *g, const uint64_t *a) {
    struct guest_memory *memory = &g->machine.memory;
    if (!whole_pages(a))
        return -EINVAL;
    uint64_t size = saturating_add(a[1], PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    if (a[2] != 4 || !size)
        return 0;
    uint8_t *at = memory_at(memory, a[0], size, PAGE_MAPPED);
    if (!at)
        return -ENOMEM;
    memset(at, 0, size);
    if (memory_has_code(memory, a[0], size))
        machine_flush(&g->machine);
    return 0;
}

/* ---- time, chance, identity --------------------------------------------------------------- */

/* One nanosecond per instruction, from the start of 2020 on the wall clock. */
static int64_t sys_clock_gettime(struct guest *g, const uint64_t *a) {
    uint64_t now = machine_executed(&g->machine), start = a[0] == 0 || a[0] == 5 ? 1577836800 : 0;
    uint64_t time[2] = {start + now / 1000000000, now % 1000000000};
    uint8_t *at = guest_out(g, a[1], 16);
    if (!at)
        return -EFAULT;
    memcpy(at, time, 16);
    return 0;
}

static int64_t sys_clock_getres(struct guest *g, const uint64_t *a) {
    const uint64_t time[2] = {0, 1};
    uint8_t *at = guest_out(g, a[1], a[1] ? 16 : 0);
    if (!at)
        return -EFAULT;
    if (a[1])
        memcpy(at, time, 16);
    return 0;
}

static int64_t sys_gettimeofday(struct guest *g, const uint64_t *a) {
    uint64_t now = machine_executed(&g->machine);
    uint64_t time[2] = {1577836800 + now / 1000000000, now % 1000000000 / 1000};
    uint8_t *at = guest_out(g, a[0], a[0] ? 16 : 0);
    if (!at)
        return -EFAULT;
    if (a[0])
        memcpy(at, time, 16);
    return 0;
}

static int64_t sys_getrandom(struct guest *g, const uint64_t *a) {
    uint64_t size = a[1] < COPY_MAX ? a[1] : COPY_MAX;
    uint8_t *at = guest_out(g, a[0], size);
    if (!at)
        return -EFAULT;
    for (uint64_t i = 0; i < size; i++)
        at[i] = (uint8_t)(digest_mix(0x77696b, g->random++) >> 32);
    return (int64_t)size;
}

static int64_t sys_uname(struct guest *g, const uint64_t *a) {
    static const char *const fields[6] = {"Linux", "wick", "6.1.0", "#1", "riscv64", "(none)"};
    uint8_t *at = guest_out(g, a[0], 6 * 65);
    if (!at)
        return -EFAULT;
    memset(at, 0, 6 * 65);
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        memcpy(at + i * 65, fields[i], strlen(fields[i]));
    return 0;
}

static int64_t sys_sysinfo(struct guest *g, const uint64_t *a) {
    bool is64 = g->machine.xlen == 64;
    uint8_t *at = guest_out(g, a[0], is64 ? 112 : 64);
    const uint64_t bytes = GUEST_SIZE - PAGE_SIZE;
    if (!at)
        return -EFAULT;
    memset(at, 0, is64 ? 112 : 64);
    for (size_t i = 4; i < 6; i++) /* total, and as much free */
        memcpy(at + i * (is64 ? 8 : 4), &bytes, is64 ? 8 : 4);
    memcpy(at + (is64 ? 104 : 52), &(uint32_t){1}, 4);
    return 0;
}

/* Only the stack has a real limit. */
static int64_t sys_prlimit64(struct guest *g, const uint64_t *a) {
    uint64_t limit = a[1] == 3 ? 8 << 20 : a[1] == 7 ? COUNT_OF(g->descriptors) : UINT64_MAX;
    const uint64_t both[2] = {limit, a[1] == 7 ? limit : UINT64_MAX};
    uint8_t *at = guest_out(g, a[3], a[3] ? 16 : 0);
    if (!at)
        return -EFAULT;
    if (a[3])
        memcpy(at, both, 16);
    return 0;
}

static int64_t sys_one(struct guest *g, const uint64_t *a) {
    return 1;
}
static int64_t sys_user(struct guest *g, const uint64_t *a) {
    return 1000;
}
static int64_t sys_nothing(struct guest *g, const uint64_t *a) {
    return 0;
}
static int64_t sys_absent(struct guest *g, const uint64_t *a) {
    return -ENOSYS;
}

static int64_t sys_sched_getaffinity(struct guest *g, const uint64_t *a) {
    uint8_t *at = guest_out(g, a[2], 8);
    if (!at || a[1] < 8)
        return at ? -EINVAL : -EFAULT;
    memcpy(at, &(uint64_t){1}, 8);
    return 8;
}

/* There is one thread: a wake finds no waiter, and a wait would last forever unless the value has changed. */
static int64_t sys_futex(struct guest *g, const uint64_t *a) {
    const uint8_t *at = guest_at(g, a[0], 4, PAGE_READ);
    if (!at)
        return -EFAULT;
    if ((a[1] & 0x7f) == 1)
        return 0;
    if (load_u32(at) != (uint32_t)a[2])
        return -EAGAIN;
    g->exited = true;
    g->signal = 9;
    snprintf(g->machine.fault_text, sizeof g->machine.fault_text,
             "deadlock: the only thread waits for another");
    return 0;
}

static int64_t sys_exit(struct guest *g, const uint64_t *a) {
    g->exited = true;
    g->status = (int)(a[0] & 255);
    return 0;
}

static int64_t sys_tgkill(struct guest *g, const uint64_t *a) {
    g->exited = true;
    g->signal = (int)(a[2] & 127);
    return 0;
}

static int64_t sys_kill(struct guest *g, const uint64_t *a) {
    const uint64_t arguments[3] = {1, 1, a[1]};
    return sys_tgkill(g, arguments);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct {
    uint16_t number;
    const char *name;
    system_call *call;
} calls[] = {
    {17, "getcwd", sys_getcwd},
    {25, "fcntl", sys_fcntl},
    {29, "ioctl", sys_ioctl},
    {34, "mkdirat", sys_read_only},
    {35, "unlinkat", sys_read_only},
    {37, "linkat", sys_read_only},
    {46, "ftruncate", sys_read_only},
    {48, "faccessat", sys_faccessat},
    {56, "openat", sys_openat},
    {57, "close", sys_close},
    {62, "lseek", sys_lseek},
    {63, "read", sys_read},
    {64, "write", sys_write},
    {65, "readv", sys_readv},
    {66, "writev", sys_writev},
    {67, "pread64", sys_pread},
    {78, "readlinkat", sys_readlinkat},
    {79, "newfstatat", sys_newfstatat},
    {80, "fstat", sys_fstat},
    {93, "exit", sys_exit},
    {94, "exit_group", sys_exit},
    {96, "set_tid_address", sys_one},
    {98, "futex", sys_futex},
    {99, "set_robust_list", sys_nothing},
    {101, "nanosleep", sys_nothing},
    {113, "clock_gettime", sys_clock_gettime},
    {114, "clock_getres", sys_clock_getres},
    {115, "clock_nanosleep", sys_nothing},
    {123, "sched_getaffinity", sys_sched_getaffinity},
    {124, "sched_yield", sys_nothing},
    {129, "kill", sys_kill},
    {130, "tkill", sys_kill},
    {131, "tgkill", sys_tgkill},
    {134, "rt_sigaction", sys_nothing},
    {135, "rt_sigprocmask", sys_nothing},
    {160, "uname", sys_uname},
    {169, "gettimeofday", sys_gettimeofday},
    {172, "getpid", sys_one},
    {173, "getppid", sys_one},
    {174, "getuid", sys_user},
    {175, "geteuid", sys_user},
    {176, "getgid", sys_user},
    {177, "getegid", sys_user},
    {178, "gettid", sys_one},
    {179, "sysinfo", sys_sysinfo},
    {214, "brk", sys_brk},
    {215, "munmap", sys_munmap},
    {216, "mremap", sys_absent},
    {222, "mmap", sys_mmap},
    {226, "mprotect", sys_mprotect},
    {233, "madvise", sys_madvise},
    {258, "riscv_hwprobe", sys_absent},
    {259, "riscv_flush_icache", sys_nothing},
    {261, "prlimit64", sys_prlimit64},
    {278, "getrandom", sys_getrandom},
    {291, "statx", sys_absent},
    {293, "rseq", sys_absent},
    {403, "clock_gettime64", sys_clock_gettime},
    {439, "faccessat2", sys_faccessat},
    {276, "renameat2", sys_read_only},
    /* newlib's own numbers */
    {1024, "open", sys_open},
    {1025, "link", sys_read_only},
    {1026, "unlink", sys_read_only},
    {1033, "access", sys_access},
    {1038, "stat", sys_stat},
    {1039, "lstat", sys_stat},
};

const char *guest_call_name(enum trace_abi abi, uint64_t number) {
    if (abi == ABI_PROVER)
        return number == 1    ? "print"
               : number == 2  ? "panic"
               : number == 64 ? "commit"
               : number == 93 ? "halt"
                              : NULL;
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        if (calls[i].number == number)
            return calls[i].name;
    return NULL;
}

bool guest_call_linux(struct guest *g) {
    struct machine *m = &g->machine;
    uint64_t number = m->x[17], a[6];
    for (size_t i = 0; i < 6; i++)
        a[i] = m->xlen == 64 ? m->x[10 + i] : (uint32_t)m->x[10 + i];
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        if (calls[i].number == number) {
            int64_t result = calls[i].call(g, a);
            m->x[10] = m->xlen == 64 ? (uint64_t)result : (uint64_t)(int64_t)(int32_t)result;
            return true;
        }
    bool threads = number == 220 || number == 435; /* clone, clone3 */
    snprintf(m->fault_text, sizeof m->fault_text, "unknown system call %llu%s",
             (unsigned long long)number, threads ? " (threads need --engine qemu)" : "");
    return false;
}
