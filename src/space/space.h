/*
 * space: what was mapped where, and when; who ran, and under which name.
 *
 * Side records (mmap, fork, exec, exit, comm, ksymbol) are applied in key order, once, before any sample is looked at. The result is
 * a history that never changes again and can be asked from any thread: which mapping held this address of this
 * process at this key?
 *
 * An address space is a persistent balanced tree: a change copies one path and leaves the older version whole, fork
 * shares the root, exec starts empty (perf keeps the old maps; `quirks.maps_survive_exec` does too). So a million mmaps over
 * ten thousand forked processes cost O(log n) each, in time and memory.
 *
 * An *epoch* names a set of executable mappings. A version whose executable mappings do not differ from the last
 * (data mmaps, repeats) keeps its epoch, and a forked child has its parent's. So (epoch, chain of addresses) is a key
 * for everything that is worked out from a chain. Kernel-wide mappings (pid -1: kernel, modules, KSYMBOL) are one
 * more space, with epochs of its own; a process's epoch changes with it.
 *
 * Which process and thread? A tid names one thread at a time. A record or sample whose pid is not the one that the tid was last seen
 * with means that a fork was lost: the thread is then a new one. perf goes by the tid alone, keeps the old pid and its
 * maps, and so does `quirks.threads_by_tid`. A thread outlives its exit record until its tid is forked again, for samples come late.
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

/* `quirks` is copied; NULL: none. */
struct spaces *spaces_new(const struct quirks *quirks);
void spaces_free(struct spaces *spaces);

/* ---- building: in key order, one thread; a key before the last one counts as the last ------- */

/* A new mapping covers what it overlaps; older ones are split, their file offsets with them. An empty one is ignored, and
   so is one that says what is known already. `tid` is the thread that mapped; only perf's rules look at it. */
void spaces_mmap(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 const struct mapping *mapping);
/* The same, but mappings for which stays(context, object) is true stay, and the new one fills what is between them. Where more than 1024 of them
   are in the way, the new one is ignored. */
void spaces_mmap_around(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                        const struct mapping *mapping,
                        bool (*stays)(void *context, uint32_t object), void *context);
/* Takes [start, end) out again (KSYMBOL unregister). */
void spaces_unmap(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                  uint64_t start, uint64_t end);
/* A thread of the same process when pid == parent_pid, else a process with a copy of the parent's mappings. The child takes over
   the parent thread's comm. A fork of itself (pid and tid its own parent's) changes nothing.
   `synthesized` (misc bit 13): the recorder made it up for a process that ran already; its mappings follow in records of
   their own, so none are copied. */
void spaces_fork(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 int32_t parent_pid, int32_t parent_tid, bool synthesized);
void spaces_exit(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid);
/* `comm` is the caller's string id. perf begins every session with the comm "swapper" for (0, 0). */
void spaces_comm(struct spaces *spaces, const struct key *key, int32_t pid, int32_t tid,
                 uint32_t comm, bool exec);
/* After the last record and before the first question. */
void spaces_seal(struct spaces *spaces);

/* How the numbers that the caller gave to comms and objects are to be called from now on; 0 is never asked for. */
struct space_translation {
    uint32_t (*comm)(void *context, uint32_t comm);
    uint32_t (*object)(void *context, uint32_t object);
    void *context;
};
/* A new history, to be built on, that begins with what `old`, which is sealed, ends with. Threads that ended before `since` are forgotten, and
   so is everything that no thread has mapped any more: it takes as much memory as what lives. Not for quirks. */
struct spaces *spaces_continue(const struct spaces *old, uint64_t since,
                               const struct space_translation *translation);

/* ---- asking: any thread, after spaces_seal ------------------------------------------------ */

/* One life of a thread. Number 0 … count-1, in no order that may reach an output. */
struct space_thread {
    int32_t pid;
    int32_t tid;
    uint64_t start; /* time of the fork that began it, 0 when none did */
    uint64_t end;   /* UINT64_MAX when no exit was seen */
};
uint32_t spaces_thread_count(const struct spaces *spaces);
const struct space_thread *spaces_thread(const struct spaces *spaces, uint32_t number);

/* The process and thread of a sample at a moment. */
struct space_at {
    uint64_t
        epochs; /* both in one number, the kernel's in the upper half, the process's in the lower; 0 is nothing mapped */
    uint32_t thread; /* number, or UINT32_MAX when no record ever named (pid, tid) */
    uint32_t comm;   /* 0: none was ever set; perf prints ":tid" then */
    uint32_t user;   /* roots, for space_find(); 0 is empty */
    uint32_t kernel;
};
/* A cursor makes questions in nearly ascending key order, about a handful of threads, cheap: two comparisons of keys
   and a copy. Keep one for each worker, zero-initialised. */
struct space_cursor {
    uint64_t memory[64];
};
void spaces_at(const struct spaces *spaces, struct space_cursor *cursor, int32_t pid, int32_t tid,
               const struct key *key, struct space_at *at);

/* The mapping that holds `address`, or NULL. O(log n). Includes mappings that are not executable; these do not belong to the
   epoch (with quirks.data_holds_code they do): what is remembered by epoch must not depend on them. */
const struct mapping *space_find(const struct spaces *spaces, uint32_t root, uint64_t address);
/* A mapping by a number of 32 bits, 0 for NULL, for those who keep many. */
uint32_t space_mapping_number(const struct spaces *spaces, const struct mapping *mapping);
const struct mapping *space_mapping(const struct spaces *spaces, uint32_t number);
/* Calls each(context, mapping) for all mappings, in address order. */
void space_each(const struct spaces *spaces, uint32_t root,
                void (*each)(void *context, const struct mapping *mapping), void *context);

/* What it took, for tests and curious users. */
struct space_statistics {
    uint64_t changes;
    uint64_t nodes; /* of all trees, 16 bytes each */
    uint64_t mappings;
    uint64_t user_epochs; /* the empty one included */
    uint64_t kernel_epochs;
};
struct space_statistics spaces_statistics(const struct spaces *spaces);

#endif
