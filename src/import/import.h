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
    struct profile_options profile; /* filter, context and quirks count for text too */
    const char *from;               /* a format's name, "guess" or NULL: look */
    bool no_modules;                /* sample, vtune: names without their module */
    bool include_offset;            /* dtrace: keep +0x… */
    bool comm_first;                /* folded: the first frame is the comm, no function */
    bool graphs;                    /* the caller can show a call graph, which has no stacks */
    bool timed_only;                /* of keep_samples: not those that have an order but no time */
    /* For quirks.lines_decide: how a recording is printed as script text, which is a room's below. */
    bool (*print)(struct out *out, const struct profile *profile, const struct context *context,
                  struct error *error);
    /* Of stores: a file with the credentials, or NULL; keep the label host apart; take what answers, if not all of it does. */
    const char *store_credentials;
    struct net *store_net;       /* asks the server; NULL: a helper is started for each */
    unsigned store_milliseconds; /* for each answer; 0: as store_open() has it */
    bool store_hosts;
    bool store_partial;
    int ghc_column; /* ghcprof: 0 %time, 1 ticks, 2 bytes */
    /* Set by source_open(): the content is a file's mapping, whose pages may be given back once read. */
    bool mapped;
    /* Set by import_read(): what reading may cost, and of which text. */
    struct budget *budget;
    struct text content;
    /* Set by source_open(): what samply saved beside a profile of the Firefox Profiler's; empty: nothing. */
    struct text sidecar;
};

/* What a format says of its stacks beyond threads, so that it can be filtered by. */
enum import_tells { TELLS_EVENTS = 1, TELLS_TIMES = 2, TELLS_ALL = 4 };

/* One format. `score` looks at the first bytes: 0 no, 100 certainly. `read` is called by import_read() alone. */
struct import_format {
    const char *name;
    const char *what; /* for --help: "Linux perf script text" */
    int (*score)(struct text beginning);
    bool (*read)(struct text content, const char *path, const struct import_options *options,
                 struct tree *tree, struct error *error);
    unsigned tells; /* enum import_tells */
};
/* Reads `content` into the tree, on a budget that its size gives. Everything that reads text comes through here, fuzzers and tests too. */
bool import_read(const struct import_format *format, struct text content, const char *path,
                 const struct import_options *options, struct tree *tree, struct error *error);
/* NULL-terminated, in the order they are asked. */
extern const struct import_format *const import_formats[];
const struct import_format *import_format_named(const char *name); /* NULL: there is none */
/* The format that these first bytes look like most, or NULL. */
const struct import_format *import_guess(struct text beginning);

struct source {
    struct tree *tree;
    struct profile *profile; /* of one perf.data, else NULL; owns the tree then */
    struct file *files;
    size_t file_count;
    const struct import_format *format; /* of the first text file, else NULL */
};

/* Reads all of `paths` ("-" is standard input; a run's directory is its recording; a path or URL may be a store with its query) into one tree. Fails, too, where waits are asked for and text has none. */
bool source_open(struct source *source, const char *const *paths, size_t path_count,
                 const struct import_options *options, struct error *error);
void source_close(struct source *source);
/* The same for a process that ends: what is only memory is left to the kernel. */
void source_leave(struct source *source);
/* Whether weights are estimates: of some of the allocations. */
static inline bool source_is_estimated(const struct source *source) {
    return source->profile && source->profile->heap && source->profile->heap->mean > 1;
}

/* Open a file, or the recording in a directory that is one, as source_open() does. */
bool source_open_file(struct file *file, const char *path, const struct context *context,
                      struct error *error);

/*
 * The path of the symbols that samply saves beside a profile: a.syms.json of a.json and of a.json.gz, of which samply 0.13 makes a.json.syms.json. Appends it with
 * its NUL; false: there is no regular file of such a name.
 */
bool sidecar_path(const char *path, struct buffer *sidecar);

/* Adds all that `from` counted to `tree`, which may know nothing of its strings, objects, events and threads. */
void tree_join(struct tree *tree, const struct tree *from);

/* ---- perf script's lines ------------------------------------------------------------------ */

/*
 * The text reader parses them, and so does naming with quirks.names_through_text, which writes a location of a perf.data down as the line
 * that perf script would print and reads it as inferno would. All texts point into the line.
 */
struct script_event {
    struct text comm;
    struct text name; /* data is NULL when no event was recognised */
    struct text rest; /* what follows the event: a payload, or the frame of a one-line sample */
    int32_t pid;      /* -1: the line has none, or none that fits */
    int32_t tid;
    uint32_t cpu;  /* UINT32_MAX: none */
    uint64_t time; /* nanoseconds */
    uint64_t period;
    bool has_period;
};
struct script_frame {
    struct text address; /* as printed */
    struct text symbol;  /* without its offset; "[unknown]" as printed */
    struct text object;  /* data is NULL when the line names none */
    bool inlined;
};
bool script_event_parse(struct text line, struct script_event *event);
bool script_frame_parse(struct text line, struct script_frame *frame);
/* What an object's path says of its frames (enum frame_kind), by wick's rules or by inferno's. */
uint32_t script_object_kinds(struct text object, bool inferno);
/* By inferno's rules; the line must be valid UTF-8 (text_lossy) without white space at its end. */
bool script_event_parse_inferno(struct text line, struct script_event *event);
bool script_frame_parse_inferno(struct text line, struct script_frame *frame);

/* ---- text as Rust's library sees it, which inferno's rules are made of -------------------- */

/* Without characters of Unicode's White_Space at the ends. */
struct text text_trim_start(struct text t);
struct text text_trim_end(struct text t);
struct text text_trim_both(struct text t);
/* `t` itself if it is valid UTF-8, else a copy in `scratch` with U+FFFD for each maximal invalid part. */
struct text text_lossy(struct text t, struct buffer *scratch);
/* Undoes what is left of Rust's legacy mangling in a name that ends in its hash, appending to `out`; false, and nothing
   appended, if it does not end so. */
bool rust_repair(struct text symbol, struct buffer *out);

#endif
