/* Private to the room: what the reader of Chrome's traces collects. */
#ifndef WICK_IMPORT_CHROME_H
#define WICK_IMPORT_CHROME_H

#include "import/v8.h"

struct span {
    int64_t process, thread;
    uint64_t start; /* nanoseconds */
    uint64_t end;   /* for complete spans; UINT64_MAX for others */
    size_t order;   /* position in the file, which decides between equal times */
    uint32_t name;  /* string; 0 for an end without a name: closes the innermost "B" */
    bool is_end;
};

struct open_span {
    uint64_t end;
    uint32_t node, name;
    bool complete; /* its end is known */
    bool begun;    /* by "B" */
};

struct thread_label {
    int64_t process, thread; /* thread is INT64_MIN: the process's name */
    uint32_t name;
};

/* An entry of `samples`. */
struct chrome_sample {
    int64_t process, thread;
    int64_t frame; /* id of the leaf */
    uint64_t time; /* nanoseconds */
    size_t order;
};

/* An entry of `stackFrames`. */
struct chrome_frame {
    int64_t id, parent; /* parent is INT64_MIN: it is a root */
    uint32_t location;
    uint32_t node; /* the tree's node, once it is placed */
    bool placed, on_way;
};

struct chrome {
    struct reader r;
    struct json json;
    VECTOR(struct span) spans;
    VECTOR(struct thread_label) labels;
    VECTOR(struct open_span) open;
    VECTOR(struct v8_chunk) chunks;
    VECTOR(struct chrome_sample) samples;
    VECTOR(struct chrome_frame) frames;
    VECTOR(uint32_t) way;   /* from a frame up to one that is placed */
    struct index frame_ids; /* indexes of frames + 1 */
    struct buffer key, name, phase, label;
    size_t begun; /* number of open spans begun by "B" */
    uint64_t now;
};

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Read microseconds, usually with a fraction, from a number or a string. Return false and read nothing for anything
   else. */
bool chrome_time(struct chrome *c, uint64_t *nanoseconds);
/* Read an id: a number, or a string that contains one. */
bool chrome_id(struct chrome *c, int64_t *id);
/* Count under the thread with these numbers. Its comm is the thread's name, or the process's, or none; the process's
   name is always a label. */
void chrome_set_thread(struct chrome *c, int64_t process, int64_t thread);

/* ---- samples (chrome_samples.c) ---- */

/* Keep the current event's data if it is a chunk of a CPU profile. */
void chrome_keep_chunk(struct chrome *c, const struct v8_chunk *chunk);
/* Read the values of "samples" and "stackFrames". */
bool chrome_read_samples(struct chrome *c);
bool chrome_read_frames(struct chrome *c);
/* Count everything that was kept, under the event that is set; add the number of samples to *samples. */
bool chrome_count_samples(struct chrome *c, size_t *samples);

#endif
