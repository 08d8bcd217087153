/* Private to the room. */
#ifndef WICK_AGENT_INTERNAL_H
#define WICK_AGENT_INTERNAL_H

#include "agent/agent.h"
#include "store/store.h"
#include "tree/tree.h"

enum { BATCH_ID = 32 }; /* hexadecimal digits */

/* Values for the metrics; written by several threads. */
struct agent_counts {
    _Atomic uint64_t samples, lost, windows, windows_lost;
    _Atomic uint64_t batches, sent, retried, rejected, dropped;
    _Atomic uint64_t spool_bytes, spool_files, spool_oldest; /* Unix seconds; 0: empty */
    _Atomic uint64_t last_window, last_sent;                 /* Unix seconds */
    _Atomic uint64_t window_ns;                              /* time to read the last window */
    _Atomic uint64_t cpu_ns, memory;
    _Atomic uint64_t frequency;
    _Atomic uint64_t restarts;
    _Atomic uint64_t symbols, symbols_missing; /* frames of the last window */
};

/* ---- spool.c: batches on disk, oldest first ---- */

struct spool_directory {
    int directory;
    uint64_t most_bytes, most_age;
    uint64_t next; /* the next batch's number */
    struct agent_counts *counts;
};
struct spooled {
    char name[64];
    uint64_t number, size, written; /* Unix seconds */
    char id[BATCH_ID + 1];
};
bool spool_directory_open(struct spool_directory *spool, const char *path, struct error *error);
void spool_directory_close(struct spool_directory *spool);
/* Get the name of the next batch and its id, which is unique among all hosts and boots. */
void spool_name(const struct spool_directory *spool, const char *host, struct spooled *batch);
/* The batch was published: advance to the next number and save it. */
bool spool_took(struct spool_directory *spool, const struct spooled *batch, struct error *error);
/* Drop the oldest batches until the limits are met, and count the rest. */
void spool_tidy(struct spool_directory *spool);
/* Get the oldest batch; return false if there is none. */
bool spool_oldest(const struct spool_directory *spool, struct spooled *batch);
void spool_remove(struct spool_directory *spool, const struct spooled *batch);
/* Move it aside for inspection. */
void spool_reject(struct spool_directory *spool, const struct spooled *batch);

/* ---- labels.c: what a process is called ---- */

struct namer;
struct namer *namer_new(const struct agent_options *options);
void namer_free(struct namer *namer);
/* For record_options.add_labels. */
void namer_add(void *namer, int32_t pid, struct text comm, struct text cgroup,
               struct buffer *labels);

/* ---- batch.c: windows to one tree ---- */

/* In the reader: label the tree of a window that began at `time` (Unix seconds). */
void batch_label(struct tree *window, uint64_t time, const struct agent_options *options,
                 const char *host);
/* In the reader: keep the heaviest services, and merge the others into one. */
void batch_bound_services(struct tree *tree, uint32_t most);

enum { TREES_MOST = 64 }; /* before they are joined: each one is a descriptor */
struct child;
struct batch {
    VECTOR(int)
    trees; /* the reader's result for each window: descriptors of `.wick` files in memory */
    uint64_t began; /* CLOCK_MONOTONIC, nanoseconds */
};
/* Add a window's tree; the batch takes over the descriptor. */
void batch_add(struct batch *batch, int tree);
/* Join the trees into one. On failure they are kept, and the reader may be gone. */
bool batch_compact(struct batch *batch, struct child *reader, struct error *error);
/* Have the reader join all trees and write the result to the spool. On failure the trees are kept. */
bool batch_publish(struct batch *batch, struct child *reader, struct spool_directory *spool,
                   const char *host, struct error *error);
void batch_release(struct batch *batch);

/* ---- reader.c: the child that reads windows ---- */

struct window_facts {
    uint64_t time;   /* Unix seconds */
    bool lower_rate; /* than the settings say */
    const char *host;
};
struct window_counts {
    uint64_t samples, frames, unnamed;
};
bool reader_start(struct child *reader, const struct agent_options *options, bool waits,
                  struct error *error);
/* Read a window. Return the descriptor of its tree, which the caller owns, or -1: the window is lost, and *error says why. */
int reader_window(struct child *reader, int window, const struct window_facts *facts,
                  struct window_counts *counts, struct error *error);
/* Join trees into one; `is_last` limits its services. Return a descriptor as reader_window() does. */
int reader_join(struct child *reader, const int *trees, size_t count, bool is_last,
                struct error *error);

/* ---- deliver.c: the child that has the store ---- */

/* Whether the store, a file, can be opened; it is created if missing. */
bool deliver_check(const struct agent_options *options, struct error *error);
/* Put a batch into the store; start the child if it is not running. Cancelling the context ends it. */
enum store_failure deliver(struct child *deliverer, const struct agent_options *options,
                           const struct spooled *batch, int descriptor,
                           const struct context *context, uint32_t *retry_after,
                           struct error *error);

/* ---- send.c ---- */

/* Return a context that is never cancelled, to finish reading when the agent ends. */
struct context agent_patient(const struct agent_options *options);

struct sender;
struct sender *sender_new(const struct agent_options *options, struct spool_directory *spool);
/* Tell the sender that there is a new batch. */
void sender_wake(struct sender *sender);
/* Try to send what is left, and end. Give up on a server that has not answered after so many nanoseconds; always wait for a file. */
void sender_end(struct sender *sender, uint64_t patience);
/* Return the CPU time in nanoseconds, and the memory in bytes, of its child. */
uint64_t sender_cpu(const struct sender *sender);
uint64_t sender_memory(const struct sender *sender);

/* ---- metrics.c ---- */

struct metrics;
struct metrics *metrics_new(const char *address, const struct agent_counts *counts, uint64_t window,
                            struct error *error);
void metrics_free(struct metrics *metrics);

uint64_t agent_now(int clock); /* nanoseconds */
/* Return the memory of a process in bytes, without mapped files: the kernel can reclaim their pages at any time. */
uint64_t agent_memory(pid_t pid);
void agent_say(const struct agent_options *options, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
