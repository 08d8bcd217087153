/*
 * Shared by the BPF program (offcpu.bpf.c) and its loader (bpf.c): the settings, and the maps' keys and values. This header includes nothing,
 * because one side uses the kernel's types and the other the C library's.
 */
#ifndef WICK_RECORD_OFFCPU_BPF_H
#define WICK_RECORD_OFFCPU_BPF_H

enum {
    OFF_CPU_FRAMES = 127, /* the kernel's own limit, kernel.perf_event_max_stack */
    OFF_CPU_THREADS = 65536,
    OFF_CPU_SUMS = 65536,
    OFF_CPU_COPIES = 2048,     /* twice as many for the whole system */
    OFF_CPU_COPY_SIZE = 32768, /* at most */
    OFF_CPU_REGISTERS = 33,    /* at most: 20 of x86-64, 33 of aarch64 */
    OFF_CPU_CPUS = 1024,       /* that can be selected */
};

/* A stack is (number of its map) << 24 | its place in the map; negative: none. */
enum { OFF_CPU_STACK_MAPS = 3, OFF_CPU_STACK_SHIFT = 24 };

enum off_cpu_state { OFF_CPU_SLEEP, OFF_CPU_DISK, OFF_CPU_PREEMPTED, OFF_CPU_STATES };

struct off_cpu_settings {
    unsigned long long least, most;             /* nanoseconds */
    unsigned long long cpus[OFF_CPU_CPUS / 64]; /* a bit for each CPU, if some_cpus */
    unsigned int copy_size;                     /* limit for the copy of a stack */
    unsigned int one_in;          /* count one in so many waits, with that weight; 0 and 1: all */
    unsigned char everything;     /* all threads except the kernel's, not only those in the map */
    unsigned char has_prev_state; /* sched_switch has a fourth argument (since 5.18) */
    unsigned char user, kernel;   /* parts of the stacks */
    unsigned char copies;         /* user parts as copies of the stack, if possible */
    unsigned char some_cpus;      /* only waits that begin on `cpus` */
    unsigned char
        one_group; /* only threads in the control group of the map `group`, and below it */
    unsigned char unused[1];
};

struct off_cpu_stacks {
    int user, kernel;
    unsigned long long copy; /* instead of `user`; 0: none */
    unsigned long long kind; /* of the interpreter's stack (interpreted.bpf.c); 0: none */
};

/* A thread's registers and the top of its stack; the reader of the file unwinds it. */
struct off_cpu_copy {
    unsigned long long registers[OFF_CPU_REGISTERS];
    unsigned long long size;
    unsigned char stack[OFF_CPU_COPY_SIZE];
};

/* A target thread, by its tid. */
struct off_cpu_thread {
    /* When it left the CPU; 0: it is running, or was never seen to leave. */
    unsigned long long since;
    unsigned long long ran; /* its CPU time then */
    unsigned int pid;
    unsigned int state;
    struct off_cpu_stacks stacks;
    unsigned int waker_pid, waker_tid;
    struct off_cpu_stacks waker;
    unsigned int woken;      /* in this wait, by that waker */
    unsigned int until_exec; /* launched, but still wick's own code */
};

/* Has no padding, because all bytes are compared. */
struct off_cpu_key {
    unsigned int pid, tid;
    struct off_cpu_stacks stacks;
    unsigned int state, woken;
    unsigned int waker_pid, waker_tid;
    struct off_cpu_stacks waker;
};

struct off_cpu_sum {
    unsigned long long ns;
    unsigned long long count;
    unsigned long long last; /* when the last of these waits ended */
    unsigned int cpu;        /* and where */
    unsigned int unused;
};

/* Failures, in a map with one counter for each. */
enum off_cpu_trouble {
    OFF_CPU_NO_STACK,  /* waits without a stack: no room, or three others had its place */
    OFF_CPU_NO_COPY,   /* waits unwound by frame pointers because there were too many stacks */
    OFF_CPU_NO_SUM,    /* waits that were not counted because there were too many kinds */
    OFF_CPU_NO_THREAD, /* threads that were not watched because there were too many */
    OFF_CPU_TROUBLES,
};

#endif
