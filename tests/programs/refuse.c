/*
 * Runs a command where system calls are refused, as containers and old kernels do.
 *
 *     refuse EPERM perf_event_open[,ptrace] COMMAND…    these fail with that error
 *     refuse old perf_event_open COMMAND…               flags of perf_event_attr that came after Linux 4.0 are EINVAL
 *     refuse small perf_event_open COMMAND…             the same with E2BIG
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int number_of(const char *name) {
    if (strcmp(name, "perf_event_open") == 0)
        return SYS_perf_event_open;
    if (strcmp(name, "ptrace") == 0)
        return SYS_ptrace;
    if (strcmp(name, "process_vm_readv") == 0)
        return SYS_process_vm_readv;
    if (strcmp(name, "close_range") == 0)
        return SYS_close_range;
    fprintf(stderr, "refuse: %s?\n", name);
    exit(125);
}

/* `action` for these system calls, all others as ever. Gives the listener where the action is to ask one. */
static int install(char *names, unsigned action, unsigned flags) {
    struct sock_filter filter[20];
    unsigned short count = 0;
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *name = strtok(names, ","); name && count < 17; name = strtok(NULL, ",")) {
        filter[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number_of(name), 0, 1);
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void send_file(int socket, int file) {
    char byte = 0, space[CMSG_SPACE(sizeof file)] = {0};
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(header), &file, sizeof file);
    sendmsg(socket, &message, 0);
}

static int receive_file(int socket) {
    int file = -1;
    char byte, space[CMSG_SPACE(sizeof file)];
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    if (recvmsg(socket, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
        memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    return file;
}

/* What a kernel says that does not know these flags: 0, or an error. */
static int judge(const struct seccomp_notif *asked, int error) {
    struct perf_event_attr attr;
    struct iovec local = {&attr, sizeof attr}, remote = {(void *)(unsigned long)asked->data.args[0], sizeof attr};
    if (process_vm_readv((pid_t)asked->pid, &local, 1, &remote, 1, 0) != sizeof attr)
        return EFAULT;
    return attr.build_id || attr.ksymbol || attr.bpf_event || attr.use_clockid ? error : 0;
}

static int answer_until_end(int listener, pid_t child, int error) {
    int status = 0;
    while (waitpid(child, &status, WNOHANG) != child) {
        struct seccomp_notif asked;
        memset(&asked, 0, sizeof asked);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0)
            continue; /* SIGCHLD, or whoever asked is gone */
        struct seccomp_notif_resp said = {.id = asked.id, .error = -judge(&asked, error)};
        if (!said.error)
            said.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &said);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int refuse_flags(char **argv, int error) {
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        return 125;
    pid_t child = fork();
    if (child == 0) {
        int listener = install(argv[2], SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
        if (listener < 0)
            _exit(125);
        send_file(sockets[1], listener);
        close(listener);
        close(sockets[0]);
        close(sockets[1]);
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    close(sockets[1]);
    int listener = receive_file(sockets[0]);
    return listener < 0 ? 125 : answer_until_end(listener, child, error);
}

static void on_child(int signal) { (void)signal; }

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int number;
    } errors[] = {{"EPERM", EPERM}, {"EACCES", EACCES}, {"ENOSYS", ENOSYS}, {"EMFILE", EMFILE}};
    if (argc < 4)
        return 125;
    struct sigaction action = {.sa_handler = on_child}; /* no SA_RESTART: it ends the wait for questions */
    sigaction(SIGCHLD, &action, NULL);
    if (strcmp(argv[1], "old") == 0)
        return refuse_flags(argv, EINVAL);
    if (strcmp(argv[1], "small") == 0)
        return refuse_flags(argv, E2BIG);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (strcmp(argv[1], errors[i].name) != 0)
            continue;
        signal(SIGCHLD, SIG_DFL);
        if (install(argv[2], SECCOMP_RET_ERRNO | (unsigned)errors[i].number, 0) < 0)
            return 125;
        execvp(argv[3], argv + 3);
        return 127;
    }
    return 125;
}
