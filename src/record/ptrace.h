/*
 * Private to the ptrace sampler (ptrace*.c): the threads that it traces.
 *
 * A tracer is one thread: only it may query its tracees, and only it is notified when they stop. So the sampler has its own thread. When that
 * thread exits, the kernel detaches all tracees without stopping them again.
 */
#ifndef WICK_RECORD_PTRACE_H
#define WICK_RECORD_PTRACE_H

#include "record/interpreted.h"

enum { MOST_REGISTERS = 64, TRACEE_BUCKETS = 1024 };

/* The data taken from a stopped thread. */
struct capture {
    uint64_t ip;
    uint64_t abi; /* PERF_SAMPLE_REGS_ABI_…; NONE: a 32-bit program, which is not unwound */
    uint64_t registers[MOST_REGISTERS]; /* those that USER_REGISTERS names, in its order */
    uint64_t frame, stack_pointer;
    uint64_t signature;      /* bits of a return address that may sign it (aarch64) */
    struct buffer stack;     /* from the stack pointer up */
    uint64_t thread_pointer; /* 0: unknown on this machine */
    struct raw_stack
        *interpreted; /* the interpreter's stack; NULL: not allocated, as not needed so far */
};

struct process {
    pid_t pid;
    size_t threads;   /* that are traced */
    bool is_target;   /* attached to explicitly: the recording lasts as long as one of them */
    bool begun;       /* false: launched, but has not called exec */
    bool touched;     /* it has samples newer than its mappings */
    uint64_t maps_at; /* when they were read */
    uint64_t maps_hash;
    VECTOR(uint64_t) maps; /* hashes of their lines, sorted */
    struct process *next;  /* with the same hash */
};

enum seen { SEEN_NOTHING, SEEN_RUNNING, SEEN_WAITING };

struct tracee {
    pid_t tid;
    struct process *process;
    int times_file, state_file; /* /proc/…/schedstat and stat; -1: opened for each read */
    uint32_t cpu;
    bool sampled;      /* at least once */
    bool stopping;     /* an interrupt is pending … */
    enum seen because; /* … for this */
    bool fresh;        /* it has not stopped for the first time, as every new one does */
    bool halted;       /* by a stop signal, until a SIGCONT */
    enum seen seen;
    uint64_t slices;  /* still the same wait while it has had no more turns on a CPU than this */
    uint64_t used;    /* nanoseconds on a CPU, as last seen … */
    uint64_t charged; /* … and as last charged to a sample */
    uint64_t looked_at;
    int64_t
        off; /* nanoseconds off the CPU without a known stack yet; negative: the CPU time seen lags behind */
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
    size_t targets; /* living processes that are targets */
};

struct sampler {
    struct recording *r;
    struct tracees tracees;
    struct error *error;
    bool failed;       /* *error is set */
    bool sampling;     /* not while --delay lasts */
    size_t attached;   /* number of pids attached so far, with children found */
    bool looked_again; /* for such children */
    bool on_cpu, off_cpu;
    uint64_t on_id, off_ids[OFF_CPU_STATES];
    uint64_t interval; /* nanoseconds */
    uint64_t next_look, next_round, enable_at, end_at;
    uint64_t narrow;         /* samples of 32-bit programs */
    uint64_t looks, skipped; /* looks at all threads; looks skipped because they were late */
    struct capture capture;
    struct buffer record, text;
};

/* ptrace_table.c */
struct tracee *tracee_find(struct tracees *table, pid_t tid);
struct tracee *tracee_add(struct tracees *table, pid_t tid, struct process *process);
void tracee_remove(struct tracees *table,
                   struct tracee *tracee); /* with its last thread, its process */
struct process *process_find(struct tracees *table, pid_t pid);
struct process *process_add(struct tracees *table, pid_t pid);
void process_remove(struct tracees *table, struct process *process); /* one without threads */
void tracees_release(struct tracees *table);

/* A thread's scheduler statistics. Reading them returns false if the thread is gone. */
struct times {
    uint64_t used, delayed,
        slices; /* nanoseconds on a CPU; ready but without one; number of turns */
};
bool tracee_times(struct tracee *tracee, struct times *times);
char tracee_state(struct tracee *tracee); /* R, S, D, … or 0; also sets its last CPU */

/* ptrace_maps.c: write mappings that are new since the last call. They appeared between then and now, and get the earlier time, so that all
   samples since then find them. */
bool maps_refresh(struct sampler *s, struct process *process);

/* ptrace_sample.c */
bool capture_take(struct capture *capture, pid_t tid, const struct record_options *options);
void capture_move(struct capture *to, struct capture *from);
void capture_release(struct capture *capture);
void put_sample(struct sampler *s, struct tracee *tracee, const struct capture *capture,
                uint64_t id, uint64_t period);

/* ptrace_look.c */
void look_at_all(struct sampler *s); /* which run, which wait; interrupt those to be sampled */
void look_closely(struct sampler *s,
                  struct tracee *tracee); /* it stopped for that: take the sample and resume it */
void look_last(struct sampler *s,
               struct tracee *tracee); /* it ends, or we do: what it waited and ran since is told */

/* ptrace_stop.c: handle events of tracees. Return true if there may be more. */
bool handle_stops(struct sampler *s);
bool restart_system_call(pid_t tid); /* one that failed because wick stopped the thread */
int seize(struct sampler *s, struct process *process, pid_t tid); /* 0, or errno */

/* ptrace.c: whether the thread is already traced through its parent, though not reported yet, or is gone. Leaves errno alone. */
bool traced_by_us(pid_t tid);

bool sampler_fail(struct sampler *s);

#endif
