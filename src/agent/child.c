/*
 * Confined children: start wick again with only the channel open, enter the sandbox, answer requests until the channel closes.
 *
 * A child executes wick instead of continuing in a copy of the agent, because another thread of the agent may hold a lock at that moment (of
 * the C library or a sanitizer) that nothing in the copy would ever release. It gets the agent's settings in a file in memory.
 *
 * Nothing from a child is trusted: an answer is one datagram of fixed size, and its text is escaped when it is printed. A child that ends, is
 * killed, or spends too much time on one request is reaped, and the caller gets the reason; it may start another.
 */
#include "agent/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHANNEL = 3, SETTINGS, FREE, TEMPORARIES = 2, LOOK_MS = 500, END_MS = 1000 };
#define ROLE "WICK_AGENT_CHILD"

extern char **environ;

/* ---- messages ---- */

bool child_send(int channel, const struct child_message *message, const int *descriptors,
                size_t count) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(CHILD_DESCRIPTORS * sizeof(int))];
    } control = {0};
    struct iovec piece = {(void *)message, sizeof *message};
    struct msghdr header = {.msg_iov = &piece, .msg_iovlen = 1};
    assert(count <= CHILD_DESCRIPTORS);
    if (count) {
        header.msg_control = control.room;
        header.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(channel, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)sizeof *message;
}

/* Keep the first descriptors that arrived, and close the rest. */
static void take_descriptors(struct msghdr *header, int descriptors[CHILD_DESCRIPTORS]) {
    size_t kept = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = 0; at + CMSG_LEN(sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(c) + at, sizeof descriptor);
            if (kept < CHILD_DESCRIPTORS)
                descriptors[kept++] = descriptor;
            else
                close(descriptor);
        }
    }
}

bool child_receive(int channel, struct child_message *message, int descriptors[CHILD_DESCRIPTORS]) {
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(CHILD_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec piece = {message, sizeof *message};
    struct msghdr header;
    ssize_t size;
    for (size_t i = 0; i < CHILD_DESCRIPTORS; i++)
        descriptors[i] = -1;
    do {
        header = (struct msghdr){.msg_iov = &piece,
                                 .msg_iovlen = 1,
                                 .msg_control = control.room,
                                 .msg_controllen = sizeof control.room};
        size = recvmsg(channel, &header, MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size >= 0)
        take_descriptors(&header, descriptors);
    message->text[sizeof message->text - 1] = 0;
    return size == (ssize_t)sizeof *message;
}

void child_close(int descriptors[CHILD_DESCRIPTORS]) {
    for (size_t i = 0; i < CHILD_DESCRIPTORS; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

/* ---- files ---- */

int child_file(struct error *error) {
    int descriptor = memfd_create("wick-tree", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0)
        error_errno(error, "memfd_create");
    return descriptor;
}

bool child_file_seal(int descriptor, uint64_t most, struct error *error) {
    struct stat status;
    if (fcntl(descriptor, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) ||
        fstat(descriptor, &status) != 0)
        return error_errno(error, "a tree");
    return (uint64_t)status.st_size <= most ||
           error_set(error, ERROR_INPUT, "a tree of more than %llu MB",
                     (unsigned long long)most >> 20);
}

/* ---- in the child ---- */

/* A terminal and systemd signal the whole group. The agent itself ends its children when it is done with them. */
static void ignore_signals(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t none;
    for (size_t i = 0; i < COUNT_OF(signals); i++)
        signal(signals[i], SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A file that makes a parser allocate without limit costs a window, not the machine. */
static void limit_memory(uint64_t bytes) {
#ifndef __SANITIZE_ADDRESS__
    setrlimit(RLIMIT_DATA, &(struct rlimit){bytes, bytes});
#endif
}

_Noreturn void child_serve(const struct child_plan *plan) {
    struct sandbox_facts facts;
    close(SETTINGS);
    fcntl(CHANNEL, F_SETFD, FD_CLOEXEC);
    ignore_signals();
    if (plan->memory)
        limit_memory(plan->memory);
    if (plan->prepare)
        plan->prepare(plan->context);
    if (!plan->no_sandbox)
        sandbox_enter(&(struct sandbox_options){.write = plan->write,
                                                .write_count = plan->write_count,
                                                .temporaries = TEMPORARIES},
                      &facts);
    if (plan->confined)
        plan->confined();
    plan->run(plan->context, CHANNEL);
    _exit(0);
}

const char *agent_child_role(void) {
    return getenv(ROLE);
}

/* ---- in the agent ---- */

/* Return the settings as a file in memory, or -1 and set *error. */
static int settings_open(const struct agent_options *options, struct error *error) {
    struct buffer text = {0};
    agent_describe(options, &text);
    int descriptor = memfd_create("wick-agent", MFD_CLOEXEC);
    bool fine = descriptor >= 0 && write(descriptor, text.items, text.count) == (ssize_t)text.count;
    buffer_release(&text);
    if (fine)
        return descriptor;
    error_errno(error, "memfd_create");
    if (descriptor >= 0)
        close(descriptor);
    return -1;
}

/* Return the environment with the child's role added; free() it. */
static char **environment_with(char *role) {
    size_t count = 0;
    while (environ[count])
        count++;
    char **all = memory_zero(count + 2, sizeof *all);
    all[0] = role;
    memcpy(all + 1, environ, count * sizeof *all);
    return all;
}

/* Return the path of this program in `path`. A process is called after the last part of the path that it was executed by, and `exe` would tell
   nobody what it is. If the program was replaced meanwhile, the running one is executed. */
static const char *own_path(char *path, size_t size) {
    static const char self[] = "/proc/self/exe";
    struct stat own, there;
    ssize_t length = readlink(self, path, size - 1);
    path[length > 0 ? length : 0] = 0;
    bool same = length > 0 && stat(self, &own) == 0 && stat(path, &there) == 0 &&
                own.st_dev == there.st_dev && own.st_ino == there.st_ino;
    return same ? path : self;
}

/* Runs between fork and exec: nothing here may allocate or take a lock. */
_Noreturn static void child_execute(const char *program, const int *descriptors, pid_t parent,
                                    char *const *words, char *const *environment) {
    int above[2];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    for (int i = 0; i < 2; i++)
        above[i] = fcntl(descriptors[i], F_DUPFD, FREE);
    for (int i = 0; i < 2; i++)
        if (above[i] < 0 || dup2(above[i], CHANNEL + i) < 0)
            _exit(126);
    syscall(SYS_close_range, FREE, ~0u, 0);
    execve(program, words, environment);
    _exit(127);
}

bool child_start(struct child *child, const struct agent_options *options, const char *role,
                 struct error *error) {
    char path[PATH_MAX], variable[64], file[] = "/proc/self/fd/4", config[] = "--config",
                                       free_[] = "--no-sandbox";
    char wick[] = "wick", agent[] = "agent";
    char *const words[] = {wick, agent, config, file, options->no_sandbox ? free_ : NULL, NULL};
    static_assert(SETTINGS == 4, "as in `file`");
    int ends[2], settings = settings_open(options, error);
    if (settings < 0)
        return false;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        error_errno(error, "socketpair");
        close(settings);
        return false;
    }
    snprintf(variable, sizeof variable, ROLE "=%s", role);
    char **environment = environment_with(variable);
    const char *program = own_path(path, sizeof path);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child_execute(program, (int[]){ends[1], settings}, parent, words, environment);
    int why = errno;
    free(environment);
    close(settings);
    close(ends[1]);
    if (pid < 0) {
        errno = why;
        error_errno(error, "fork");
        close(ends[0]);
        return false;
    }
    child->channel = ends[0];
    child->pid = pid;
    return true;
}

bool child_lives(const struct child *child) {
    return child->pid > 0;
}

uint64_t child_cpu(const struct child *child) {
    struct timespec spent;
    clockid_t clock;
    pid_t pid = child->pid;
    if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &spent) != 0)
        return 0;
    return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

static int reap(struct child *child) {
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close(child->channel);
    *child = (struct child){0};
    return status;
}

/* The child broke the protocol: make sure that it ends, and report how. */
static bool is_lost(struct child *child, const char *why, struct error *error) {
    struct pollfd end = {.fd = child->channel, .events = POLLIN};
    if (why || poll(&end, 1, END_MS) <= 0 || !(end.revents & POLLHUP))
        kill(child->pid, SIGKILL);
    int status = reap(child);
    if (why)
        return error_set(error, ERROR_INTERNAL, "its reader %s and was killed", why);
    if (WIFSIGNALED(status))
        return error_set(error, ERROR_INTERNAL, "its reader was ended by signal %d",
                         WTERMSIG(status));
    return error_set(error, ERROR_INTERNAL, "its reader ended with status %d", WEXITSTATUS(status));
}

/* Return NULL when there is an answer or the channel is closed, otherwise the reason to stop waiting. */
static const char *wait_for_answer(const struct child *child, const struct child_patience *patience,
                                   const struct context *context) {
    struct pollfd answer = {.fd = child->channel, .events = POLLIN};
    uint64_t began = agent_now(CLOCK_MONOTONIC), spent = child_cpu(child);
    while (poll(&answer, 1, LOOK_MS) <= 0) {
        if (context_cancelled(context))
            return "was not needed any more";
        if (patience->cpu && child_cpu(child) - spent > patience->cpu)
            return "took too long";
        if (patience->wall && agent_now(CLOCK_MONOTONIC) - began > patience->wall)
            return "did not answer";
    }
    return NULL;
}

bool child_ask(struct child *child, struct child_message *message, const int *descriptors,
               size_t count, const struct child_patience *patience, const struct context *context,
               struct error *error) {
    int unwanted[CHILD_DESCRIPTORS];
    if (!child_send(child->channel, message, descriptors, count))
        return is_lost(child, NULL, error);
    const char *why = wait_for_answer(child, patience, context);
    if (why)
        return is_lost(child, why, error);
    bool fine = child_receive(child->channel, message, unwanted);
    child_close(unwanted);
    return fine || is_lost(child, NULL, error);
}

void child_end(struct child *child) {
    struct timespec moment = {0, 10000000};
    if (!child_lives(child))
        return;
    shutdown(child->channel, SHUT_RDWR);
    siginfo_t info = {0};
    for (int waited = 0; waited < END_MS; waited += 10) {
        if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid)
            break;
        nanosleep(&moment, NULL);
    }
    if (!info.si_pid)
        kill(child->pid, SIGKILL);
    reap(child);
}
