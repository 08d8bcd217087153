/*
 * Launch the target: the child waits for a byte before it calls exec, so that its events are open and begin to count with its first
 * instruction (enable_on_exec). If exec fails, errno comes back through a pipe that a successful exec closes.
 */
#include "record/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void child_main(const struct recording *r, int go, int failed) {
    const struct record_options *options = r->options;
    char byte;
    ssize_t got;
    if (!options->heap)
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* don't outlive a recorder that is killed */
    do
        got = read(go, &byte, 1);
    while (got < 0 && errno == EINTR);
    if (got != 1)
        _exit(0); /* the parent gave up */
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    if (options->target_output) {
        dup2(options->target_output - 1, STDOUT_FILENO);
        dup2(options->target_output - 1, STDERR_FILENO);
    } else if (!options->window && strcmp(options->output, "-") == 0)
        dup2(STDERR_FILENO, STDOUT_FILENO); /* wick's standard output carries the recording */
    for (size_t i = 0; i < SETUPS; i++)
        if (r->sink.settings[i])
            putenv(r->sink.settings[i]);
    heap_child(r);
    execvp(options->command[0], options->command);
    int why = errno;
    (void)!write(failed, &why, sizeof why);
    _exit(127);
}

/* Return 0, or the reason as an errno value. */
static int refuse_to_execute(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0)
        return errno;
    if (S_ISDIR(status.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* Look it up as execvp() does: return 0 and its path, or why it was not found. Errors that only exec can detect come back later. */
static int find_name(const char *name, struct buffer *path) {
    const char *list = getenv("PATH");
    if (strchr(name, '/') || !*name) {
        buffer_printf(path, "%s", name);
        buffer_add_char(path, 0);
        return refuse_to_execute(name);
    }
    struct text rest = text_of(list);
    int why = list ? ENOENT : 0; /* then exec knows where to look */
    for (bool more = list; more && why;) {
        size_t colon = text_find(rest, ':');
        struct text folder = colon == SIZE_MAX ? rest : text_upto(rest, colon);
        path->count = 0;
        buffer_printf(path, "%.*s/%s", TEXT_ARGS(folder.length ? folder : TEXT(".")), name);
        buffer_add_char(path, 0);
        int refused = refuse_to_execute(path->items);
        why = !refused || refused == EACCES ? refused : why;
        more = colon != SIZE_MAX;
        rest = more ? text_from(rest, colon + 1) : rest;
    }
    return why;
}

static int refuse_name(const char *name) {
    struct buffer path = {0};
    int why = find_name(name, &path);
    buffer_release(&path);
    return why;
}

char *launch_find(const char *name) {
    struct buffer path = {0};
    if (find_name(name, &path) == 0)
        return path.items;
    buffer_release(&path);
    return NULL;
}

bool launch(struct recording *r, struct error *error) {
    int go[2], failed[2];
    int why = refuse_name(r->options->command[0]);
    if (why)
        return error_set(error, ERROR_USAGE, "%s: %s", r->options->command[0], strerror(why));
    if (pipe2(go, O_CLOEXEC) != 0)
        return error_errno(error, r->options->command[0]);
    if (pipe2(failed, O_CLOEXEC) != 0) {
        close(go[0]);
        close(go[1]);
        return error_errno(error, r->options->command[0]);
    }
    runtime_prepare(r);
    target_adopt_orphans(r);
    r->child = fork();
    if (r->child == 0) {
        close(go[1]);
        close(failed[0]);
        child_main(r, go[0], failed[1]);
    }
    close(go[0]);
    close(failed[1]);
    r->child_go = go[1];
    r->child_failed = failed[0];
    if (r->child < 0) {
        r->child = 0;
        return error_errno(error, r->options->command[0]);
    }
    return true;
}

void launch_begin(struct recording *r) {
    (void)!write(r->child_go, "g", 1);
    close(r->child_go);
    r->child_go = -1;
}

bool launch_began(struct recording *r, struct error *error) {
    int why = 0;
    ssize_t got;
    do
        got = read(r->child_failed, &why, sizeof why);
    while (got < 0 && errno == EINTR);
    return got != sizeof why ||
           error_set(error, ERROR_USAGE, "%s: %s", r->options->command[0], strerror(why));
}

bool launch_go(struct recording *r, struct error *error) {
    launch_begin(r);
    if (launch_began(r, error))
        return true;
    waitpid(r->child, &r->result->target_status, 0);
    r->child = 0;
    return false;
}
