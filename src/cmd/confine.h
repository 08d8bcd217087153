/* Commands confine themselves before they read, so that a hostile file can do no harm. See sandbox.h. */
#ifndef WICK_CONFINE_H
#define WICK_CONFINE_H

#include "cmd/cmd.h"
#include "sandbox/sandbox.h"

/* What a command needs beyond its operands, the files that its options name, its output and the cache. */
struct confine_more {
    const char *const *read;
    size_t read_count;
    const char *directories; /* further paths to read, separated by colons; or NULL */
    const char *manage;      /* a directory in which it creates directories, or NULL */
    const char *store;       /* a store or a service that it writes to, or NULL */
    bool network;            /* it may ask debuginfod, even without an option for that */
    bool any_memory;         /* a guest's memory is reserved, not used */
    bool terminal;           /* it sets the terminal's modes */
};

/* Start the helper for debuginfod and enter the sandbox, unless --no-sandbox was given or the process is already
   confined. `output` is the default output; NULL means standard output. */
bool confine(struct request *request, const char *output, const struct confine_more *more,
             struct error *error);
/* The same for a command that reads its operands or the default input. If this returns false, exit with *status. */
bool confine_reader(struct request *request, const char *output, int *status);

/* Called by a process that has just entered the sandbox; tests/sandbox makes it misbehave here. */
void confine_entered(void);

/* The option alone, for commands without options_common. */
#define OPTION_NO_SANDBOX                                                                          \
    {                                                                                              \
        "no-sandbox", 0, OPTION_FLAG, ASKED(no_sandbox), NULL,                                     \
            "read files without confining the process to what reading needs"                       \
    }

#endif
