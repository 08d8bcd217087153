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

#define RECORDING_PROGRESS "recording (Ctrl-C to stop): # samples"

/* The purpose of an event. */
enum role {
    ROLE_SAMPLE, /* requested by the user */
    ROLE_SIDE,   /* only for side records: mappings, names and so on */
    ROLE_SWITCH, /* off-CPU: the stack of a thread that leaves the CPU */
    ROLE_WAKING, /* off-CPU: the stack of the waker */
    ROLE_MADE,   /* never opened: wick writes its samples at the end */
};

/* The registers that unwinding needs, by perf's numbers; three of them have names. */
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

/* The register that frame-pointer unwinding needs where a leaf function may keep its return address off the stack. */
#if defined(__aarch64__)
#define LINK_REGISTER (1ull << 30)
#else
#define LINK_REGISTER 0ull
#endif

/* One event to open. */
struct asked_event {
    struct perf_event_attr attr;
    char *name;      /* with its final modifiers */
    bool by_default; /* not requested by name: it may be replaced */
    enum role role;
    VECTOR(uint64_t) ids;
};

/* The ring buffer of one CPU, shared by all its events. */
struct ring {
    uint32_t cpu;
    int descriptor; /* of the event that owns it */
    void *pages;    /* the control page, then the data */
    size_t size;    /* of the data: a power of two */
};

/* Runtimes that name their code if an environment variable says so (runtime_setup.c). */
enum setup { SETUP_NODE, SETUP_DOTNET, SETUP_ERLANG, SETUPS };

/* The path of records to the file, and what wick learns from them. */
struct sink {
    struct perfdata_writer *writer;
    struct keeper *keeper;  /* NULL: keep no files */
    char *settings[SETUPS]; /* NAME=VALUE for the target's runtime; NULL: none */
    bool is_prepared;       /* the settings are decided */
    bool system_wide;
    struct interpreted *interpreted; /* NULL: no stacks of interpreters */
    struct programs *programs;       /* NULL: no allocations are recorded by a library */
    struct window *window;           /* NULL: one file */
    struct buffer early;             /* records from before the writer exists */
    struct buffer batch; /* records that are written together; synthesize.c empties it */
    bool is_batching;
    size_t kernel_size; /* bytes at its start that do not depend on the target */
    struct record_result *result;
    struct strings *paths; /* of files mapped as code */
    VECTOR(struct build_id)
    ids;                  /* their build ids from mappings; size 0: none, or they differ */
    bool wrote;           /* since the last round */
    bool only_names;      /* the disk is full: write only side records */
    bool no_rounds;       /* samples at the end are older than the records before them */
    bool data_mappings;   /* synthesize data mappings, too */
    bool asks_build_ids;  /* build ids were requested, so a mapping that claims to have one does */
    bool knows_processes; /* wakers may be outside the target: `processes` has those in the file */
    struct index processes;
    size_t trailer_words; /* of sample_id, in synthesized records */
    size_t time_at;       /* offset of the time in a sample: the same for all events */
    size_t stack_size;    /* of the stack copies in samples; 0: none */
    uint64_t registers;   /* recorded with them */
    uint64_t first, last; /* times of samples */
    uint64_t time;        /* of synthesized records; 0: valid from the beginning */
};

struct process_list {
    int32_t *items;
    size_t count;
    size_t capacity;
};

struct recording {
    const struct record_options *options; /* = &own; children found later are added to `pids` */
    struct record_options own;
    struct process_list targets; /* own.pids */
    struct process_list threads; /* the targets' threads before the first event was opened */
    struct index seen;           /* these, and threads found later */
    /* If single threads are targets: all threads of their processes and of their children. */
    struct index around;
    struct record_result *result;
    enum record_off_cpu off_cpu; /* decided: never AUTO */
    struct sums *sums;           /* with BPF */
    struct heap_recording *heap; /* NULL: no allocations are recorded */
    size_t first_made; /* its first ROLE_MADE event: one for each state, then the wakers' */
    VECTOR(struct asked_event) events;
    VECTOR(uint32_t) cpus;
    VECTOR(struct ring) rings; /* one for each of `cpus` */
    VECTOR(int) descriptors;   /* of all events */
    struct sink sink;
    size_t ring_size;
    enum record_method method; /* decided: never AUTO while recording */
    int group;                 /* descriptor of a cgroup's directory; -1: none */
    bool no_files;             /* opening failed because too many files are open */
    bool few_files;            /* use a ring for each thread instead of each CPU */
    bool refused;              /* all perf events are refused: try the ptrace sampler */
    bool refused_waits;        /* only perf events for waits are refused */
    bool for_interpreter;      /* use ptrace because only it sees the interpreter's frames here */
    pid_t child;               /* launched, or 0 */
    bool launched;             /* a child was launched, and its orphans are not dealt with yet */
    struct process_list other_children; /* children that this process had before */
    int was_subreaper;
    int child_go;        /* write a byte here to let the child exec; -1 */
    int child_failed;    /* the child writes errno here if exec fails; -1 */
    struct publish file; /* its path is NULL without a file or for a stream */
};

/* keep_all.c: add everything that a reader needs from other files to a finished recording. What can't be kept is a note. */
bool keep_all(struct recording *r, struct error *error);

/* open.c: open events on every thread and CPU of the target, with all fallbacks, then their buffers. */
bool recording_open(struct recording *r, struct error *error);
bool recording_open_thread(struct recording *r, pid_t tid, struct error *error);
bool recording_open_group(struct recording *r, struct error *error); /* into r->group */
void recording_enable(struct recording *r, bool on);
void recording_enable_events(struct recording *r, bool on); /* but not BPF */
void recording_close(struct recording *r);
bool raise_file_limit(void); /* on open files; false: it was at its maximum */

/* event.c: whether the name requests the highest precision of the machine, as in cycles:P. */
bool event_wants_most_precise(const char *name);

/* attach.c: open events on every thread of the target processes and their descendants, and enable them unless there is a delay. New threads
   inherit them. Synthesize records of what is already running. */
bool attach_open(struct recording *r, struct error *error);

/* freeze.c: call then() while every thread of the target is stopped, so that none can fork. *refused: threads can't be stopped here, and
   then() was not called. */
bool with_target_held(struct recording *r, bool (*then)(struct recording *, struct error *),
                      bool *refused, struct error *error);

/* offcpu.c: add, as the first, an event that takes no samples, for side records. */
void recording_add_side_event(struct recording *r);
/* The names of wait events: each says why the thread was off the CPU. */
extern const char *const off_cpu_names[OFF_CPU_STATES];
/* Add the events of off-CPU time after the requested ones. */
bool off_cpu_choose_events(struct recording *r, struct error *error);
/* With perf events: write a record that bounds the waits still going on at the end. */
bool off_cpu_mark_end(struct recording *r, struct error *error);
/* With BPF: write its sums as samples. */
bool off_cpu_write(struct recording *r, struct error *error);
/* The same for a recording in windows, when a window is due. */
bool off_cpu_turn(struct recording *r, struct error *error);

/* heap.c: allocations. If none are recorded, these functions do nothing and succeed. */
bool heap_choose_events(struct recording *r, struct error *error);
void heap_child(const struct recording *r);               /* in the child, before exec */
bool heap_turn(struct recording *r, struct error *error); /* answer processes, read the rings */
enum { HEAP_DESCRIPTORS = 2 };
int heap_poll_descriptor(const struct recording *r,
                         int which);                       /* only if allocations are recorded */
int heap_patience(const struct recording *r, int timeout); /* milliseconds until the next turn */
void heap_enable(struct recording *r, bool on);            /* if attached */
void heap_stop(struct recording *r);                       /* stop recording */
bool heap_is_attached(const struct recording *r);
bool heap_finish(struct recording *r, pid_t target,
                 struct error *error); /* fails if the target never asked for the rings */
void heap_release(struct recording *r);

/* heap_programs.c: the programs that the target's processes executed. */
struct programs *programs_new(const struct sink *sink);
void programs_free(struct programs *programs);
void programs_saw(struct programs *programs, const uint8_t *record,
                  const struct perf_event_header *header); /* nothing with NULL */
struct heap;
/* Note how many of them were not recorded, and why the first was not. */
void programs_note(struct programs *programs, const struct heap *heap, struct notes *notes);

/* bpf.c: waits summed up in the kernel. Return NULL if BPF is not built in, not permitted, or the kernel lacks something. */
struct sums *sums_open(const struct record_options *options, int group,
                       const struct interpreted *interpreted,
                       struct error *error);                         /* -1: no control group */
void sums_add_thread(struct sums *sums, pid_t tid, bool until_exec); /* and its future children */
void sums_enable(struct sums *sums, bool on); /* switching off ends the recording */
void sums_close(struct sums *sums);
struct summed {
    struct off_cpu_key key;
    struct off_cpu_sum sum;
};
typedef VECTOR(struct summed) summed_list;
void sums_read(struct sums *sums, summed_list *list); /* ordered by time */
/* Read and remove the waits that ended since the last call. */
void sums_take(struct sums *sums, summed_list *list);
/* If there are many stacks, drop those that no sum refers to any more. */
void sums_make_room(struct sums *sums);
size_t sums_stack(struct sums *sums, int stack,
                  uint64_t *frames); /* room for OFF_CPU_FRAMES; return their number */
bool sums_copy(struct sums *sums, uint64_t copy, struct off_cpu_copy *result);
bool sums_copies(const struct sums *sums); /* stack copies to unwind, not frame pointers */
uint64_t sums_trouble(struct sums *sums, enum off_cpu_trouble which);
bool in_first_pid_namespace(void);

/* interpreted.c: stacks of interpreters, taken with samples. With NULL all of these do nothing. */
struct interpreted *interpreted_new(struct sink *sink);
void interpreted_free(struct interpreted *all);
/* Load the BPF program that takes the stacks. */
bool interpreted_open(struct interpreted *all, bool sums_waits, struct error *error);
void interpreted_close(struct interpreted *all); /* unload it */
/* Samples copy `size` bytes of a stack: have the program take what they lack. Recordings in windows do without. */
void interpreted_set_copied(struct interpreted *all, uint64_t size);
/* Return a map of that program; -1: none. */
int interpreted_map(const struct interpreted *all, const char *name);
/* Write the stack of a wait that bpf.c summed up as `kind`, for this thread and the time it ended. */
void interpreted_put_kind(struct interpreted *all, uint64_t kind, uint32_t tid, uint64_t time);
/* The BPF program for sampling events, the one for switches, which makes no sample, and a descriptor that becomes readable when
   interpreted_look() should be called at once; -1: none. */
int interpreted_program(const struct interpreted *all);
int interpreted_switch_program(const struct interpreted *all);
int interpreted_descriptor(const struct interpreted *all);
/* Name the functions of new stacks while their processes are still there. */
void interpreted_look(struct interpreted *all);
/* Examine a process before its first sample, so that this has the interpreter's stack. */
void interpreted_expect(struct interpreted *all, pid_t pid);
/* Samples are taken from now on. Expect all processes that have mapped an interpreter, by the records so far. */
void interpreted_begin(struct interpreted *all);
/* Take note of a record: a process that ended, or one that may have an interpreter. */
void interpreted_saw(struct interpreted *all, const uint8_t *record,
                     const struct perf_event_header *header);
/* Between two rounds, write new stacks if there are many. At the end, write all. */
bool interpreted_turn(struct interpreted *all, struct error *error);
bool interpreted_finish(struct interpreted *all, struct error *error);
bool interpreted_finish_window(struct interpreted *all, struct error *error);
/* Read the stack of a stopped thread into *stack, which is allocated when needed. Once the thread runs again, write it with a time. */
struct raw_stack;
void interpreted_take(struct interpreted *all, pid_t pid, pid_t tid, uint64_t thread_pointer,
                      struct raw_stack **stack);
void interpreted_put(struct interpreted *all, struct raw_stack *stack, uint64_t time);
/* Whether the target is an interpreter, as far as is known before it runs. */
bool interpreted_is_target(const struct record_options *options);
bool interpreted_is_used(
    const struct interpreted *all); /* whether any process has an interpreter */

/* kernel_frames.c: how many frames at the leaf of a kernel stack belong to tracing itself, and how many to an interrupt. */
struct kernel_frames *kernel_frames_new(void);
void kernel_frames_free(struct kernel_frames *known);
size_t kernel_frames_own(const struct kernel_frames *known, const uint64_t *frames, size_t count);
size_t kernel_frames_interrupt(const struct kernel_frames *known, const uint64_t *frames,
                               size_t count);

/* ring.c: write the contents of all buffers to the file once. */
bool recording_drain(struct recording *r, struct error *error);
/* The disk is full: write only the side records left in the buffers, to the space reserved for them. */
void recording_drain_names(struct recording *r);

/* launch.c */
bool launch(struct recording *r, struct error *error); /* fork; the child waits */
char *
launch_find(const char *name); /* return the file to execute for this name; free() it; NULL: none */
bool launch_go(struct recording *r, struct error *error); /* let the child exec; fail if it can't */
void launch_begin(struct recording *r); /* the same in two steps: let it exec … */
bool launch_began(struct recording *r, struct error *error); /* … and check that it did */

/* ending.c: become the parent of the target's orphans; reap those that ended; end all of them if the target was launched. */
void target_adopt_orphans(struct recording *r);
void target_reap_orphans(struct recording *r);
void target_end(struct recording *r);
/* The recording failed: let the target run to its own end. */
void target_wait(struct recording *r);

/* run.c: nanoseconds of the clock that recordings use. */
uint64_t monotonic(void);
/* Used by both methods. */
void recording_drop_events(struct recording *r);
void recording_shape_records(
    struct recording *r); /* decide the layout of synthesized records, once the events are known */
bool recording_begin_file(struct recording *r, struct error *error);
pid_t process_of(pid_t tid);

/* ptrace.c: sampling without perf events. */
bool ptrace_can(const struct recording *r,
                struct error *error); /* whether it can sample the target */
bool record_with_ptrace(struct recording *r, struct error *error);

/* synthesize.c: records of what is already running, and of what happens under ptrace. */
struct task {
    pid_t pid, parent_pid, tid, parent_tid;
};
bool synthesize_comm(struct sink *sink, pid_t pid, pid_t tid, bool exec, struct error *error);
bool synthesize_name(struct sink *sink, pid_t pid, pid_t tid, struct text comm, bool exec,
                     struct error *error); /* the same with a given name */
bool synthesize_task(struct sink *sink, uint32_t type, struct task task,
                     struct error *error); /* FORK, EXIT */
bool synthesize_namespaces(struct sink *sink, pid_t pid,
                           struct error *error); /* if it has another mount namespace */
bool is_elsewhere(pid_t pid);                    /* whether it has another mount namespace */
bool synthesize_mapping(struct sink *sink, pid_t pid, bool elsewhere, const char *line,
                        struct error *error); /* from a line of /proc/PID/maps */
bool synthesize_threads(struct sink *sink, pid_t pid,
                        struct error *error); /* a process without its mappings */
bool synthesize_kernel(struct sink *sink, struct error *error);
bool synthesize_process(struct sink *sink, pid_t pid,
                        struct error *error); /* skips processes that have ended */
bool synthesize_all(struct sink *sink, struct error *error);

/* runtime_setup.c: choose the environment settings for the target's runtime, before launch. */
void runtime_prepare(struct recording *r);
/* runtime.c: whether the target is, or with several processes may be, a Go program. */
bool runtime_is_go(const struct recording *r);
/* Whether it is Java or node, whose stacks are often deeper than the usual copy. */
bool runtime_is_deep(const struct recording *r);

/* keep.c: keep with the recording what will be gone when it is read. With NULL all of these do nothing. */
struct keeper *keeper_new(struct sink *sink, const struct record_options *options);
void keeper_free(struct keeper *keeper);
/* Take note of a complete record. Costs no system call. */
void keeper_saw(struct keeper *keeper, const uint8_t *record,
                const struct perf_event_header *header);
/* The same for a sample, of which `have` bytes are here. */
void keeper_saw_sample(struct keeper *keeper, const uint8_t *record,
                       const struct perf_event_header *header, size_t have);
/* Take note of a part of a process's stack that no sample has a copy of. */
void keeper_saw_memory(struct keeper *keeper, pid_t pid, uint64_t address, struct text bytes);
/* Between two rounds, open what was mapped since the last and write what is final. */
bool keeper_turn(struct keeper *keeper, struct error *error);
/* The same, but only when there is work: a turn looks at every known process. */
bool keeper_turn_if_due(struct keeper *keeper, struct error *error);
bool keeper_finish(struct keeper *keeper, struct error *error);
/* At the end of a window, write the perf maps of living processes that have grown. The next window starts afresh. */
bool keeper_finish_window(struct keeper *keeper, struct error *error);
/* Whether a file mapped from this path without a build id was kept: the file at the path now is another one. */
bool keeper_kept_unnamed(const struct keeper *keeper, struct text path);
/* keep_files.c: return the mount namespace of a process; 0 if it has ended or access is denied. */
uint64_t mount_of(pid_t pid);
/* keep_files.c: open the file that a process has mapped there, through /proc/PID/map_files or, if that is denied, by its path as the process
   sees it. Only regular files; -1 on failure. */
int open_mapped(pid_t pid, uint64_t start, uint64_t end, const char *path);
bool descriptor_build_id(int descriptor, struct build_id *id); /* of an open file */
/* container.c: append the name or id of the container of a cgroup; return false if it has none. */
bool container_of_cgroup(struct text path, struct buffer *container);

/* windows.c: a recording in windows. Without windows these do nothing and succeed. */
struct window *window_new(uint64_t length);
void window_free(struct window *window);
bool window_open(struct window *window, struct error *error); /* make the next file in memory */
void window_take(struct window *window, const void *first, size_t first_size, const void *second,
                 size_t second_size);
void window_begin_round(struct recording *r); /* before the buffers are emptied */
bool window_end_round(struct recording *r,
                      struct error *error); /* after: write what is old enough to the window */
bool window_turn(struct recording *r, struct error *error);   /* pass it on when its time is up */
bool window_finish(struct recording *r, struct error *error); /* pass on the last one */

/* sink.c */
/* Get the build id of a MMAP2 record; return false if it has none. */
bool mapping_build_id(const struct sink *sink, const uint8_t *record,
                      const struct perf_event_header *header, struct build_id *id);
bool sink_write(struct sink *sink, const uint8_t *records, size_t size,
                struct error *error); /* at once, whatever their time */
bool sink_records(struct sink *sink, const uint8_t *records, size_t size, struct error *error);
bool sink_split(struct sink *sink, const uint8_t *first, size_t first_size, const uint8_t *second,
                size_t second_size, struct error *error);
bool sink_early(struct sink *sink,
                struct error *error); /* write the early records, once there is a writer */
bool sink_round(struct sink *sink, struct error *error);
/* From now on write only side records, without which the samples already written would be useless. Return false if nothing more can be
   written. */
bool sink_only_names(struct sink *sink);
bool sink_introduce(struct sink *sink, pid_t pid,
                    struct error *error); /* write records of a process, unless it is known */
void sink_release(struct sink *sink);

/* features.c: write the file's header sections, at the end. */
bool write_host_features(struct recording *r, struct error *error);
/* host.c: write the CPU topology and the clock, as far as the machine provides them. */
bool write_host_topology(struct recording *r, struct error *error);
bool write_clock(struct recording *r, struct error *error);
bool write_sample_time(struct recording *r, struct error *error); /* at the end */
bool write_build_ids(struct recording *r, struct error *error);

/* tracing.c: write the formats of the tracepoints among the events, if any. */
bool write_tracing_data(struct recording *r, struct error *error);

/* children.c: make all current descendants of the target targets, too. Return whether there were new ones. */
bool recording_find_children(struct recording *r);
void processes_add_children(struct process_list *list);
bool processes_hold(const struct process_list *list, pid_t pid);
void recording_add_child(struct recording *r, pid_t pid); /* one of them */
bool ids_add(struct index *set, pid_t id);                /* return whether it is new */
char thread_state(pid_t tid, pid_t *parent); /* R, S, D, … as in /proc; 0: it has ended */
uint64_t thread_cpu_time(pid_t tid);         /* nanoseconds, from schedstat; 0: it has ended */
bool thread_lives(pid_t tid);                /* false for zombies, too */
/* children.c: open the directory of a process's threads. */
DIR *tasks_open(pid_t pid, struct error *error);
/* Whether pids[i] was added as a child and has ended since, which is not an error. */
bool record_may_vanish(const struct record_options *options, size_t i);

#endif
