/*
 * profile: turn a perf.data into a tree and samples, using the rooms above.
 *
 * Pass 1 walks the record headers once. It collects side records, applies them to the spaces in key order, and keeps a cut point every few
 * megabytes. Pass 2 hands the pieces between cut points to workers, which look up (epoch, hash of the raw chain) for each sample. Distinct
 * chains become nodes of the tree. Finally each location is resolved to its frames, once, in parallel by object.
 *
 * A recording may also contain waits, as context switches (waits.h) or as samples that are waits themselves. Then each sample gets its
 * nanoseconds between the passes; pass 2 does not change.
 */
#ifndef WICK_PROFILE_H
#define WICK_PROFILE_H

#include "base/base.h"
#include "object/object.h"
#include "perfdata/perfdata.h"
#include "space/space.h"
#include "tree/tree.h"

struct profile_options {
    struct filter filter;
    struct objects_options objects;
    const struct context *context; /* or NULL */
    bool strict;                   /* fail on a truncated file */
    struct quirks quirks;
    bool keep_samples;  /* in key order, for script text and timelines */
    bool raw_addresses; /* make the sampled address part of a location's key */
    bool all_events;    /* read all events unless the filter names some, as script text does */
    bool no_inline;
    bool native_frames; /* keep an interpreter's own functions among those it ran */
    bool source_lines;
    bool saved_lines;  /* source_lines if the profile is a saved one, where they cost nothing */
    const char *value; /* the only value that will be used; NULL: any */
    bool lifetimes;    /* give allocations the label `lifetime` */
    bool all_values;   /* read all values of allocations; those not asked for are aside */
    bool no_names;     /* leave locations unresolved */
    bool
        names_only; /* only names are looked at: one location may stand for others with the same names, whose addresses are lost */
    enum times times;
    /* Instead of TIMES_RUNNING, choose the time that the recording was made for; tree.shown says which. */
    bool natural;
    /* Also read the other times that the recording has into the same tree, for tree_view_new(). note.views says which times a note is about. */
    bool each;
    /* Append to each wait's stack `--`, the waker's stack, leaf first, and the waker's comm. */
    bool wakers;
    uint64_t least_wait; /* nanoseconds; drop shorter waits */
    uint64_t most_wait;  /* nanoseconds; drop longer waits; 0: no limit */
};

/* A total of a recording of allocations. */
struct heap_sum {
    uint64_t bytes, count; /* estimated bytes and blocks */
    uint64_t samples;      /* number of samples behind the estimate */
    double variance;       /* of the estimated bytes, due to sampling … */
    double count_variance; /* … and of the estimated blocks */
};
enum { HEAP_LIFETIMES = 9 };
/* The names of the lifetime classes; the last one means never freed. */
extern const char *const heap_lifetimes[HEAP_LIFETIMES + 1];
struct heap_facts {
    uint64_t mean; /* mean bytes between samples; 1: every allocation was recorded */
    struct heap_sum allocated, live, peak, temporary;
    uint64_t first, last; /* times of the first allocation and of the last event */
    uint64_t peak_time;
    /* Freed blocks by lifetime: below 1 µs, below 10 µs, …, below 10 s, and longer. */
    struct heap_sum lifetimes[HEAP_LIFETIMES];
};

struct profile {
    struct heap_facts *heap; /* NULL: not a recording of allocations */
    struct tree *tree;
    struct objects *objects;
    struct perfdata *data; /* for views that need a sample's record */
    struct spaces *spaces;
    bool is_window;          /* part of a stream, which owns the objects and the spaces */
    struct carried *carried; /* files kept in the recording; private to the room */
    struct paging *paging;   /* releases pages that have been read */
    uint64_t sample_count;   /* all in the file, before filters */
    char *event_names;       /* for titles: "cycles", "cycles, instructions" */
    /* With quirks.lines_decide: samples alone do not determine what inferno makes of perf's text. The tree is useless then; print
       all samples as text and read that. */
    bool needs_text;
};

/* Read a recording. `file` must stay open as long as the profile. */
struct profile *profile_read(const struct file *file, const struct profile_options *options,
                             struct error *error);
void profile_free(struct profile *profile);

/* ---- windows ---- */

/*
 * A stream is a recording that goes on, read in windows (record.h, record_window), each a perf.data of its own. Address spaces, opened
 * objects and labels are kept from one window to the next; memory depends on what is alive. The sum of all windows equals what one file of
 * the same records gives. Only CPU time is read: a wait that begins in one window and ends in another is not joined. There are no quirks.
 */
struct profile_stream;
struct profile_stream *profile_stream_new(const struct profile_options *options);
/* Read the next window. The profile borrows from the stream: free it before the next call. If the window can't be read, return NULL and
   forget the stream's state. `file` must stay open as long as the profile. */
struct profile *profile_stream_next(struct profile_stream *stream, const struct file *file,
                                    struct error *error);
/* Before the next window, forget all files: those that are still mapped are opened again when they are needed. Costs as much as the first
   window. */
void profile_stream_renew(struct profile_stream *stream);
void profile_stream_free(struct profile_stream *stream);

/* Resolve every location of `tree` that has an object to its frames. */
void profile_resolve(struct tree *tree, struct objects *objects,
                     const struct profile_options *options);

/* ---- system calls ------------------------------------------------------------------------- */

#define SYSCALLS_ENTER "raw_syscalls:sys_enter"
#define SYSCALLS_EXIT "raw_syscalls:sys_exit"

struct syscall_row {
    int64_t number;
    struct text name;
    uint32_t location; /* its frame */
    uint64_t calls;
    uint64_t errors;
    uint64_t total; /* nanoseconds from enter to exit */
    uint64_t worst;
};
struct syscalls {
    VECTOR(struct syscall_row) rows; /* by total, the largest first */
};
/*
 * Pair each system call with its end, in a recording of both events that was read with keep_samples and only the first event. Afterwards
 * the tree and its samples are weighted by the nanoseconds that calls took. Return NULL on failure.
 */
struct syscalls *profile_time_syscalls(struct profile *profile, struct error *error);
void syscalls_free(struct syscalls *syscalls);

/* ---- what is in a recording --------------------------------------------------------------- */

/* Counts by up to two numbers: a thread, an address, a caller and a callee. */
struct summary_count {
    uint64_t key[2];
    uint64_t samples, weight; /* weights are periods; 1 where none was recorded */
};
struct summary_counts {
    VECTOR(struct summary_count) rows; /* the heaviest first, then by key */
    struct index index;                /* private */
};
enum { SUMMARY_MODES = 6 }; /* by PERF_RECORD_MISC_… */

/* Counts of the raw records of a perf.data. */
struct summary {
    uint64_t records, samples, weight;
    uint64_t unknown;            /* samples of an unknown event: counted but not decoded */
    uint64_t lost_records, lost; /* records about losses, and how many they report */
    uint64_t stack_samples, stack_bytes, stack_dynamic_bytes; /* dumped, and of these in use */
    uint64_t register_samples, register_ip_samples; /* with user registers; with ip among them */
    struct summary_counts types;                    /* records by type */
    struct summary_count modes[SUMMARY_MODES];
    struct summary_counts threads; /* by pid and tid */
    struct summary_counts leaves;  /* by the innermost address */
    struct summary_counts edges;   /* by caller and callee, from recorded chains without markers */
};
/* Costs a walk over all records and a table lookup for each frame of a chain. */
bool summary_read(struct summary *summary, struct perfdata *data, struct error *error);
void summary_release(struct summary *summary);

#endif
