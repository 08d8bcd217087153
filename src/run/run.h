/*
 * run: a profile run as people keep it: a directory with the recording, the pictures, the tables, and an honest account of how it came
 * about.
 *
 * A run is made in a working directory beside its name. Only when everything in it is complete does it take the name, in one exchange
 * with what was there; a run that failed is removed, and one with too few samples is kept as NAME.rejected and never
 * touches what was published. Its metadata names only files that are there.
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
    char *working;                 /* what it is called there while it is being made */
    struct temporary *registered;  /* so that it is removed also where memory runs out */
    int base_directory, directory; /* both, opened; the second is locked as long as we live */
    mode_t mode;                   /* of the directory once it is published */
    const char *kind;              /* "cpu", "faults", … */
    const char *folded; /* the stacks that it is about: what an earlier run is compared by */
    const struct record_options *recording;
    const struct record_result *result;
    char *const *command; /* NULL when attached */
    const struct load *load;
    double warmup;             /* seconds */
    const char *build;         /* what built it before; NULL: nothing did */
    char *program;             /* what was profiled, once run_find_program() looked; or NULL */
    const char *compared;      /* an earlier run's directory; NULL: none */
    bool scaled;               /* its weights, to this run's total, before they were compared */
    const char *record_target; /* "command", "process", "threads", "system" */
    uint64_t min_samples;
    uint64_t
        read; /* what was counted in the recording: samples, waits or system calls; `result` has the samples that were taken */
    uint64_t waits;                       /* of them; one that nothing ended is no sample */
    uint64_t endings[ENDING_UNKNOWN + 1]; /* of their stacks */
    uint64_t stacks;                      /* distinct ones */
    uint64_t cpu_ns;                      /* time on CPUs; 0: not known */
    bool cpu_is_estimated;                /* from samples */
    struct buffer answer;                 /* tables of what costs most, for report.txt */
    struct buffer told;                   /* the same, as wide as the terminal */
    unsigned width;                       /* the terminal's columns */
    struct syscalls *syscalls;            /* of such a run, else NULL */
    struct notes notes;       /* what the reading said; the recording's are in `result` */
    VECTOR(char *) artifacts; /* names of the files that are there */
};

/* Add to the answer, of a recording of allocations: its sums; and the functions that called the allocator, the greatest first. `samples` is the same flame
   counted by samples; `exact`: every allocation was recorded. */
/* Append a row for each lifetime that has something, with a bar of its share. */
void run_add_lifetimes(struct buffer *text, const uint64_t amounts[HEAP_LIFETIMES + 1],
                       bool in_bytes);
void run_answer_memory(struct run *run, const struct heap_facts *facts);
void run_answer_sites(struct run *run, const char *title, const struct flame *bytes,
                      const struct flame *samples, bool exact);

/* Makes base and the working directory. `name` NULL: the time. False: *error says why, and no working directory is left. */
bool run_begin(struct run *run, const char *base, const char *name, struct error *error);
/* Finds the program that was launched or is attached to, as long as that can be seen. */
void run_find_program(struct run *run);
/* A path to read a file of the run by while it is being made, whatever becomes of the directory's name; free() it. */
char *run_reading_path(const struct run *run, const char *file);
/* Creates a file that is not there, for somebody to write to, and lists it as an artifact. -1: *error says why. */
int run_create(struct run *run, const char *file, struct error *error);
/* Lists a file that was written, relative to run->directory, as an artifact. */
void run_wrote(struct run *run, const char *file);

/* True if there are enough samples for conclusions, or the user takes what there is. */
bool run_has_enough(const struct run *run);
/* What keeps the run from being published, if anything does: too few samples, a load that failed. True, and the reason added. */
bool run_shortcoming(const struct run *run, struct buffer *why);
/* Whether run->compared is a run of the same kind, with stacks to compare with. Before anything is recorded. */
bool run_can_compare(const struct run *run, struct error *error);
/* The last line of a log that is not empty, for messages. */
void run_last_line(int log, char *line, size_t size);
/* Add a view's table of what costs most, under a title; a second one for the terminal. */
void run_answer_view(struct run *run, const struct flame *flame, const char *title, bool waits);
/* The same of what changed. */
void run_answer_change(struct run *run, const struct flame *both);
/* Append what to say when the run is over, in a few lines: time on CPUs, what was lost, the tables, what to open in the run's directory PATH. */
void run_add_answer(const struct run *run, const char *path, struct buffer *text);
/* What a run draws of one kind of time or value. The last view of a kind is what the run is about. */
struct run_view {
    enum times times;
    const char *folded, *svg, *reverse, *functions, *categories;
    const char *value;   /* of a recording that has several; NULL: the first */
    const char *title;   /* of its pictures; NULL: that of its times */
    const char *heading; /* of its table of sites */
    const char *html;    /* a page of its own; NULL: all views share one */
};
extern const struct run_view run_running, run_waiting, run_wall;
extern const struct run_view run_live, run_peak, run_allocated;
/* How the recording is read and named; changed while files are written. */
struct run_reading {
    struct import_options import;
    struct naming_options naming;
    struct flame_options flame;
};
/* Write everything that is drawn or counted from the recording at `data`, then run.json and report.txt. */
bool run_write_files(struct run *run, struct run_reading *reading, const char *data,
                     const struct run_view *const *views, size_t view_count, struct error *error);
/* run.json and report.txt. After everything else was written. */
bool run_describe(struct run *run, struct error *error);

/* The end, one of: publish under the name; keep as NAME.rejected; remove. The path of the result goes into *path; free() it. */
bool run_publish(struct run *run, char **path, struct error *error);
bool run_reject(struct run *run, char **path, struct error *error);
void run_discard(struct run *run);
void run_release(struct run *run);

/* ---- the load beside it ------------------------------------------------------------------- */

/* A shell command that runs beside the recording. However wick ends, all that the command started ends, too. */
struct load {
    const char *line; /* NULL: there is none */
    pid_t keeper;
    int lives;      /* closed by us when the load is to end */
    int told;       /* how it ended comes here */
    int status;     /* as waitpid() gives it; -1: it has not ended */
    bool by_itself; /* it ended before it was made to */
};
/* Its output goes to the descriptor `log`, unless that is -1. */
bool load_start(struct load *load, const char *line, int log, struct error *error);
/* Waits so long for it to end; true if it has. A signal ends the waiting, too. */
bool load_wait(struct load *load, uint64_t nanoseconds);
/* Ends it, if it has not ended, and waits until it is gone. */
void load_end(struct load *load);
/* It ended by itself, and not well. */
bool load_failed(const struct load *load);
/* "ended by itself, with status 1" */
void load_describe(const struct load *load, struct buffer *text);

/* ---- the build before it ------------------------------------------------------------------ */

/* Run a shell command in which every compiler that PATH has gets -g as its last option, and cargo makes debug information of releases. Its output
   goes to `log`. False: it failed. */
bool build_run(const char *line, int log, const struct context *context, struct error *error);

/* The ids of the processes and threads that it is attached to, if any. */
void run_add_ids(const struct run *run, struct buffer *text, const char *between);
/* What kind of measurement an event is, truthfully: "software clock", "hardware counter", "tracepoint", "ptrace sampling", …; of
   several events ("cycles,page-faults") all their kinds. free() it. */
char *run_measurement(const char *events, const char *method);

/* ---- profiles in directories ------------------------------------------------------------------ */

/* A file that is called like a profile, or a run. */
struct found {
    char *name; /* below the directory */
    int64_t time, size;
    bool is_run;
};
typedef VECTOR(struct found) found_list;
/* Add what is below an open directory, to a depth of 8 and of 100,000 entries at most. Symbolic links and hidden entries are left out. */
void found_look(found_list *list, int directory);
void found_sort(found_list *list); /* newest first */
void found_release(found_list *list);
/* Open a profile below a directory: a file, or the recording of a run. Symbolic links are followed, if they stay below, or refused. -1: there is none. */
int found_open(int directory, const char *name, bool links);
/* The same of a file or run that is open already. Takes the descriptor. */
int found_recording(int descriptor, bool links);

/* SHA-256 in hexadecimal. */
void sha256_hex(const uint8_t *data, size_t size, char hex[65]);

#endif
