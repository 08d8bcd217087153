/*
 * import: read other tools' formats into the tree, one file for each format; and open sources of any kind.
 *
 * source_open() detects a file's format by its content, not by its name: perf.data (room profile),
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
    struct profile_options profile; /* filter, context and quirks also apply to text */
    const char *from;               /* a format's name; "guess" or NULL: detect it */
    bool no_modules;                /* sample, vtune: names without their module */
    bool include_offset;            /* dtrace: keep +0x… */
    bool comm_first;                /* folded: the first frame is the comm, not a function */
    bool graphs;                    /* the caller can show a call graph, which has no stacks */
    bool timed_only;                /* keep_samples only for samples with times */
    bool keep_all;                  /* keep events aside, and the notes of every kind of time */
    bool shown_notes;               /* keep only the notes about the time that is shown */
    /* For quirks.lines_decide: prints a recording as script text, which only a later room can do. */
    bool (*print)(struct out *out, const struct profile *profile, const struct context *context,
                  struct error *error);
    /* For stores: a file with the credentials, or NULL; distinguish the label host; accept partial answers. */
    const char *store_credentials;
    struct net *store_net;       /* sends requests to the server; NULL: start a helper for each */
    unsigned store_milliseconds; /* for each answer; 0: store_open()'s default */
    bool store_hosts;
    bool store_partial;
    int ghc_column; /* ghcprof: 0 %time, 1 ticks, 2 bytes */
    /* Set by source_open(): the content is a mapped file, whose pages may be released once they are read. */
    bool mapped;
    /* Set by import_read(): the budget, and the text that it is for. */
    struct budget *budget;
    struct text content;
    /* Set by source_open(): symbols that samply saved beside a Firefox Profiler profile; empty: none. */
    struct text sidecar;
};

/* What a format records besides threads, and so can filter by. */
enum import_tells { TELLS_EVENTS = 1, TELLS_TIMES = 2, TELLS_ALL = 4 };

/* One format. `score` looks at the first bytes and returns 0 (no) to 100 (certain). `read` is only called by
   import_read(). */
struct import_format {
    const char *name;
    const char *what; /* for --help: "Linux perf script text" */
    int (*score)(struct text beginning);
    bool (*read)(struct text content, const char *path, const struct import_options *options,
                 struct tree *tree, struct error *error);
    unsigned tells; /* enum import_tells */
};
/* Read `content` into the tree, with a budget derived from its size. All readers of text are called through this
   function, also by fuzzers and tests. */
bool import_read(const struct import_format *format, struct text content, const char *path,
                 const struct import_options *options, struct tree *tree, struct error *error);
/* All formats, NULL-terminated, in the order in which they are tried. */
extern const struct import_format *const import_formats[];
const struct import_format *import_format_named(const char *name); /* NULL if unknown */
/* Return the format that best matches these first bytes, or NULL. */
const struct import_format *import_guess(struct text beginning);

struct source {
    struct tree *tree;
    struct profile *profile; /* for one perf.data, else NULL; then it owns the tree */
    struct file *files;
    size_t file_count;
    const struct import_format *format; /* of the first text file, else NULL */
    bool each;                          /* profile_options.each was applied */
};

/* Read all of `paths` ("-" is standard input; a run's directory is its recording; a path or URL may be a store with
   its query) into one tree. Fail also if waits are requested and a text has none. Of several files that were not recorded for the same kind
   of time, read CPU time only: then neither profile_options.natural nor `each` is honoured. */
bool source_open(struct source *source, const char *const *paths, size_t path_count,
                 const struct import_options *options, struct error *error);
void source_close(struct source *source);
/* The same for a process that is about to exit: memory is not freed. */
void source_leave(struct source *source);
/* Return true if weights are estimates, from sampled allocations. */
static inline bool source_is_estimated(const struct source *source) {
    return source->tree->is_estimated;
}
/* Return the standard deviation of one sample's weight then, at most; see estimate_error(). */
static inline uint64_t source_deviation(const struct source *source) {
    return source_is_estimated(source) ? source->tree->deviation : 0;
}

/* Open a file, or the recording in a directory that is one, as source_open() does. */
bool source_open_file(struct file *file, const char *path, const struct context *context,
                      struct error *error);

/*
 * Append the path, with a NUL, of the symbols that samply saves beside a profile: a.syms.json for a.json and for
 * a.json.gz; samply 0.13 writes a.json.syms.json for the latter. Return false if there is no regular file with such a
 * name.
 */
bool sidecar_path(const char *path, struct buffer *sidecar);

/* Add all cells of `from` to `tree`, together with the strings, objects, events and threads that `tree` lacks. */
void tree_join(struct tree *tree, const struct tree *from);

/* ---- perf script's lines ------------------------------------------------------------------ */

/*
 * Lines of perf script text. They are parsed by the text reader, and by naming with quirks.names_through_text, which
 * prints a perf.data's location as perf script would and reads it as inferno would. All texts point into the line.
 */
struct script_event {
    struct text comm;
    struct text name; /* data is NULL if no event was recognized */
    struct text rest; /* what follows the event: a payload, or the frame of a one-line sample */
    int32_t pid;      /* -1: missing or out of range */
    int32_t tid;
    uint32_t cpu;  /* UINT32_MAX: none */
    uint64_t time; /* nanoseconds */
    uint64_t period;
    bool has_period;
};
struct script_frame {
    struct text address; /* as printed */
    struct text symbol;  /* without its offset; "[unknown]" as printed */
    struct text object;  /* data is NULL if the line has none */
    bool inlined;
};
bool script_event_parse(struct text line, struct script_event *event);
bool script_frame_parse(struct text line, struct script_frame *frame);
/* Return what an object's path says about its frames (enum frame_kind), by wick's rules or by inferno's. */
uint32_t script_object_kinds(struct text object, bool inferno);
/* Parse by inferno's rules; the line must be valid UTF-8 (text_lossy) without white space at its end. */
bool script_event_parse_inferno(struct text line, struct script_event *event);
bool script_frame_parse_inferno(struct text line, struct script_frame *frame);

/* ---- text as Rust's library sees it, which inferno's rules are made of -------------------- */

/* Remove characters of Unicode's White_Space at both ends. */
struct text text_trim_start(struct text t);
struct text text_trim_end(struct text t);
struct text text_trim_both(struct text t);
/* Return `t` if it is valid UTF-8, otherwise a copy in `scratch` with U+FFFD for each maximal invalid part. */
struct text text_lossy(struct text t, struct buffer *scratch);
/* Undo the rest of Rust's legacy mangling in a name that ends with its hash, and append it to `out`. Return false and
   append nothing if it does not. */
bool rust_repair(struct text symbol, struct buffer *out);

#endif
