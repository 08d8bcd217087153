/*
 * import: other tools' formats to the tree, one file for each format; and the door through which every source comes in.
 *
 * source_open() looks at a file, not at its name, and reads it with the format that recognises it: perf.data (room profile),
 * perf script text, folded text, and the others in the table of import.c. Several files merge into one tree.
 *
 * Text formats give locations with bare names. A torn or unreadable line is a note with its number, not an error, unless
 * the format's own rules say otherwise.
 */
#ifndef WICK_IMPORT_H
#define WICK_IMPORT_H

#include "base/base.h"
#include "profile/profile.h"
#include "tree/tree.h"

struct import_options {
    struct profile_options profile; /* filters and threads count for text too */
    const char *from;               /* a format's name, or NULL: look */
    bool compat_inferno;            /* inferno's rules and bugs, where a format has them */
    bool no_modules;                /* sample, vtune: names without their module */
    bool include_offset;            /* dtrace: keep +0x… */
    int ghc_column;                 /* ghcprof: 0 %time, 1 ticks, 2 bytes */
};

/* One format. `score` looks at the first bytes: 0 no, 100 certainly. */
struct import_format {
    const char *name;
    const char *what; /* for --help: "Linux perf script text" */
    int (*score)(struct text beginning);
    bool (*read)(struct text content, const char *path, const struct import_options *options, struct tree *tree,
                 struct error *error);
};
extern const struct import_format *const import_formats[]; /* NULL-terminated, in the order they are asked */

struct source {
    struct tree *tree;
    struct profile *profile; /* of a perf.data, else NULL; owns the tree then */
    struct file *files;
    size_t file_count;
    const struct import_format *format; /* of the first text file, else NULL */
};

/* Reads all of `paths` ("-" is standard input) into one tree. */
bool source_open(struct source *source, const char *const *paths, size_t path_count,
                 const struct import_options *options, struct error *error);
void source_close(struct source *source);

#endif
