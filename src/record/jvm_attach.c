/* The attach protocol of HotSpot: jcmd PID Compiler.perfmap. */
#include "record/jvm_attach.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static const uint64_t patience = 5000000000; /* nanoseconds to wait for an answer */
static const uint64_t interval = 5000000000; /* between two answers */

void jvm_attach_init(struct jvm_attach *attach) {
    *attach = (struct jvm_attach){.process = -1, .temporary = -1, .place = -1, .socket = -1};
}

static void refuse(struct jvm_attach *attach, const char *why) {
    attach->state = ATTACH_REFUSED;
    attach->refused_by = why;
}

/* ---- permission to ask ---- */

struct process_status {
    uint64_t caught; /* signals */
    uid_t user;
    gid_t group;
    pid_t inner_pid;
    bool is_whole;
};

static struct process_status read_status(pid_t pid) {
    struct buffer bytes = {0};
    uint64_t user, group, caught, inner;
    proc_read(pid, "status", PROC_STATUS_MOST, &bytes);
    struct text status = buffer_text(&bytes);
    bool is_whole = text_to_u64(proc_field(status, TEXT("Uid"), 1), &user) &&
                    text_to_u64(proc_field(status, TEXT("Gid"), 1), &group) &&
                    text_hex_to_u64(proc_field(status, TEXT("SigCgt"), 0), &caught) &&
                    text_to_u64(proc_field(status, TEXT("NSpid"), PROC_LAST), &inner) && inner > 0;
    buffer_release(&bytes);
    return is_whole ? (struct process_status){caught, (uid_t)user, (gid_t)group, (pid_t)inner, true}
                    : (struct process_status){0};
}

/* Whether a file of /proc/PID contains the text; also true if it can't be read completely. */
static bool file_mentions(pid_t pid, const char *name, const char *text) {
    struct buffer bytes = {0};
    bool found = proc_read(pid, name, 1 << 20, &bytes) != PROC_WHOLE ||
                 text_search(buffer_text(&bytes), text_of(text)) != SIZE_MAX;
    buffer_release(&bytes);
    return found;
}

static const char *reason_against(pid_t pid, const struct process_status *status) {
    if (!status->is_whole)
        return "it is gone";
    if (!(status->caught >> (SIGQUIT - 1) & 1))
        return "it has no handler for SIGQUIT";
    if (file_mentions(pid, "cmdline", "DisableAttachMechanism") ||
        file_mentions(pid, "environ", "DisableAttachMechanism") ||
        file_mentions(pid, "cmdline", "ReduceSignalUsage"))
        return "attaching is disabled";
    if (file_mentions(pid, "maps", "/libj9"))
        return "it is not a HotSpot virtual machine";
    return NULL;
}

static int open_directory(pid_t pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool exists(const struct jvm_attach *attach, const char *name, mode_t kind) {
    struct stat status;
    return fstatat(attach->temporary, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           (status.st_mode & S_IFMT) == kind &&
           (status.st_uid == attach->user || status.st_uid == 0);
}

static void socket_name(const struct jvm_attach *attach, char *name, size_t size) {
    snprintf(name, size, ".java_pid%d", attach->inner_pid);
}

static void map_name(const struct jvm_attach *attach, char *name, size_t size) {
    snprintf(name, size, "perf-%d.map", attach->inner_pid);
}

static void asking_name(const struct jvm_attach *attach, char *name, size_t size) {
    snprintf(name, size, ".attach_pid%d", attach->inner_pid);
}

/* ---- asking ---- */

static bool make_asking_file(struct jvm_attach *attach, int directory) {
    char name[40];
    asking_name(attach, name, sizeof name);
    int file = directory < 0 ? -1
                             : openat(directory, name,
                                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool fine = attach->user == geteuid() || fchown(file, attach->user, attach->group) == 0;
    close(file);
    if (!fine)
        unlinkat(directory, name, 0);
    return fine;
}

static void remove_asking_file(struct jvm_attach *attach) {
    char name[40];
    asking_name(attach, name, sizeof name);
    if (attach->has_asked)
        unlinkat(attach->place, name, 0);
    attach->has_asked = false;
}

/* The signal goes to the process that `status` was read from, because its pidfd was opened before. */
static void ask(struct jvm_attach *attach, pid_t pid, uint64_t now) {
    int working = open_directory(pid, "cwd");
    if (make_asking_file(attach, working)) {
        attach->place = working;
    } else {
        if (working >= 0)
            close(working);
        if (!make_asking_file(attach, attach->temporary)) {
            refuse(attach, "no file can be created in its directory");
            return;
        }
        attach->place = dup(attach->temporary);
    }
    attach->has_asked = true;
    attach->state = ATTACH_ASKED;
    attach->deadline = now + patience;
    struct process_status again = read_status(pid);
    if (reason_against(pid, &again) ||
        syscall(SYS_pidfd_send_signal, attach->process, SIGQUIT, NULL, 0) != 0)
        refuse(attach, "it accepts no signal");
}

static void begin(struct jvm_attach *attach, pid_t pid, uint64_t now) {
    char name[40];
    attach->process = (int)syscall(SYS_pidfd_open, pid, 0);
    struct process_status status = read_status(pid);
    const char *against = attach->process < 0 ? "it is gone" : reason_against(pid, &status);
    attach->temporary = open_directory(pid, "root/tmp");
    if (against || attach->temporary < 0) {
        refuse(attach, against ? against : "its /tmp can't be accessed");
        return;
    }
    attach->user = status.user;
    attach->group = status.group;
    attach->inner_pid = status.inner_pid;
    map_name(attach, name, sizeof name);
    if (exists(attach, name, S_IFREG)) {
        refuse(attach, "it has a perf map already");
        return;
    }
    socket_name(attach, name, sizeof name);
    if (exists(attach, name, S_IFSOCK))
        attach->state = ATTACH_ASKED;
    else
        ask(attach, pid, now);
    attach->deadline = now + patience;
}

/* ---- the socket ---- */

/* Connect through the open directory: its path may be too long for a socket's address, or in another namespace. */
static bool connect_socket(struct jvm_attach *attach, pid_t pid) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t size = sizeof peer;
    char name[40];
    socket_name(attach, name, sizeof name);
    if (!exists(attach, name, S_IFSOCK))
        return false;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", attach->temporary,
             name);
    attach->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attach->socket >= 0 &&
        connect(attach->socket, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockopt(attach->socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == pid)
        return true;
    if (attach->socket >= 0)
        close(attach->socket);
    attach->socket = -1;
    return false;
}

/* Send the version, the command and three arguments, each NUL-terminated. */
static void request(struct jvm_attach *attach, pid_t pid, uint64_t now) {
    static const char words[] = "1\0jcmd\0Compiler.perfmap\0\0";
    if (connect_socket(attach, pid)) {
        remove_asking_file(attach);
        attach->answered = 0;
        attach->deadline = now + patience;
        attach->state = ATTACH_SENT;
        attach->has_written = true;
        if (send(attach->socket, words, sizeof words, MSG_NOSIGNAL) != (ssize_t)sizeof words)
            refuse(attach, "it accepts no command");
    } else if (now >= attach->deadline) {
        refuse(attach, "it did not answer");
    }
}

/* The answer begins with the status, 0 for success, and ends when the JVM closes its side. */
static void answer(struct jvm_attach *attach, uint64_t now) {
    char bytes[4096];
    ssize_t got = recv(attach->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0 && !attach->answered && bytes[0] != '0')
        refuse(attach, "it knows no Compiler.perfmap");
    if (got > 0)
        attach->answered += (size_t)got;
    if (got == 0 && attach->answered) {
        attach->state = ATTACH_ANSWERED;
        attach->next = now + interval;
    } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        refuse(attach, "it closed the connection");
    }
    if (attach->state == ATTACH_SENT && now >= attach->deadline)
        refuse(attach, "it did not answer");
    if (attach->state != ATTACH_SENT) {
        close(attach->socket);
        attach->socket = -1;
    }
}

void jvm_attach_turn(struct jvm_attach *attach, pid_t pid, uint64_t now) {
    if (attach->state == ATTACH_NOT_YET)
        begin(attach, pid, now);
    if (attach->state == ATTACH_ANSWERED && now >= attach->next) {
        attach->state = ATTACH_ASKED;
        attach->deadline = now + patience;
    }
    if (attach->state == ATTACH_ASKED)
        request(attach, pid, now);
    if (attach->state == ATTACH_SENT)
        answer(attach, now);
    if (attach->state == ATTACH_REFUSED)
        remove_asking_file(attach);
}

void jvm_attach_release(struct jvm_attach *attach) {
    char name[40];
    remove_asking_file(attach);
    map_name(attach, name, sizeof name);
    if (attach->has_written && exists(attach, name, S_IFREG))
        unlinkat(attach->temporary, name, 0);
    const int descriptors[] = {attach->process, attach->temporary, attach->place, attach->socket};
    for (size_t i = 0; i < COUNT_OF(descriptors); i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
    jvm_attach_init(attach);
}
