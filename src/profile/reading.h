/*
 * Private to the room: what the passes hand to each other.
 */
#ifndef WICK_PROFILE_READING_H
#define WICK_PROFILE_READING_H

#include "profile/profile.h"

/* A stretch of records for one worker to read, from the offset of a record to that of another. */
struct piece {
    uint64_t start;
    uint64_t end;
};

/* A user call chain that was delivered after its sample. */
struct deferred {
    int32_t tid;
    uint64_t cookie;
    uint64_t offset; /* of its record */
};

/* What pass 1 learns of one event. */
struct event_seen {
    uint64_t samples;
    struct key first; /* of its first sample in key order */
    bool wanted;
    bool inferno_reads_period; /* see events.c */
    uint32_t id;               /* in the tree, if wanted */
};

struct reading {
    struct profile *profile;
    const struct profile_options *options;
    VECTOR(struct piece) pieces;
    VECTOR(struct deferred) deferred; /* sorted by (tid, cookie) */
    VECTOR(struct event_seen) events; /* as many as the file has */
    /* Perf's flushing, kept to imitate its order where a file is out of order: where each FINISHED_ROUND stood and up to
       which time it flushed. */
    VECTOR(uint64_t) round_offsets;
    VECTOR(uint64_t) round_limits;
    uint64_t disordered; /* records older than what was flushed before them */
    bool imitate_rounds;
    bool kernel_seen;
    uint32_t kernel_object; /* the first kernel mapped, 0: none */
    struct index build_ids; /* the header's, by path: ids are their places + 1 */
    uint32_t swapper;       /* string */
};

/* The key of a record. time 0 and ~0 stand for "where it stands". */
struct key reading_key(const struct reading *reading, uint64_t offset, uint64_t time);

bool reading_pass1(struct reading *reading, struct error *error);
bool reading_choose_events(struct reading *reading, struct error *error);
bool reading_pass2(struct reading *reading, struct error *error);

/* endings.c: a note of how many stacks are whole; after pass 2. */
void reading_note_endings(struct reading *reading);

/* spaces.c: makes the header's build ids findable by path; before pass 1. */
void reading_index_build_ids(struct reading *reading);
/* spaces.c: applies one side record to the profile's spaces. */
bool reading_apply(struct reading *reading, const struct perfdata_record *record,
                   const struct key *key, struct error *error);

#endif
