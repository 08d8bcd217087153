/*
 * sandbox: confine a process before it reads the first byte of an untrusted file.
 *
 * A defect in a parser must not give access to the machine. sandbox_enter() permanently drops everything that reading
 * and writing profiles does not need:
 *
 * - Landlock: files can be read only where programs and their debug information are (places.c) and where the caller says; they can be
 *   written only where the caller says. TCP, signals to others and abstract sockets are closed.
 * - seccomp: system calls that reading does not use fail with ENOSYS, as on a kernel that does not have them, so that
 * the C library can fall back. Those that only an attack would make (starting a program, opening a socket, reading
 * another process) end the process with an error message and status 5.
 * - Limits: no core dump, and no more private memory than the machine has, so that a file that exhausts memory ends
 * only wick.
 *
 * Pipes, sockets and files that were opened before can still be used. It costs less than a millisecond. A kernel may
 * lack either mechanism; `facts` says so. Only a process with one thread can enter, because Landlock confines a
 * thread.
 *
 * The library calls this only in its own children (record/keep_all.c): whether the calling process is confined is for
 * the program to decide.
 */
#ifndef WICK_SANDBOX_H
#define WICK_SANDBOX_H

#include "base/base.h"

struct sandbox_options {
    const char *const *read; /* files and directories to read in addition to the usual places */
    size_t read_count;
    const char *const *
        write; /* directories in which to create, replace and remove files; or devices and pipes to write to */
    size_t write_count;
    const char *const *manage; /* the same, also for directories and links */
    size_t manage_count;
    bool any_memory;      /* allow reserving more memory than the machine has */
    bool terminal;        /* allow setting the terminal's modes */
    unsigned temporaries; /* how many temporary files to open now, because none can be made later */
};

struct sandbox_facts {
    int landlock;          /* version; 0: not available */
    bool seccomp;          /* system calls are restricted */
    const char *unlimited; /* what is missing and why, in a sentence; NULL: nothing */
};

/* Enter the sandbox; call it before the first byte is read. A missing mechanism is reported in `facts` and is not an
   error. */
void sandbox_enter(const struct sandbox_options *options, struct sandbox_facts *facts);

#endif
