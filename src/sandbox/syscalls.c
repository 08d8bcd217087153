/*
 * seccomp: a filter program for the kernel that checks each system call's number, and for a few calls an argument.
 *
 * There are three answers. Allowed: calls that reading, computing in threads and writing need. Trapped: calls that no parser needs and an
 * attack begins with; a signal handler reports them and ends the process. Any other call does not exist (ENOSYS): a C library that tries a
 * new call falls back to an older one, so today's wick works with tomorrow's C library.
 */
#include "sandbox/internal.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
enum {
    IS_SANITIZED = 1
}; /* it inspects its own process from a tracer, and writes its reports at the end */
#else
enum { IS_SANITIZED = 0 };
#endif

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

#ifdef ARCHITECTURE

static const int allowed[] = {
    __NR_read,
    __NR_write,
    __NR_futex,
    __NR_mmap,
    __NR_munmap,
    __NR_close,
    __NR_fstat,
    __NR_openat,
    __NR_openat2,
    __NR_newfstatat,
    __NR_pread64,
    __NR_lseek,
    __NR_madvise,
    __NR_mprotect,
    __NR_brk,
    __NR_readlinkat,
    __NR_getdents64,
    __NR_faccessat,
    __NR_clock_gettime,
    __NR_mremap,
    __NR_msync,
    __NR_mincore,
    /* files */
    __NR_readv,
    __NR_writev,
    __NR_pwrite64,
    __NR_preadv,
    __NR_pwritev,
    __NR_statx,
    __NR_statfs,
    __NR_fstatfs,
    __NR_getcwd,
    __NR_fcntl,
    __NR_dup,
    __NR_dup3,
    __NR_pipe2,
    __NR_flock,
    __NR_ftruncate,
    __NR_fallocate,
    __NR_fsync,
    __NR_fdatasync,
    __NR_fadvise64,
    __NR_sendfile,
    __NR_copy_file_range,
    __NR_renameat2,
    __NR_unlinkat,
    __NR_mkdirat,
    __NR_symlinkat,
    __NR_fchmod,
    __NR_fchmodat,
    __NR_fchown,
    __NR_fchownat,
    __NR_utimensat,
    __NR_umask,
    __NR_memfd_create,
    __NR_chdir,
    __NR_fchdir,
#ifdef __NR_renameat
    __NR_renameat,
#endif
#ifdef __NR_faccessat2
    __NR_faccessat2,
#endif
#ifdef __NR_close_range
    __NR_close_range,
#endif
#ifdef __NR_open /* only old architectures have these */
    __NR_open,
    __NR_stat,
    __NR_lstat,
    __NR_access,
    __NR_readlink,
    __NR_rename,
    __NR_unlink,
    __NR_mkdir,
    __NR_rmdir,
    __NR_symlink,
    __NR_chmod,
    __NR_dup2,
    __NR_pipe,
    __NR_poll,
    __NR_select,
    __NR_getdents,
    __NR_time,
    __NR_arch_prctl,
    __NR_epoll_wait,
#endif
    /* threads, memory, signals, time */
    __NR_exit,
    __NR_exit_group,
    __NR_set_robust_list,
    __NR_get_robust_list,
    __NR_set_tid_address,
    __NR_rt_sigaction,
    __NR_rt_sigprocmask,
    __NR_rt_sigreturn,
    __NR_rt_sigtimedwait,
    __NR_sigaltstack,
    __NR_restart_syscall,
    __NR_sched_yield,
    __NR_sched_getaffinity,
    __NR_sched_getparam,
    __NR_sched_getscheduler,
    __NR_mlock,
    __NR_munlock,
    __NR_membarrier,
    __NR_getpid,
    __NR_gettid,
    __NR_getppid,
    __NR_getuid,
    __NR_geteuid,
    __NR_getgid,
    __NR_getegid,
    __NR_getrandom,
    __NR_clock_getres,
    __NR_clock_nanosleep,
    __NR_nanosleep,
    __NR_gettimeofday,
    __NR_sysinfo,
    __NR_uname,
    __NR_getrlimit,
    __NR_getrusage,
    __NR_times,
    __NR_getcpu,
    __NR_ppoll,
    __NR_pselect6,
    __NR_epoll_create1,
    __NR_epoll_ctl,
    __NR_epoll_pwait,
    __NR_pidfd_open,
    __NR_wait4,
    __NR_waitid,
#ifdef __NR_rseq
    __NR_rseq,
#endif
    /* sockets that are already open: one leads to the helper that has the network */
    __NR_sendmsg,
    __NR_recvmsg,
    __NR_sendto,
    __NR_recvfrom,
    __NR_shutdown,
    __NR_getsockopt,
};

/* Calls that no reader makes by accident. */
static const int trapped[] = {
    __NR_execve,
    __NR_execveat,
    __NR_socket,
    __NR_socketpair,
    __NR_connect,
    __NR_bind,
    __NR_listen,
    __NR_accept,
    __NR_accept4,
    __NR_ptrace,
    __NR_process_vm_readv,
    __NR_process_vm_writev,
    __NR_kcmp,
    __NR_bpf,
    __NR_perf_event_open,
    __NR_mount,
    __NR_umount2,
    __NR_pivot_root,
    __NR_chroot,
    __NR_unshare,
    __NR_setns,
    __NR_init_module,
    __NR_finit_module,
    __NR_delete_module,
    __NR_reboot,
    __NR_keyctl,
    __NR_add_key,
    __NR_request_key,
    __NR_open_by_handle_at,
    __NR_mknodat,
    __NR_setuid,
    __NR_setgid,
    __NR_setresuid,
    __NR_setresgid,
    __NR_userfaultfd,
#ifdef __NR_fork
    __NR_fork,
    __NR_vfork,
    __NR_mknod,
#endif
#ifdef __NR_kexec_load
    __NR_kexec_load,
#endif
#ifdef __NR_io_uring_setup
    __NR_io_uring_setup,
#endif
#ifdef __NR_pidfd_getfd
    __NR_pidfd_getfd,
#endif
};

/* Requests of ioctl() that only query: a terminal's size, an inode's generation. */
static const uint32_t asking[] = {TCGETS, TIOCGWINSZ, FIONREAD, TIOCGPGRP,
                                  0x80087601 /* FS_IOC_GETVERSION */};
/* The same, and setting a terminal's modes, but not typing into it (TIOCSTI). */
static const uint32_t of_terminal[] = {TCGETS, TIOCGWINSZ, FIONREAD, TIOCGPGRP,
                                       TCSETS, TCSETSW,    TCSETSF,  TCFLSH};
static const uint32_t of_prctl[] = {PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE,
                                    0x53564d41 /* PR_SET_VMA */};

/* ---- the program ---- */

typedef VECTOR(struct sock_filter) program;

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_LOW(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))

static void add(program *p, struct sock_filter statement) {
    vector_push(p, statement);
}

/* If the loaded number is `number`, return `answer`. */
static void add_case(program *p, uint32_t number, uint32_t answer) {
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    add(p, (struct sock_filter)ANSWER(answer));
}

/* If the loaded number is `number`: allow the call if the low half of an argument is one of `values`, otherwise return `answer`. */
static void add_argument(program *p, int number, unsigned argument, const uint32_t *values,
                         size_t count, uint32_t otherwise) {
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0,
                                        (uint8_t)(2 * count + 2)));
    add(p, (struct sock_filter)LOAD_LOW(argument));
    for (size_t i = 0; i < count; i++)
        add_case(p, values[i], SECCOMP_RET_ALLOW);
    add(p, (struct sock_filter)ANSWER(otherwise));
}

/* Allow creating a thread, not a process. With clone3 the flags are in memory, where the filter can't read them; the C library then falls
   back to clone. */
static void add_clone(program *p, uint32_t otherwise) {
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 4));
    add(p, (struct sock_filter)LOAD_LOW(0));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1));
    add(p, (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW));
    add(p, (struct sock_filter)ANSWER(otherwise));
}

/* The numbers of another architecture mean other calls, and so do those of x32. */
static void add_architecture(program *p) {
    add(p, (struct sock_filter)LOAD(arch));
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add(p, (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
    add(p, (struct sock_filter)LOAD(nr));
    add_case(p, (uint32_t)-1, SECCOMP_RET_ALLOW); /* a call that a tracer cancelled */
#ifdef __x86_64__
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
    add(p, (struct sock_filter)ANSWER(SECCOMP_RET_KILL_PROCESS));
#endif
}

static const int of_sanitizer[] = {__NR_ptrace,    __NR_clone,           __NR_prctl,
                                   __NR_kill,      __NR_tgkill,          __NR_setrlimit,
                                   __NR_prlimit64, __NR_process_vm_readv};

/* ---- numbers and their answers ---- */

enum { NUMBERS_MOST = 1024 }; /* no architecture has this many; larger numbers do not exist */

/* From this number up to that of the next range. */
struct range {
    uint32_t first;
    uint32_t answer;
};

typedef VECTOR(struct range) ranges;

static void set_answers(uint32_t *answers, const int *numbers, size_t count, uint32_t answer) {
    for (size_t i = 0; i < count; i++)
        if (numbers[i] >= 0 && numbers[i] < NUMBERS_MOST)
            answers[numbers[i]] = answer;
}

static void ranges_of(ranges *all, const uint32_t *answers) {
    for (uint32_t i = 0; i < NUMBERS_MOST; i++)
        if (i == 0 || answers[i] != answers[i - 1])
            vector_push(all, ((struct range){i, answers[i]}));
}

/* Search by halves: the kernel runs a new program for every possible number, which would take as long as the rest of entering if each were
   compared with all before it. */
static void add_search(program *p, const struct range *all, size_t count) {
    enum { LEFT_MOST = 128 }; /* a jump reaches at most the 255 statements that these take */
    if (count == 1) {
        add(p, (struct sock_filter)ANSWER(all->answer));
        return;
    }
    size_t half = count / 2 < LEFT_MOST ? count / 2 : LEFT_MOST, jump = p->count;
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, all[half].first, 0, 0));
    add_search(p, all, half);
    p->items[jump].jt = (uint8_t)(p->count - jump - 1);
    add_search(p, all + half, count - half);
}

static void add_numbers(program *p, uint32_t attack, uint32_t absent) {
    uint32_t answers[NUMBERS_MOST];
    ranges all = {0};
    for (size_t i = 0; i < NUMBERS_MOST; i++)
        answers[i] = absent;
    set_answers(answers, trapped, COUNT_OF(trapped), attack);
    set_answers(answers, allowed, COUNT_OF(allowed), SECCOMP_RET_ALLOW);
    ranges_of(&all, answers);
    add_search(p, all.items, all.count);
    vector_release(&all);
}

static void program_write(program *p, bool terminal) {
    const uint32_t absent = SECCOMP_RET_ERRNO | ENOSYS, refused = SECCOMP_RET_ERRNO | EPERM;
    const uint32_t attack = IS_SANITIZED ? refused : SECCOMP_RET_TRAP;
    const uint32_t none = 0, self = (uint32_t)getpid();
    add_architecture(p);
    for (size_t i = 0; IS_SANITIZED && i < COUNT_OF(of_sanitizer); i++)
        add_case(p, (uint32_t)of_sanitizer[i], SECCOMP_RET_ALLOW);
    add_clone(p, attack);
    if (terminal)
        add_argument(p, __NR_ioctl, 1, of_terminal, COUNT_OF(of_terminal), refused);
    else
        add_argument(p, __NR_ioctl, 1, asking, COUNT_OF(asking), refused);
    add_argument(p, __NR_prctl, 0, of_prctl, COUNT_OF(of_prctl), refused);
    add_argument(p, __NR_kill, 0, &self, 1, refused);
    add_argument(p, __NR_tgkill, 0, &self, 1, refused);
    add_argument(p, __NR_prlimit64, 2, &none, 1, refused); /* to ask, not to set */
    add_numbers(p, attack, absent);
}

/* ---- the trap handler ---- */

struct line {
    char bytes[160];
    size_t count;
};

static void put(struct line *line, const char *words) {
    while (*words && line->count < sizeof line->bytes)
        line->bytes[line->count++] = *words++;
}

/* Use only what is safe in a signal handler. */
static void on_trap(int signal, siginfo_t *info, void *context) {
    struct line line = {0};
    char digits[12] = {0}, *digit = digits + sizeof digits - 1;
    for (unsigned number = (unsigned)info->si_syscall; number || !*digit; number /= 10)
        *--digit = (char)('0' + number % 10);
    put(&line, "wick: ended by its sandbox: reading made system call ");
    put(&line, digit);
    put(&line, ", which no parser needs; the input may be an attack\n");
    (void)!write(STDERR_FILENO, line.bytes, line.count);
    out_remove_temporaries();
    _exit(ERROR_INTERNAL);
}

bool syscalls_restrict(bool terminal) {
    program p = {0};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    program_write(&p, terminal);
    struct sock_fprog filter = {.len = (unsigned short)p.count, .filter = p.items};
    sigaction(SIGSYS, &action, NULL);
    bool fine =
        syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
    vector_release(&p);
    return fine;
}

#else

bool syscalls_restrict(bool terminal) {
    return false;
}

#endif
