/*
 * Private to this room: the state that the passes share.
 */
#ifndef WICK_PROFILE_READING_H
#define WICK_PROFILE_READING_H

#include "profile/java.h"
#include "profile/labels.h"
#include "profile/made.h"
#include "profile/profile.h"

/* A range of records for one worker, from the offset of one record to that of another. */
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

/* The nanoseconds that a sample stands for, if they are not its own weight. */
struct cost {
    uint64_t offset; /* of the sample's record */
    uint64_t weight;
    uint64_t waker; /* offset of the waker's sample, + 1; 0: none */
    uint8_t state;
};

/* The mount namespace of a process at the record being applied. */
struct mount {
    int32_t pid;
    uint64_t inode;
};

/* The known mount namespaces of all processes. Zero-initialised is empty. */
struct mounts {
    VECTOR(struct mount) list;
    struct index index; /* by pid: numbers are places + 1 */
};
struct mount *mount_find(const struct mounts *mounts, int32_t pid); /* NULL: unknown */
void mount_set(struct mounts *mounts, int32_t pid, uint64_t inode);
void mounts_release(struct mounts *mounts);

/* The purpose of an event. */
enum role {
    ROLE_RUNNING,
    ROLE_SWITCH,    /* a sample whenever a thread leaves the CPU */
    ROLE_WAIT,      /* its samples are waits, weighted in nanoseconds */
    ROLE_WAKING,    /* a sample whenever a thread wakes another */
    ROLE_WAKER,     /* the waker of the ROLE_WAIT sample with the same time */
    ROLE_ALLOC,     /* an allocation */
    ROLE_AGAIN,     /* an allocation with the stack of another one */
    ROLE_FREE,      /* the end of an allocation */
    ROLE_MAP,       /* a mapping with a stack … */
    ROLE_MAP_AGAIN, /* … or with the stack of another one */
    ROLE_UNMAP,     /* the end of a range of mappings */
    ROLE_NONE,      /* bookkeeping */
};

/* What pass 1 finds out about one event. */
struct event_seen {
    enum role role;
    uint8_t state; /* ROLE_WAIT: why its samples waited */
    uint64_t samples;
    struct key first; /* of its first sample in key order */
    bool nobody;      /* imitating inferno: samples are lines, and one has no thread */
    bool is_chosen;   /* by --event, or by default */
    bool is_read;     /* pass 2 reads its samples: it is chosen, or tells of waits or allocations */
    bool inferno_reads_period; /* see events.c */
    uint32_t id;               /* in the tree, if it is read */
    uint32_t
        measured; /* in the tree: the event that counts its samples as measured, in addition to the thread's time; or 0 */
};

/* A counter that was read with a sample and had changed. */
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
    /* perf's flushes, to imitate its order if a file is out of order: the offset of each FINISHED_ROUND and the time up to which it flushed. */
    VECTOR(uint64_t) round_offsets;
    VECTOR(uint64_t) round_limits;
    uint64_t disordered; /* number of records older than what was flushed before them */
    bool imitate_rounds;
    bool kernel_seen;
    uint32_t kernel_object; /* the first kernel mapped, 0: none */
    struct index build_ids; /* by path: ids are indexes + 1 */
    struct mounts mounts;
    struct made_moments made;
    struct java *java;
    bool is_ongoing;      /* a window: there are objects of earlier windows */
    bool objects_changed; /* a window: a file was cut short */
    uint64_t newest;      /* the latest time in the file */
    struct labels labels; /* of processes */
    uint32_t swapper;     /* string */
    struct filter filter; /* the options', except the time if intervals are cut to it */
    enum times times;
    bool tells_running;        /* also count what waiting threads ran between waits */
    bool each;                 /* and count it by the events' own weights as well */
    struct scripted *scripted; /* stacks of interpreters; NULL: none */
    struct memories *memories; /* parts of stacks beside the samples' copies; NULL: none */
    uint64_t interrupted[TIMES_BOTH + 1]; /* stacks that end at a handler on a stack of its own */
    struct blocks *blocks;          /* NULL: no allocations, or they are read as plain samples */
    struct waits *waits;            /* NULL: samples have their own weight */
    VECTOR(struct cost) costs;      /* else: by offset */
    uint32_t waiting;               /* the event of all waits, in the tree */
    VECTOR(struct counted) counted; /* by offset */
    uint64_t *counter_values; /* the last value of each, by its id's slot; NULL: none was read */
};

/* Count one more sample of an event. */
static inline void event_saw(struct event_seen *seen, const struct key *key) {
    if (!seen->samples || key_compare(key, &seen->first) < 0)
        seen->first = *key;
    seen->samples++;
}

/* Get the key of a record. A time of 0 or ~0 means the record's position in the file. */
void reading_key(const struct reading *reading, uint64_t offset, uint64_t time, struct key *key);

bool reading_pass1(struct reading *reading, struct error *error);
/* Return "ns" for events that count time. */
struct text event_unit(const struct perfdata_event *event);
bool reading_choose_events(struct reading *reading, struct error *error);
bool reading_pass2(struct reading *reading, struct error *error);

/* counters.c. Whether samples of this event stand for counters that were read with them. Process such a sample in pass 1 (its key counts it
   for the events). Return the counters that changed with the sample at `offset`, in the sample's order. */
bool counters_are_read(const struct reading *reading, uint32_t event);
bool counters_walk(struct reading *reading, const struct perfdata_record *record,
                   const struct key *key, struct error *error);
const struct counted *counters_find(const struct reading *reading, uint64_t offset, size_t *count);

/* Return the first of `count` items of `each` bytes that is not less than `least`. Items are sorted by the 64-bit number that they begin with. */
static inline size_t first_from(const void *items, size_t count, size_t each, uint64_t least) {
    return search_first(middle, 0, count, load_u64((const uint8_t *)items + middle * each) < least);
}

/* Return the cost of the sample at `offset`, or NULL if it has none. */
const struct cost *cost_find(const struct reading *reading, uint64_t offset);
/* pass2.c: return a sample's own weight. */
uint64_t reading_weight(const struct reading *reading, const struct perfdata_sample *sample);

/* kernel.c. Whether the kernel has a symbol at an address where nothing is mapped. After reading, assign such locations to the kernel. */
bool reading_is_kernel(const struct reading *reading, uint64_t address);
void reading_find_kernel(struct reading *reading);

/* resolve.c: whether to look up inlined functions at a location. */
bool resolve_wants_inlines(const struct profile_options *options, const struct objects *objects,
                           const struct location *location, const struct symbol *symbol);

/* endings.c: what the function at a location says about a recorded chain that ends there. Looks up a name, so call it when everything is
   read. */
enum start { START_UNKNOWN, START_NO, START_YES, START_MAIN, START_NAMELESS };
enum start reading_start_of(const struct reading *reading, const struct location *location);
/* Note how many stacks are complete; after pass 2. */
void reading_note_endings(struct reading *reading);

/* spaces.c: index build ids by path, after all records were walked and before the first is applied. */
void reading_index_build_ids(struct reading *reading);
/* spaces.c: apply one side record to the profile's spaces. */
bool reading_apply(struct reading *reading, const struct perfdata_record *record,
                   const struct key *key, struct error *error);

/* spaces.c: return the process's mount namespace if it is known and not the recorder's, else 0. Its paths mean nothing outside it. */
uint64_t reading_foreign_mount(const struct reading *reading, int32_t pid);

/* jitdumps.c: read the jitdumps that processes mapped, and report their contents with made_happens(). `keys` are those of the side records, in
   order. */
bool reading_find_jitdumps(struct reading *reading, const struct key *keys, size_t count,
                           struct error *error);

/* carried.c: the entries of the recording's carrier, after all records were walked. They and the perfdata must outlive the objects that they are
   offered to. NULL has no entries. */
struct carried *carried_new(struct perfdata *data);
void carried_labels(const struct carried *carried, struct tree *tree, struct labels *labels);
void carried_java(const struct carried *carried, struct reading *reading);
void carried_free(struct carried *carried);
/* Read the next entry of a kind from *place on, which is 0 at first; return false if there is none. */
bool carried_read(const struct carried *carried, uint32_t kind, uint32_t *place,
                  struct buffer *bytes);
/* The same with its key, which lasts as long as the recording is open. If the entry is damaged or has more than `most` bytes, the key is all zero. */
bool carried_read_keyed(const struct carried *carried, uint32_t kind, uint32_t *place,
                        uint64_t most, struct text *key, struct buffer *bytes);
/* Return how many bytes a reader may hold of entries that it reads as soon as the recording is opened. */
uint64_t carried_room(const struct carried *carried);
/* Tells an object that was added where the recording has its bytes, if it has; or all there are. */
void carried_offer(struct carried *carried, struct objects *objects, uint32_t object);
/* Tell the objects to search the recording for missing parts. */
void carried_offer_parts(struct carried *carried, struct objects *objects);
void carried_offer_all(struct carried *carried, struct objects *objects);
/* Call visit() for each jitdump in the recording with its process, path, and number for carried_read_dump(). */
typedef void carried_dump_visit(void *context, int32_t pid, struct text path, uint32_t number);
void carried_dumps(const struct carried *carried, carried_dump_visit *visit, void *context);
bool carried_read_dump(const struct carried *carried, uint32_t number, struct buffer *bytes);
struct build_id
carried_vdso(const struct carried *carried); /* of the 64-bit one; size 0: not kept */
uint64_t
carried_mount(const struct carried *carried); /* the recorder's mount namespace; 0: unknown */

#endif
