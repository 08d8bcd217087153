/*
 * Private to the room: a program inside the machine: its image, its stack, and its system calls.
 */
#ifndef WICK_TRACE_GUEST_H
#define WICK_TRACE_GUEST_H

#include "trace/riscv/machine.h"

#define GUEST_STACK_TOP 0xfe000000ull
#define GUEST_INPUT 0xff000000ull

struct guest_descriptor {
    enum { DESCRIPTOR_CLOSED, DESCRIPTOR_HOST, DESCRIPTOR_FILE } kind;
    int host;
    const struct file *file;
    uint64_t position;
};

struct guest {
    struct machine machine;
    const struct trace_options *options;
    struct file image;
    char *real_path;   /* what /proc/self/exe is */
    struct file input; /* private */
    struct functions *functions;
    struct trie trie;
    uint64_t entry;
    uint64_t bias;
    uint64_t headers, header_count, header_size; /* program headers, as the guest sees them */
    uint64_t stack_low;
    uint64_t break_start, break_now;
    struct guest_descriptor descriptors[64];
    struct file *files; /* of options->files, open */
    uint64_t random;
    bool exited;
    int status;
    int signal;
};

bool guest_load(struct guest *guest, struct error *error);
/* Set up the stack as Linux does at the entry: arguments, environment, auxiliary vector. */
bool guest_start_linux(struct guest *guest, struct error *error);
bool guest_start_prover(struct guest *guest, struct error *error);
/* Execute the call that the machine stopped at. Return false on a fault, described in machine.fault_text. */
bool guest_call_linux(struct guest *guest);
bool guest_call_prover(struct guest *guest);
/* Return the name of a system call ("write"), or NULL. */
const char *guest_call_name(enum trace_abi abi, uint64_t number);

#endif
