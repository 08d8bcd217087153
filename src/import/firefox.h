/* Private to the reader of the Firefox Profiler's processed profiles: what firefox.c and firefox_stacks.c share. */
#ifndef WICK_IMPORT_FIREFOX_H
#define WICK_IMPORT_FIREFOX_H

#include "base/json.h"
#include "import/reader.h"
#include "import/sidecar.h"

enum { FIREFOX_NONE = -1 }; /* null, in a column of numbers */

struct numbers {
    VECTOR(int64_t) list;
};

/* The tables of stacks: the document's, or one thread's. */
struct tables {
    VECTOR(uint32_t) strings; /* the tree's strings */
    struct numbers function_name, function_file, function_source, function_resource, function_line,
        function_script;
    struct numbers frame_function, frame_line, frame_column, frame_category, frame_depth,
        frame_address;
    struct numbers stack_frame, stack_parent, stack_distance;
    struct numbers resource_lib, source_file;
    VECTOR(uint32_t) nodes;     /* the tree's node + 1, by stack; 0: not placed yet */
    VECTOR(uint32_t) locations; /* the tree's location + 1, by frame that is not inlined */
};

struct firefox_lib {
    uint32_t path; /* string */
    struct build_id id;
    uint32_t in_sidecar; /* its number in the sidecar, or SIDECAR_NONE */
    uint64_t base;       /* base of its addresses, if `wick export` wrote the file */
};

struct firefox {
    struct reader r;
    struct json json;
    struct json meta, libs, shared, threads; /* where they are */
    struct buffer key, name, process, kind;
    struct tables all;
    VECTOR(struct firefox_lib) libraries;
    VECTOR(uint32_t) categories; /* enum frame_kind, by category */
    VECTOR(uint32_t) way;        /* from a stack up to one that is placed */
    VECTOR(struct frame) lines;  /* of the current location, innermost first */
    VECTOR(double) times, weights;
    struct numbers sample_stack;
    struct sidecar sidecar;
    int64_t pid, tid;
    bool deltas; /* times are from sample to sample */
    bool weighed;
    bool symbolicated; /* the profile has names for its addresses */
    bool has_sidecar;
    bool said; /* description of the problem */
};

/* Return the column with that name, or NULL if it is not used. `table` may have any name, too. */
struct numbers *firefox_column(struct tables *tables, struct text table, struct text name);
bool firefox_wants_table(struct text table);
void firefox_tables_release(struct tables *tables);
/* Check that all stacks have frames, and parents before them. Call it before any stack is used. */
bool firefox_check_stacks(struct firefox *f, struct tables *tables);
/* Return the tree's node for a row of the stack table. */
uint32_t firefox_node(struct firefox *f, struct tables *tables, size_t stack);

#endif
