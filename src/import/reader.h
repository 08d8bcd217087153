/* Private to the room: what the readers of text share. */
#ifndef WICK_IMPORT_READER_H
#define WICK_IMPORT_READER_H

#include "import/import.h"

/* ---- stores and saved profiles ---- */

extern const struct import_format
    format_store; /* no format of files: what source->format says of a store */
/* Whether a path or URL, with or without a query, is a store. Opens a file to look at its first bytes. */
bool store_is_source(const char *path);
/* Read what the store at `url` answers into the tree, which must be empty. */
bool store_source_read(const char *url, const struct import_options *options, struct tree *tree,
                       struct error *error);
/* Keep the time that is asked for, of a tree that may tell of several; false: it does not tell of that one. */
bool saved_choose_times(struct tree *tree, const char *path, const struct import_options *options,
                        struct error *error);

/* ---- lines -------------------------------------------------------------------------------- */

struct lines {
    struct text rest;
    uint64_t number;   /* of the line given last; the first is 1 */
    size_t given_back; /* of the text, up to here */
};
/* The next line without its end (LF, or CR LF); false when there is none. */
bool lines_next(struct lines *lines, struct text *line);

/* Pages that were read are given back: the text is often larger than all that is made of it. Who still needs one gets it back from the
   page cache. */
void text_give_back(const struct import_options *options, struct text content, struct text piece);
/* The same of what `lines` has read of `content`, now and then. */
void lines_give_back(struct lines *lines, const struct import_options *options,
                     struct text content);

/* Whether to read no further than `at` in the text: it was cancelled, or its budget is exceeded. To be asked every few frames. */
bool import_stops(const struct import_options *options, const char *at);

/* The line in which `offset` lies, 1 for the first. Costs a pass over the text up to there. */
uint64_t line_number(struct text content, size_t offset);

/* Notes of a line that could not be read. */
extern const struct note_kind note_torn;
void note_torn_line(struct tree *tree, const char *path, uint64_t number, struct text line);

/* ---- stacks of bare names ----------------------------------------------------------------- */

/* What a single-threaded reader of names needs: frames are pushed root first or leaf first, then counted. */
struct stack {
    struct tree *tree;
    uint32_t series;
    VECTOR(uint32_t) locations;
    struct index threads;        /* those it was set to */
    const struct filter *filter; /* NULL: none */
    bool skip;                   /* the filter does not want this thread: nothing is counted */
};
/* Counting `unit`s; nothing, if it is empty, until stack_set_event() is called. */
void stack_init(struct stack *stack, struct tree *tree, struct text unit);
void stack_release(struct stack *stack);
/* Under another comm, of process `pid` and thread `tid` (-1: not known), from now on. */
void stack_set_thread(struct stack *stack, struct text comm, int32_t pid, int32_t tid);
/* Of this event from now on: found by its name, or added. */
void stack_set_event(struct stack *stack, struct text name, struct text unit);
/* With this label from now on, or without it if the value is empty. */
void stack_set_label(struct stack *stack, struct text key, struct text value);
void stack_push(struct stack *stack, struct text name);
void stack_push_kinds(struct stack *stack, struct text name, uint32_t kinds);
/* All that a text may say of a frame; what has no length, or is 0, is not known. */
struct text_frame {
    struct text name;
    struct text object; /* the program or library */
    struct text file, module, language;
    uint32_t line, first_line; /* where in the file: of the frame, of its function */
    uint32_t kinds;
};
/* A frame without a name is called after its object, "[libx.so]", or "[unknown]". */
void stack_push_frame(struct stack *stack, const struct text_frame *frame);
/* The frame that was pushed last is at this place. */
void stack_locate(struct stack *stack, struct text file, uint32_t line);
/* "/x.c:12", or "/x.c:12:3" with a column: takes both apart. False: it is something else, and nothing is set. */
bool text_to_source(struct text t, struct text *file, uint32_t *line);
/* The same of a frame of which no more is known. */
void stack_push_in(struct stack *stack, struct text name, struct text object, uint32_t kinds);
void stack_reverse(struct stack *stack);
/* The tree's node of what was pushed, root first; 0 of nothing. */
uint32_t stack_node(struct stack *stack);
/* Counts what was pushed, root first. An empty stack is counted at the root. */
void stack_count(struct stack *stack, uint64_t samples, uint64_t weight);
/* Of a stack that was pushed leaf first, unless it is empty; then none of it is left. */
void stack_end(struct stack *stack, uint64_t count);
/* As stack_count(), but what was counted there before is forgotten, as inferno does in some formats. */
void stack_replace(struct stack *stack, uint64_t samples, uint64_t weight);

/* ---- tracks ------------------------------------------------------------------------------- */

/* What `wick export` calls a track: `comm-PID/TID`, and behind a space what was measured, where there are several things. */
struct track_name {
    struct text comm, event; /* an empty event: it is not said */
    int32_t pid, tid;
};
/* False: somebody else gave the name, and nothing is set. */
bool track_name_parse(struct text name, struct track_name *track);
/* Under the thread that a track's name tells of; a name that somebody else gave is the comm. */
void stack_set_track(struct stack *stack, struct text name);
/* Counts a stretch of time of the node, unless it is filtered out, and keeps it as a sample where samples are kept. */
void stack_count_at(struct stack *stack, uint32_t node, uint64_t samples, uint64_t weight,
                    uint64_t time);

/* ---- a reader's state --------------------------------------------------------------------- */

struct reader {
    const struct import_options *options;
    const char *path;
    struct tree *tree;
    struct error *error;
    struct text content;
    struct lines lines;
    struct text line; /* the one being read; valid UTF-8 with quirks.text_is_lossy */
    struct stack stack;
    struct buffer scratch, lossy;
};
void reader_init(struct reader *reader, struct text content, const char *path,
                 const struct import_options *options, struct tree *tree, struct text unit,
                 struct error *error);
void reader_release(struct reader *reader);
/* The next line, without white space at its end. */
bool reader_next(struct reader *reader);
/* A line that cannot be read: by inferno's rules an error, and false; else a note, and true. */
bool reader_bad(struct reader *reader, const char *what);
/* Something that is missing from the file as a whole, said in a note. */
void reader_warn(struct reader *reader, const struct note_kind *kind);

/* An event by its name: found, or added. */
uint32_t event_named(struct tree *tree, struct text name, struct text unit, enum event_kind kind);
/* A text's object by its path. Gives the tree its objects when it has none. */
uint32_t object_named(struct tree *tree, struct text path);

/* ---- places in code that name themselves -------------------------------------------------- */

/* Bytes of a build id written in hexadecimal; none if it is something else. */
struct build_id build_id_of_hex(struct text hex);
/* As object_named(), of an object with a build id. */
uint32_t object_with_id(struct tree *tree, struct text path, const struct build_id *id);
enum mode mode_of_object(struct text path);
/* A function at a place in code; an empty text is none. */
struct frame code_frame(struct tree *tree, struct text name, struct text file, uint32_t line,
                        uint32_t column);
/*
 * Find or add a place in code (`function` is 0) with these frames, innermost first. Code that has other frames at the same address is kept apart.
 * Inlined frames and source lines come along as far as the options want them.
 */
uint32_t tree_add_code(struct tree *tree, const struct location *location,
                       const struct frame *frames, size_t count,
                       const struct import_options *options);

/* ---- threads ------------------------------------------------------------------------------ */

/* The thread of these numbers (-1: not known; 0 where neither is): found in `threads`, or added to both. */
uint32_t thread_numbered(struct tree *tree, struct index *threads, int32_t pid, int32_t tid);
/* async-profiler's root of a stack, `[name tid=12]`, in which the name may hold anything: how long it is, or 0. */
size_t async_thread_parse(struct text stack, struct text *name, int32_t *tid);

/* What a mark at a name's end (_[k], _[j], _[i], _[w]; async-profiler's _[1]) says of it. */
uint32_t kinds_of_mark(struct text name);

/* ---- guessing ----------------------------------------------------------------------------- */

/* As inferno asks each format: yes, no, or more lines needed. */
enum applicable { APPLICABLE_NO, APPLICABLE_YES, APPLICABLE_UNSURE };
enum applicable perf_applicable(struct text text);
enum applicable dtrace_applicable(struct text text);
enum applicable sample_applicable(struct text text);
enum applicable vtune_applicable(struct text text);
enum applicable vsprof_applicable(struct text text);
enum applicable ghcprof_applicable(struct text text);
enum applicable xctrace_applicable(struct text text);
/* inferno's choice, or NULL. */
const struct import_format *guess_as_inferno(struct text content);

extern const struct import_format format_perf, format_folded, format_dtrace, format_sample,
    format_vtune, format_vsprof, format_ghcprof, format_xctrace, format_bpftrace, format_offcputime,
    format_go, format_gdb, format_eu_stack, format_stap, format_pmcstat, format_jstack,
    format_java_exceptions, format_async_profiler, format_faulthandler, format_chrome,
    format_perf_sched, format_recursive, format_svg, format_wick, format_pprof, format_speedscope,
    format_cpuprofile, format_heapprofile, format_firefox, format_otlp, format_jfr, format_heaptext,
    format_gecko, format_callgrind, format_gperftools;

#endif
