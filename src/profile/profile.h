/*
 * profile: perf.data to tree and samples. Where the rooms above are joined.
 *
 * Pass 1 walks the record headers once: side records are collected and then applied in key order to the spaces; a cut point
 * is kept every few megabytes. Pass 2 hands the pieces between cut points to the workers, which look up (epoch, hash of the raw
 * chain) of each sample; the distinct chains then become nodes of the tree, and each location that is left is resolved to
 * its frames, once, in parallel by object.
 *
 * A recording may also say where threads waited, by their switches (waits.h) or in samples that are waits themselves. Then each sample that
 * counts is given its nanoseconds between the passes; pass 2 stays as it is.
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
    bool strict;                   /* a cut file is an error */
    struct quirks quirks;
    bool keep_samples;  /* in key order, for script text and timelines */
    bool raw_addresses; /* the address as sampled joins a location's key */
    bool all_events;    /* unless the filter names some: script text prints them all */
    bool no_inline;
    bool native_frames; /* of interpreters: keep their own functions among those that they ran */
    bool source_lines;
    bool saved_lines;  /* of a saved profile: source_lines, which cost nothing there */
    const char *value; /* the only one that will be looked at; NULL: any */
    bool lifetimes;    /* of allocations: how long each lived is the label `lifetime` */
    bool no_names;     /* leave locations unresolved */
    enum times times;
    bool
        each; /* where the recording tells: the other times as well, in the same tree, for tree_view_new(); notes are of `times` */
    bool
        wakers; /* a wait's stack goes on with who ended it: `--`, then the waker's, leaf first, and its comm */
    uint64_t least_wait; /* nanoseconds; shorter waits are left out */
    uint64_t most_wait;  /* and longer ones; 0: no limit */
};

/* Of a recording of allocations: what it comes to, all of it. */
struct heap_sum {
    uint64_t bytes, count; /* estimated, of blocks */
    uint64_t samples;      /* that say so */
    double variance;       /* of bytes: what sampling leaves open */
};
enum { HEAP_LIFETIMES = 9 };
/* What they are called; one more: what was never freed. */
extern const char *const heap_lifetimes[HEAP_LIFETIMES + 1];
struct heap_facts {
    uint64_t mean; /* bytes from sample to sample; 1: every allocation was recorded */
    struct heap_sum allocated, live, peak, temporary;
    uint64_t first, last; /* times of the first allocation, and of the last thing that happened */
    uint64_t peak_time;
    /* What was freed, by how long it had lived: below a microsecond, ten of them, …, 10 s, and longer. */
    struct heap_sum lifetimes[HEAP_LIFETIMES];
};

struct profile {
    struct heap_facts *heap; /* NULL: it is not of allocations */
    struct tree *tree;
    struct objects *objects;
    struct perfdata *data; /* for views that go back to a sample's record */
    struct spaces *spaces;
    bool is_window;          /* of a stream, which has the objects and the spaces */
    struct carried *carried; /* what the recording keeps of files; private to the room */
    struct paging *paging;   /* lets go of what has been read */
    uint64_t sample_count;   /* all in the file, before filters */
    char *event_names;       /* what was counted, for titles: "cycles", "cycles, instructions" */
    bool
        needs_text; /* quirks.lines_decide: what inferno makes of perf's text can't be told from the samples. The tree is then of no use: print them
                        all, and read that */
};

/* `file` stays open as long as the profile. */
struct profile *profile_read(const struct file *file, const struct profile_options *options,
                             struct error *error);
void profile_free(struct profile *profile);

/* ---- windows ---- */

/*
 * A recording that goes on, read in windows (record.h, record_window), each a perf.data of its own: address spaces, opened objects and labels are kept from
 * one to the next, and memory follows what lives. What is added up over all windows is what one file of the same records
 * would give. Only time on the CPU: waits that begin in one window and end in another are not put together. No quirks.
 */
struct profile_stream;
struct profile_stream *profile_stream_new(const struct profile_options *options);
/* The next window. The profile borrows from the stream: free it before the next call. NULL: it can't be read, and what the stream knew is
   forgotten. `file` stays open as long as the profile. */
struct profile *profile_stream_next(struct profile_stream *stream, const struct file *file,
                                    struct error *error);
void profile_stream_free(struct profile_stream *stream);

/* Resolves every location of `tree` that has an object to its frames. */
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
 * Of a recording of both events, read with keep_samples and the first of them alone: each call is paired with its end, and the tree and
 * its samples then weigh the nanoseconds that calls took, on the stacks that made them. NULL: *error says why.
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

/* The records of a perf.data as they stand there, before anything is made of them. */
struct summary {
    uint64_t records, samples, weight;
    uint64_t unknown;            /* samples of no event: counted, not looked at */
    uint64_t lost_records, lost; /* records that tell of losses, and of how many */
    uint64_t stack_samples, stack_bytes, stack_dynamic_bytes; /* dumped, and of these in use */
    uint64_t register_samples, register_ip_samples; /* with the user's registers; with its ip */
    struct summary_counts types;                    /* records by type */
    struct summary_count modes[SUMMARY_MODES];
    struct summary_counts threads; /* by pid and tid */
    struct summary_counts leaves;  /* by the innermost address */
    struct summary_counts
        edges; /* by caller and callee, of recorded chains without their markers */
};
/* Costs a walk over all records and, of chains, a look into a table a frame. */
bool summary_read(struct summary *summary, struct perfdata *data, struct error *error);
void summary_release(struct summary *summary);

#endif
