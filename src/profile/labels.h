/*
 * Private to this room: labels of processes, from the recording's carrier.
 */
#ifndef WICK_PROFILE_LABELS_H
#define WICK_PROFILE_LABELS_H

#include "perfdata/perfdata.h"
#include "tree/tree.h"

struct label_entry {
    uint64_t time;
    int32_t pid;
    uint32_t place; /* in the file */
    uint32_t set;   /* of the tree */
};

/* The label set of a process from a time on. */
struct label_told {
    uint64_t from;
    uint32_t set;
    uint32_t before; /* number of the previous one; 0: none */
};

struct labelled {
    int32_t pid;
    uint32_t latest; /* number of a label_told */
};

/* Zero-initialised is empty. */
struct labels {
    VECTOR(struct label_entry) entries;
    size_t applied; /* of them */
    VECTOR(struct label_told) told;
    VECTOR(struct labelled) processes;
    struct index index; /* of `processes`, by pid: numbers are indexes + 1 */
};
void labels_release(struct labels *labels);

/* Add an entry of the carrier. After the last one, sort them by time. */
void labels_add(struct labels *labels, struct tree *tree, struct text key, struct text bytes);
void labels_sort(struct labels *labels);
/* Apply all entries up to a time, and then a fork at that time. */
void labels_apply(struct labels *labels, uint64_t until);
void labels_fork(struct labels *labels, int32_t pid, int32_t parent, uint64_t time);

/* Return the last set of a process, 0 if none. Replace `text` by a set in the carrier's format. */
uint32_t labels_latest(const struct labels *labels, int32_t pid);
void labels_print(const struct tree *tree, uint32_t set, struct buffer *text);

/* The last result, and the range of time in which it is valid. Zero-initialised; one for each thread. */
struct labels_cursor {
    uint64_t from, until;
    int32_t pid;
    uint32_t set;
    bool is_set;
};
/* Return the label set of a process at a time; 0: none. Thread-safe once everything is applied. */
uint32_t labels_at(const struct labels *labels, struct labels_cursor *cursor, int32_t pid,
                   uint64_t time);

#endif
