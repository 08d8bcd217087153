/*
 * Private to the room: asking a Java virtual machine to write its perf map, for those whose memory could not be understood.
 *
 * This is what jcmd does: a file that only the JVM's user or root can have made, SIGQUIT, and a socket that the JVM then opens. The signal would end a
 * process that does not expect it, so it is sent only while the kernel says that there is a handler, to a process that can't be another by
 * then, and not where attaching was switched off, because that JVM would print its threads instead. Nothing here waits: each turn does
 * what can be done.
 */
#ifndef WICK_RECORD_JVM_ATTACH_H
#define WICK_RECORD_JVM_ATTACH_H

#include "record/internal.h"

struct jvm_attach {
    enum { ATTACH_NOT_YET, ATTACH_ASKED, ATTACH_SENT, ATTACH_ANSWERED, ATTACH_REFUSED } state;
    int process;   /* a pidfd */
    int temporary; /* the JVM's own /tmp */
    int place;     /* where the file is that asks for it: its working directory, or /tmp */
    int socket;
    pid_t inner_pid;
    uid_t user;
    gid_t group;
    uint64_t deadline, next;
    size_t answered;        /* bytes */
    bool has_asked;         /* there is a file to be removed */
    bool has_written;       /* there is a map to be removed */
    const char *refused_by; /* a literal */
};

/* Ready for the first turn. */
void jvm_attach_init(struct jvm_attach *attach);
/* Goes on. The JVM may be asked again some seconds after it has answered. */
void jvm_attach_turn(struct jvm_attach *attach, pid_t pid, uint64_t now);
/* Removes what it caused: to be called when the map has been read. */
void jvm_attach_release(struct jvm_attach *attach);

#endif
