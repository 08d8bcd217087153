/*
 * Private to the room: what one window of a stream leaves to the next.
 */
#ifndef WICK_PROFILE_STREAM_H
#define WICK_PROFILE_STREAM_H

#include "profile/reading.h"

struct kept_labels {
    int32_t pid;
    uint32_t text; /* "key NUL value NUL …" */
};

struct ongoing {
    struct objects *objects;
    uint32_t objects_before; /* how many there were when the table was new */
    struct spaces *spaces;   /* sealed, between windows */
    struct strings *strings; /* of the last tree: comms */
    struct mounts mounts;
    VECTOR(struct kept_labels) labels;
    struct strings *label_texts;
    uint64_t began, newest; /* times of the last window */
};

/* profile.c: reads one window into a profile with that tree, which borrows objects and spaces of `state`; NULL `state`: a whole recording, whose
   profile has its own. Takes the tree over. */
struct profile *profile_read_ongoing(const struct file *file, const struct profile_options *options,
                                     struct ongoing *state, struct tree *tree, struct error *error);
struct objects_options profile_object_options(const struct profile_options *options);

/* stream.c: what the last window left to a reading that begins, and what one that succeeded leaves to the next. */
void ongoing_begin(const struct ongoing *state, struct reading *reading);
void ongoing_end(struct ongoing *state, struct reading *reading);

#endif
