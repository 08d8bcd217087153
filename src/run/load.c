/*
 * The load beside a recording: a shell command in its own process group, under a keeper.
 *
 * The keeper is a child of wick that outlives the command and waits until wick's end of a pipe is closed. wick closes it when the recording
 * is over, and the kernel closes it however wick ends. The keeper then sends SIGTERM to everything that the command started, and SIGKILL two
 * seconds later: to its group, and to processes that left the group, which become the keeper's children when their parents exit. So nothing
 * is left running, whatever happens to wick. The command's status comes back through a second pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "run/run.h"

enum { PATIENCE = 40 }; /* twentieths of a second from SIGTERM to SIGKILL */

static void pause_briefly(void) {
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

/* ---- the keeper: only what is safe after fork() in a program with threads ---- */

/* Processes below the command that lost their parent become the keeper's children, so "no child left" means that all of them ended. */
static bool keeper_reap(pid_t command, int told) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == command)
            (void)!write(told, &status, sizeof status);
    return pid < 0 && errno == ECHILD;
}

/* Signal the keeper's own children as the kernel lists them; the list is empty without CONFIG_PROC_CHILDREN. */
static void keeper_signal_children(int signal, bool group_too) {
    char text[4096];
    int list = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    ssize_t length = list < 0 ? 0 : read(list, text, sizeof text);
    pid_t pid = 0;
    for (ssize_t i = 0; i < length; i++) { /* "12 345 " */
        if (text[i] >= '0' && text[i] <= '9') {
            pid = pid * 10 + text[i] - '0';
            continue;
        }
        if (pid > 1 && (group_too || getpgid(pid) != getpgrp()))
            kill(pid, signal);
        pid = 0;
    }
    if (list >= 0)
        close(list);
}

static void keeper_end_all(pid_t command, int told) {
    kill(0, SIGTERM);
    for (int tries = 0; tries < 2 * PATIENCE; tries++) {
        if (keeper_reap(command, told))
            _exit(0);
        if (tries < PATIENCE)
            keeper_signal_children(SIGTERM, false);
        else
            keeper_signal_children(SIGKILL, true);
        pause_briefly();
    }
    kill(0, SIGKILL); /* itself, too */
    _exit(0);
}

/* The command's output goes to the log, if there is one. Its input is empty, because the terminal belongs to wick. */
static void command_main(const char *line, int log, const sigset_t *before) {
    int empty = open("/dev/null", O_RDONLY);
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, before, NULL);
    if (empty >= 0)
        dup2(empty, STDIN_FILENO);
    if (log >= 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
    }
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
}

static void keeper_main(const char *line, int log, int wick_lives, int told) {
    sigset_t child, before;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN); /* the keeper sends SIGTERM to its own group */
    struct signalfd_siginfo what;
    struct pollfd polled[] = {{.fd = wick_lives},
                              {.fd = signalfd(-1, &child, SFD_CLOEXEC), .events = POLLIN}};
    pid_t command = fork();
    if (command == 0)
        command_main(line, log, &before);
    while (!polled[0].revents) { /* POLLHUP: wick's end is closed */
        if (poll(polled, COUNT_OF(polled), -1) > 0 && polled[1].revents & POLLIN &&
            read(polled[1].fd, &what, sizeof what) == sizeof what)
            keeper_reap(command, told);
    }
    keeper_end_all(command, told);
}

/* ---- wick's side ---- */

static bool open_pipes(int lives[2], int told[2], struct error *error) {
    if (pipe2(lives, O_CLOEXEC) != 0)
        return error_errno(error, "--load");
    if (pipe2(told, O_CLOEXEC) == 0)
        return true;
    close(lives[0]);
    close(lives[1]);
    return error_errno(error, "--load");
}

bool load_start(struct load *load, const char *line, int log, struct error *error) {
    int lives[2], told[2];
    *load = (struct load){.line = line, .lives = -1, .told = -1, .status = -1};
    if (!open_pipes(lives, told, error))
        return false;
    load->keeper = fork();
    if (load->keeper == 0) {
        close(lives[1]);
        close(told[0]);
        keeper_main(line, log, lives[0], told[1]);
    }
    close(lives[0]);
    close(told[1]);
    load->lives = lives[1];
    load->told = told[0];
    if (load->keeper > 0)
        return true;
    load->keeper = 0;
    error_errno(error, "--load");
    load_end(load);
    return false;
}

bool load_wait(struct load *load, uint64_t nanoseconds) {
    struct timespec limit = {.tv_sec = (time_t)(nanoseconds / 1000000000u),
                             .tv_nsec = (long)(nanoseconds % 1000000000u)};
    struct pollfd ended = {.fd = load->told, .events = POLLIN};
    if (load->status != -1)
        return true;
    if (load->told < 0 || ppoll(&ended, 1, &limit, NULL) <= 0)
        return false;
    if (read(load->told, &load->status, sizeof load->status) != sizeof load->status)
        load->status = -1;
    load->by_itself = load->status != -1;
    return load->by_itself;
}

/* A load that ended before this call ended by itself. */
void load_end(struct load *load) {
    if (load->told >= 0)
        load_wait(load, 0);
    if (load->lives >= 0)
        close(load->lives);
    if (load->keeper > 0)
        while (waitpid(load->keeper, NULL, 0) < 0 && errno == EINTR)
            ;
    if (load->told >= 0)
        close(load->told);
    load->keeper = 0;
    load->lives = load->told = -1;
}

bool load_failed(const struct load *load) {
    return load->by_itself && load->status != 0;
}

void load_describe(const struct load *load, struct buffer *text) {
    if (!load->by_itself)
        buffer_add(text, TEXT("ran until the recording was over"));
    else if (WIFSIGNALED(load->status))
        buffer_printf(text, "was ended by signal %d, not by wick", WTERMSIG(load->status));
    else
        buffer_printf(text, "ended by itself, with status %d", WEXITSTATUS(load->status));
}
