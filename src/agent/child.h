/*
 * Private to the room: processes that parse for the agent, each in the sandbox for its whole life.
 *
 * The agent holds the privileges, the recording and the spool, and parses nothing. Its recordings come from processes that may be hostile, so
 * one child reads them (reader.c), and another reads spooled batches and talks to the store (deliver.c). A child has only the descriptors
 * that it is handed. Requests and answers are datagrams; a request carries descriptors, an answer none.
 */
#ifndef WICK_AGENT_CHILD_H
#define WICK_AGENT_CHILD_H

#include "agent/internal.h"
#include "sandbox/sandbox.h"

enum { CHILD_DESCRIPTORS = 2, CHILD_TEXT = 600 };

struct child_message {
    uint32_t kind; /* in a request: the reader's or the deliverer's; in an answer: 1 is success */
    uint32_t status;
    uint64_t numbers[3];
    char text[CHILD_TEXT]; /* ends with NUL */
};

struct child_plan {
    const char *const *write; /* directories in which it may create, replace and remove files */
    size_t write_count;
    uint64_t memory; /* limit on its own memory in bytes; 0: none */
    bool no_sandbox;
    void (*confined)(void); /* called after it entered the sandbox; or NULL */
    void (*prepare)(
        void *context); /* called before it enters, to start what can't be started later; or NULL */
    void (*run)(void *context, int channel); /* answers requests until the channel closes */
    void *context;
};
/* Zero-initialised: no child is running. */
struct child {
    _Atomic pid_t pid;
    int channel;
};
/* Start wick with the agent's settings and `role`, which agent_child() understands. Any thread may call it. */
bool child_start(struct child *child, const struct agent_options *options, const char *role,
                 struct error *error);
/* In a child: enter the sandbox and answer requests, until the process ends. */
_Noreturn void child_serve(const struct child_plan *plan);
#define CHILD_READER "reader"
#define CHILD_READER_OF_WAITS "reader of waits"
#define CHILD_DELIVERER "deliverer"
_Noreturn void reader_serve(const struct agent_options *options, bool waits);
_Noreturn void deliverer_serve(const struct agent_options *options);
bool child_lives(const struct child *child);
/* Return its CPU time so far in nanoseconds, or 0 if it is not running. Any thread may call it. */
uint64_t child_cpu(const struct child *child);

struct child_patience {
    uint64_t cpu, wall; /* limits in nanoseconds for one answer; 0: none */
};
/* Send a request with `count` descriptors, which the caller keeps; the answer replaces *message. On failure the child is gone, and *error
   says how it ended. */
bool child_ask(struct child *child, struct child_message *message, const int *descriptors,
               size_t count, const struct child_patience *patience, const struct context *context,
               struct error *error);
/* End it; do nothing if it is not running. */
void child_end(struct child *child);

/* Send or receive one message. The receiver closes the descriptors; those that did not arrive are -1. */
bool child_send(int channel, const struct child_message *message, const int *descriptors,
                size_t count);
bool child_receive(int channel, struct child_message *message, int descriptors[CHILD_DESCRIPTORS]);
void child_close(int descriptors[CHILD_DESCRIPTORS]);
/* Return a file in memory for a child to write to, or -1 and set *error. */
int child_file(struct error *error);
/* Seal it, so that a child that kept a descriptor can't change what others are about to read. Return false if the child has it mapped for
   writing, or if it is larger than `most` bytes. */
bool child_file_seal(int descriptor, uint64_t most, struct error *error);

#endif
