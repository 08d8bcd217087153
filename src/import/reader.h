/* Private to the room: shared by the readers of text. */
#ifndef WICK_IMPORT_READER_H
#define WICK_IMPORT_READER_H

#include "import/import.h"

/* ---- stores and saved profiles ---- */

extern const struct import_format
    format_store; /* not a file format: the value of source->format for a store */
/* Return true if a path or URL, with or without a query, is a store. Opens a file to look at its first bytes. */
bool store_is_source(const char *path);
/* Read the store's answer for `url` into the tree, which must be empty. */
bool store_source_read(const char *url, const struct import_options *options, struct tree *tree,
                       struct error *error);
/* Keep only the requested time, in a tree that may have several; return false if it does not have that one. */
bool saved_choose_times(struct tree *tree, const char *path, const struct import_options *options,
                        struct error *error);

/* ---- lines -------------------------------------------------------------------------------- */

struct lines {
    struct text rest;
    uint64_t number;   /* number of the last line, from 1 */
    size_t given_back; /* of the text, up to here */
};
/* Get the next line without its end (LF, or CR LF); return false if there is none. */
bool lines_next(struct lines *lines, struct text *line);

/* Return true if it begins with a UTF-16 byte order mark. */
bool text_is_utf16(struct text t);
/* Append UTF-16 as UTF-8, without its byte order mark; unpaired surrogates become U+FFFD. */
void text_from_utf16(struct text t, struct buffer *out);

/* Release pages that were read: the text is often larger than the result. A page that is needed again comes from the
   page cache. */
void text_give_back(const struct import_options *options, struct text content, struct text piece);
/* The same for what `lines` has read of `content`, now and then. */
void lines_give_back(struct lines *lines, const struct import_options *options,
                     struct text content);

/* Return true if reading must stop at `at` in the text: it was cancelled, or its budget is exceeded. Call it every
   few frames. */
bool import_stops(const struct import_options *options, const char *at);

/* Return the number of the line that contains `offset`, from 1. Costs a pass over the text up to there. */
uint64_t line_number(struct text content, size_t offset);

/* Notes about lines that could not be parsed. */
extern const struct note_kind note_torn;
void note_torn_line(struct tree *tree, const char *path, uint64_t number, struct text line);

/* ---- stacks of bare names ----------------------------------------------------------------- */

/* State of a single-threaded reader of names: frames are pushed root first or leaf first, then counted. */
struct stack {
    struct tree *tree;
    uint32_t series;
    VECTOR(uint32_t) locations;
    struct index threads;        /* the values that were set */
    const struct filter *filter; /* NULL: none */
    bool skip;                   /* the thread is filtered out: nothing is counted */
};
/* Count in `unit`s; if it is empty, count nothing until stack_set_event() is called. */
void stack_init(struct stack *stack, struct tree *tree, struct text unit);
void stack_release(struct stack *stack);
/* From now on, count under another comm, process `pid` and thread `tid` (-1: unknown). */
void stack_set_thread(struct stack *stack, struct text comm, int32_t pid, int32_t tid);
/* From now on, count this event: found by its name, or added. */
void stack_set_event(struct stack *stack, struct text name, struct text unit);
/* From now on, count with this label, or without it if the value is empty. */
void stack_set_label(struct stack *stack, struct text key, struct text value);
void stack_push(struct stack *stack, struct text name);
void stack_push_kinds(struct stack *stack, struct text name, uint32_t kinds);
/* Everything a text may say about a frame; fields that are empty or 0 are unknown. */
struct text_frame {
    struct text name;
    struct text object; /* the program or library */
    struct text file, module, language;
    uint32_t line, first_line; /* where in the file: of the frame, of its function */
    uint32_t kinds;
};
/* A frame without a name is named after its object, "[libx.so]", or "[unknown]". */
void stack_push_frame(struct stack *stack, const struct text_frame *frame);
/* Set the place of the frame that was pushed last. */
void stack_locate(struct stack *stack, struct text file, uint32_t line);
/* Split "/x.c:12", or "/x.c:12:3" with a column. Return false and set nothing for anything else. */
bool text_to_source(struct text t, struct text *file, uint32_t *line);
/* The same for a frame about which nothing else is known. */
void stack_push_in(struct stack *stack, struct text name, struct text object, uint32_t kinds);
void stack_reverse(struct stack *stack);
/* Return the tree's node of the pushed stack, root first; 0 if it is empty. */
uint32_t stack_node(struct stack *stack);
/* Count the pushed stack, root first. An empty stack is counted at the root. */
void stack_count(struct stack *stack, uint64_t samples, uint64_t weight);
/* Count and empty a stack that was pushed leaf first, unless it is empty. */
void stack_end(struct stack *stack, uint64_t count);
/* Like stack_count(), but replace what was counted there before, as inferno does in some formats. */
void stack_replace(struct stack *stack, uint64_t samples, uint64_t weight);

/* ---- tracks ------------------------------------------------------------------------------- */

/* `wick export`'s name of a track: `comm-PID/TID`, followed by a space and the event if there are several. */
struct track_name {
    struct text comm, event; /* an empty event: not given */
    int32_t pid, tid;
};
/* Return false and set nothing if the name has another form. */
bool track_name_parse(struct text name, struct track_name *track);
/* Count under the thread that a track's name describes; a name of another form is the comm. */
void stack_set_track(struct stack *stack, struct text name);
/* Count a time span of the node, unless it is filtered out, and keep it as a sample if samples are kept. */
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
    struct text line; /* the current line; valid UTF-8 with quirks.text_is_lossy */
    struct stack stack;
    struct buffer scratch, lossy;
};
void reader_init(struct reader *reader, struct text content, const char *path,
                 const struct import_options *options, struct tree *tree, struct text unit,
                 struct error *error);
void reader_release(struct reader *reader);
/* Get the next line, without white space at its end. */
bool reader_next(struct reader *reader);
/* Report a line that can't be parsed: by inferno's rules an error, and return false; otherwise a note, and return
   true. */
bool reader_bad(struct reader *reader, const char *what);
/* Add a note about something that is missing from the file as a whole. */
void reader_warn(struct reader *reader, const struct note_kind *kind);
/* Add a note if the file is a JSON object whose last brace is missing. A cut just after the brace of an inner object is not noticed. */
void reader_warn_cut(struct reader *reader);

/* Return how many nanoseconds one of the unit is: nanoseconds, microseconds, milliseconds or seconds; 0 for any other unit. */
uint64_t unit_nanoseconds(struct text unit);
/* Find or add an event by its name. */
uint32_t event_named(struct tree *tree, struct text name, struct text unit, enum event_kind kind);
/* Find or add an object by its path. Creates the tree's objects if it has none. */
uint32_t object_named(struct tree *tree, struct text path);

/* ---- places in code that name themselves -------------------------------------------------- */

/* Parse a build id in hexadecimal; empty if it is something else. */
struct build_id build_id_of_hex(struct text hex);
/* Like object_named(), for an object with a build id. */
uint32_t object_with_id(struct tree *tree, struct text path, const struct build_id *id);
enum mode mode_of_object(struct text path);
/* A function at a location; an empty text means none. */
struct frame code_frame(struct tree *tree, struct text name, struct text file, uint32_t line,
                        uint32_t column);
/*
 * Find or add a location in code (`function` is 0) with these frames, innermost first. Code that has other frames at
 * the same address is kept separate. Inlined frames and source lines are included as far as the options request them.
 */
uint32_t tree_add_code(struct tree *tree, const struct location *location,
                       const struct frame *frames, size_t count,
                       const struct import_options *options);

/* ---- threads ------------------------------------------------------------------------------ */

/* Find the thread with these numbers (-1: unknown; 0 if both are) in `threads`, or add it to both. */
uint32_t thread_numbered(struct tree *tree, struct index *threads, int32_t pid, int32_t tid);
/* Return the length of async-profiler's root frame `[name tid=12]`, in which the name may contain anything, or 0. */
size_t async_thread_parse(struct text stack, struct text *name, int32_t *tid);

/* Return what a mark at a name's end (_[k], _[j], _[i], _[w]; async-profiler's _[1]) says about it. */
uint32_t kinds_of_mark(struct text name);

/* ---- guessing ----------------------------------------------------------------------------- */

/* inferno's answers of a format: yes, no, or more lines needed. */
enum applicable { APPLICABLE_NO, APPLICABLE_YES, APPLICABLE_UNSURE };
enum applicable perf_applicable(struct text text);
enum applicable dtrace_applicable(struct text text);
enum applicable sample_applicable(struct text text);
enum applicable vtune_applicable(struct text text);
enum applicable vsprof_applicable(struct text text);
enum applicable ghcprof_applicable(struct text text);
enum applicable xctrace_applicable(struct text text);
/* Return inferno's choice, or NULL. */
const struct import_format *guess_as_inferno(struct text content);

extern const struct import_format format_perf, format_folded, format_dtrace, format_sample,
    format_vtune, format_vsprof, format_ghcprof, format_xctrace, format_bpftrace, format_offcputime,
    format_go, format_gdb, format_eu_stack, format_stap, format_pmcstat, format_jstack,
    format_java_exceptions, format_async_profiler, format_faulthandler, format_chrome,
    format_perf_sched, format_recursive, format_svg, format_wick, format_pprof, format_speedscope,
    format_cpuprofile, format_heapprofile, format_firefox, format_otlp, format_jfr, format_heaptext,
    format_gecko, format_callgrind, format_gperftools, format_stackprof, format_pprof_text,
    format_dhat, format_massif, format_v8log;

#endif
