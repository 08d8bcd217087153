/*
 * Private to the ptrace sampler (ptrace*.c): what is known of the threads that it traces.
 *
 * A tracer is one thread: only it may ask about its tracees, and only it is told when they stop. So the sampler has a thread of its own; when
 * that ends, the kernel lets all tracees go without stopping them once more.
 */
#ifndef WICK_RECORD_PTRACE_H
#define WICK_RECORD_PTRACE_H

#include "record/interpreted.h"

enum { MOST_REGISTERS = 64, TRACEE_BUCKETS = 1024 };

/* What is taken of a thread while it is stopped. */
struct capture {
    uint64_t ip;
    uint64_t abi; /* PERF_SAMPLE_REGS_ABI_…; NONE: a 32-bit program's, which nobody unwinds */
    uint64_t registers[MOST_REGISTERS]; /* those that USER_REGISTERS names, in its order */
    uint64_t frame, stack_pointer;
    uint64_t signature;      /* bits of a return address that may sign it (aarch64) */
    struct buffer stack;     /* from the stack pointer up */
    uint64_t thread_pointer; /* 0: it is not known on this machine */
    struct raw_stack
        *interpreted; /* what an interpreter ran; NULL: room for that was not needed yet */
};

struct process {
    pid_t pid;
    size_t threads;   /* that are traced */
    bool is_target;   /* attached to by name: the recording lasts as long as one of them */
    bool begun;       /* false: launched, and not yet what it will be */
    bool touched;     /* it has samples that are newer than its mappings */
    uint64_t maps_at; /* when they were read */
    uint64_t maps_hash;
    VECTOR(uint64_t) maps; /* hashes of their lines, sorted */
    struct process *next;  /* with the same hash */
};

enum seen { SEEN_NOTHING, SEEN_RUNNING, SEEN_WAITING };

struct tracee {
    pid_t tid;
    struct process *process;
    int times_file, state_file; /* /proc/…/schedstat and stat; -1: opened whenever they are read */
    uint32_t cpu;
    bool sampled;      /* at least once */
    bool stopping;     /* an interrupt is under way … */
    enum seen because; /* … for this */
    bool fresh;        /* it has yet to stop for the first time, as every new one does by itself */
    bool halted;       /* by a stop signal, until a SIGCONT */
    enum seen seen;
    uint64_t slices;  /* it is waiting as long as it has had no more turns on a CPU than this */
    uint64_t used;    /* nanoseconds on a CPU, as last seen … */
    uint64_t charged; /* … and as last put into a sample */
    uint64_t looked_at;
    int64_t
        off; /* nanoseconds off the CPU that no stack is known for yet; below 0: the CPU time seen lags behind */
    enum off_cpu_state state; /* as last seen */
    bool has_wait;            /* in `wait`, with `waited` nanoseconds */
    enum off_cpu_state wait_state;
    int64_t waited;
    struct capture wait;
    bool has_ran; /* where it was last seen running, in `ran` */
    struct capture ran;
    size_t place;        /* in the table's `all` */
    struct tracee *next; /* with the same hash */
};

struct tracees {
    struct tracee *buckets[TRACEE_BUCKETS];
    struct process *processes[TRACEE_BUCKETS];
    VECTOR(struct tracee *) all;
    size_t targets; /* processes that the recording is about and that are alive */
};

struct sampler {
    struct recording *r;
    struct tracees tracees;
    struct error *error;
    bool failed;       /* *error is set */
    bool sampling;     /* not while --delay lasts */
    size_t attached;   /* so many of the processes to attach to, and their children */
    bool looked_again; /* for such children */
    bool on_cpu, off_cpu;
    uint64_t on_id, off_ids[OFF_CPU_STATES];
    uint64_t interval; /* nanoseconds */
    uint64_t next_look, next_round, enable_at, end_at;
    uint64_t narrow;         /* samples of 32-bit programs */
    uint64_t looks, skipped; /* at all threads; those that would have come too late */
    struct capture capture;
    struct buffer record, text;
};

/* ptrace_table.c */
struct tracee *tracee_find(struct tracees *table, pid_t tid);
struct tracee *tracee_add(struct tracees *table, pid_t tid, struct process *process);
void tracee_remove(struct tracees *table,
                   struct tracee *tracee); /* and its process, with the last */
struct process *process_find(struct tracees *table, pid_t pid);
struct process *process_add(struct tracees *table, pid_t pid);
void process_remove(struct tracees *table, struct process *process); /* one without threads */
void tracees_release(struct tracees *table);

/* What the scheduler says of a thread. False: it is gone. */
struct times {
    uint64_t used, delayed,
        slices; /* nanoseconds on a CPU, and ready but without one; times it was given one */
};
bool tracee_times(struct tracee *tracee, struct times *times);
char tracee_state(struct tracee *tracee); /* R, S, D, … or 0; and which CPU it was on last */

/* ptrace_maps.c: tells of mappings that were not there the last time. They came between then and now: they get the earlier time, so that all
   samples since then find them. */
bool maps_refresh(struct sampler *s, struct process *process);

/* ptrace_sample.c */
bool capture_take(struct capture *capture, pid_t tid, const struct record_options *options);
void capture_move(struct capture *to, struct capture *from);
void capture_release(struct capture *capture);
void put_sample(struct sampler *s, struct tracee *tracee, const struct capture *capture,
                uint64_t id, uint64_t period);

/* ptrace_look.c */
void look_at_all(struct sampler *s); /* which run, which wait: interrupts those to be sampled */
void look_closely(struct sampler *s,
                  struct tracee *tracee); /* stopped for it: takes the sample and lets it go */
void look_last(struct sampler *s,
               struct tracee *tracee); /* it ends, or we do: what it waited and ran since is told */

/* ptrace_stop.c: whatever happened to tracees. True: there may be more. */
bool handle_stops(struct sampler *s);
bool restart_system_call(pid_t tid); /* one that a stop of ours made to fail */
int seize(struct sampler *s, struct process *process, pid_t tid); /* 0, or errno */

/* ptrace.c: traced since its parent made it, though that has not been told yet; or gone. Leaves errno alone. */
bool traced_by_us(pid_t tid);

bool sampler_fail(struct sampler *s);

#endif
