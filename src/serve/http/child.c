/* Children: wick processes that read profiles, with limits on time and output. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "serve/http/server.h"

extern char **environ;

int64_t milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void close_pair(int pair[2]) {
    for (size_t i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

/* Signals are blocked and ignored here, but must not be in children. */
static bool spawn(pid_t *pid, const char *const *words, int in, int out, int err, const int *files,
                  size_t file_count) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
    for (size_t i = 0; i < file_count; i++)
        posix_spawn_file_actions_adddup2(&actions, files[i], FIRST_FILE + (int)i);
    int failed = posix_spawn(pid, words[0], &actions, &attributes, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return !failed;
}

bool child_start(const struct server *server, struct child *child, const char *const *words,
                 const int *files, size_t file_count) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    VECTOR(const char *) all = {0};
    *child = (struct child){0};
    for (size_t i = 0; words[i]; i++) {
        vector_push(&all, words[i]);
        if (i == 1 && server->no_sandbox)
            vector_push(&all, "--no-sandbox");
    }
    vector_push(&all, NULL);
    bool fine = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
                pipe2(err, O_CLOEXEC) == 0 &&
                spawn(&child->pid, all.items, in[0], out[1], err[1], files, file_count);
    vector_release(&all);
    if (!fine) {
        close_pair(in);
        close_pair(out);
        close_pair(err);
        child->pid = 0;
        return false;
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    child->in = in[1];
    child->out = out[0];
    child->err = err[0];
    return true;
}

int child_end(struct child *child, bool kill_it) {
    int status = -1;
    if (!child->pid)
        return -1;
    if (kill_it)
        kill(child->pid, SIGKILL);
    close(child->in);
    close(child->out);
    close(child->err);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
    return status;
}

void said_release(struct said *said) {
    buffer_release(&said->out);
    buffer_release(&said->err);
}

/* Wait in steps of half a second, to notice when the server ends. */
static bool wait_for(const struct server *server, struct pollfd *ends, size_t count, int64_t end) {
    while (!server->ending) {
        int64_t left = end - milliseconds();
        if (left <= 0)
            return false;
        int ready = poll(ends, count, left < 500 ? (int)left : 500);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
    }
    return false;
}

ssize_t child_read(const struct server *server, int descriptor, void *data, size_t size,
                   int64_t end) {
    struct pollfd ready = {descriptor, POLLIN, 0};
    if (!wait_for(server, &ready, 1, end))
        return -1;
    ssize_t got;
    while ((got = read(descriptor, data, size)) < 0 && errno == EINTR)
        ;
    return got < 0 ? 0 : got;
}

static void listen_to(const struct server *server, const struct child *child, size_t most,
                      struct said *said) {
    struct pollfd ends[2] = {{child->out, POLLIN, 0}, {child->err, POLLIN, 0}};
    struct buffer *into[2] = {&said->out, &said->err};
    int64_t end = milliseconds() + (int64_t)server->timeout * 1000;
    char piece[65536];
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        if (!wait_for(server, ends, 2, end)) {
            said->late = true;
            return;
        }
        for (size_t i = 0; i < 2; i++) {
            if (ends[i].fd < 0 || !ends[i].revents)
                continue;
            ssize_t size = read(ends[i].fd, piece, sizeof piece);
            if (size < 0 && errno == EINTR)
                continue;
            if (size <= 0)
                ends[i].fd = -1;
            else if (into[i]->count < (i ? sizeof piece : most))
                buffer_add(into[i], (struct text){piece, (size_t)size});
            else if (i == 0) {
                said->too_much = true;
                return;
            }
        }
    }
}

void child_run(const struct server *server, const char *const *words, const int *files,
               size_t file_count, size_t most, struct said *said) {
    struct child child;
    *said = (struct said){.status = -1};
    if (!child_start(server, &child, words, files, file_count)) {
        buffer_add(&said->err, TEXT("wick could not be started to read this profile"));
        return;
    }
    listen_to(server, &child, most, said);
    int status = child_end(&child, said->late || said->too_much);
    if (!said->late && !said->too_much && WIFEXITED(status))
        said->status = WEXITSTATUS(status);
}
