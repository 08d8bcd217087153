/*
 * tree: the call tree. Every source is read into one, and every view is made from one.
 *
 * A tree is a trie of locations in code. Sources add stacks of locations (addresses, not names) and what was measured on
 * them. After the parts are merged, each location is resolved to its frames, once. Views do not walk this tree: they walk a
 * `flame` (stacks.h), a second, much smaller tree keyed by frame name.
 *
 * Ids are 32-bit indexes; 0 means none. Node 0 is the root: the empty stack. Ids depend on the order of reading, so no id
 * ever reaches an output; every output is ordered by content.
 *
 * Each parallel reader has a tree of its own (tree_new_part). It shares the strings, objects, events and threads of the whole
 * tree, which all exist before reading starts. tree_append_nodes() and tree_merge_series() join the parts. Equal nodes of two
 * parts stay separate; views add them up.
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
    EVENT_BEFORE, /* the baseline of a diff: counted in self_before */
};

/* How an event's weights relate to a thread's time. */
enum event_time {
    TIME_MEASURED, /* not at all: weights are whatever the event counts */
    TIME_RUN,      /* nanoseconds on the CPU, between waits */
    TIME_WAITED,   /* nanoseconds off the CPU; in STATE_ON, CPU time that no sample covers */
    TIME_ASIDE, /* not at all, and the event counts only if it is asked for by name; only in profiles to be saved */
};

struct event {
    uint32_t name; /* string */
    uint32_t unit; /* string: what a weight counts ("samples", "ns", "cycles", …) */
    enum event_kind kind;
    bool chains; /* recorded with call chains (perf.data only) */
    enum event_time time;
};

/* One lifetime of a thread. The kernel reuses ids, so (pid, tid) may occur more than once. */
struct thread {
    int32_t pid;
    int32_t tid;
    uint64_t start;   /* time of its first record; 0 if its start was not seen */
    uint64_t end;     /* UINT64_MAX if its end was not seen */
    bool unnamed;     /* only samples mention it; no fork or comm record does */
    uint32_t process; /* string: the name of its process; 0 until tree_name_processes() */
};

enum state { STATE_ON, STATE_SLEEP, STATE_DISK, STATE_PREEMPTED };
struct text state_name(uint8_t state); /* "on-cpu", "sleep", "disk", "preempted" */
enum ending { ENDING_COMPLETE, ENDING_TRUNCATED, ENDING_BROKEN, ENDING_UNKNOWN };

/*
 * A series is a set of labels. Keys that every recording has are fields. All other keys (service, host, an interpreter's name for
 * a thread) are pairs in a set that the tree interns. series_label() looks up both kinds.
 */
struct series {
    uint32_t event;
    uint32_t thread; /* 0 if the source has no threads */
    uint32_t comm;   /* string; 0 if the source has no comms */
    uint32_t labels; /* the set of all other labels, from tree_add_labels(); 0: none */
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
/* A set of pairs, sorted by key: label_pairs[first … +count). */
struct label_set {
    uint32_t first;
    uint32_t count;
};

/* ---- places in code ----------------------------------------------------------------------- */

enum mode { MODE_USER, MODE_KERNEL, MODE_HYPERVISOR, MODE_GUEST_USER, MODE_GUEST_KERNEL };

/* The kind of a frame, for colours and the _[k] _[j] _[i] marks. A label's `kinds` uses the same bits. */
enum frame_kind {
    KIND_KERNEL = 1,
    KIND_JIT = 2,
    KIND_INLINED = 4,
    KIND_LIBRARY = 8,  /* a shared object, not the program itself */
    KIND_UNKNOWN = 16, /* no symbol */
    KIND_WAKER = 32,
    /* labels only: a function of a language with names of its own, see kind_of_language() */
    KIND_PYTHON = 256,
    KIND_JAVA = 512,
    KIND_JAVASCRIPT = 1024,
    KIND_RUBY = 2048,
    KIND_PHP = 4096,
    KIND_ERLANG = 8192,
    KIND_ROOT = 128, /* labels only: a root frame of the series (comm, pid, …), not a function */
    KIND_SCRIPT =
        64, /* locations only: the name is as perf script prints it, not as wick shows it */
};

/* Return KIND_PYTHON for "python", and so on; 0 for a language without a kind. */
uint32_t kind_of_language(struct text language);
/* Return the language of the first language bit in `kinds`; empty if there is none. */
struct text language_of_kinds(uint32_t kinds);

/*
 * A function named by the source itself: a text format or an interpreter. All fields but `line` are strings; 0 means the source
 * does not say. Functions of machine code have no entry here: they are named after reading, as `struct frame`s.
 */
struct function {
    uint32_t name;
    uint32_t file;
    uint32_t line;     /* first line */
    uint32_t module;   /* a package, a class, a Python module */
    uint32_t language; /* "python", "go", … */
};

/*
 * A location in code. There are two kinds:
 *
 * Code (`function` is 0) is (object, address, mode, is a return address). It is resolved to frames after reading. `address` is a
 * file offset for file objects and the address itself for all others (object.h says which).
 *
 * Named is (function, line), with the object if the source names one.
 *
 * location_frame() returns the frames of both kinds.
 */
struct location {
    uint64_t address;
    uint64_t raw; /* the sampled address if it is part of the key (script text, --addrs), else 0 */
    uint32_t object;   /* 0: unknown; for code, nothing was mapped and `address` is as sampled */
    uint32_t function; /* 0 for code */
    uint32_t line;     /* named: line in the function, 0: unknown. Code: a number that separates
                      profiles with different code at this address (tree_join) */
    uint8_t mode;
    uint8_t call;    /* a return address: location_within() is the address to look up */
    uint8_t kinds;   /* named: what the source says about it (enum frame_kind) */
    uint8_t unwound; /* found by unwinding, not recorded: perf expands inlines only here */
    /* Code, after resolving: frames[first_frame … +frame_count), outermost first. */
    uint32_t first_frame;
    uint32_t frame_count;
};

/* Return the address to look up: for a return address, one inside the call. */
static inline uint64_t location_within(const struct location *location) {
    return location->address - location->call;
}

/* The offset of a named frame whose source does not say where the symbol starts. */
#define OFFSET_UNKNOWN UINT64_MAX

struct frame {
    uint32_t name; /* string, demangled; 0: no symbol */
    uint32_t file; /* string, 0 unless source lines were asked for and found */
    uint32_t line;
    uint32_t column;
    uint64_t offset;   /* from the symbol's start; the same for all frames of a location */
    bool inlined;      /* into the frame before it */
    uint32_t language; /* string: "javascript", …; 0: unknown */
};

struct node {
    uint32_t parent;
    uint32_t location;
};

/* A node's children: a linked list while there are few, the index once there are many. */
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

/* An edge of a call graph, which has no stacks: one function calls another from one location. */
struct call {
    uint32_t caller; /* location of the call */
    uint32_t callee; /* location where the called function begins */
    uint32_t series;
    uint64_t count;  /* number of calls */
    uint64_t weight; /* inclusive cost of the callee for these calls */
};

/* Kept only if a view needs samples. They are ordered by (round, time, file, offset). */
struct sample {
    uint64_t time;
    uint64_t offset; /* of its record, in file `file` */
    uint64_t weight;
    uint32_t node;
    uint32_t series;
    uint32_t file;
    uint32_t round; /* 0 unless wick imitates perf's order of an unordered file */
    uint32_t cpu;   /* UINT32_MAX if not recorded */
};

/* Return whether the sample has a real time. A missing time is 0 or all ones, and perf gives sums made in the kernel a time
   close to all ones, after everything else. */
static inline bool sample_has_time(const struct sample *sample) {
    return sample->time != 0 && sample->time < UINT64_C(0xffffffff00000000);
}

/* Optional parts of a profile: the text of a source file, and the machine code of a function. The tree owns the bytes. */
struct attached_source {
    uint32_t file; /* string, as frames name it */
    struct text text;
};
struct attached_code {
    uint32_t object;
    uint32_t machine; /* EM_… */
    uint64_t start;   /* in the same terms as a location's address */
    struct text bytes;
};

/* Which part of a thread's time a view counts. */
enum times {
    TIMES_RUNNING, /* what the events measured; waits only if there is nothing else */
    TIMES_WAITING, /* nanoseconds off the CPU */
    TIMES_BOTH,    /* nanoseconds on and off the CPU: the wall time of each thread */
};

struct tree {
    struct strings *strings;
    struct objects *objects; /* NULL for text sources without objects */
    VECTOR(struct event) events;
    VECTOR(struct thread) threads;
    VECTOR(struct series) series;
    VECTOR(struct label_pair) label_pairs;
    VECTOR(struct label_set) label_sets;
    VECTOR(struct function) functions;
    VECTOR(uint32_t)
    functions_of_names; /* by string: the function that has this name and nothing else, or 0 */
    VECTOR(struct location) locations;
    VECTOR(struct node) nodes;
    VECTOR(struct node_link)
    links;                 /* one for each node; appended nodes get theirs when first searched */
    VECTOR(uint32_t) ends; /* for each part that was joined: where its nodes end */
    VECTOR(struct cell) cells;
    VECTOR(struct call) calls;     /* if `is_graph`; may contain equal calls */
    VECTOR(struct sample) samples; /* above a limit, in an unlinked temporary file */
    VECTOR(struct frame) frames;
    VECTOR(struct attached_source) sources;
    VECTOR(struct attached_code) codes;
    struct arena attached; /* holds the bytes of both */
    struct notes notes;
    bool keep_samples;
    bool recorded; /* read from one perf.data, or saved from one: every sample has a thread */
    /* The source is a call graph: every node is a child of the root and holds the self cost of one location, and `calls` has the
       edges. If the location's file is not its function's, its `raw` is the function. */
    bool is_graph;
    bool is_heap;             /* weights are values of allocations, which do not add up */
    bool is_estimated;        /* weights are estimates, because allocations were sampled … */
    uint64_t deviation;       /* … and the standard deviation of one sample's bytes, at most */
    enum times meant;         /* what the recorder was asked for; a view may show another time */
    enum times shown;         /* what was chosen when it was read */
    uint64_t began, lasted;   /* start in Unix nanoseconds, and duration; 0: unknown */
    uint32_t chosen;          /* the event whose value was chosen; 0: none */
    bool overflow;            /* a weight exceeded 2^64: no view may be made */
    const struct tree *whole; /* the whole tree, if this is a part; else NULL */
    struct index thread_index, series_index, label_index, function_index, location_index,
        node_index, cell_index;
    int samples_descriptor;
    /* The budget of the input, or NULL. `held` bytes are already taken from it; `steps` are still to be taken. */
    struct budget *budget;
    uint64_t held;
    uint64_t steps;
};

struct tree *tree_new(void);
/* Make a tree for one parallel reader. It has series, locations, nodes, cells and samples of its own. It shares strings, objects,
   events, threads and label sets with `whole`; these must not change while a part exists. */
struct tree *tree_new_part(const struct tree *whole);
void tree_free(struct tree *tree);
/* Charge lookups and additions to `budget` from now on; NULL: to none. The tree charges it only now and then, so ask the budget
   itself whether it is exceeded, after tree_settle(). A part uses the budget of its whole. */
void tree_set_budget(struct tree *tree, struct budget *budget);
/* Charge the budget for everything since the last call. */
void tree_settle(struct tree *tree);
static inline void tree_take_steps(struct tree *tree, uint64_t steps) {
    enum { NOW_AND_THEN = 4096 };
    if ((tree->steps += steps) >= NOW_AND_THEN)
        tree_settle(tree);
}

uint32_t tree_add_event(struct tree *tree, struct text name, struct text unit,
                        enum event_kind kind);
uint32_t tree_add_thread(struct tree *tree, const struct thread *thread); /* never reuses one */
/* Find or add a thread that only samples mention. Works in a part, too. */
uint32_t tree_find_thread(struct tree *tree, int32_t pid, int32_t tid);
/* These return an equal item if there is one, or add it. */
uint32_t tree_add_series(struct tree *tree, const struct series *series);
uint32_t tree_add_location(struct tree *tree, const struct location *location);
uint32_t tree_add_function(struct tree *tree, const struct function *function); /* not in a part */
/* The same for a function that has only a name: costs one array lookup. */
uint32_t tree_name_function(struct tree *tree, struct text name);
uint32_t tree_add_node(struct tree *tree, uint32_t parent, uint32_t location);
/* The same if the caller knows that the node does not exist yet: does not search the parent's children. */
static inline uint32_t tree_append_node(struct tree *tree, uint32_t parent, uint32_t location) {
    vector_push(&tree->nodes, ((struct node){parent, location}));
    return (uint32_t)tree->nodes.count - 1;
}
/* Add to the cell (node, series). Return its id, for tree_count_again(). */
uint32_t tree_count(struct tree *tree, uint32_t node, uint32_t series, uint64_t samples,
                    uint64_t weight);
static inline void tree_count_again(struct tree *tree, uint32_t cell, uint64_t samples,
                                    uint64_t weight) {
    struct cell *c = &tree->cells.items[cell];
    c->samples += samples;
    tree->overflow |= __builtin_add_overflow(c->weight, weight, &c->weight);
}
/* Add a cell even if (node, series) already has one: views add them up. */
static inline uint32_t tree_append_cell(struct tree *tree, const struct cell *cell) {
    vector_push(&tree->cells, *cell);
    return (uint32_t)tree->cells.count - 1;
}
void tree_keep_sample(struct tree *tree,
                      const struct sample *sample); /* nothing unless keep_samples */
/* Append the nodes of `part` without searching for equal ones. Return the number to add to a node id of the part. */
uint32_t tree_append_nodes(struct tree *tree, const struct tree *part);
/* Merge the series of `part`, and the threads that only its samples mention. Set series[i] to the id in `tree` of the part's series i. */
void tree_merge_series(struct tree *tree, const struct tree *part, uint32_t *series);
/* Sort samples by key, after all parts are joined. */
void tree_sort_samples(struct tree *tree);
/* Sort samples by file and offset, after several threads kept them. */
void tree_sort_samples_by_place(struct tree *tree);
/* Fail if a weight overflowed, or if the stacks have too many inlined frames. */
bool tree_check(const struct tree *tree, struct error *error);

/* Return the name of a named location, a string; 0 for code. */
static inline uint32_t location_name(const struct tree *tree, const struct location *location) {
    return location->function ? tree->functions.items[location->function].name : 0;
}
/* The frames of a location of either kind, outermost first. Code has none until it is resolved. */
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

/* Append the comm of the series, or ":TID" if none was recorded. */
void tree_add_comm(const struct tree *tree, const struct series *series, struct buffer *buffer);

/* Cut names of threads that are longer than 1,024 bytes. A file has such a name once, but outputs repeat it for each thread. Call it after
   reading. */
void tree_cut_comms(struct tree *tree);
/* Name each process after its first thread, or else after the comm of most of its samples, so that a thread that renames itself
   stays in its process. Call it after reading. */
void tree_name_processes(struct tree *tree);
/* Give each series the label `cpu`, from the kept samples, and split series and cells by it. Samples without a CPU stay as they are.
   Return false and change nothing if the samples do not account for everything counted. */
bool tree_label_cpus(struct tree *tree);

/* Return a thread by id, also in a part; NULL for 0. */
const struct thread *tree_thread(const struct tree *tree, uint32_t thread);

/* ---- labels ---- */

/* Find or add the set of these pairs, given in any order. The last of several equal keys counts; a pair with value 0 is left out.
   Return 0 for the empty set. Not in a part. */
uint32_t tree_add_labels(struct tree *tree, const struct label_pair *pairs, size_t count);
/* Return the set `labels` with `key` set to `value`, or without `key` if the value is empty. */
uint32_t tree_set_label(struct tree *tree, uint32_t labels, struct text key, struct text value);
/* The pairs of a set, in the order of their keys' bytes. */
const struct label_pair *tree_labels(const struct tree *tree, uint32_t labels, size_t *count);
/* Append the series' value of `key` to *value; return false if it has none. Keys are event, pid, tid, comm, state (on-cpu, sleep, disk,
   preempted), ending (complete, truncated, broken), and those of its label set. Call it for each series, not for each sample: it costs a
   few string comparisons. */
bool series_label(const struct tree *tree, const struct series *series, struct text key,
                  struct buffer *value);
/* Whether `key` is a field of every series, so that no set may hold it. */
bool label_is_fixed(struct text key);

static inline const struct event *tree_event(const struct tree *tree, uint32_t id) {
    return &tree->events.items[id];
}

/* ---- which time --------------------------------------------------------------------------- */

static inline bool event_is_of(const struct event *event, enum times times) {
    return times == TIMES_RUNNING   ? event->time == TIME_MEASURED
           : times == TIMES_WAITING ? event->time == TIME_WAITED
                                    : event->time == TIME_RUN || event->time == TIME_WAITED;
}
/* Whether a series counts in a view of `times`. CPU time may be present in two series: as measured, and as nanoseconds to go with
   waits. */
static inline bool series_is_of(const struct tree *tree, const struct series *series,
                                enum times times) {
    return event_is_of(tree_event(tree, series->event), times) &&
           (times != TIMES_WAITING || series->state != STATE_ON);
}
/* The bit of a view of `times` in note.views. */
static inline uint8_t times_view(enum times times) {
    return (uint8_t)(1u << times);
}
enum { VIEWS_OF_TIMES = 1 << TIMES_RUNNING | 1 << TIMES_WAITING | 1 << TIMES_BOTH };
/* Return the views that a series counts in, as bits. */
uint8_t series_views(const struct tree *tree, const struct series *series);
/* Whether any series of the tree counts in a view of `times`. */
bool tree_knows(const struct tree *tree, enum times times);
/*
 * Return a tree that has only the events, series, cells and samples of `times`; free it with tree_view_free(). It borrows everything
 * else: `tree` must outlive it and not change. Copies those cells and samples, but no nodes and no names.
 */
struct tree *tree_view_new(const struct tree *tree, enum times times);
void tree_view_free(struct tree *view);
/* The note for a tree that has nothing else to show than waits, and for one that shows the waits it was recorded for without being asked to. */
extern const struct note_kind note_only_waits;
const struct note_kind *note_of_natural(enum times times);
/* Keep only the notes about the time that the tree shows; with `all`, also notes of other kinds, because other times can be viewed too. */
void tree_choose_notes(struct tree *tree, bool all);
/* Drop the events that are aside, and everything that they count. */
void tree_drop_aside(struct tree *tree);
/* Drop everything that a view of `times` would not have from the tree itself. */
void tree_keep_times(struct tree *tree, enum times times);

/* ---- what to count ------------------------------------------------------------------------ */

/* Require a value of `key` that matches `pattern` (text_matches). Filters of one key are alternatives; filters of different keys must all
   pass. */
struct label_filter {
    const char *key;
    const char *pattern;
};

/* The filters of the command line. All zero passes everything. The caller owns texts and arrays. */
struct filter {
    /* Names or patterns (text_matches); "all" means every event. If there are none, the source chooses, usually its first event. */
    const char *const *events;
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
/* Whether the filter names this event. Only for filters that name events: see event_count. */
bool filter_event(const struct filter *filter, struct text name);
/* Whether two names mean the same event. On CPUs with several kinds of cores perf opens an event once for each kind: cpu_core/cycles/,
   cpu_atom/cycles/. */
bool event_same(struct text a, struct text b);
/* Whether any filter is set other than those for events and labels. */
static inline bool filter_is_set(const struct filter *f) {
    return f->comm_count || f->pid_count || f->tid_count || f->cpu_count || f->has_time;
}
/* Whether a sample passes all filters other than those for events and labels. Without a CPU `cpu` is UINT32_MAX; without a time `time` is 0. */
bool filter_sample(const struct filter *filter, int32_t pid, int32_t tid, struct text comm,
                   uint32_t cpu, uint64_t time);

/* Whether a series passes the label filters. A missing key has the empty value. */
bool filter_series(const struct filter *filter, const struct tree *tree,
                   const struct series *series);
/* Drop the cells and samples of series that do not pass the label filters, and note how many. Call it after reading, when all labels
   are known. */
void tree_filter_labels(struct tree *tree, const struct filter *filter);
/* Keep only the events whose entry, by id, is true. */
void tree_keep_events(struct tree *tree, const bool *events);

/* ---- values ------------------------------------------------------------------------------- */

/*
 * A value is a number that can be summed: the number of samples (value 0), or the weight of one event in the event's unit. A source that has
 * several numbers for each stack makes each an event. Names follow pprof: samples/count, cpu/nanoseconds, alloc_space/bytes.
 */
struct value {
    struct text name, unit;
    uint32_t event; /* 0: samples */
};
size_t tree_value_count(const struct tree *tree);
struct value tree_value(const struct tree *tree, size_t number);
void tree_add_values(const struct tree *tree,
                     struct buffer *names); /* "samples/count, cpu/nanoseconds" */
/* Return the name of an event's value, and its unit: nanoseconds, bytes and so on, or count. */
struct text value_name(struct text event, struct text unit);
struct text value_unit(struct text unit);
/* Whether every profile has this value: samples, or period, which means whatever was counted. */
bool value_is_common(struct text name, bool *by_samples);
/* Keep only the value `name`: NAME, NAME/UNIT or the event's name. The tree must have been read with all events. Fail if there is no such
   value. */
bool tree_choose_value(struct tree *tree, const char *name, struct error *error);

#endif
