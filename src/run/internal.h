/* Private to the room: facts about the program and its source tree, for the report. */
#ifndef WICK_RUN_INTERNAL_H
#define WICK_RUN_INTERNAL_H

#include "run/run.h"

/* What is known about the profiled program and the source tree around it; unknown fields are empty. */
struct input_file {
    char *path;
    char digest[65]; /* SHA-256 */
};
struct facts {
    VECTOR(struct input_file) inputs; /* the program, then the arguments that name files */
    struct buffer build_id;           /* of the program */
    struct buffer compiler;
    struct buffer commit; /* of the working directory's git tree */
    struct buffer branch; /* empty if HEAD is detached */
};
void facts_of_run(struct facts *facts, const struct run *run);
void facts_release(struct facts *facts);
/* git.c: add commit and branch. */
void facts_of_git(struct facts *facts);

/* describe.c: used by run.json and report.txt. */
const char *call_graph_name(const struct record_options *recording,
                            const struct record_result *result, char *text, size_t size);
int run_exit_status(const struct run *run); /* as a shell reports it; -1: none */
bool run_write_text(const struct run *run, const char *file, struct text text, struct error *error);
/* Append "1.02 s on a CPU in 1.05 s (1.0 of 8 cores)", or nothing if it is unknown. */
void run_add_cpu_time(const struct run *run, struct buffer *text);
/* Append why there are too few samples, and what to do about it. */
void run_add_too_few(const struct run *run, struct buffer *why);
/* Find a program in PATH or by its path, and get its path. */
bool find_program(const char *name, char *path, size_t size);
/* artifacts.c: one file of a run, made from its recording. */
struct artifact {
    struct run_reading *reading;
    struct run *run;
    const struct source *source;
    struct error *error;
    const char *data;         /* the recording */
    const struct tree *whole; /* the source may be one view of it */
    bool is_drawn;            /* some view was not empty */
};
struct looks run_view_looks(const struct run_view *view);
struct flame *artifact_flame(struct artifact *a, const struct source *source, struct notes *notes);
bool artifact_open(struct artifact *a, const char *file, struct out *out);
bool artifact_close(struct artifact *a, const char *file, struct out *out);
bool artifact_folded(struct artifact *a, const char *file, const struct flame *flame);
bool artifact_svg(struct artifact *a, const char *file, const struct flame *flame,
                  const struct looks *looks, double min_width);
bool artifact_picture(struct artifact *a, const struct flame *flame, const struct run_view *names);
bool artifact_reverse(struct artifact *a, const struct run_view *names);
bool artifact_table(struct artifact *a, const char *file, const struct flame *flame,
                    const struct categories *categories, enum report_by by, const char *counted);
/* Write a page with the run's subtitle, categories and notes; the caller sets the other options. */
bool artifact_page(struct artifact *a, const char *file, struct html_options options,
                   const struct tree *tree, const struct naming *naming);

bool run_write_report(struct run *run, const struct facts *facts, struct error *error);

#endif
