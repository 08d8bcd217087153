/*
 * Private to this room: the state that one window of a stream passes to the next.
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
    uint32_t objects_before; /* number of objects when the table was new */
    bool renew_objects;      /* for the next window */
    struct spaces *spaces;   /* sealed, between windows */
    struct strings *strings; /* of the last tree, for comms */
    struct mounts mounts;
    VECTOR(struct kept_labels) labels;
    struct strings *label_texts;
    uint64_t began, newest; /* times of the last window */
};

/* profile.c: read one window into a profile with this tree, which it takes over. The profile borrows the objects and spaces of `state`. If `state`
   is NULL, read a whole recording; its profile then owns them. */
struct profile *profile_read_ongoing(const struct file *file, const struct profile_options *options,
                                     struct ongoing *state, struct tree *tree, struct error *error);
struct objects_options profile_object_options(const struct profile_options *options);

/* stream.c: give a new reading the state of the last window; keep the state of a successful reading for the next. */
void ongoing_begin(const struct ongoing *state, struct reading *reading);
void ongoing_end(struct ongoing *state, struct reading *reading);

#endif
