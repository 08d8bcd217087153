/* Private to the room: facts about program and source tree, for the report. */
#ifndef WICK_RUN_INTERNAL_H
#define WICK_RUN_INTERNAL_H

#include "run/run.h"

/* What is known of what was profiled and of the tree it stands in: empty where nothing is. */
struct input_file {
    char *path;
    char digest[65]; /* SHA-256 */
};
struct facts {
    VECTOR(struct input_file) inputs; /* the program, then the arguments that name files */
    struct buffer build_id;           /* of the program */
    struct buffer compiler;
    struct buffer commit; /* of the working directory's git tree */
    struct buffer branch; /* none where HEAD is detached */
};
void facts_of_run(struct facts *facts, const struct run *run);
void facts_release(struct facts *facts);
/* git.c: adds commit and branch. */
void facts_of_git(struct facts *facts);

/* describe.c, for both accounts. */
const char *call_graph_name(const struct record_options *recording,
                            const struct record_result *result, char *text, size_t size);
int run_exit_status(const struct run *run); /* as shells have it; -1: there is none */
bool run_write_text(const struct run *run, const char *file, struct text text, struct error *error);
/* "1.02 s on a CPU in 1.05 s (1.0 of 8 cores)"; nothing where it is not known. */
void run_add_cpu_time(const struct run *run, struct buffer *text);
/* Why there are too few samples, and what to do about it. */
void run_add_too_few(const struct run *run, struct buffer *why);
/* Whether there is such a program, in PATH or by its path; its path. */
bool find_program(const char *name, char *path, size_t size);
/* artifacts.c: one file of a run, made of its recording. */
struct artifact {
    struct run_reading *reading;
    struct run *run;
    const struct source *source;
    struct error *error;
    const char *data;         /* the recording */
    const struct tree *whole; /* of which the source's may be one view */
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
/* A page with the run's subtitle, categories and notes; the other options are the caller's. */
bool artifact_page(struct artifact *a, const char *file, struct html_options options,
                   const struct tree *tree, const struct naming *naming);

bool run_write_report(struct run *run, const struct facts *facts, struct error *error);

#endif
