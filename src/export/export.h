/*
 * export: the tree as other tools read it, one file for each format.
 *
 * Every format is written from an outline (outline.h): the tree in an order of content, named as views name it, with what was counted
 * for each measure and thread. So sums are those of wick's own views, and bytes the same with any number of threads, locale and clock.
 *
 * A format is one line in the table of export.c and one function.
 */
#ifndef WICK_EXPORT_H
#define WICK_EXPORT_H

#include "base/base.h"
#include "tree/tree.h"
#include "view/view.h"

struct export_options {
    /* by_samples, fold_recursion and max_depth; the others are not heeded. */
    const struct flame_options *shape;
    const char *title;         /* what the profile is called */
    const char *measure;       /* all events are this one: "wall"; NULL: each is its own */
    const struct notes *notes; /* written where a format has room for them; sorted; NULL: none */
    bool force;                /* even if it takes more than 4 GB */
    uint64_t began,
        lasted; /* pprof, otlp: Unix nanoseconds of its beginning, and its length; 0: not known */
    /* pprof: only these of its samples, of which there are as many as export_count() says; 0: all. */
    size_t first_sample, sample_count;
    bool no_threads;                     /* pprof, otlp: without numbers of processes and threads */
    const struct label_filter *resource; /* otlp: attributes of what was profiled: key and value */
    size_t resource_count;
};

struct outline;

struct export_format {
    const char *name;
    const char *what;     /* for --help: "the JSON of speedscope" */
    const char *suffixes; /* how its files' names end, divided by spaces */
    enum detail detail;
    bool has_time;   /* takes samples in their order, where the source keeps them */
    bool has_lines;  /* has room for source lines */
    bool has_labels; /* has room for labels of samples */
    bool is_binary;  /* nothing for a terminal */
    bool (*write)(struct out *out, const struct outline *outline, struct error *error);
    /* The same of a call graph; NULL: the format has stacks. */
    bool (*write_graph)(struct out *out, const struct tree *tree, const struct naming *naming,
                        const struct export_options *options, struct error *error);
};
extern const struct export_format export_formats[];                /* ends with a NULL name */
const struct export_format *export_format_named(const char *name); /* NULL: there is none */
/* By how the path ends; NULL: no format's files end so. */
const struct export_format *export_format_of_path(const char *path);
void export_add_names(struct buffer *names); /* of all of them: "speedscope, pprof, …" */
/* What a profile is called that was read from there: the file, without the way to it. */
const char *export_title(const char *path);

/* How many samples a pprof of it has: distinct stacks of each thread. */
bool export_count(const struct tree *tree, const struct naming *naming,
                  const struct export_options *options, uint64_t *count, struct error *error);
/* Writes the resolved and named tree; of a call graph only where the format has write_graph. Fails where there is nothing to write, or more than the format can hold. */
bool export_write(struct out *out, const struct export_format *format, const struct tree *tree,
                  const struct naming *naming, const struct export_options *options,
                  struct error *error);

#endif
