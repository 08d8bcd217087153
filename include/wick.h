/*
 * wick.h: flame graphs from C.
 *
 * Open any profile that wick can read, walk its call tree by name, and write the same pictures, texts and other tools'
 * formats as the program.
 *
 *     struct wick_error error;
 *     const char *paths[] = {"perf.data"};
 *     struct wick *wick = wick_open(paths, 1, NULL, &error);
 *     if (!wick || !wick_write_svg(wick, "flamegraph.svg", NULL, &error))
 *         fprintf(stderr, "%s\n", error.message);
 *     wick_close(wick);
 *
 * Link with `pkg-config --cflags --libs wick`. examples/hot.c is a whole program.
 *
 * What it promises:
 *
 * - The library never prints and never exits. A function that fails returns NULL or false and fills the wick_error.
 *   The exception is running out of memory: see wick_on_out_of_memory().
 * - The same input gives the same bytes, with any number of threads, in any locale, at any time.
 * - A file is written whole or not at all. A note reports what was lost, missing or left out.
 * - Options that are all zero are the defaults, and so is NULL. Later versions add functions, and fields at the end of
 *   structs, and remove none: code that compiles with this header compiles with later ones.
 *
 * Threads: different profiles may be used by different threads at once; one profile by one call at a time, from any
 * thread. The library starts threads of its own. Three things belong to the whole process: the out-of-memory hook,
 * standard input and output, and SIGBUS. While a profile is open the library catches SIGBUS, because recordings may
 * shrink while they are read; other faults go to the previous handler.
 */
#ifndef WICK_H
#define WICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

const char *wick_version(void); /* "0.1.0" */

/* ---- errors ---- */

/* The same numbers as the program's exit status. */
enum wick_error_kind {
    WICK_ERROR_NONE = 0,
    WICK_ERROR_INPUT = 1,       /* bad input, or a file that can't be read or written */
    WICK_ERROR_USAGE = 2,       /* options that make no sense */
    WICK_ERROR_INTERNAL = 5,    /* a bug in wick */
    WICK_ERROR_CANCELLED = 130, /* the progress hook returned false */
};

struct wick_error {
    enum wick_error_kind kind;
    char message[600]; /* one line, "what: why", without control characters */
};

/* Set the hook that is called when memory runs out. It must not return. By default wick prints one line to standard
   error and ends the process with status 5. */
void wick_on_out_of_memory(void (*hook)(void));

/* ---- reading ---- */

/* A profile that was read: its call tree, by name. */
struct wick;

struct wick_options {
    const char *from;          /* the format's name, as in `wick fold --from`; NULL: detect it */
    const char *const *events; /* names of events; none: the first event; "all": the sum of all */
    size_t event_count;
    const char *symfs;    /* search for every program and library below this directory */
    const char *kallsyms; /* the kernel's symbols */
    unsigned threads;     /* 0: one per CPU */
    bool by_samples;      /* weigh a stack by its samples, not by their periods */
    bool off_cpu;         /* show off-CPU time (the recording must contain scheduling events) */
    bool wall;            /* show both on-CPU and off-CPU time */
    bool no_comm;         /* no comm as root frame */
    bool no_inline;       /* do not expand inlined functions */
    bool source_lines;    /* append file:line to names */
    bool keep_times;      /* for the timeline of wick_write_html(); takes 48 bytes a sample */
    /* Called now and then, from any of wick's threads, possibly several at once, with what is being done, how much is
       done, and the total (0: unknown). Return false to cancel the current call, which then fails. May be NULL. */
    bool (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *progress_user;
    /* What is summed, as in `wick fold --value`: "samples", or the name of an event's value (wick_value_at). NULL:
       see by_samples. */
    const char *value;
};

/* Read the files and add them up; "-" is standard input. Return NULL and set *error on failure. `error` and `options`
   may be NULL. */
struct wick *wick_open(const char *const *paths, size_t path_count,
                       const struct wick_options *options, struct wick_error *error);
void wick_close(struct wick *wick); /* `wick` may be NULL */

/* What was lost, missing or left out: a sentence each, for people. The texts live as long as the profile. */
size_t wick_note_count(const struct wick *wick);
const char *wick_note(const struct wick *wick, size_t number);

/* The values that can be summed in this profile: samples, and the value of each event that was read. Texts live as
   long as the profile. */
struct wick_value {
    const char *name; /* "samples", "cpu", "cycles", "alloc_space", … */
    const char *unit; /* "count", "nanoseconds", "bytes", … */
};
size_t wick_value_count(const struct wick *wick);
struct wick_value wick_value_at(const struct wick *wick, size_t number); /* NULLs after the last */

/* Return the unit of the weights: "samples", "ns", "cycles", … */
const char *wick_unit(const struct wick *wick);

/* ---- the call tree ---- */

/* Frame 0 is the root; its total is that of the whole profile. Frames are in depth-first order: each is followed by
   everything that it calls, siblings by name. Texts live as long as the profile. */
struct wick_frame {
    size_t parent;
    size_t depth;     /* 0 for the root */
    const char *name; /* any bytes, NUL-terminated; empty for the root */
    size_t name_length;
    const char *object; /* the file that contains it; empty if unknown */
    uint64_t self;      /* weight of stacks that end here */
    uint64_t total;     /* weight of stacks through here */
};
size_t wick_frame_count(const struct wick *wick);
struct wick_frame wick_frame_at(const struct wick *wick, size_t number);

/* ---- writing: to a file, or "-", which is standard output ---- */

struct wick_picture {
    const char *title;    /* NULL: "Flame Graph" */
    const char *subtitle; /* NULL: none */
};

/* `a;b;c 12`, one line per stack, sorted. */
bool wick_write_folded(struct wick *wick, const char *path, struct wick_error *error);
/* Write one SVG with zoom and search. Fails if there is nothing to draw. */
bool wick_write_svg(struct wick *wick, const char *path, const struct wick_picture *picture,
                    struct wick_error *error);
/* Write one HTML page with all views and tables. */
bool wick_write_html(struct wick *wick, const char *path, const struct wick_picture *picture,
                     struct wick_error *error);
/* Write another tool's format. `format` is a name as in `wick export --to`; NULL: chosen by the path's suffix
   (".pb.gz", ".speedscope.json", …). `title` names the profile in it; NULL: the name of the file that was read. Times
   are included if they were kept, and source lines if they were requested. */
bool wick_write_format(struct wick *wick, const char *format, const char *path, const char *title,
                       struct wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
