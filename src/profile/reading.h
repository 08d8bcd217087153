/*
 * Private to the room: what the passes hand to each other.
 */
#ifndef WICK_PROFILE_READING_H
#define WICK_PROFILE_READING_H

#include "profile/java.h"
#include "profile/labels.h"
#include "profile/made.h"
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

struct waits;  /* waits.h */
struct blocks; /* blocks.h */

/* The nanoseconds that a sample stands for, where they are not its own weight. */
struct cost {
    uint64_t offset; /* of the sample's record */
    uint64_t weight;
    uint64_t waker; /* the offset of the sample of who ended the wait, + 1; 0: none */
    uint8_t state;
};

/* The mount namespace of a process, as of the record that is applied. */
struct mount {
    int32_t pid;
    uint64_t inode;
};

/* Those of all processes, as far as they are told. Zero-initialised is empty. */
struct mounts {
    VECTOR(struct mount) list;
    struct index index; /* by pid: numbers are places + 1 */
};
struct mount *mount_find(const struct mounts *mounts, int32_t pid); /* NULL: it was not told */
void mount_set(struct mounts *mounts, int32_t pid, uint64_t inode);
void mounts_release(struct mounts *mounts);

/* What an event is for. */
enum role {
    ROLE_RUNNING,
    ROLE_SWITCH,    /* a sample whenever a thread leaves the CPU */
    ROLE_WAIT,      /* its samples are waits, weighed in nanoseconds */
    ROLE_WAKING,    /* a sample whenever a thread wakes another */
    ROLE_WAKER,     /* of a ROLE_WAIT sample of the same time: who ended it */
    ROLE_ALLOC,     /* an allocation */
    ROLE_AGAIN,     /* an allocation whose stack is another's */
    ROLE_FREE,      /* the end of one */
    ROLE_MAP,       /* a mapping, with its stack … */
    ROLE_MAP_AGAIN, /* … or with another's */
    ROLE_UNMAP,     /* the end of a range of mappings */
    ROLE_NONE,      /* bookkeeping */
};

/* What pass 1 learns of one event. */
struct event_seen {
    enum role role;
    uint8_t state; /* of a ROLE_WAIT event: why its samples waited */
    uint64_t samples;
    struct key first; /* of its first sample in key order */
    bool nobody;      /* inferno is imitated, samples are lines, and one has no thread */
    bool wanted;
    bool inferno_reads_period; /* see events.c */
    uint32_t id;               /* in the tree, if wanted */
    uint32_t
        measured; /* in the tree: where each of its samples counts as it was measured, beside what it is of its thread's time; or 0 */
};

/* A counter that was read with a sample, and had moved. */
struct counted {
    uint64_t offset; /* of the sample's record */
    uint64_t moved;
    uint32_t event; /* whose counter it is */
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
    struct index build_ids; /* by path: ids are their places + 1 */
    struct mounts mounts;
    struct made_moments made;
    struct java *java;
    bool is_ongoing;      /* a window: objects are there that earlier ones have met */
    uint64_t newest;      /* the latest time in the file */
    struct labels labels; /* of processes */
    uint32_t swapper;     /* string */
    struct filter filter; /* the options', but time where intervals are cut to it */
    enum times times;
    bool tells_running;             /* of threads that wait: also what they ran between */
    bool each;                      /* and what was measured then, by the events' own weights */
    struct scripted *scripted;      /* what interpreters ran; NULL: nothing is known of that */
    struct blocks *blocks;          /* NULL: not of allocations, or read as it is */
    struct waits *waits;            /* NULL: samples have their own weight */
    VECTOR(struct cost) costs;      /* else: by offset */
    uint32_t waiting;               /* the event of all waits, in the tree */
    VECTOR(struct counted) counted; /* by offset */
    uint64_t *counter_values; /* what each stood at last, by its id's slot; NULL: none was read */
};

/* One more sample of it. */
static inline void event_saw(struct event_seen *seen, const struct key *key) {
    if (!seen->samples || key_compare(key, &seen->first) < 0)
        seen->first = *key;
    seen->samples++;
}

/* The key of a record. time 0 and ~0 stand for "where it stands". */
void reading_key(const struct reading *reading, uint64_t offset, uint64_t time, struct key *key);

bool reading_pass1(struct reading *reading, struct error *error);
bool reading_choose_events(struct reading *reading, struct error *error);
bool reading_pass2(struct reading *reading, struct error *error);

/* counters.c: whether samples of this event stand for counters that were read with them; what pass 1 does with one (the sample's key is
   for what it tells of events); and the counters that moved with the sample at `offset`, in its order. */
bool counters_are_read(const struct reading *reading, uint32_t event);
bool counters_walk(struct reading *reading, const struct perfdata_record *record,
                   const struct key *key, struct error *error);
const struct counted *counters_find(const struct reading *reading, uint64_t offset, size_t *count);

/* Of `count` things of `each` bytes, sorted by the number (an offset, a time) that they begin with: the first that is not before `least`. */
static inline size_t first_from(const void *items, size_t count, size_t each, uint64_t least) {
    return search_first(middle, 0, count, load_u64((const uint8_t *)items + middle * each) < least);
}

/* What the sample at `offset` costs, or NULL if it costs nothing. */
const struct cost *cost_find(const struct reading *reading, uint64_t offset);
/* pass2.c: what a sample weighs by itself. */
uint64_t reading_weight(const struct reading *reading, const struct perfdata_sample *sample);

/* kernel.c: whether the kernel has a symbol at an address that nothing is mapped at; then, when everything is read, it gets those. */
bool reading_is_kernel(const struct reading *reading, uint64_t address);
void reading_find_kernel(struct reading *reading);

/* endings.c: what the function at a location says of a recorded chain that ends there. Asks for a name, so this waits until everything is
   read. */
enum start { START_UNKNOWN, START_NO, START_YES, START_MAIN, START_NAMELESS };
enum start reading_start_of(const struct reading *reading, const struct location *location);
/* A note of how many stacks are whole; after pass 2. */
void reading_note_endings(struct reading *reading);

/* spaces.c: makes build ids findable by path; when all records have been walked, and before the first is applied. */
void reading_index_build_ids(struct reading *reading);
/* spaces.c: applies one side record to the profile's spaces. */
bool reading_apply(struct reading *reading, const struct perfdata_record *record,
                   const struct key *key, struct error *error);

/* spaces.c: the process's mount namespace if it is known and not the recorder's, else 0: its paths mean nothing outside it. */
uint64_t reading_foreign_mount(const struct reading *reading, int32_t pid);

/* jitdumps.c: reads the jitdumps that processes have mapped, and tells what they say with made_happens(). `keys` are those of the side records,
   in order. */
bool reading_find_jitdumps(struct reading *reading, const struct key *keys, size_t count,
                           struct error *error);

/* carried.c: what the recording keeps by its carrier, after all records were walked; it and the perfdata outlive the objects that are offered
   something. NULL has nothing. */
struct carried *carried_new(struct perfdata *data);
void carried_labels(const struct carried *carried, struct tree *tree, struct labels *labels);
void carried_java(const struct carried *carried, struct reading *reading);
void carried_free(struct carried *carried);
/* The bytes of the next entry of that kind from *place on, which is 0 at first; false: there is none. */
bool carried_read(const struct carried *carried, uint32_t kind, uint32_t *place,
                  struct buffer *bytes);
/* Tells an object that was added where the recording has its bytes, if it has; or all there are. */
void carried_offer(struct carried *carried, struct objects *objects, uint32_t object);
/* Tell the objects to ask the recording for what they miss. */
void carried_offer_parts(struct carried *carried, struct objects *objects);
void carried_offer_all(struct carried *carried, struct objects *objects);
/* Calls visit() for each jitdump that was kept: whose, under which path, and its number for carried_read_dump(). */
typedef void carried_dump_visit(void *context, int32_t pid, struct text path, uint32_t number);
void carried_dumps(const struct carried *carried, carried_dump_visit *visit, void *context);
bool carried_read_dump(const struct carried *carried, uint32_t number, struct buffer *bytes);
struct build_id
carried_vdso(const struct carried *carried); /* of the 64-bit one; size 0: not kept */
uint64_t
carried_mount(const struct carried *carried); /* the recorder's mount namespace; 0: not told */

#endif
