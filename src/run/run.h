/*
 * run: a profile run on disk: a directory with the recording, the pictures, the tables, and a report of how it was made.
 *
 * A run is created in a working directory beside its final name. It takes that name only when everything in it is complete, in one exchange
 * with what was there. A failed run is removed; one with too few samples is kept as NAME.rejected and does not touch the published run. The
 * metadata names only files that exist.
 */
#ifndef WICK_RUN_H
#define WICK_RUN_H

#include <sys/types.h>

#include "base/base.h"
#include "profile/profile.h"
#include "record/record.h"
#include "import/import.h"
#include "stacks/stacks.h"
#include "view/view.h"

struct run {
    char *base; /* "wick-out" */
    char *name;
    char *working;                 /* its name in `base` while it is being made */
    struct temporary *registered;  /* removes it even if memory runs out */
    int base_directory, directory; /* both open; the second stays locked */
    mode_t mode;                   /* of the directory after publishing */
    const char *kind;              /* "cpu", "faults", … */
    const char *folded; /* file with its main stacks, which --compare reads from an earlier run */
    const struct record_options *recording;
    const struct record_result *result;
    char *const *command; /* NULL when attached */
    const struct load *load;
    double warmup;             /* seconds */
    const char *build;         /* the command that built it; NULL: none */
    char *program;             /* the profiled program, set by run_find_program(); or NULL */
    const char *compared;      /* an earlier run's directory; NULL: none */
    bool scaled;               /* the earlier run's weights were scaled to this run's total */
    const char *record_target; /* "command", "process", "threads", "system" */
    uint64_t min_samples;
    uint64_t
        read; /* count of samples, waits or system calls read from the recording; `result` has the number of samples recorded */
    uint64_t waits;                       /* among them; a wait that did not end is not a sample */
    uint64_t endings[ENDING_UNKNOWN + 1]; /* of their stacks */
    uint64_t stacks;                      /* distinct ones */
    uint64_t cpu_ns;                      /* CPU time; 0: unknown */
    bool cpu_is_estimated;                /* from samples */
    struct buffer answer;                 /* tables of the highest costs, for report.txt */
    struct buffer told;                   /* the same, for the terminal's width */
    unsigned width;                       /* the terminal's columns */
    struct syscalls *syscalls;            /* of such a run, else NULL */
    struct notes notes;                   /* from reading; those from recording are in `result` */
    VECTOR(char *) artifacts;             /* names of the files written */
};

/* Append a row for each lifetime that is not empty, with a bar for its share. */
void run_add_lifetimes(struct buffer *text, const uint64_t amounts[HEAP_LIFETIMES + 1],
                       bool in_bytes);
/* For a recording of allocations, add to the answer: its totals; and the functions that called the allocator, largest first. `samples` is the
   same flame counted by samples. */
void run_answer_memory(struct run *run, const struct heap_facts *facts);
void run_answer_sites(struct run *run, const char *title, const struct flame *bytes,
                      const struct flame *samples, const struct tree *tree);

/* Create the base and working directories. If `name` is NULL, use the current time. On failure return false, set *error and leave no working
   directory. */
bool run_begin(struct run *run, const char *base, const char *name, struct error *error);
/* Find the program that was launched or attached to, while it is still visible. */
void run_find_program(struct run *run);
/* Return a path to read a file of the run while it is being made, even if the directory is renamed; free() it. */
char *run_reading_path(const struct run *run, const char *file);
/* Create a new file for the caller to write to, and list it as an artifact. Return -1 and set *error on failure. */
int run_create(struct run *run, const char *file, struct error *error);
/* List a written file, relative to run->directory, as an artifact. */
void run_wrote(struct run *run, const char *file);

/* Return true if there are enough samples for conclusions, or if the user accepts fewer. */
bool run_has_enough(const struct run *run);
/* Return true and append the reason if the run can't be published: too few samples, or a failed load. */
bool run_shortcoming(const struct run *run, struct buffer *why);
/* Check that run->compared is a run of the same kind, with stacks to compare with. Call it before recording. */
bool run_can_compare(const struct run *run, struct error *error);
/* Get the last line of a log that is not empty, for messages. */
void run_last_line(int log, char *line, size_t size);
/* Add a table of a view's highest costs under a title, for the report and for the terminal. */
void run_answer_view(struct run *run, const struct flame *flame, const char *title, bool waits);
/* The same for what changed since the earlier run. */
void run_answer_change(struct run *run, const struct flame *both);
/* Append the closing summary, a few lines: CPU time, losses, the tables, and what to open in the run's directory PATH. */
void run_add_answer(const struct run *run, const char *path, struct buffer *text);
/* What a run draws for one kind of time or value. The last view of a kind is the run's main one. */
struct run_view {
    enum times times;
    const char *folded, *svg, *reverse, *functions, *categories;
    const char *value;   /* if the recording has several; NULL: the first */
    const char *title;   /* of its pictures; NULL: by its times */
    const char *heading; /* of its table of sites */
    const char *html;    /* its own page; NULL: the page shared by all views */
};
extern const struct run_view run_running, run_waiting, run_wall;
extern const struct run_view run_live, run_peak, run_allocated;
/* How to read and name the recording; changed while files are written. */
struct run_reading {
    struct import_options import;
    struct naming_options naming;
    struct flame_options flame;
};
/* Write everything that is drawn or counted from the recording at `data`, then run.json and report.txt. */
bool run_write_files(struct run *run, struct run_reading *reading, const char *data,
                     const struct run_view *const *views, size_t view_count, struct error *error);
/* Write run.json and report.txt. Call it after everything else was written. */
bool run_describe(struct run *run, struct error *error);

/* End the run in one of three ways: publish it under its name, keep it as NAME.rejected, or remove it. Set *path to the path of the result;
   free() it. */
bool run_publish(struct run *run, char **path, struct error *error);
bool run_reject(struct run *run, char **path, struct error *error);
void run_discard(struct run *run);
void run_release(struct run *run);

/* ---- the load beside it ------------------------------------------------------------------- */

/* A shell command that runs beside the recording. However wick ends, everything that the command started ends, too. */
struct load {
    const char *line; /* NULL: none */
    pid_t keeper;
    int lives;      /* closing it ends the load */
    int told;       /* receives its status */
    int status;     /* from waitpid(); -1: still running */
    bool by_itself; /* it ended before wick ended it */
};
/* Start it, with its output going to the descriptor `log` unless that is -1. */
bool load_start(struct load *load, const char *line, int log, struct error *error);
/* Wait at most so long for it to end; return true if it has ended. A signal also ends the wait. */
bool load_wait(struct load *load, uint64_t nanoseconds);
/* End it if it still runs, and wait until it is gone. */
void load_end(struct load *load);
/* Whether it ended by itself with a failure. */
bool load_failed(const struct load *load);
/* Append "ended by itself, with status 1". */
void load_describe(const struct load *load, struct buffer *text);

/* ---- the build before it ------------------------------------------------------------------ */

/* Run a shell command in which every compiler in PATH gets -g as its last option and cargo adds debug information to release builds. Its
   output goes to `log`. Return false if it failed. */
bool build_run(const char *line, int log, const struct context *context, struct error *error);

/* Append the ids of the processes and threads that wick is attached to, if any. */
void run_add_ids(const struct run *run, struct buffer *text, const char *between);
/* Return the kind of measurement an event is: "software clock", "hardware counter", "tracepoint", "ptrace sampling", …; for several events
   ("cycles,page-faults") all their kinds. free() it. */
char *run_measurement(const char *events, const char *method);

/* ---- profiles in directories ------------------------------------------------------------------ */

/* A file with a profile's file name, or a run. */
struct found {
    char *name; /* below the directory */
    int64_t time, size;
    bool is_run;
};
typedef VECTOR(struct found) found_list;
/* Add everything below an open directory, at most 8 levels deep and 100,000 entries. Skip symbolic links and hidden entries. */
void found_look(found_list *list, int directory);
void found_sort(found_list *list); /* newest first */
void found_release(found_list *list);
/* Open a profile below a directory: a file, or the recording of a run. Symbolic links are followed if they stay below it and `links` is set,
   otherwise refused. Return -1 if there is none. */
int found_open(int directory, const char *name, bool links);
/* The same for a file or run that is already open. Takes over the descriptor. */
int found_recording(int descriptor, bool links);

/* SHA-256 in hexadecimal. */
void sha256_hex(const uint8_t *data, size_t size, char hex[65]);

#endif
