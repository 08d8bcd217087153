/*
 * Private to the room: labels of processes, from the recording's carrier.
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

/* What is true of a process from a time on. */
struct label_told {
    uint64_t from;
    uint32_t set;
    uint32_t before; /* number of the one before it, 0: none */
};

struct labelled {
    int32_t pid;
    uint32_t latest; /* number of a label_told */
};

/* Zero-initialised has nothing. */
struct labels {
    VECTOR(struct label_entry) entries;
    size_t applied; /* of them */
    VECTOR(struct label_told) told;
    VECTOR(struct labelled) processes;
    struct index index; /* of them, by pid: numbers are places + 1 */
};
void labels_release(struct labels *labels);

/* An entry of the carrier; then, after the last, the order of time. */
void labels_add(struct labels *labels, struct tree *tree, struct text key, struct text bytes);
void labels_sort(struct labels *labels);
/* What is true up to that time is applied; and a fork of that time, after it. */
void labels_apply(struct labels *labels, uint64_t until);
void labels_fork(struct labels *labels, int32_t pid, int32_t parent, uint64_t time);

/* The set that was told last of a process, 0: none; and a set in the carrier's words, instead of what `text` held. */
uint32_t labels_latest(const struct labels *labels, int32_t pid);
void labels_print(const struct tree *tree, uint32_t set, struct buffer *text);

/* The last answer, and the range of time in which it holds. Zero-initialised; one for each thread. */
struct labels_cursor {
    uint64_t from, until;
    int32_t pid;
    uint32_t set;
    bool is_set;
};
/* The set of labels of a process at a time; 0: none. Any thread, after all was applied. */
uint32_t labels_at(const struct labels *labels, struct labels_cursor *cursor, int32_t pid,
                   uint64_t time);

#endif
