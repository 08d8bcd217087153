/*
 * Does what makes it hard to be recorded, then allocates 100 blocks of 1000 bytes, which it keeps (site_kept), and prints "done".
 * usage: heap_odd closefrom|seccomp|chroot DIR|threads N|spawn PROGRAM|vfork PROGRAM|handler|wait FILE|stack|alike N
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SITE __attribute__((noinline, noclone))
extern char **environ;

static void *volatile sink;

SITE void site_kept(void) {
    sink = malloc(1000);
}

SITE void site_thread(void) {
    void *p = malloc(100);
    sink = p;
    free(p);
}

static void *thread_main(void *unused) {
    site_thread();
    return unused;
}

static int threads(int count) {
    enum { AT_ONCE = 100 };
    pthread_t made[AT_ONCE];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    for (int done = 0; done < count; done += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++)
            if (pthread_create(&made[i], &small, thread_main, NULL) != 0)
                return 1;
        for (int i = 0; i < AT_ONCE; i++)
            pthread_join(made[i], NULL);
    }
    return 0;
}

/* Ends the process if it connects to anything or opens a file. */
static int filter_calls(void) {
#define REFUSE(call)                                                                               \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),                                               \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        REFUSE(SYS_socket),
        REFUSE(SYS_connect),
        REFUSE(SYS_openat),
        REFUSE(SYS_process_vm_readv),
        REFUSE(SYS_kill),
        REFUSE(SYS_mmap),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int spawn(char *program, int by_vfork) {
    char *words[] = {program, NULL};
    pid_t child;
    int status;
    if (by_vfork) {
        child = vfork();
        if (child == 0) {
            execv(program, words);
            _exit(127);
        }
    } else if (posix_spawn(&child, program, NULL, NULL, words, environ) != 0)
        return 1;
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 7;
}

static void handler(int signal) {
    (void)signal;
    site_thread();
}

/* A handler that allocates, on a stack of its own, between calls of malloc(). */
static int handle(void) {
    static char room[64 << 10];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
        return 1;
    for (int i = 0; i < 50; i++)
        raise(SIGUSR1);
    return 0;
}

static ucontext_t main_context, other;

static void on_other_stack(void) {
    for (int i = 0; i < 50; i++)
        site_thread();
}

static int switch_stack(void) {
    static char room[64 << 10];
    if (getcontext(&other))
        return 1;
    other.uc_stack.ss_sp = room;
    other.uc_stack.ss_size = sizeof room;
    other.uc_link = &main_context;
    makecontext(&other, on_other_stack, 0);
    return swapcontext(&main_context, &other);
}

/* Allocates until it may go on, and long enough that a ring would be full. */
static int wait_for(const char *file) {
    for (int i = 0; access(file, F_OK) != 0; i++) {
        site_thread();
        if (i % 1000 == 0)
            usleep(1000);
    }
    for (int i = 0; i < 300000; i++)
        site_thread();
    return 0;
}

/* One place that allocates, reached in ways whose stacks look alike: at the same depth, and with what earlier calls left in places that nobody writes. */
SITE void place(void) {
    void *block = malloc(40);
    sink = block;
    free(block);
}

SITE void narrow(void) {
    place();
    sink = NULL;
}

SITE void twin(void) {
    place();
    sink = NULL;
}

SITE void wide(void) {
    void *unwritten[16];
    sink = unwritten;
    place();
    sink = unwritten;
}

/* So often times 2, 2 and 3. */
static int alike(int rounds) {
    static void (*const ways[])(void) = {narrow, twin, wide, twin, wide, narrow, wide};
    for (int i = 0; i < rounds * 7; i++)
        ways[i % 7]();
    return 0;
}

int main(int argc, char **argv) {
    const char *how = argv[1], *what = argc > 2 ? argv[2] : "";
    int failed = strcmp(how, "closefrom") == 0 ? (int)syscall(SYS_close_range, 3, ~0u, 0)
                 : strcmp(how, "seccomp") == 0 ? filter_calls()
                 : strcmp(how, "chroot") == 0  ? chroot(what) || chdir("/")
                 : strcmp(how, "threads") == 0 ? threads(atoi(what))
                 : strcmp(how, "spawn") == 0   ? spawn(argv[2], 0)
                 : strcmp(how, "vfork") == 0   ? spawn(argv[2], 1)
                 : strcmp(how, "handler") == 0 ? handle()
                 : strcmp(how, "stack") == 0   ? switch_stack()
                 : strcmp(how, "alike") == 0   ? alike(atoi(what))
                 : strcmp(how, "wait") == 0    ? wait_for(what)
                                               : 1;
    if (failed) {
        fprintf(stderr, "%s: %s\n", how, strerror(errno));
        return 1;
    }
    for (int i = 0; i < 100; i++)
        site_kept();
    puts("done");
    return 7;
}
