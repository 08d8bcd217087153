/*
 * sandbox: what a process that reads strangers' files gives up before it reads the first byte.
 *
 * A defect in a parser must not become a way into the machine. sandbox_enter() takes from the calling process, for good, all that reading
 * and writing profiles does not need:
 *
 * - Landlock: files can be read only where programs and their debug information are (places.c) and where the caller says; they can be
 *   written only where the caller says. TCP, signals to others and abstract sockets are closed.
 * - seccomp: system calls that reading does not use fail with ENOSYS, as on a kernel that does not have them, so that the C library can
 *   do without. Those that only an attack would make (starting a program, opening a socket, looking into another process) end the process
 *   with a line that says so and status 5.
 * - Limits: no core dump, and no more private memory than the machine has, so that a file that exhausts memory ends wick and nothing else.
 *
 * What is open stays open: pipes, sockets and files that were opened before can be used. It costs less than a millisecond. A kernel may
 * lack either; the caller is told, and may tell the user. Only a process with one thread can enter, because Landlock confines a thread.
 *
 * The library calls this only in children that it makes itself (record/keep_all.c): what the process gives up is for the program to decide.
 */
#ifndef WICK_SANDBOX_H
#define WICK_SANDBOX_H

#include "base/base.h"

struct sandbox_options {
    const char *const *read; /* files and directories to read beside the usual places */
    size_t read_count;
    const char *const *
        write; /* directories in which files are made, replaced and removed; or devices and pipes to write to */
    size_t write_count;
    const char *const *manage; /* directories in which directories and links are, too */
    size_t manage_count;
    bool any_memory;      /* more than the machine has may be reserved */
    bool terminal;        /* the terminal's modes may be set */
    unsigned temporaries; /* how many temporary files to open now, because none can be made later */
};

struct sandbox_facts {
    int landlock;          /* version; 0: there is none */
    bool seccomp;          /* system calls are restricted */
    const char *unlimited; /* what is missing and why, in a sentence; NULL: nothing */
};

/* Call it before the first byte is read. What can't be had is said in `facts` and is no error. */
void sandbox_enter(const struct sandbox_options *options, struct sandbox_facts *facts);

#endif
