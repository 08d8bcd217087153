/*
 * space: processes, threads, comms and mappings over time.
 *
 * Side records (mmap, fork, exec, exit, comm, ksymbol) are applied once, in key order, before any sample is read. The
 * result is an immutable history that any thread can query: which mapping contained this address of this
 * process at this key?
 *
 * An address space is a persistent balanced tree: a change copies one path and leaves the older version intact, fork
 * shares the root, exec starts empty (perf keeps the old maps, as does `quirks.maps_survive_exec`). So a million
 * mmaps over ten thousand forked processes cost O(log n) each, in time and memory.
 *
 * An *epoch* names a set of executable mappings. A version whose executable mappings do not differ from the last
 * (data mmaps, repeats) keeps its epoch, and a forked child has its parent's. So (epoch, chain of addresses) is a key
 * for everything that is derived from a chain. Kernel-wide mappings (pid -1: kernel, modules, KSYMBOL) are a
 * separate space with its own epochs; a process's epoch changes with it.
 *
 * A tid identifies one thread at a time. If the pid of a record or sample differs from the one last seen with its
 * tid, a fork record was lost, and the thread is a new one. perf looks only at the tid and keeps the old pid and its
 * maps, as does `quirks.threads_by_tid`. A thread outlives its exit record until its tid is forked again, because
 * samples can come late.
 */
#ifndef WICK_SPACE_H
#define WICK_SPACE_H

#include "base/base.h"
#include "compat/compat.h"

#define SPACE_KERNEL_PID (-1)

/* When something happened. Order: round (0 unless perf's flushing is imitated), time, file, offset. */
struct key {
    uint64_t time;
    uint64_t offset;
    uint32_t file;
    uint32_t round;
};
int key_compare(const struct key *a, const struct key *b);

struct mapping {
    uint64_t start; /* [start, end): end may be UINT64_MAX */
    uint64_t end;
    uint64_t
        offset; /* the file offset of `start`; for objects addressed as sampled, equal to start */
    uint32_t object;
    bool executable;
};

struct spaces;

/* `quirks` is copied; NULL means none. */
struct spaces *spaces_new(const struct quirks *quirks);
void spaces_free(struct spaces *spaces);

/* ---- building: in key order, by one thread; a key before the last one counts as the last ----- */

/* Add a mapping. It replaces what it overlaps; older mappings are split and their file offsets adjusted. Empty and
   redundant mappings are ignored. `tid` is the thread that called mmap; only perf's rules use it. */
void spaces_mmap(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 const struct mapping *mapping);
/* The same, but mappings for which stays(context, object) is true stay, and the new one fills the gaps between them.
   If more than 1024 of them overlap it, the new one is ignored. */
void spaces_mmap_around(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                        const struct mapping *mapping,
                        bool (*stays)(void *context, uint32_t object), void *context);
/* Remove [start, end) (KSYMBOL unregister). */
void spaces_unmap(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                  uint64_t start, uint64_t end);
/* Add a thread of the same process if pid == parent_pid, otherwise a process with a copy of the parent's mappings.
   The child inherits the parent thread's comm. A fork whose pid and tid are those of the parent changes nothing.
   `synthesized` (misc bit 13): the recorder synthesized the record for a running process; records with its mappings
   follow, so none are copied. */
void spaces_fork(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 int32_t parent_pid, int32_t parent_tid, bool synthesized);
void spaces_exit(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid);
/* `comm` is the caller's string id. perf begins every session with the comm "swapper" for (0, 0). */
void spaces_comm(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 uint32_t comm, bool exec);
/* Call this after the last record and before the first query. */
void spaces_seal(struct spaces *spaces);

/* Translates the caller's ids of comms and objects to new ids; never called for 0. */
struct space_translation {
    uint32_t (*comm)(void *context, uint32_t comm);
    uint32_t (*object)(void *context, uint32_t object);
    void *context;
};
/* Return a new history to build on, which begins with the final state of the sealed history `old`. Threads that ended
   before `since`, and mappings that no thread has any more, are dropped: its memory is proportional to what is alive.
   Does not support quirks. */
struct spaces *spaces_continue(const struct spaces *old, uint64_t since,
                               const struct space_translation *translation);

/* ---- queries: by any thread, after spaces_seal -------------------------------------------- */

/* One lifetime of a thread, with a number from 0 to count - 1. The order of numbers must not reach an output. */
struct space_thread {
    int32_t pid;
    int32_t tid;
    uint64_t start; /* time of its fork, or 0 if none was seen */
    uint64_t end;   /* UINT64_MAX if no exit was seen */
};
uint32_t spaces_thread_count(const struct spaces *spaces);
const struct space_thread *spaces_thread(const struct spaces *spaces, uint32_t number);

/* The process and thread of a sample at a moment. */
struct space_at {
    uint64_t
        epochs; /* both in one number, the kernel's in the upper half, the process's in the lower; 0 is nothing mapped */
    uint32_t thread; /* number, or UINT32_MAX if no record names (pid, tid) */
    uint32_t comm;   /* 0: none was ever set; perf prints ":tid" then */
    uint32_t user;   /* roots, for space_find(); 0 is empty */
    uint32_t kernel;
};
/* A cursor makes queries in nearly ascending key order, for a handful of threads, cheap: two comparisons of keys
   and a copy. Each worker has its own, zero-initialised. */
struct space_cursor {
    uint64_t memory[64];
};
void spaces_at(const struct spaces *spaces, struct space_cursor *cursor, int32_t pid, int32_t tid,
               const struct key *key, struct space_at *at);

/* Return the mapping that contains `address`, or NULL. O(log n). Includes mappings that are not executable; these are
   not part of the epoch (except with quirks.data_holds_code), so anything cached by epoch must not depend on them. */
const struct mapping *space_find(const struct spaces *spaces, uint32_t root, uint64_t address);
/* Convert a mapping to a 32-bit number (0 for NULL) and back, to store many of them compactly. */
uint32_t space_mapping_number(const struct spaces *spaces, const struct mapping *mapping);
const struct mapping *space_mapping(const struct spaces *spaces, uint32_t number);
/* Call each(context, mapping) for all mappings, in address order. */
void space_each(const struct spaces *spaces, uint32_t root,
                void (*each)(void *context, const struct mapping *mapping), void *context);

/* Sizes, for tests and --verbose. */
struct space_statistics {
    uint64_t changes;
    uint64_t nodes; /* in all trees, 16 bytes each */
    uint64_t mappings;
    uint64_t user_epochs; /* the empty one included */
    uint64_t kernel_epochs;
};
struct space_statistics spaces_statistics(const struct spaces *spaces);

#endif
