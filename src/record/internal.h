/*
 * Private to the room: a recording under way.
 */
#ifndef WICK_RECORD_INTERNAL_H
#define WICK_RECORD_INTERNAL_H

#include <dirent.h>
#include <sys/types.h>

#include "object/object.h"
#include "record/offcpu_bpf.h"
#include "record/record.h"

/* What an event is there for. */
#define RECORDING_PROGRESS "recording (Ctrl-C to stop): # samples"

enum role {
    ROLE_SAMPLE, /* asked for */
    ROLE_SIDE,   /* only for mappings, names and the like */
    ROLE_SWITCH, /* off-CPU: the stack of a thread that leaves the CPU */
    ROLE_WAKING, /* … and of the one that wakes it */
    ROLE_MADE,   /* never opened: its samples are written at the end */
};

/* perf's numbers of the registers that unwinding needs, and three of them. */
#if defined(__x86_64__)
#define OWN_ARCH UNWIND_X86_64
#define USER_REGISTERS 0xff0fffull
enum { REGISTER_FRAME = 6, REGISTER_STACK = 7, REGISTER_PC = 8 };
#elif defined(__aarch64__)
#define OWN_ARCH UNWIND_AARCH64
#define USER_REGISTERS 0x1ffffffffull
enum { REGISTER_FRAME = 29, REGISTER_STACK = 31, REGISTER_PC = 32 };
#else
#define OWN_ARCH UNWIND_OTHER
#define USER_REGISTERS 0ull
enum { REGISTER_FRAME, REGISTER_STACK, REGISTER_PC };
#endif

/* And the one that following frame pointers needs: where a function that calls no other need not keep on the stack where it returns to. */
#if defined(__aarch64__)
#define LINK_REGISTER (1ull << 30)
#else
#define LINK_REGISTER 0ull
#endif

/* One event asked for, as it is opened. */
struct asked_event {
    struct perf_event_attr attr;
    char *name;      /* with the modifiers it ended up with */
    bool by_default; /* nobody asked for it by name: it may be replaced */
    enum role role;
    VECTOR(uint64_t) ids;
};

/* The ring buffer of one CPU, that all events there share. */
struct ring {
    uint32_t cpu;
    int descriptor; /* of the event that owns it */
    void *pages;    /* the control page, then the data */
    size_t size;    /* of the data: a power of two */
};

/* Runtimes that are told by the environment to name their code (runtime_setup.c). */
enum setup { SETUP_NODE, SETUP_DOTNET, SETUP_ERLANG, SETUPS };

/* Records on their way to the file; also what is learned from them. */
struct sink {
    struct perfdata_writer *writer;
    struct keeper *keeper; /* NULL: nothing is kept */
    char *settings
        [SETUPS];     /* NAME=VALUE that the target is launched with for its runtime; NULL: none */
    bool is_prepared; /* they were decided */
    bool system_wide;
    struct interpreted *interpreted; /* NULL: no stacks of interpreters */
    struct window *window;           /* NULL: one file */
    struct buffer early;             /* records from before there is a writer */
    size_t kernel_size;              /* of them, the first: what is true whoever the target is */
    struct record_result *result;
    struct strings *paths; /* of files mapped as code */
    VECTOR(struct build_id)
    ids;             /* theirs, as their mappings tell; size 0: they don't, or not all the same */
    bool wrote;      /* since the last round */
    bool only_names; /* the disk is full: there is room for mappings and the like alone */
    bool no_rounds;  /* samples at the end are older than what stands before them */
    bool data_mappings;   /* synthesize them, too */
    bool asks_build_ids;  /* the kernel does not say so by mistake that a mapping has one */
    bool knows_processes; /* wakers may be none of the targets: keep whom the file tells of */
    struct index processes;
    size_t trailer_words; /* of sample_id, in synthesized records */
    size_t time_at;       /* in a sample: the same for all events */
    size_t stack_size;    /* of the copies in samples; 0: there are none */
    uint64_t registers;   /* that come with them */
    uint64_t first, last; /* times of samples */
    uint64_t time;        /* of synthesized records; 0: they are true from the beginning */
};

struct process_list {
    int32_t *items;
    size_t count;
    size_t capacity;
};

struct recording {
    const struct record_options
        *options; /* = own, as asked for; children that are found join `pids` */
    struct record_options own;
    struct process_list targets; /* own.pids */
    struct process_list
        threads;       /* of the targets, all that there were before the first event was opened */
    struct index seen; /* the same, and those that came later and were found */
    struct index
        around; /* all threads of the processes of threads that were named alone, and of their children */
    struct record_result *result;
    enum record_off_cpu off_cpu; /* as settled: never AUTO */
    struct sums *sums;           /* with BPF */
    struct heap_recording *heap; /* allocations; NULL: none are recorded */
    size_t first_made;           /* of its events: one a state, then the wakers' */
    VECTOR(struct asked_event) events;
    VECTOR(uint32_t) cpus;
    VECTOR(struct ring) rings; /* one for each of `cpus` */
    VECTOR(int) descriptors;   /* of all events */
    struct sink sink;
    size_t ring_size;
    enum record_method method; /* as settled: never AUTO once it runs */
    int group;                 /* a cgroup's directory; -1: none */
    bool no_files;             /* something could not be opened because too many files are open */
    bool few_files;            /* a ring for each thread instead of each CPU */
    bool refused;              /* perf events are, altogether: the ptrace sampler may do */
    bool refused_waits;        /* only those for waits are */
    bool for_interpreter;      /* the ptrace sampler sees what it runs, perf events do not */
    pid_t child;               /* launched, or 0 */
    bool launched;             /* one was, and what it started has not been dealt with */
    struct process_list other_children; /* that we had before */
    int was_subreaper;
    int child_go;        /* a byte here lets it exec; -1 */
    int child_failed;    /* it writes errno here if it can't; -1 */
    struct publish file; /* its path is NULL where there is none, or it is a stream */
};

/* keep_all.c: adds what a reader needs of other files to a recording that is finished. What can't be kept is a note. */
bool keep_all(struct recording *r, struct error *error);

/* open.c: events on every thread and CPU of the target, with all fallbacks; then their buffers. */
bool recording_open(struct recording *r, struct error *error);
bool recording_open_thread(struct recording *r, pid_t tid, struct error *error);
bool recording_open_group(struct recording *r, struct error *error); /* into r->group */
void recording_enable(struct recording *r, bool on);
void recording_enable_events(struct recording *r, bool on); /* and not BPF */
void recording_close(struct recording *r);
bool raise_file_limit(void); /* of open files; false: it was at its highest */

/* event.c: cycles:P, which is as much of :ppp as the machine has. */
bool event_wants_most_precise(const char *name);

/* attach.c: events on every thread of the processes to attach to and of their descendants, turned on unless there is a delay; those to come inherit
   them. Who was there is told. */
bool attach_open(struct recording *r, struct error *error);

/* freeze.c: does it while every thread of the target is stopped, so that nobody can fork. `refused`: that can't be had, and nothing was done. */
bool with_target_held(struct recording *r, bool (*then)(struct recording *, struct error *),
                      bool *refused, struct error *error);

/* offcpu.c: an event that samples nothing, for mappings, names and the like; the first. */
void recording_add_side_event(struct recording *r);
/* What events of waits are called: the name says why the thread was off the CPU. */
extern const char *const off_cpu_names[OFF_CPU_STATES];
/* The events of off-CPU time, after those asked for. */
bool off_cpu_choose_events(struct recording *r, struct error *error);
/* With perf events: a record that says how long waits lasted which nothing has ended. */
bool off_cpu_mark_end(struct recording *r, struct error *error);
/* What BPF summed up, as samples; nothing without BPF. */
bool off_cpu_write(struct recording *r, struct error *error);
/* The same of a recording in windows, whenever one is due. */
bool off_cpu_turn(struct recording *r, struct error *error);

/* heap.c: allocations. Without them, these do nothing but succeed. */
bool heap_choose_events(struct recording *r, struct error *error);
void heap_child(const struct recording *r);               /* in the child, before it execs */
bool heap_turn(struct recording *r, struct error *error); /* answers processes, reads the rings */
enum { HEAP_DESCRIPTORS = 2 };
int heap_poll_descriptor(const struct recording *r, int which); /* only if there are some */
int heap_patience(const struct recording *r, int timeout); /* milliseconds until the next turn */
void heap_enable(struct recording *r, bool on);            /* where it is attached */
void heap_stop(struct recording *r);                       /* nothing more is recorded */
bool heap_is_attached(const struct recording *r);
bool heap_finish(struct recording *r, pid_t target,
                 struct error *error); /* an error if the target was not seen */
void heap_release(struct recording *r);

/* bpf.c: waits summed up in the kernel. NULL: BPF is not built in, not permitted, or the kernel lacks something. */
struct sums *sums_open(const struct record_options *options, int group,
                       const struct interpreted *interpreted,
                       struct error *error); /* -1: no control group */
void sums_add_thread(struct sums *sums, pid_t tid,
                     bool until_exec);        /* and its children from now on */
void sums_enable(struct sums *sums, bool on); /* the last "off" is the end */
void sums_close(struct sums *sums);
struct summed {
    struct off_cpu_key key;
    struct off_cpu_sum sum;
};
typedef VECTOR(struct summed) summed_list;
void sums_read(struct sums *sums, summed_list *list); /* ordered by time */
/* The same of waits that have ended since the last time; they are forgotten. */
void sums_take(struct sums *sums, summed_list *list);
/* Forget stacks that nothing will ask for any more, if there are many. */
void sums_make_room(struct sums *sums);
size_t sums_stack(struct sums *sums, int stack,
                  uint64_t *frames); /* room for OFF_CPU_FRAMES; how many */
bool sums_copy(struct sums *sums, uint64_t copy, struct off_cpu_copy *result);
bool sums_copies(const struct sums *sums); /* stacks to be unwound, rather than frame pointers */
uint64_t sums_trouble(struct sums *sums, enum off_cpu_trouble which);
bool in_first_pid_namespace(void);

/* interpreted.c: stacks of interpreters, taken with samples. NULL takes none. */
struct interpreted *interpreted_new(struct sink *sink);
void interpreted_free(struct interpreted *all);
/* Have a BPF program take them; false: *error says why that can't be. */
bool interpreted_open(struct interpreted *all, bool sums_waits, struct error *error);
void interpreted_close(struct interpreted *all); /* that program */
/* A map of that program; -1: none. */
int interpreted_map(const struct interpreted *all, const char *name);
/* A wait of the kind that bpf.c has summed up ended then, in that thread: its stack is written. */
void interpreted_put_kind(struct interpreted *all, uint64_t kind, uint32_t tid, uint64_t time);
/* The program for sampling events; -1: none. A descriptor that is readable when interpreted_look() should be called at once; -1. */
int interpreted_program(const struct interpreted *all);
int interpreted_switch_program(const struct interpreted *all); /* the same, and no sample is made */
int interpreted_descriptor(const struct interpreted *all);
/* Names what was taken, while those who ran it are still there. */
void interpreted_look(struct interpreted *all);
/* A process has ended; or a record tells so, or that there may be an interpreter. */
void interpreted_saw(struct interpreted *all, const uint8_t *record,
                     const struct perf_event_header *header);
/* Between two rounds: writes what was taken, if it is much. At the end: all. */
bool interpreted_turn(struct interpreted *all, struct error *error);
bool interpreted_finish(struct interpreted *all, struct error *error);
bool interpreted_finish_window(struct interpreted *all, struct error *error);
/* The stack of a stopped thread; room for it is made when there is one. Then, when it runs again: what it stands for, as of that time. */
struct raw_stack;
void interpreted_take(struct interpreted *all, pid_t pid, pid_t tid, uint64_t thread_pointer,
                      struct raw_stack **stack);
void interpreted_put(struct interpreted *all, struct raw_stack *stack, uint64_t time);
/* Whether the target is an interpreter, as far as can be told before it runs. */
bool interpreted_is_target(const struct record_options *options);
bool interpreted_is_used(const struct interpreted *all); /* there is such a process */

/* kernel_frames.c: of a kernel stack from its leaf, how many frames are the tracing's own; and how many are an interrupt's, 0: none. */
struct kernel_frames *kernel_frames_new(void);
void kernel_frames_free(struct kernel_frames *known);
size_t kernel_frames_own(const struct kernel_frames *known, const uint64_t *frames, size_t count);
size_t kernel_frames_interrupt(const struct kernel_frames *known, const uint64_t *frames,
                               size_t count);

/* ring.c: everything in all buffers, once, to the file. */
bool recording_drain(struct recording *r, struct error *error);
/* The disk is full: of what is still in the buffers, what was mapped and the like, in the room that was set aside for that. */
void recording_drain_names(struct recording *r);

/* launch.c */
bool launch(struct recording *r, struct error *error); /* forks; the child waits */
char *
launch_find(const char *name); /* the file that is executed for this name; free() it; NULL: none */
bool launch_go(struct recording *r, struct error *error); /* it execs; an error if it can't */
void launch_begin(struct recording *r);                   /* the same in two steps: it execs … */
bool launch_began(struct recording *r,
                  struct error *error); /* … and whether it could, once it has or has ended */

/* ending.c: becomes the parent of what the target leaves behind; reaps what of that has ended; ends all of it, if it was launched. */
void target_adopt_orphans(struct recording *r);
void target_reap_orphans(struct recording *r);
void target_end(struct recording *r);
/* Let the target go on to its own end: what failed is the recording. */
void target_wait(struct recording *r);

/* run.c: nanoseconds of the clock that recordings use. */
uint64_t monotonic(void);
/* What both methods begin with. */
void recording_drop_events(struct recording *r);
void recording_shape_records(
    struct recording *r); /* once events are settled: what those made by us have to look like */
bool recording_begin_file(struct recording *r, struct error *error);
pid_t process_of(pid_t tid);

/* ptrace.c: without perf events. */
bool ptrace_can(const struct recording *r, struct error *error); /* sample what is asked for */
bool record_with_ptrace(struct recording *r, struct error *error);

/* synthesize.c: what ran before; and, one by one, what happens. */
struct task {
    pid_t pid, parent_pid, tid, parent_tid;
};
bool synthesize_comm(struct sink *sink, pid_t pid, pid_t tid, bool exec, struct error *error);
bool synthesize_name(struct sink *sink, pid_t pid, pid_t tid, struct text comm, bool exec,
                     struct error *error); /* the same with a name that the kernel does not know */
bool synthesize_task(struct sink *sink, uint32_t type, struct task task,
                     struct error *error); /* FORK, EXIT */
bool synthesize_namespaces(struct sink *sink, pid_t pid,
                           struct error *error); /* if it has a mount namespace of its own */
bool is_elsewhere(pid_t pid);                    /* it has a mount namespace of its own */
bool synthesize_mapping(struct sink *sink, pid_t pid, bool elsewhere, const char *line,
                        struct error *error); /* of /proc/PID/maps */
bool synthesize_threads(struct sink *sink, pid_t pid,
                        struct error *error); /* all but its mappings */
bool synthesize_kernel(struct sink *sink, struct error *error);
bool synthesize_process(struct sink *sink, pid_t pid,
                        struct error *error); /* vanished ones are skipped */
bool synthesize_all(struct sink *sink, struct error *error);

/* keep.c: what will be gone when the recording is read, kept with it. NULL keeps nothing. */
/* runtime_setup.c: decides what the target's environment gets for its runtime, before it is launched. */
void runtime_prepare(struct recording *r);
/* runtime.c */
/* Whether the target is a program of Go's, or one of several may be. */
bool runtime_is_go(const struct recording *r);
/* Whether it is Java or node, whose stacks are often deeper than what is copied of others'. */
bool runtime_is_deep(const struct recording *r);

struct keeper *keeper_new(struct sink *sink, const struct record_options *options);
void keeper_free(struct keeper *keeper);
/* Takes note of a record, whole as it is in the file. Costs no system call. */
void keeper_saw(struct keeper *keeper, const uint8_t *record,
                const struct perf_event_header *header);
/* The same of a sample. */
void keeper_saw_sample(struct keeper *keeper, const uint8_t *record,
                       const struct perf_event_header *header);
/* Between two rounds: opens what was mapped since, writes what is final. */
bool keeper_turn(struct keeper *keeper, struct error *error);
bool keeper_finish(struct keeper *keeper, struct error *error);
/* At the end of a window: maps of processes that go on, if they have grown. The next window begins anew. */
bool keeper_finish_window(struct keeper *keeper, struct error *error);
/* Whether the file that was mapped from this path was kept, and its mapping told no build id: what is there now is another file. */
bool keeper_kept_unnamed(const struct keeper *keeper, struct text path);
/* keep_files.c: the mount namespace of a process; 0: it is gone, or not ours to see. */
uint64_t mount_of(pid_t pid);
/* keep_files.c: opens what a process has mapped there, by way of the mapping or, where that is not permitted, of its path as the process sees
   it; only regular files. -1: it can't be had. */
int open_mapped(pid_t pid, uint64_t start, uint64_t end, const char *path);
bool descriptor_build_id(int descriptor, struct build_id *id); /* of an open file */
/* container.c: the name or id of the container that has this cgroup is appended; false: it has none. */
bool container_of_cgroup(struct text path, struct buffer *container);

/* windows.c: a recording that is handed over in windows; without one, these do nothing but succeed. */
struct window *window_new(uint64_t length);
void window_free(struct window *window);
bool window_open(struct window *window, struct error *error); /* a file in memory for the next */
void window_take(struct window *window, const void *first, size_t first_size, const void *second,
                 size_t second_size);
void window_begin_round(struct recording *r); /* before the buffers are emptied */
bool window_end_round(struct recording *r,
                      struct error *error); /* after: what is old enough goes to the window */
bool window_turn(struct recording *r, struct error *error); /* hands it over when its time is up */
bool window_finish(struct recording *r, struct error *error); /* hands the last over */

/* sink.c */
/* Of a MMAP2 record; false: it has none. */
bool mapping_build_id(const struct sink *sink, const uint8_t *record,
                      const struct perf_event_header *header, struct build_id *id);
bool sink_write(struct sink *sink, const uint8_t *records, size_t size,
                struct error *error); /* now, whatever their time */
bool sink_records(struct sink *sink, const uint8_t *records, size_t size, struct error *error);
bool sink_split(struct sink *sink, const uint8_t *first, size_t first_size, const uint8_t *second,
                size_t second_size, struct error *error);
bool sink_early(struct sink *sink,
                struct error *error); /* there is a writer: what came before goes to it */
bool sink_round(struct sink *sink, struct error *error);
bool sink_only_names(
    struct sink *
        sink); /* from now on: without them the samples that are there would be of no use. False: no more can be written. */
bool sink_introduce(struct sink *sink, pid_t pid,
                    struct error *error); /* as if it had run before; unless it is known */
void sink_release(struct sink *sink);

/* features.c: the file's header sections, at the end. */
bool write_host_features(struct recording *r, struct error *error);
/* host.c: the processors, and the clock; nothing where the machine does not tell. */
bool write_host_topology(struct recording *r, struct error *error);
bool write_clock(struct recording *r, struct error *error);
bool write_sample_time(struct recording *r, struct error *error); /* at the end */
bool write_build_ids(struct recording *r, struct error *error);

/* tracing.c: the formats of the tracepoints among the events; nothing without any. */
bool write_tracing_data(struct recording *r, struct error *error);

/* children.c: all descendants of the target that there are now become targets, too. True: there were new ones. */
bool recording_find_children(struct recording *r);
void processes_add_children(struct process_list *list);
bool processes_hold(const struct process_list *list, pid_t pid);
void recording_add_child(struct recording *r, pid_t pid); /* one of them */
bool ids_add(struct index *set, pid_t id);                /* true: it was not in it */
char thread_state(pid_t tid, pid_t *parent); /* R, S, D, … as in /proc; 0: it is gone */
uint64_t thread_cpu_time(pid_t tid);         /* nanoseconds, by schedstat; 0: it is gone */
bool thread_lives(pid_t tid); /* false: it has ended, whoever may still ask for its status */
/* children.c: the folder of a process's threads. */
DIR *tasks_open(pid_t pid, struct error *error);
/* Whether pids[i] was found as a child and is gone since: no error. */
bool record_may_vanish(const struct record_options *options, size_t i);

#endif
