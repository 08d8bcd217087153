/* Private to the room: one thread's share of reading perf script text. */
#ifndef WICK_IMPORT_SCRIPT_WORKER_H
#define WICK_IMPORT_SCRIPT_WORKER_H

#include "import/reader.h"

struct script_line {
    const char *data;
    uint32_t length;
    uint32_t location; /* 0: a line that gives no frame */
    bool torn;
};

struct script_worker {
    const struct import_options *options;
    struct tree *tree;
    struct text content; /* the whole text, for offsets */
    const char *path;
    struct text only; /* the first event's name, which is counted unless others were selected */

    struct arena line_arena;
    VECTOR(struct script_line) lines; /* distinct frame lines, [0] unused */
    struct index line_index;
    VECTOR(uint32_t) events; /* by the string of their name */
    struct index thread_index;
    struct buffer scratch;

    /* The sample being read. */
    bool in_sample;
    bool skip; /* its event is not counted */
    /* Its only frame so far was in the event line, and may turn out to be a payload. */
    bool maybe_inline;
    bool clean; /* nothing of the last sample is left: by inferno's rules, something sometimes is */
    struct script_event event;
    size_t offset;
    uint64_t period;
    uint32_t series;
    VECTOR(uint32_t) stack; /* locations, leaf first */

    /* The sample before it, root first. */
    VECTOR(uint32_t) last_stack;
    VECTOR(uint32_t) last_nodes;
    uint32_t last_series;
    struct text last_comm, last_name;
    int32_t last_pid, last_tid;

    uint64_t torn;
    size_t torn_at;
    struct text torn_line;
    uint64_t other_events;
    size_t other_at;
    struct text other_name;
};

/* Register the tree's events, which an earlier file may have added. Call it once, before the first line. */
void worker_know_events(struct script_worker *worker);
/* Read one line, without its LF. */
void worker_line(struct script_worker *worker, struct text line);
/* End the sample, if there is one, and prepare for the next. inferno drops samples without frames. */
void worker_end(struct script_worker *worker);
/* Return true if the event counts. If none was selected, the first one seen decides. */
bool worker_wants(struct script_worker *worker, struct text name);
void worker_release(struct script_worker *worker); /* all except the tree */

#endif
