/*
 * record: taking samples of what runs, into a perf.data.
 *
 * With perf events: events are opened for the target's threads on every CPU (or for CPUs, system-wide), all events of a CPU share
 * one ring buffer, and what the kernel puts there goes to the file as it is. What ran before the recording began is told
 * by synthesized records. Where perf events are refused, a ptrace sampler stops the target's threads in turn, and writes the same
 * file.
 *
 * Every fallback is a note, and the file's event name says what took it.
 */
#ifndef WICK_RECORD_H
#define WICK_RECORD_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "perfdata/writer.h"

enum record_call_graph { CALL_GRAPH_DWARF, CALL_GRAPH_FP, CALL_GRAPH_LBR, CALL_GRAPH_NONE };
enum record_method { METHOD_AUTO, METHOD_PERF, METHOD_PTRACE };
/* How waits are recorded: each switch as an event with its stack, or summed up in the kernel by a BPF program. */
enum record_off_cpu { OFF_CPU_NOT, OFF_CPU_AUTO, OFF_CPU_PERF, OFF_CPU_BPF };

/* What is kept with the recording because it may be gone when it is read (docs/carrier.md). */
/* KEEP_ALL: and everything else that is needed to read it; `output` must be a file. */
enum record_keep { KEEP_DEFAULT, KEEP_NONE, KEEP_ALL };

/* A window of a recording: a perf.data with its records, for as long as the call lasts. The buffers fill meanwhile. False ends the
   recording, with that error. */
typedef bool record_window(void *context, const struct file *window, struct error *error);

struct record_options {
    const struct context *context; /* or NULL; cancelling it ends the recording */
    /* the target: one of these */
    char *const *command; /* NULL-terminated; NULL: none */
    const int32_t *pids;
    size_t pid_count;
    size_t
        pids_found; /* so many of them, the last ones, are children that nobody named: they may vanish. record_run() adds them. */
    const int32_t *tids; /* threads alone, without their processes' others */
    size_t tid_count;
    bool system_wide;
    const uint32_t *cpus; /* only these; none: all that are online */
    size_t cpu_count;
    const char *cgroup; /* with system_wide: only what runs in it */
    /* what to count */
    const char *const *events; /* as perf names them; none: cycles, else cpu-clock */
    size_t event_count;
    size_t stacks_of;   /* only the first so many of them carry stacks; 0: all */
    uint64_t frequency; /* samples a second … */
    uint64_t period;    /* … or one every so many events, when not 0 */
    enum record_call_graph call_graph;
    uint32_t stack_size; /* DWARF: bytes of stack in each sample */
    uint32_t
        deep_stack_size; /* the same, if the target's runtime is known for deep stacks; 0: no matter */
    bool
        frame_pointers_too; /* DWARF: chains by frame pointer beside them; set for programs of Go */
    bool user_only;
    bool kernel_only;
    bool no_inherit;
    enum record_off_cpu
        off_cpu; /* where threads wait; AUTO: BPF for the whole system or wakers, else perf */
    bool wall; /* with off_cpu: samples on the CPU as well, of cpu-clock unless events are named */
    bool wakers;                    /* with off_cpu: who ends the waits */
    uint64_t least_wait, most_wait; /* nanoseconds; only BPF leaves the others out; 0: no limit */
    uint32_t one_wait_in; /* with BPF: count one in so many waits, by chance, as so many; 0: all */
    bool heap;            /* allocations of a command, instead of events … */
    bool heap_maps;       /* … and its mappings … */
    uint64_t heap_every;  /* … one in so many bytes; 1: all */
    enum record_method method;
    enum record_keep keep;
    bool no_runtime_setup; /* launch the command without settings that make its runtime name code */
    /* More labels of a process that appears: appends "key NUL value NUL …". Called while it may still run, from the recording thread; `comm` is as
       recorded when it executed its program, or empty. NULL: none. */
    void (*add_labels)(void *context, int32_t pid, struct text comm, struct text cgroup,
                       struct buffer *labels);
    void *label_context;
    /* how long */
    uint64_t duration; /* nanoseconds from when it begins; 0: until the target ends or Ctrl-C */
    uint64_t delay;    /* nanoseconds before it begins */
    /* the output: a file, or windows of so many nanoseconds, which are handed over while the recording goes on (time on the CPU by perf events
       only; `output` is not looked at). profile_stream_next() reads them. */
    uint64_t window;
    record_window *on_window;
    void *window_context;
    const char *output;   /* "-": a stream on standard output */
    int output_directory; /* a descriptor, + 1, that it is relative to; 0: to the working directory */
    int compress_level;   /* 0: none */
    uint32_t buffer_size;   /* bytes a CPU; 0: chosen */
    char *const *arguments; /* wick's own, for the file's header, NULL-terminated; NULL: none */
    int target_output; /* a descriptor, + 1, for the target's standard output and error; 0: they are ours */
};

struct record_result {
    uint64_t samples;
    uint64_t lost;
    uint64_t throttled;
    uint64_t bytes;
    uint64_t started_ns; /* wall clock, since 1970 */
    uint64_t ended_ns;
    uint64_t cpu_ns;     /* what a launched target used, with its children; 0: not known */
    int target_status;   /* as waitpid() gives it; -1: none was launched */
    bool target_ended;   /* by wick, when the time was up: what it ended with is not its failure */
    const char *method;  /* "perf", "ptrace", "bpf" or "preload" */
    uint32_t stack_size; /* of the copies that were taken (see deep_stack_size) */
    char *
        left; /* the path of what was recorded before it failed, where another recording has the output's name; else NULL */
    char *events;       /* what was recorded, as recorded: "cpu-clock:u" */
    struct notes notes; /* fallbacks, losses */
};

bool record_run(const struct record_options *options, struct record_result *result,
                struct error *error);
void record_result_release(struct record_result *result);

/* ---- events by name, for --help and doctor ------------------------------------------------ */

/* perf's spelling: cycles:u, cache-misses, L1-dcache-load-misses, r1a8, sched:sched_switch, cpu/event=…/, and libpfm4's names. */
bool record_parse_event(const char *name, struct perf_event_attr *attr, struct error *error);

/* What kernel.perf_event_paranoid must be at most for users without privileges to record the whole system; tracepoints there; the kernel's part of their
   own programs; and anything at all. */
enum {
    PARANOID_TRACEPOINTS = -1,
    PARANOID_SYSTEM_WIDE = 0,
    PARANOID_KERNEL = 1,
    PARANOID_USER = 2
};

/* Whether OFF_CPU_BPF works here: the program is loaded and let go again. False: why not. */
bool record_has_bpf(struct error *why);

/* What this machine allows, each thing tried out, for wick doctor. */
enum record_verdict { FINDING_GOOD, FINDING_LIMITED, FINDING_BAD };
struct record_finding {
    enum record_verdict verdict;
    const char *what; /* was tried; a literal */
    char *finding;
    char *
        remedy; /* a command that changes it; NULL: there is nothing to change, or none that could */
};
struct record_findings { /* a VECTOR */
    struct record_finding *items;
    size_t count, capacity;
};
void record_probe(struct record_findings *found); /* adds to them */
void record_findings_release(struct record_findings *found);

/* What /proc/cpuinfo calls the processor ("model name", or Arm's "Model", or there the numbers of its maker and kind);
   "unknown" where it does not say. */
void record_cpu_model(char *model, size_t size);

#endif
