/* usage: old-kernel [-l] [-s] PROGRAM [ARGUMENTS…]: runs it where the kernel has no Landlock (-l) and no seccomp filters (-s). */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int landlock = 1, seccomp = 1, option;
    while ((option = getopt(argc, argv, "+ls")) != -1)
        option == 'l' ? (landlock = 0) : (seccomp = 0);
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, landlock ? 0xffff : 444, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp ? 0xffff : __NR_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof program / sizeof *program, program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return perror("seccomp"), 99;
    execvp(argv[optind], argv + optind);
    perror(argv[optind]);
    return 99;
}
