/*
 * Private to the plugin: what its files share. plugin.c looks at code when QEMU translates it, step.c follows what is
 * executed, leap.c knows what the guest does behind the back of calls and returns: signals and longjmp. turn.c and
 * watch.c give threads their order, calls.c says which system calls wait.
 */
#ifndef WICK_TRACE_QEMU_PLUGIN_H
#define WICK_TRACE_QEMU_PLUGIN_H

#include "trace/classify.h"
#include "trace/qemu/api.h"
#include "trace/qemu/shared.h"

#include <pthread.h>

/* A translated block. What is looked at whenever it is executed comes first, in one line of the cache. */
struct code {
    uint64_t pc;
    uint64_t quiet
        [2]; /* the next block's address if the stack stays as it is: straight on, or a jump in the function */
    uint64_t count;
    uint64_t next;               /* behind its last instruction */
    uint64_t target;             /* of its last instruction, if direct */
    uint32_t begins_in, ends_in; /* functions */
    uint8_t control;
    bool is_settled;   /* whatever it goes to that is silent, the stack stays as it is */
    bool may_surprise; /* only a signal leads from a silent block to it */
    bool is_start;     /* of its function */
    bool is_alone;     /* one instruction */
    bool follows_call; /* or a system call: something returns here */
    bool may_return;   /* the same, or nobody knows */
    bool is_silent;    /* nothing happens here: it is counted, and that is all */
    uint64_t weight;
    uint64_t last; /* instruction */
} __attribute__((aligned(64)));

/* What a new thread comes from: nothing is quiet after it. */
extern const struct code nowhere;

/* A handler that runs: how deep the stack was, and the block that was to be left when the signal came. */
struct signal_frame {
    size_t depth;
    const struct code *before;
    bool adjacent;
};

/* A setjmp whose frame may still be there. */
struct setjmp_frame {
    uint64_t buffer;
    uint64_t return_address;
    size_t depth;
    uint32_t node;
};

/* What only the plugin knows of a thread. */
struct follower {
    struct flow flow;
    VECTOR(struct signal_frame) signals;
    VECTOR(struct setjmp_frame) setjmps;
    struct setjmp_frame
        landing; /* where what is under way will come out, a longjmp or an exception; no return address: none is */
    size_t unwound; /* the call whose frame the unwinder looked at last */
};

struct plugin {
    struct shared *shared;
    struct trie trie;
    struct functions *functions;
    struct classifier *classifier;
    pthread_mutex_t lock; /* over translation, and whatever it adds to */
    struct arena codes;
    uint64_t guest_base;
    bool base_known;
    bool is_weighed;  /* the weight is another than instructions */
    bool is_parallel; /* there was a second thread */
    struct follower followers[SHARED_THREADS];
};
extern struct plugin plugin;

/* What to add to an ELF image's addresses if its file offset `offset` is mapped at `start`. */
bool elf_bias(const void *image, size_t size, uint64_t start, uint64_t offset, uint64_t *bias);
/* Bytes of the guest; false if they are not there. */
bool guest_read(uint64_t address, void *bytes, size_t size);

/* Callbacks for blocks: those where the stack may change, those where it does not, and both under a budget. */
void step_code(unsigned cpu, void *code);
void step_first_code(unsigned cpu, void *code); /* the same, as long as there is one thread */
void step_weighed_code(unsigned cpu, void *code);
void step_silent_code(unsigned cpu, void *code);
void step_budgeted_code(unsigned cpu, void *code);
void step_flush(struct follower *follower, struct shared_thread *thread, uint64_t weight);

/* True if the guest can't have come from `before` to `code` by itself: a signal. */
bool leap_is_signal(struct follower *follower, const struct code *before, const struct code *code);
void leap_enter(struct follower *follower, const struct code *before, bool adjacent,
                uint64_t handler);
/* A handler returns, not to its caller but to what the kernel made of it. */
bool leap_leaves_handler(struct follower *follower, const struct code *before,
                         const struct code *code);
/* True, and popped, if a longjmp or an exception comes out here; or in this function, if the block is not known. */
bool leap_lands(struct follower *follower, const struct code *code);
bool leap_lands_in(struct follower *follower, uint32_t function);
/* A block of setjmp, of longjmp or of the unwinder is translated: what they read and write in memory tells where they lead. */
void leap_translated(struct qemu_plugin_tb *block, struct text function);
void leap_install(const char *machine);
void leap_system_call(unsigned cpu, int64_t number, const uint64_t *arguments);
void leap_forget(struct follower *follower);

/* What a system call is to the order of threads. */
enum call_kind {
    CALL_NONE,
    CALL_BRIEF,   /* may do anything to others */
    CALL_LOCAL,   /* does nothing to them */
    CALL_WAKE,    /* wakes those that wait for it, for good */
    CALL_SIGNAL,  /* sends one */
    CALL_WAIT,    /* until another thread wakes it */
    CALL_TIMED,   /* the same, or the clock */
    CALL_OUTSIDE, /* until anybody does what it waits for */
    CALL_SLEEP,
    CALL_YIELD,
    CALL_MAKE, /* a thread */
    CALL_EXIT, /* of a thread */
    CALL_STOP, /* QEMU stops all threads: to fork, or to end */
    CALL_FUTEX,
    CALL_READ,
    CALL_FCNTL, /* their arguments tell: never the answer */
};
/* Of a sleep also how long, in nanoseconds. */
enum call_kind call_kind(int64_t number, const uint64_t *arguments, uint64_t *sleeps);
void calls_install(const char *machine);

/* From the second thread on only one at a time executes the guest's code, in a fixed order. A thread is made; it has executed as many
   instructions as it may in one turn; it makes a system call; that has come back. All but the first may wait. */
void turn_made(unsigned cpu);
void turn_over(unsigned cpu);
void turn_call(unsigned cpu, int64_t number, const uint64_t *arguments);
void turn_called(unsigned cpu, int64_t result);
/* A forked process has one thread, and nobody reads what it counts. */
void turn_forked(void);

#endif
