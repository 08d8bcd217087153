/* Commands confine themselves before they read: what is parsed can then do no harm. See sandbox.h. */
#ifndef WICK_CONFINE_H
#define WICK_CONFINE_H

#include "cmd/cmd.h"
#include "sandbox/sandbox.h"

/* What a command needs beyond its operands, the files that its options name, its output and the cache. */
struct confine_more {
    const char *const *read;
    size_t read_count;
    const char *directories; /* more to read, divided by colons; or NULL */
    const char *manage;      /* a directory in which it makes directories, or NULL */
    const char *store;       /* a store or a service that it writes to, or NULL */
    bool network;            /* it may ask debuginfod, though it has no option for that */
    bool any_memory;         /* a guest's memory is reserved, not used */
    bool terminal;           /* it sets the terminal's modes */
};

/* Enters the sandbox, unless --no-sandbox was given or it is inside. `output` is where it writes without -o; NULL: standard output. The helper for
   debuginfod is started before. False: it can't be, and *error says why. */
bool confine(struct request *request, const char *output, const struct confine_more *more,
             struct error *error);
/* The same of a command that reads its operands or what choose_default() finds. False: stop with *status. */
bool confine_reader(struct request *request, const char *output, int *status);

/* The option by itself, where a command does not have options_common. */
#define OPTION_NO_SANDBOX                                                                          \
    {                                                                                              \
        "no-sandbox", 0, OPTION_FLAG, ASKED(no_sandbox), NULL,                                     \
            "read files without confining the process to what reading needs"                       \
    }

#endif
