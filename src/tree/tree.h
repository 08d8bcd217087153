/*
 * tree: the one thing every source becomes and every view is made from.
 *
 * A tree is a trie of places in code. Sources add stacks of locations (addresses, not names) and what
 * was measured on them; after the merge each location is resolved, once, to its frames. Views do not walk this tree: they
 * walk a `flame` (stacks.h), a second and much smaller tree keyed by what a frame is called.
 *
 * Ids are 32-bit indexes and 0 is none. Node 0 is the root: the empty stack. Ids depend on the order of
 * reading, so none of them ever reaches an output; every output is ordered by content.
 *
 * Parallel readers have a tree each (tree_new_part), which shares the whole's strings, objects, events and
 * threads, all made before. tree_append_nodes() and tree_merge_series() join them: equal nodes of two parts stay twins, which views
 * add up.
 */
#ifndef WICK_TREE_H
#define WICK_TREE_H

#include "base/base.h"

struct objects; /* room object */

/* ---- the labels of what was measured ------------------------------------------------------ */

enum event_kind {
    EVENT_SOFTWARE,
    EVENT_HARDWARE,
    EVENT_TRACEPOINT,
    EVENT_OTHER,
    EVENT_BEFORE, /* what a diff compares with: counted in self_before */
};

/* What its weights are of a thread's time. */
enum event_time {
    TIME_MEASURED, /* none of it: whatever the event counts */
    TIME_RUN,      /* nanoseconds on the CPU, between waits */
    TIME_WAITED,   /* nanoseconds off it; in STATE_ON, nanoseconds on it of which no sample tells */
};

struct event {
    uint32_t name; /* string */
    uint32_t unit; /* string: what a weight counts ("samples", "ns", "cycles", …) */
    enum event_kind kind;
    bool chains; /* of a perf.data: recorded with call chains */
    enum event_time time;
};

/* One life of a thread: ids are reused, so (pid, tid) may occur more than once. */
struct thread {
    int32_t pid;
    int32_t tid;
    uint64_t start; /* keys' times; 0 and UINT64_MAX when not seen */
    uint64_t end;
    bool unnamed;     /* no record told of it, only samples do */
    uint32_t process; /* string: what its process is called; 0 until tree_name_processes() */
};

enum state { STATE_ON, STATE_SLEEP, STATE_DISK, STATE_PREEMPTED };
struct text state_name(uint8_t state); /* "on-cpu", "sleep", "disk", "preempted" */
enum ending { ENDING_COMPLETE, ENDING_TRUNCATED, ENDING_BROKEN, ENDING_UNKNOWN };

/*
 * A series is a set of labels. The keys that every recording has are fields; a source's other keys (a service, a host, what an
 * interpreter calls its thread) are pairs of a set that the tree interns. series_label() answers for both kinds.
 */
struct series {
    uint32_t event;
    uint32_t thread; /* 0 when the source knows none */
    uint32_t comm;   /* string; 0 when the source knows none */
    uint32_t labels; /* the set of its other labels, by tree_add_labels(); 0: none */
    uint8_t state;
    uint8_t ending;
};

static inline bool series_equal(const struct series *a, const struct series *b) {
    return a->event == b->event && a->thread == b->thread && a->comm == b->comm &&
           a->labels == b->labels && a->state == b->state && a->ending == b->ending;
}

/* One label beyond the fixed ones; both are strings. */
struct label_pair {
    uint32_t key;
    uint32_t value;
};
/* The set's pairs, by key: label_pairs[first … +count). */
struct label_set {
    uint32_t first;
    uint32_t count;
};

/* ---- places in code ----------------------------------------------------------------------- */

enum mode { MODE_USER, MODE_KERNEL, MODE_HYPERVISOR, MODE_GUEST_USER, MODE_GUEST_KERNEL };

/* What a frame is, for colours and the _[k] _[j] _[i] marks; also `kinds` of labels. */
enum frame_kind {
    KIND_KERNEL = 1,
    KIND_JIT = 2,
    KIND_INLINED = 4,
    KIND_LIBRARY = 8,  /* a shared object, not the program itself */
    KIND_UNKNOWN = 16, /* no symbol */
    KIND_WAKER = 32,
    /* of labels only: a function of a language that names its own, see kind_of_language() */
    KIND_PYTHON = 256,
    KIND_JAVA = 512,
    KIND_JAVASCRIPT = 1024,
    KIND_RUBY = 2048,
    KIND_PHP = 4096,
    KIND_ERLANG = 8192,
    KIND_ROOT = 128, /* of labels only: a root frame of the series (comm, pid, …), no function */
    KIND_SCRIPT =
        64, /* of locations only: the name is as perf script prints it, not yet as it is shown */
};

/* KIND_PYTHON of "python", and so on; 0 of a language that has none. */
uint32_t kind_of_language(struct text language);
/* The other way round; of several the first. Empty where there is none. */
struct text language_of_kinds(uint32_t kinds);

/*
 * A function that a source names itself: text formats, interpreters. Numbers but `line` are strings, 0 where the source does not say.
 * Functions of machine code have no such entry: their names are found when everything is read, and are `struct frame`s.
 */
struct function {
    uint32_t name;
    uint32_t file;
    uint32_t line;     /* its first */
    uint32_t module;   /* a package, a class, a Python module */
    uint32_t language; /* "python", "go", … */
};

/*
 * A place in code, of one of two kinds.
 *
 * Code (`function` is 0) is (object, address, mode, whether it is a return address), and is resolved to frames when everything is read:
 * `address` is a file offset in file objects and the address itself in all others (object.h says which).
 *
 * Named is (function, line), with the object when the source names one.
 *
 * location_frame() has the frames of both.
 */
struct location {
    uint64_t address;
    uint64_t raw; /* the address as sampled, when it joins the key (script text, --addrs), else 0 */
    uint32_t
        object; /* 0: nothing was mapped there, and `address` is as sampled; of named ones: it is not known */
    uint32_t function; /* of named ones, else 0 */
    uint32_t
        line; /* of named ones: where in the function, 0: it is not known; of code: a number that tells profiles apart that had other code there (tree_join) */
    uint8_t mode;
    uint8_t call;    /* a return address: location_within() says where it is looked up */
    uint8_t kinds;   /* named ones: what the source says of it */
    uint8_t unwound; /* found by unwinding, not recorded: perf expands inlines only there */
    /* Of code, filled by resolving: frames[first_frame … +frame_count), outermost first. */
    uint32_t first_frame;
    uint32_t frame_count;
};

/* Where the location is looked up: of a return address, inside the call. */
static inline uint64_t location_within(const struct location *location) {
    return location->address - location->call;
}

/* Of a frame that has a name, but whose source does not say where the symbol starts. */
#define OFFSET_UNKNOWN UINT64_MAX

struct frame {
    uint32_t name; /* string, demangled; 0: no symbol */
    uint32_t file; /* string, 0 unless source lines were asked for and found */
    uint32_t line;
    uint32_t column;
    uint64_t offset;   /* from the symbol's start; the same for all frames of a location */
    bool inlined;      /* into the frame before it */
    uint32_t language; /* string: "javascript", …; 0 where machine code does not say */
};

struct node {
    uint32_t parent;
    uint32_t location;
};

/* How a node's children are found: by a list while they are few, in the index from then on. */
struct node_link {
    uint32_t first_child; /* the newest */
    uint32_t next;        /* an older sibling */
    uint32_t children;
};

struct cell {
    uint32_t node;
    uint32_t series;
    uint64_t samples;
    uint64_t weight;
};

/* What a call graph knows in place of stacks: one function calls another from one place. */
struct call {
    uint32_t caller; /* location: the place of the call */
    uint32_t callee; /* location: where the called function begins */
    uint32_t series;
    uint64_t count;  /* how often */
    uint64_t weight; /* what the callee cost there, with all that it called */
};

/* Kept only when a view asks. Order is (round, time, file, offset): the source's key. */
struct sample {
    uint64_t time;
    uint64_t offset; /* of its record, in file `file` */
    uint64_t weight;
    uint32_t node;
    uint32_t series;
    uint32_t file;
    uint32_t round; /* 0 unless perf's order of a disordered file is imitated */
    uint32_t cpu;   /* UINT32_MAX when not recorded */
};

/* Without one the time is 0 or all ones; perf gives what it summed up in the kernel a time of its own, at the end of all. */
static inline bool sample_has_time(const struct sample *sample) {
    return sample->time != 0 && sample->time < UINT64_C(0xffffffff00000000);
}

/* What may be carried along with a profile: a source file's text, and a function's machine code. Bytes are the tree's. */
struct attached_source {
    uint32_t file; /* string, as frames name it */
    struct text text;
};
struct attached_code {
    uint32_t object;
    uint32_t machine; /* EM_… */
    uint64_t start;   /* in the object's own terms, as a location's address */
    struct text bytes;
};

struct tree {
    struct strings *strings;
    struct objects *objects; /* NULL for text sources without any */
    VECTOR(struct event) events;
    VECTOR(struct thread) threads;
    VECTOR(struct series) series;
    VECTOR(struct label_pair) label_pairs;
    VECTOR(struct label_set) label_sets;
    VECTOR(struct function) functions;
    VECTOR(uint32_t)
    functions_of_names; /* by string: the function that is nothing but this name, or 0 */
    VECTOR(struct location) locations;
    VECTOR(struct node) nodes;
    VECTOR(struct node_link)
    links;                 /* one for each node; of appended ones, when they are first looked for */
    VECTOR(uint32_t) ends; /* of the parts that it was joined of: where in `nodes` each ends */
    VECTOR(struct cell) cells;
    VECTOR(struct call) calls;     /* of `is_graph`; equal ones may be there several times */
    VECTOR(struct sample) samples; /* beyond a limit in an unlinked temporary file */
    VECTOR(struct frame) frames;
    VECTOR(struct attached_source) sources;
    VECTOR(struct attached_code) codes;
    struct arena attached; /* for the bytes of both */
    struct notes notes;
    bool keep_samples;
    bool
        recorded; /* all of it is one recording's, read from a perf.data or saved from one: every sample has a thread */
    /* The source is a call graph: every node is a child of the root, a function's place with its self cost, and `calls` says what
       functions call. Of a place whose file is not its function's, a location's `raw` is the function. */
    bool is_graph;
    uint64_t began, lasted;   /* when, in Unix nanoseconds, and how long; 0: not known */
    uint32_t chosen;          /* the event whose value was chosen; 0: none was */
    bool overflow;            /* a weight passed 2^64: no view may be made */
    const struct tree *whole; /* a part's whole; NULL otherwise */
    struct index thread_index, series_index, label_index, function_index, location_index,
        node_index, cell_index;
    int samples_descriptor;
    /* What the input may cost, or NULL; `held` of its memory are taken, `steps` are not yet. */
    struct budget *budget;
    uint64_t held;
    uint64_t steps;
};

struct tree *tree_new(void);
/* A reader's own tree: adds to its own series, locations, nodes, cells and samples; strings, objects, events, threads and sets of labels
   are the whole's, and must not change while parts are alive. */
struct tree *tree_new_part(const struct tree *whole);
void tree_free(struct tree *tree);
/* From here on, what is looked for and added is on this budget, until the next call; NULL: on none. The tree finds out only now and then
   that it is exceeded, and at the next call: ask the budget. A part has its whole's. */
void tree_set_budget(struct tree *tree, struct budget *budget);
/* Takes off the budget what was used since it was settled last. */
void tree_settle(struct tree *tree);
static inline void tree_take_steps(struct tree *tree, uint64_t steps) {
    enum { NOW_AND_THEN = 4096 };
    if ((tree->steps += steps) >= NOW_AND_THEN)
        tree_settle(tree);
}

uint32_t tree_add_event(struct tree *tree, struct text name, struct text unit,
                        enum event_kind kind);
uint32_t tree_add_thread(struct tree *tree, const struct thread *thread); /* always a new one */
/* Finds or adds the thread that no record told of and only samples name. In a part, too. */
uint32_t tree_find_thread(struct tree *tree, int32_t pid, int32_t tid);
/* These find an equal one or add it. */
uint32_t tree_add_series(struct tree *tree, const struct series *series);
uint32_t tree_add_location(struct tree *tree, const struct location *location);
uint32_t tree_add_function(struct tree *tree, const struct function *function); /* not in a part */
/* The same of one that is nothing but a name: costs a look into an array. */
uint32_t tree_name_function(struct tree *tree, struct text name);
uint32_t tree_add_node(struct tree *tree, uint32_t parent, uint32_t location);
/* The same where the caller knows that there is no such node: costs no look at the parent's children. */
static inline uint32_t tree_append_node(struct tree *tree, uint32_t parent, uint32_t location) {
    vector_push(&tree->nodes, ((struct node){parent, location}));
    return (uint32_t)tree->nodes.count - 1;
}
/* Adds to the cell (node, series). Returns its id, for tree_count_again(). */
uint32_t tree_count(struct tree *tree, uint32_t node, uint32_t series, uint64_t samples,
                    uint64_t weight);
static inline void tree_count_again(struct tree *tree, uint32_t cell, uint64_t samples,
                                    uint64_t weight) {
    struct cell *c = &tree->cells.items[cell];
    c->samples += samples;
    tree->overflow |= __builtin_add_overflow(c->weight, weight, &c->weight);
}
/* A cell more, even where the node and series have one: views add them up. */
static inline uint32_t tree_append_cell(struct tree *tree, const struct cell *cell) {
    vector_push(&tree->cells, *cell);
    return (uint32_t)tree->cells.count - 1;
}
void tree_keep_sample(struct tree *tree,
                      const struct sample *sample); /* nothing unless keep_samples */
/* Puts the part's nodes behind the tree's own without looking for equal ones: views add up twins. Returns what a node's number grows by. */
uint32_t tree_append_nodes(struct tree *tree, const struct tree *part);
/* Only the part's series (and the threads that only its samples named): series[i] becomes what its series i is in the tree. */
void tree_merge_series(struct tree *tree, const struct tree *part, uint32_t *series);
/* Into key order, when all parts are joined. */
void tree_sort_samples(struct tree *tree);
/* As they stand in their files, where several threads kept them. */
void tree_sort_samples_by_place(struct tree *tree);
/* false, with an error that says so, if a weight did not fit. */
bool tree_check(const struct tree *tree, struct error *error);

/* What a named location is called: a string; 0 of code. */
static inline uint32_t location_name(const struct tree *tree, const struct location *location) {
    return location->function ? tree->functions.items[location->function].name : 0;
}
/* A location's frames, outermost first, whatever its kind. Code has none until it is resolved. */
static inline uint32_t location_frame_count(const struct location *location) {
    return location->function ? 1 : location->frame_count;
}
static inline struct frame location_frame(const struct tree *tree, const struct location *location,
                                          uint32_t i) {
    if (!location->function)
        return tree->frames.items[location->first_frame + i];
    const struct function *function = &tree->functions.items[location->function];
    return (struct frame){.name = function->name,
                          .file = function->file,
                          .line = location->line,
                          .inlined = location->kinds & KIND_INLINED};
}

/* What a series' comm is shown as: the comm, or ":TID" where none was recorded. */
void tree_add_comm(const struct tree *tree, const struct series *series, struct buffer *buffer);

/* Call each process what its first thread is called, or else what most of its samples are: threads that rename themselves stay in it. When everything was read. */
void tree_name_processes(struct tree *tree);
/* Give each series of kept samples the label `cpu`. Splits series and cells by it; samples whose CPU is not known stay as they are. False, and nothing
   changes, where the samples are not all that was counted. */
bool tree_label_cpus(struct tree *tree);

/* The series' thread, also in a part; NULL when the source knows none. */
const struct thread *tree_thread(const struct tree *tree, uint32_t thread);

/* ---- labels ---- */

/* Find or add the set of these pairs, given in any order; of equal keys the last counts, and one whose value is 0 is left out. Returns 0 for
   the empty set. Not in a part. */
uint32_t tree_add_labels(struct tree *tree, const struct label_pair *pairs, size_t count);
/* The set `labels` with `key` set to `value`, or without `key` if the value is empty. */
uint32_t tree_set_label(struct tree *tree, uint32_t labels, struct text key, struct text value);
/* The pairs of a set, in the order of their keys' bytes. */
const struct label_pair *tree_labels(const struct tree *tree, uint32_t labels, size_t *count);
/* Append the series' value of `key` to *value; false if it has none. Keys are event, pid, tid, comm, state (on-cpu, sleep, disk, preempted),
   ending (complete, truncated, broken), and those of its set. Costs a few comparisons: meant for each series, not for each sample. */
bool series_label(const struct tree *tree, const struct series *series, struct text key,
                  struct buffer *value);
/* Whether `key` is a field of every series, so that no set may hold it. */
bool label_is_fixed(struct text key);

static inline const struct event *tree_event(const struct tree *tree, uint32_t id) {
    return &tree->events.items[id];
}

/* ---- which time --------------------------------------------------------------------------- */

/* Which of a thread's time is counted. */
enum times {
    TIMES_RUNNING, /* what the events say, and no waits unless there is nothing else */
    TIMES_WAITING, /* nanoseconds off the CPU */
    TIMES_BOTH,    /* nanoseconds, which add up to the wall time of each thread */
};
static inline bool event_is_of(const struct event *event, enum times times) {
    return times == TIMES_RUNNING   ? event->time == TIME_MEASURED
           : times == TIMES_WAITING ? event->time == TIME_WAITED
                                    : event->time != TIME_MEASURED;
}
/* Whether a series counts then. One that ran may be there twice: as measured, and as nanoseconds beside waits. */
static inline bool series_is_of(const struct tree *tree, const struct series *series,
                                enum times times) {
    return event_is_of(tree_event(tree, series->event), times) &&
           (times != TIMES_WAITING || series->state != STATE_ON);
}
/* Whether any series of the tree counts then. */
bool tree_knows(const struct tree *tree, enum times times);
/*
 * Return a tree that has only the events, series, cells and samples of `times`. It borrows all else: `tree` must outlive it and stay as it is.
 * Costs a copy of these cells and samples, nothing for nodes and names. tree_view_free() it.
 */
struct tree *tree_view_new(const struct tree *tree, enum times times);
void tree_view_free(struct tree *view);
/* Drop from the tree itself what a view of `times` would not have. */
void tree_keep_times(struct tree *tree, enum times times);

/* ---- what to count ------------------------------------------------------------------------ */

/* `key` has a value that `pattern` matches (text_matches). Several of one key are alternatives; of different keys all must pass. */
struct label_filter {
    const char *key;
    const char *pattern;
};

/* The grammar's filters. Zero-initialised lets everything through. Texts and arrays are the caller's. */
struct filter {
    const char *const *
        events; /* names or patterns (text_matches); "all" adds every one; none: the first attribute's (sources decide) */
    size_t event_count;
    const char **comms; /* names or patterns */
    size_t comm_count;
    const int32_t *pids;
    size_t pid_count;
    const int32_t *tids;
    size_t tid_count;
    const uint32_t *cpus;
    size_t cpu_count;
    bool has_time;
    uint64_t time_from; /* nanoseconds, inclusive */
    uint64_t time_to;   /* inclusive */
    const struct label_filter *labels;
    size_t label_count;
};
bool filter_event(const struct filter *filter,
                  struct text name); /* of named events only: see event_count */
/* Whether two names are of one event. perf opens it once for each kind of core that a CPU has: cpu_core/cycles/, cpu_atom/cycles/. */
bool event_same(struct text a, struct text b);
static inline bool
filter_is_set(const struct filter *f) { /* any but the filters of events and labels */
    return f->comm_count || f->pid_count || f->tid_count || f->cpu_count || f->has_time;
}
/* Whether a sample passes all but the filters of events and labels. `cpu` is UINT32_MAX and time 0 where the source has none. */
bool filter_sample(const struct filter *filter, int32_t pid, int32_t tid, struct text comm,
                   uint32_t cpu, uint64_t time);

/* Whether a series passes the label filters; a key that it lacks reads as the empty text. */
bool filter_series(const struct filter *filter, const struct tree *tree,
                   const struct series *series);
/* Drop the cells and samples of series that do not pass, with a note of how many; nothing where no label is filtered. Labels are known when
   everything has been read, so this comes last. */
void tree_filter_labels(struct tree *tree, const struct filter *filter);
/* Drop what is not of these events, by id. */
void tree_keep_events(struct tree *tree, const bool *events);

/* ---- values ------------------------------------------------------------------------------- */

/*
 * What can be summed: how many samples there are (value 0), and of each event its weight in the event's unit. A source with several numbers for
 * each stack makes an event of each. Names are those of pprof: samples/count, cpu/nanoseconds, alloc_space/bytes.
 */
struct value {
    struct text name, unit;
    uint32_t event; /* 0: samples */
};
size_t tree_value_count(const struct tree *tree);
struct value tree_value(const struct tree *tree, size_t number);
void tree_add_values(const struct tree *tree,
                     struct buffer *names); /* "samples/count, cpu/nanoseconds" */
/* What an event's value is called, and its unit: nanoseconds, bytes and the like, or else count. */
struct text value_name(struct text event, struct text unit);
struct text value_unit(struct text unit);
/* Whether every profile has such a value, so that it need not be looked for: samples, and period, which is whatever was counted. */
bool value_is_common(struct text name, bool *by_samples);
/* Keep only what has the value called so: NAME, NAME/UNIT or the event's name. Needs a tree that was read with all events. False: there is none. */
bool tree_choose_value(struct tree *tree, const char *name, struct error *error);

#endif
