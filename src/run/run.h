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

#include "base/base.h"
#include "record/record.h"
#include "tree/tree.h"

struct run {
    char *base;    /* "wick-out" */
    char *name;
    char *working; /* where it is being made */
    const char *kind; /* "cpu", "faults", … */
    const struct record_options *recording;
    const struct record_result *result;
    char *const *command; /* NULL when attached */
    const char *record_target; /* "command", "process", "threads", "system" */
    uint64_t min_samples;
    bool allow_partial;
    uint64_t stacks;   /* distinct ones */
    uint64_t total;    /* weight of all, in `unit` */
    struct text unit;
    const struct flame *flame; /* for the top stacks */
    struct notes notes;        /* what the reading said; the recording's are in `result` */
    VECTOR(char *) artifacts;  /* names of the files that are there */
};

/* Makes base and the working directory. `name` NULL: the time. False: *error says why, and nothing is left. */
bool run_begin(struct run *run, const char *base, const char *name, struct error *error);
/* The path of a file in the working directory; free() it. run_wrote() then lists it as an artifact. */
char *run_path(const struct run *run, const char *file);
void run_wrote(struct run *run, const char *file);

/* True if there are enough samples for conclusions, or the user takes what there is. */
bool run_has_enough(const struct run *run);
/* run.json and report.txt. After everything else was written. */
bool run_describe(struct run *run, struct error *error);

/* The end, one of: publish under the name; keep as NAME.rejected; remove. The path of the result goes into *path; free() it. */
bool run_publish(struct run *run, char **path, struct error *error);
bool run_reject(struct run *run, char **path, struct error *error);
void run_discard(struct run *run);
void run_release(struct run *run);

/* What kind of measurement an event is, truthfully: "software clock", "hardware counter", "tracepoint", "ptrace", … */
const char *run_measurement(const char *event, const char *method);

#endif
