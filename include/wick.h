/*
 * wick.h: flame graphs from C.
 *
 * Opens whatever wick can read, gives its call tree by name, and writes the pictures, texts and other tools' formats that the program writes.
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
 * - It prints nothing and ends nothing. What fails returns NULL or false and fills the wick_error. Only running out of memory can't be
 *   answered so: see wick_on_out_of_memory().
 * - The same input gives the same bytes, with any number of threads, in any locale, at any time.
 * - A file is written whole or not at all, and what was lost, missing or left out is a note.
 * - Options that are all zero are the defaults, and NULL stands for these. Later versions add fields at the end and functions, and take none
 *   away: what compiles with this header compiles with theirs.
 *
 * Threads: several profiles may be opened, walked and written at once, each in a thread of its own; of one profile, one call at a time, from
 * any thread. It has threads of its own. Three things are the whole process's: the hook for lack of memory, standard input and output,
 * and SIGBUS. As long as a profile is open it catches SIGBUS, for recordings that shrink while they are read; faults that are not its
 * own go to the handler that was there before.
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
    WICK_ERROR_INTERNAL = 5,    /* wick's own fault */
    WICK_ERROR_CANCELLED = 130, /* your progress hook said so */
};

struct wick_error {
    enum wick_error_kind kind;
    char message[600]; /* one line, "what: why", without control characters */
};

/* Called when there is no memory left; must not return. By default one line goes to standard error and the process ends with status 5. */
void wick_on_out_of_memory(void (*hook)(void));

/* ---- reading ---- */

/* A profile that was read: its call tree, by name. */
struct wick;

struct wick_options {
    const char *from; /* the format's name, as `wick fold --from` has it; NULL: found by looking */
    const char *const *events; /* names; none: the first; "all" adds them */
    size_t event_count;
    const char *symfs;    /* look for every program and library below this folder */
    const char *kallsyms; /* the kernel's symbols */
    unsigned threads;     /* 0: as many as there are */
    bool by_samples;      /* a stack weighs its samples, not their period */
    bool off_cpu;         /* where threads waited, of a recording that knows */
    bool wall;            /* where they waited and where they ran */
    bool no_comm;         /* no comm at the root */
    bool no_inline;       /* without functions that were inlined */
    bool source_lines;    /* names carry file:line */
    bool keep_times;      /* for the timeline of wick_write_html(); takes 48 bytes a sample */
    /* Called now and then, from any of wick's threads, several at once: what is being done, how much of it, and of how much (0: unknown).
       False cancels the call that is under way, which then fails. NULL: none. */
    bool (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *progress_user;
    /* What is summed, as `wick fold --value` has it: "samples", or the name of an event's value (wick_value_at). NULL: as by_samples says. */
    const char *value;
};

/* Several files add up; "-" is standard input. NULL: *error says why. `error` and `options` may be NULL. */
struct wick *wick_open(const char *const *paths, size_t path_count,
                       const struct wick_options *options, struct wick_error *error);
void wick_close(struct wick *wick); /* NULL is fine */

/* What was lost, missing or left out, a sentence each, for people. They live as long as the profile. */
size_t wick_note_count(const struct wick *wick);
const char *wick_note(const struct wick *wick, size_t number);

/* What can be summed of this profile: its samples, and what each event that was read counts. Texts live as long as the profile. */
struct wick_value {
    const char *name; /* "samples", "cpu", "cycles", "alloc_space", … */
    const char *unit; /* "count", "nanoseconds", "bytes", … */
};
size_t wick_value_count(const struct wick *wick);
struct wick_value wick_value_at(const struct wick *wick, size_t number); /* NULLs behind the last */

/* What the weights count: "samples", "ns", "cycles", … */
const char *wick_unit(const struct wick *wick);

/* ---- the call tree ---- */

/* Frame 0 is the root, whose total is all there is. Each frame is followed by all that it calls, in order of names, as in a table of contents.
   Texts live as long as the profile. */
struct wick_frame {
    size_t parent;
    size_t depth;     /* the root's is 0 */
    const char *name; /* any bytes, with a NUL behind them; the root's is empty */
    size_t name_length;
    const char *object; /* the file that it is in; empty where nobody knows */
    uint64_t self;      /* weight of stacks that end there */
    uint64_t total;     /* and of those that go on from there */
};
size_t wick_frame_count(const struct wick *wick);
struct wick_frame wick_frame_at(const struct wick *wick, size_t number);

/* ---- writing: to a file, or "-", which is standard output ---- */

struct wick_picture {
    const char *title;    /* NULL: "Flame Graph" */
    const char *subtitle; /* NULL: none */
};

/* `a;b;c 12`, one line a stack, sorted. */
bool wick_write_folded(struct wick *wick, const char *path, struct wick_error *error);
/* One SVG with zoom and search. False, too, where there is nothing to draw. */
bool wick_write_svg(struct wick *wick, const char *path, const struct wick_picture *picture,
                    struct wick_error *error);
/* One HTML page with all views and tables. */
bool wick_write_html(struct wick *wick, const char *path, const struct wick_picture *picture,
                     struct wick_error *error);
/* For another tool: `format` is called as `wick export --to` has it; NULL: found by how the path ends (".pb.gz", ".speedscope.json", …).
   `title` is what it calls the profile; NULL: the file that was read. It has times if they were kept, and source lines if they were asked for. */
bool wick_write_format(struct wick *wick, const char *format, const char *path, const char *title,
                       struct wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
