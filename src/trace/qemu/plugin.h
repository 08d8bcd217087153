/*
 * Private to the plugin: shared by its files. plugin.c classifies code when QEMU translates it, step.c follows what is executed, and leap.c
 * handles control flow other than calls and returns: signals and longjmp. turn.c and watch.c order the threads; calls.c says which system
 * calls wait.
 */
#ifndef WICK_TRACE_QEMU_PLUGIN_H
#define WICK_TRACE_QEMU_PLUGIN_H

#include "trace/classify.h"
#include "trace/qemu/api.h"
#include "trace/qemu/shared.h"

#include <pthread.h>

/* A translated block. The fields used at each execution come first, in one cache line. */
struct code {
    uint64_t pc;
    uint64_t quiet
        [2]; /* the next block's address if the stack does not change: the following block, or a jump within the function */
    uint64_t count;
    uint64_t next;               /* address after its last instruction */
    uint64_t target;             /* of its last instruction, if direct */
    uint32_t begins_in, ends_in; /* functions */
    uint8_t control;
    bool is_settled;   /* the stack does not change if it goes to a silent block */
    bool may_surprise; /* reached from a silent block only by a signal */
    bool is_start;     /* of its function */
    bool is_alone;     /* one instruction */
    bool follows_call; /* or a system call: something returns here */
    bool may_return;   /* the same, or unknown */
    bool is_silent;    /* the stack can't change here: only count it */
    uint64_t weight;
    uint64_t last; /* instruction */
} __attribute__((aligned(64)));

/* The predecessor of a thread's first block; it has no quiet successor. */
extern const struct code nowhere;

/* A running handler: the depth of the stack, and the block that was about to be left when the signal arrived. */
struct signal_frame {
    size_t depth;
    const struct code *before;
    bool adjacent;
};

/* A setjmp whose frame may still exist. */
struct setjmp_frame {
    uint64_t buffer;
    uint64_t return_address;
    size_t depth;
    uint32_t node;
};

/* The plugin's own state of a thread. */
struct follower {
    struct flow flow;
    VECTOR(struct signal_frame) signals;
    VECTOR(struct setjmp_frame) setjmps;
    struct setjmp_frame
        landing; /* where the current longjmp or exception will land; no return address: there is none */
    size_t unwound; /* the call whose frame the unwinder last looked at */
};

struct plugin {
    struct shared *shared;
    struct trie trie;
    struct functions *functions;
    struct classifier *classifier;
    pthread_mutex_t lock; /* for translation, and everything it adds to */
    struct arena codes;
    uint64_t guest_base;
    bool base_known;
    bool is_weighed;  /* the weight is not instructions */
    bool is_parallel; /* there was a second thread */
    struct follower followers[SHARED_THREADS];
};
extern struct plugin plugin;

/* Get what to add to an ELF image's addresses if its file offset `offset` is mapped at `start`. */
bool elf_bias(const void *image, size_t size, uint64_t start, uint64_t offset, uint64_t *bias);
/* Read the guest's memory; return false if it is not mapped. */
bool guest_read(uint64_t address, void *bytes, size_t size);

/* Callbacks for blocks: those where the stack may change, those where it can't, and both with a budget. */
void step_code(unsigned cpu, void *code);
void step_first_code(unsigned cpu, void *code); /* the same, while there is one thread */
void step_weighed_code(unsigned cpu, void *code);
void step_silent_code(unsigned cpu, void *code);
void step_budgeted_code(unsigned cpu, void *code);
void step_flush(struct follower *follower, struct shared_thread *thread, uint64_t weight);

/* Return true if the guest can't have gone from `before` to `code` by itself: it was a signal. */
bool leap_is_signal(struct follower *follower, const struct code *before, const struct code *code);
void leap_enter(struct follower *follower, const struct code *before, bool adjacent,
                uint64_t handler);
/* A handler returns, not to a caller but to the kernel's return code. */
bool leap_leaves_handler(struct follower *follower, const struct code *before,
                         const struct code *code);
/* Return true, after popping the frames, if a longjmp or an exception lands here, or in this function if the block is unknown. */
bool leap_lands(struct follower *follower, const struct code *code);
bool leap_lands_in(struct follower *follower, uint32_t function);
/* A block of setjmp, longjmp or the unwinder was translated: watch its memory accesses, which show where it leads. */
void leap_translated(struct qemu_plugin_tb *block, struct text function);
void leap_install(const char *machine);
void leap_system_call(unsigned cpu, int64_t number, const uint64_t *arguments);
void leap_forget(struct follower *follower);

/* What a system call means for the order of threads. */
enum call_kind {
    CALL_NONE,
    CALL_BRIEF,   /* may affect other threads in any way */
    CALL_LOCAL,   /* does nothing to them */
    CALL_WAKE,    /* wakes its waiters permanently */
    CALL_SIGNAL,  /* sends one */
    CALL_WAIT,    /* until another thread wakes it */
    CALL_TIMED,   /* the same, or the clock */
    CALL_OUTSIDE, /* until any thread or process does what it waits for */
    CALL_SLEEP,
    CALL_YIELD,
    CALL_MAKE, /* a thread */
    CALL_EXIT, /* of a thread */
    CALL_STOP, /* QEMU stops all threads, to fork or to exit */
    CALL_FUTEX,
    CALL_READ,
    CALL_FCNTL, /* decided by their arguments; never returned */
};
/* Classify a system call; for a sleep, also get its duration in nanoseconds. */
enum call_kind call_kind(int64_t number, const uint64_t *arguments, uint64_t *sleeps);
void calls_install(const char *machine);

/* From the second thread on, only one at a time executes the guest's code, in a fixed order. These are called when a thread was created; has
   executed all instructions of its turn; makes a system call; returns from it. All but the first may wait. */
void turn_made(unsigned cpu);
void turn_over(unsigned cpu);
void turn_call(unsigned cpu, int64_t number, const uint64_t *arguments);
void turn_called(unsigned cpu, int64_t result);
/* A forked process has one thread, and its counts are not read. */
void turn_forked(void);

#endif
