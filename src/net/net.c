/*
 * The helper process and the pending requests.
 *
 * One waiting thread at a time reads the socket for all: it stores answers for other threads and wakes them. So no
 * extra thread is needed, and a request costs two system calls more than it would in this process.
 */
#include "net/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { LOOK_MS = 100, END_MS = 3000 };

struct net {
    const struct context *context;
    pid_t pid;
    int channel;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct waiting *first;
    uint32_t last_id;
    bool reads;                         /* a thread is reading */
    bool ended;                         /* the helper did */
    uint8_t received[NET_MESSAGE_MOST]; /* by the reading thread */
};

const struct context *net_context(const struct net *net) {
    return net->context;
}

uint64_t net_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- starting and ending ---- */

/* Beside the program (in a build folder), or where it is installed. */
static bool find_helper(char *path, size_t size, struct error *error) {
    static const char name[] = "wick-net";
    char self[800];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = 0;
    char *slash = strrchr(self, '/');
    int directory = slash ? (int)(slash - self) : 0;
    snprintf(path, size, "%.*s/%s", directory, self, name);
    if (slash && access(path, X_OK) == 0)
        return true;
    snprintf(path, size, "%.*s/../libexec/wick/%s", directory, self, name);
    if (slash && access(path, X_OK) == 0)
        return true;
    snprintf(path, size, WICK_LIBEXEC_DIR "/%s", name);
    return access(path, X_OK) == 0 ||
           error_set(error, ERROR_DENIED,
                     "%s: found neither beside wick nor in " WICK_LIBEXEC_DIR
                     "; network access needs it (it is built where libcurl and libdebuginfod are)",
                     name);
}

/* Return the environment with the chosen servers: options override variables. free() it and *servers. */
static char **environment(const char *chosen, char **servers) {
    static const char name[] = "DEBUGINFOD_URLS=";
    struct buffer text = {0};
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **variables = memory_alloc((count + 2) * sizeof *variables);
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], name, sizeof name - 1) != 0)
            variables[kept++] = environ[i];
    buffer_printf(&text, "%s%s", name, chosen ? chosen : "");
    buffer_add_char(&text, 0);
    variables[kept++] = *servers = text.items;
    variables[kept] = NULL;
    return variables;
}

/* It has its own process group: Ctrl-C goes to wick, which then stops it. Its standard streams are closed. */
static bool spawn(struct net *net, const char *path, const struct net_options *options, int theirs,
                  struct error *error) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    char *servers = NULL, *const words[] = {"wick-net", NULL};
    char **variables = environment(options ? options->debuginfod : NULL, &servers);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawn_file_actions_adddup2(&actions, theirs, 3);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    int failed = posix_spawn(&net->pid, path, &actions, &attributes, words, variables);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(variables);
    free(servers);
    errno = failed;
    return failed ? error_errno(error, path) : true;
}

/* The helper uses descriptors 0 to 3, so first move its end of the pair above them. */
static bool make_channel(int ends[2], struct error *error) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return error_errno(error, "socket for wick-net");
    int higher = fcntl(ends[1], F_DUPFD_CLOEXEC, 10);
    close(ends[1]);
    ends[1] = higher;
    if (higher >= 0)
        return true;
    close(ends[0]);
    return error_errno(error, "socket for wick-net");
}

struct net *net_start(const struct net_options *options, const struct context *context,
                      struct error *error) {
    char path[900];
    int ends[2];
    if (!find_helper(path, sizeof path, error) || !make_channel(ends, error))
        return NULL;
    struct net *net = memory_zero(1, sizeof *net);
    net->context = context;
    net->channel = ends[0];
    pthread_mutex_init(&net->lock, NULL);
    pthread_cond_init(&net->changed, NULL);
    bool good = spawn(net, path, options, ends[1], error);
    close(ends[1]);
    if (good)
        return net;
    net_stop(net);
    if (error)
        error->kind = ERROR_DENIED;
    return NULL;
}

/* The helper exits by itself when its socket is closed, after a moment to remove what it was writing. */
static void end_helper(pid_t pid) {
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd ended = {.fd = descriptor, .events = POLLIN};
    bool is_over = descriptor >= 0 && poll(&ended, 1, END_MS) == 1;
    bool is_ended = is_over || kill(pid, SIGKILL) == 0;
    if (descriptor >= 0)
        close(descriptor);
    /* A confined process may not send signals: the helper then exits when it sees that its socket is closed. */
    while (is_ended && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void net_stop(struct net *net) {
    if (!net)
        return;
    close(net->channel);
    if (net->pid > 0 && net->last_id == 0)
        kill(net->pid, SIGKILL); /* it has begun nothing */
    if (net->pid > 0)
        end_helper(net->pid);
    pthread_cond_destroy(&net->changed);
    pthread_mutex_destroy(&net->lock);
    free(net);
}

/* ---- requests and answers ---- */

bool net_ask(struct net *net, struct waiting *waiting, struct net_message *message,
             const struct net_texts *texts, int descriptor, struct error *error) {
    uint8_t *bytes = memory_alloc(NET_MESSAGE_MOST);
    *waiting = (struct waiting){.descriptor = -1};
    pthread_mutex_lock(&net->lock);
    message->magic = NET_MAGIC;
    message->id = waiting->id = ++net->last_id;
    waiting->next = net->first;
    net->first = waiting;
    pthread_mutex_unlock(&net->lock);
    size_t size = net_message_write(message, texts, bytes);
    bool sent = size && net_message_send(net->channel, bytes, size, descriptor);
    free(bytes);
    if (sent)
        return true;
    net_forget(net, waiting);
    return size ? error_set(error, ERROR_DENIED, "wick-net has ended")
                : error_set(error, ERROR_USAGE, "a request of more than %d bytes beside its body",
                            NET_MESSAGE_MOST);
}

void net_forget(struct net *net, struct waiting *waiting) {
    pthread_mutex_lock(&net->lock);
    struct waiting **place = &net->first;
    while (*place && *place != waiting)
        place = &(*place)->next;
    if (*place)
        *place = waiting->next;
    pthread_mutex_unlock(&net->lock);
    if (waiting->descriptor >= 0)
        close(waiting->descriptor);
    waiting->descriptor = -1;
    buffer_release(&waiting->why);
}

void net_sum(struct net *net, uint64_t *done, uint64_t *total) {
    *done = *total = 0;
    pthread_mutex_lock(&net->lock);
    for (const struct waiting *w = net->first; w; w = w->next) {
        *done = saturating_add(*done, w->size);
        *total = saturating_add(*total, w->total);
    }
    pthread_mutex_unlock(&net->lock);
}

/* A body must be a regular file (a memfd is one) of at least the given size. */
static bool holds(int descriptor, uint64_t size) {
    struct stat status;
    return descriptor >= 0 && fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size >= 0 && (uint64_t)status.st_size == size;
}

static void file_answer(struct waiting *waiting, const struct net_message *message,
                        const struct net_texts *texts, int descriptor) {
    int place = message->kind == NET_DONE ? NET_ANSWERED : NET_WHY;
    waiting->over = true;
    waiting->came = message->kind == NET_DONE;
    waiting->status = message->status;
    waiting->size = message->size;
    waiting->descriptor = descriptor;
    buffer_add(&waiting->why, (struct text){texts->data[place], message->lengths[place]});
}

bool net_take_answer(struct waiting *list, const uint8_t *bytes, size_t size, int descriptor) {
    struct net_message message;
    struct net_texts texts;
    struct waiting *found = NULL;
    if (net_message_read(bytes, size, &message, &texts) && message.kind >= NET_PROGRESS)
        for (found = list; found && (found->id != message.id || found->over);)
            found = found->next;
    if (found && message.kind == NET_PROGRESS) {
        found->size = message.size;
        found->total = message.total;
    } else if (found && (message.kind == NET_FAILED || holds(descriptor, message.size))) {
        bool takes = message.kind == NET_DONE;
        file_answer(found, &message, &texts, takes ? descriptor : -1);
        if (takes)
            return true;
    } else {
        found = NULL;
    }
    if (descriptor >= 0)
        close(descriptor);
    return found != NULL;
}

/* Read one message, if one arrives in time. Call it with the lock held; it is released meanwhile. */
static void read_one(struct net *net) {
    struct pollfd ready = {.fd = net->channel, .events = POLLIN};
    int descriptor = -1;
    size_t size = 0;
    net->reads = true;
    pthread_mutex_unlock(&net->lock);
    int found = poll(&ready, 1, LOOK_MS);
    if (found > 0)
        size = net_message_receive(net->channel, net->received, &descriptor);
    pthread_mutex_lock(&net->lock);
    net->reads = false;
    if (found > 0 && size == 0)
        net->ended = true;
    else if (size)
        net_take_answer(net->first, net->received, size, descriptor);
    pthread_cond_broadcast(&net->changed);
}

static void wait_for_reader(struct net *net) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&net->changed, &net->lock, &until);
}

bool net_wait(struct net *net, struct waiting *waiting, uint64_t deadline, bool (*stop)(void *user),
              void *user) {
    pthread_mutex_lock(&net->lock);
    while (!waiting->over && !net->ended && net_now() < deadline &&
           !context_cancelled(net->context)) {
        if (net->reads)
            wait_for_reader(net);
        else
            read_one(net);
        if (stop) {
            pthread_mutex_unlock(&net->lock);
            bool stops = stop(user);
            pthread_mutex_lock(&net->lock);
            if (stops)
                break;
        }
    }
    bool over = waiting->over;
    if (!over && net->ended) {
        buffer_release(&waiting->why);
        buffer_printf(&waiting->why, "wick-net has ended");
    }
    pthread_mutex_unlock(&net->lock);
    return over;
}
