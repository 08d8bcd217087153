/*
 * Private to the room: ask a Java virtual machine to write its perf map, if its memory could not be understood.
 *
 * This works like jcmd: create a file that only the JVM's user or root can create, send SIGQUIT, and connect to the socket that the JVM then
 * opens. The signal would kill a process that does not handle it. So it is sent only while the kernel reports a handler, through a descriptor
 * that can't refer to another process, and not if attaching is disabled, because such a JVM would print its threads instead. Nothing here
 * blocks: each turn does what it can.
 */
#ifndef WICK_RECORD_JVM_ATTACH_H
#define WICK_RECORD_JVM_ATTACH_H

#include "record/internal.h"

struct jvm_attach {
    enum { ATTACH_NOT_YET, ATTACH_ASKED, ATTACH_SENT, ATTACH_ANSWERED, ATTACH_REFUSED } state;
    int process;   /* a pidfd */
    int temporary; /* the JVM's own /tmp */
    int place;     /* directory of the file that requests it: its working directory, or /tmp */
    int socket;
    pid_t inner_pid;
    uid_t user;
    gid_t group;
    uint64_t deadline, next;
    size_t answered;        /* bytes */
    bool has_asked;         /* the request file must be removed */
    bool has_written;       /* the map must be removed */
    const char *refused_by; /* a literal */
};

/* Prepare for the first turn. */
void jvm_attach_init(struct jvm_attach *attach);
/* Continue. The JVM may be asked again some seconds after it has answered. */
void jvm_attach_turn(struct jvm_attach *attach, pid_t pid, uint64_t now);
/* Remove the files that this caused; call it when the map has been read. */
void jvm_attach_release(struct jvm_attach *attach);

#endif
