/* Private to this room: shared by the files that print script text. */
#ifndef WICK_VIEW_SCRIPT_H
#define WICK_VIEW_SCRIPT_H

#include "perfdata/perfdata.h"
#include "view/view.h"

/* The columns of a sample, in order. Its thread, CPU and time always come first. */
enum column {
    COLUMN_TID = 1 << 0,
    COLUMN_CPU = 1 << 1,
    COLUMN_TIME = 1 << 2,
    COLUMN_PERIOD = 1 << 3,
    COLUMN_TRACE = 1 << 4,
    COLUMN_ADDRESS = 1 << 5,
    COLUMN_DATA_SOURCE = 1 << 6,
    COLUMN_WEIGHT = 1 << 7,
    COLUMN_LATENCY = 1 << 8,
    COLUMN_IP = 1 << 9,
    COLUMN_BPF_OUTPUT = 1 << 10,
    COLUMN_PHYSICAL = 1 << 11,
    COLUMN_DATA_PAGE = 1 << 12,
    COLUMN_CODE_PAGE = 1 << 13,
};

/* How one event's samples are printed. */
struct script_layout {
    uint32_t columns;
    bool has_chain;   /* frames go on lines of their own */
    bool brief;       /* their lines have only addresses and names */
    struct text name; /* padded to the widest of all, and ": " */
};

/* One location: its lines, innermost first, each "\t", the address in 16 columns, " name+0x12 (object)\n". */
struct script_line {
    struct text text;
    size_t last; /* offset of the last line: the function itself, not an inlined one */
};

enum { SCRIPT_ADDRESS_WIDTH = 16, SCRIPT_LINE_TAIL = 1 + SCRIPT_ADDRESS_WIDTH };

/* A row to print: a kept sample, mostly unchanged. */
struct script_row {
    uint32_t event; /* in the file */
    uint64_t period;
};

struct script {
    const struct profile *profile;
    const struct context *context;
    bool source_lines;
    bool mark_incomplete;
    struct script_layout *events; /* as many as the perfdata's */
    struct text *comms;           /* of each series */
    struct script_line *lines;    /* of each location */
    uint32_t *event_places;       /* of the tree's events in the file */
    struct arena arena;
    /* NULL unless an event prints its payload and the file says how. */
    struct script_traces *traces;
    bool in_order; /* the text of a row depends on the rows before it */
    size_t source_width;
};

/* script.c: append the lines of one location, innermost first; `brief`: without offsets and objects. Return the offset at which the last line
   begins. */
size_t script_add_lines(const struct script *script, struct buffer *buffer, uint32_t location,
                        bool brief);

/* script_columns.c */
void script_events_init(struct script *script, const struct quirks *quirks);
/* Append one row, with the blank line after it. Return false if the sample's record can't be decoded. */
bool script_print(struct script *script, struct buffer *buffer, size_t row, struct error *error);

/* script_trace.c */
void script_traces_init(struct script *script, const struct quirks *quirks); /* after the events */
/* Free the traces. Add a note about samples that were cut short. */
void script_traces_free(struct script *script);
void script_add_trace(struct script *script, struct buffer *buffer, uint32_t event,
                      const struct key *key, const struct perfdata_sample *sample);

/* script_memory.c: append where a load's data came from, as perf spells it. */
void script_add_source(struct buffer *buffer, uint64_t source);

#endif
