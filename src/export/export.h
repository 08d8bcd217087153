/*
 * export: write the tree in other tools' formats, one file for each format.
 *
 * Every format is written from an outline (outline.h): the tree ordered by content, with the names of wick's views
 * and the values of each measure and thread. So sums equal those of wick's views, and the bytes do not depend on
 * threads, locale or clock.
 *
 * A format is one entry in the table of export.c and one function.
 */
#ifndef WICK_EXPORT_H
#define WICK_EXPORT_H

#include "base/base.h"
#include "tree/tree.h"
#include "view/view.h"

struct export_options {
    /* Only by_samples, fold_recursion and max_depth are used. */
    const struct flame_options *shape;
    const char *title;         /* name of the profile */
    const char *measure;       /* all events are this one: "wall"; NULL: each is its own */
    const struct notes *notes; /* written if the format has room for them; sorted; NULL: none */
    bool force;                /* write more than 4 GB */
    uint64_t began,
        lasted; /* pprof, otlp: Unix nanoseconds of its beginning, and its length; 0: not known */
    /* pprof: write only these of the export_count() samples; 0: all. */
    size_t first_sample, sample_count;
    bool no_threads;                     /* pprof, otlp: without process and thread ids */
    const struct label_filter *resource; /* otlp: attributes of what was profiled: key and value */
    size_t resource_count;
};

struct outline;

struct export_format {
    const char *name;
    const char *what;     /* for --help: "the JSON of speedscope" */
    const char *suffixes; /* suffixes of its files, separated by spaces */
    enum detail detail;
    bool has_time;   /* can store samples in order, if the source has them */
    bool has_lines;  /* can store source lines */
    bool has_labels; /* can store labels of samples */
    bool is_binary;  /* must not be written to a terminal */
    bool (*write)(struct out *out, const struct outline *outline, struct error *error);
    /* The same for a call graph; NULL if the format needs stacks. */
    bool (*write_graph)(struct out *out, const struct tree *tree, const struct naming *naming,
                        const struct export_options *options, struct error *error);
};
extern const struct export_format export_formats[];                /* ends with a NULL name */
const struct export_format *export_format_named(const char *name); /* NULL if unknown */
/* Return the format for the suffix of a path, or NULL. */
const struct export_format *export_format_of_path(const char *path);
void export_add_names(struct buffer *names); /* names of all formats: "speedscope, pprof, …" */
/* Return the title of a profile that was read from `path`: the file name without directories. */
const char *export_title(const char *path);

/* Count the samples of its pprof: distinct stacks of each thread. */
bool export_count(const struct tree *tree, const struct naming *naming,
                  const struct export_options *options, uint64_t *count, struct error *error);
/* Write the resolved and named tree. A call graph needs a format with write_graph. Fails if there is nothing to
   write, or more than the format can hold. */
bool export_write(struct out *out, const struct export_format *format, const struct tree *tree,
                  const struct naming *naming, const struct export_options *options,
                  struct error *error);

#endif
