/*
 * record: sample running programs into a perf.data.
 *
 * With perf events, events are opened for the target's threads on every CPU (or for whole CPUs, system-wide). All events of a CPU share one
 * ring buffer, and its contents go to the file unchanged. Synthesized records describe what already ran when the recording began. If perf
 * events are refused, a ptrace sampler stops the target's threads in turn and writes the same kind of file.
 *
 * Every fallback is a note, and the event name in the file says which method was used.
 */
#ifndef WICK_RECORD_H
#define WICK_RECORD_H

#include <linux/perf_event.h>

#include "base/base.h"
#include "perfdata/writer.h"

enum record_call_graph { CALL_GRAPH_DWARF, CALL_GRAPH_FP, CALL_GRAPH_LBR, CALL_GRAPH_NONE };
enum record_method { METHOD_AUTO, METHOD_PERF, METHOD_PTRACE };
/* How to record waits: each context switch as an event with its stack, or sums made in the kernel by a BPF program. */
enum record_off_cpu { OFF_CPU_NOT, OFF_CPU_AUTO, OFF_CPU_PERF, OFF_CPU_BPF };

/* Which files to keep in the recording (docs/carrier.md): those that may be gone when it is read, none, or everything needed to read it.
   For KEEP_ALL, `output` must be a file. */
enum record_keep { KEEP_DEFAULT, KEEP_NONE, KEEP_ALL };

/* Take one window of a recording: the descriptor of a perf.data in memory, which is closed after the call. The ring buffers fill
   meanwhile. Return false to end the recording with `error`. */
typedef bool record_window(void *context, int window, struct error *error);

struct record_options {
    const struct context *context; /* or NULL; cancelling it ends the recording */
    /* the target: one of these */
    char *const *command; /* NULL-terminated; NULL: none */
    const int32_t *pids;
    size_t pid_count;
    size_t
        pids_found; /* how many of them, at the end, are children added by record_run(); they may exit any time */
    const int32_t *tids; /* single threads, without the rest of their processes */
    size_t tid_count;
    bool system_wide;
    const uint32_t *cpus; /* only these; none: all that are online */
    size_t cpu_count;
    const char *cgroup; /* with system_wide: only this cgroup */
    /* what to count */
    const char *const *events; /* by perf's names; none: cycles, else cpu-clock */
    size_t event_count;
    size_t stacks_of;   /* record stacks for the first so many events only; 0: for all */
    uint64_t frequency; /* samples per second, if period is 0 */
    uint64_t period;    /* events per sample */
    enum record_call_graph call_graph;
    uint32_t stack_size;      /* DWARF: bytes of stack in each sample */
    uint32_t deep_stack_size; /* the same for runtimes known for deep stacks; 0: stack_size */
    bool frame_pointers_too;  /* DWARF: also record frame-pointer chains; set for Go programs */
    bool user_only;
    bool kernel_only;
    bool no_inherit;
    enum record_off_cpu
        off_cpu; /* record waits; AUTO: BPF for the whole system or with wakers, else perf */
    bool wall;   /* with off_cpu: also sample on the CPU, with cpu-clock unless events are named */
    bool wakers; /* with off_cpu: also record the stacks of wakers */
    uint64_t least_wait, most_wait; /* nanoseconds; only BPF applies them; 0: no limit */
    uint32_t
        one_wait_in; /* with BPF: sample one in so many waits at random and scale it up; 0: all */
    bool heap;       /* record the allocations of a command instead of events */
    bool heap_maps;  /* with heap: its mappings, too */
    uint64_t heap_every; /* with heap: mean bytes between samples; 1: every allocation */
    enum record_method method;
    enum record_keep keep;
    bool keep_own;     /* with KEEP_DEFAULT: keep programs that are no part of the system, too */
    const char *cache; /* directory of the on-disk cache, or NULL */
    bool no_runtime_setup; /* launch the command without settings that make its runtime name code */
    /* Append further labels of a new process as "key NUL value NUL …"; NULL: none. Called from the recording thread while the process may
       still run. `comm` is its name at exec, or empty. */
    void (*add_labels)(void *context, int32_t pid, struct text comm, struct text cgroup,
                       struct buffer *labels);
    void *label_context;
    /* how long */
    uint64_t duration; /* nanoseconds; 0: until the target ends or Ctrl-C */
    uint64_t delay;    /* nanoseconds to wait before recording begins */
    /* the output: a file, or, if `window` is not 0, windows of that many nanoseconds, passed to on_window() while the recording goes on
       (perf events on the CPU only; `output` is ignored). profile_stream_next() reads windows. */
    uint64_t window;
    record_window *on_window;
    void *window_context;
    const char *output; /* "-": a stream on standard output */
    int output_directory; /* descriptor + 1 of the directory that `output` is relative to; 0: the working directory */
    int compress_level;   /* 0: none */
    uint32_t buffer_size; /* bytes for each CPU; 0: automatic */
    char *const
        *arguments;    /* wick's command line for the file's header, NULL-terminated; NULL: none */
    int target_output; /* descriptor + 1 for the target's standard output and error; 0: wick's own */
};

struct record_result {
    uint64_t samples;
    uint64_t lost;
    uint64_t throttled;
    uint64_t bytes;
    uint64_t started_ns; /* wall clock, since 1970 */
    uint64_t ended_ns;
    uint64_t cpu_ns;    /* CPU time of a launched target and its children; 0: unknown */
    int target_status;  /* from waitpid(); -1: none was launched */
    bool target_ended;  /* wick ended it when time was up: its status is not a failure of its own */
    const char *method; /* "perf", "ptrace", "bpf" or "preload" */
    uint32_t stack_size; /* the size used (see deep_stack_size) */
    char *
        left; /* path of a partial recording, if it failed and another file has the output's name; else NULL */
    char *events;       /* names of the recorded events: "cpu-clock:u" */
    struct notes notes; /* fallbacks, losses */
};

bool record_run(const struct record_options *options, struct record_result *result,
                struct error *error);
void record_result_release(struct record_result *result);

/* ---- events by name, for --help and doctor ------------------------------------------------ */

/* Parse perf's event syntax (cycles:u, cache-misses, L1-dcache-load-misses, r1a8, sched:sched_switch, cpu/event=…/) or a libpfm4 name. */
bool record_parse_event(const char *name, struct perf_event_attr *attr, struct error *error);

/* The highest kernel.perf_event_paranoid at which an unprivileged user may record system-wide tracepoints, the whole system, the kernel part
   of their own programs, and anything at all. */
enum {
    PARANOID_TRACEPOINTS = -1,
    PARANOID_SYSTEM_WIDE = 0,
    PARANOID_KERNEL = 1,
    PARANOID_USER = 2
};

/* Whether OFF_CPU_BPF works here, by loading and unloading the program. If not, *why says why. */
bool record_has_bpf(struct error *why);

/* What this machine allows, found by trying each thing, for wick doctor. */
enum record_verdict { FINDING_GOOD, FINDING_LIMITED, FINDING_BAD };
struct record_finding {
    enum record_verdict verdict;
    const char *what; /* what was tried; a literal */
    char *finding;
    char *remedy; /* a command that changes it; NULL: nothing to change, or no command can */
};
struct record_findings { /* a VECTOR */
    struct record_finding *items;
    size_t count, capacity;
};
void record_probe(struct record_findings *found); /* appends */
void record_findings_release(struct record_findings *found);

/* Get the name of the processor from /proc/cpuinfo ("model name"; on Arm "Model", or the numbers of implementer and part), or "unknown". */
void record_cpu_model(char *model, size_t size);

#endif
