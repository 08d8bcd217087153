/* Private to the room. */
#ifndef WICK_AGENT_INTERNAL_H
#define WICK_AGENT_INTERNAL_H

#include "agent/agent.h"
#include "tree/tree.h"

enum { BATCH_ID = 32 }; /* hexadecimal digits */

/* What the metrics tell; written by several threads. */
struct agent_counts {
    _Atomic uint64_t samples, lost, windows;
    _Atomic uint64_t batches, sent, retried, rejected, dropped;
    _Atomic uint64_t spool_bytes, spool_files, spool_oldest; /* Unix seconds, 0: it is empty */
    _Atomic uint64_t last_window, last_sent;                 /* Unix seconds */
    _Atomic uint64_t window_ns;                              /* it took to read the last one */
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
/* The name that the next batch is to have, and its id, which no other batch of any host or boot has. */
void spool_name(const struct spool_directory *spool, const char *host, struct spooled *batch);
/* The batch of that name was published: the next one has another. */
bool spool_took(struct spool_directory *spool, const struct spooled *batch, struct error *error);
/* Drop the oldest until limits are kept, and count what is left. */
void spool_tidy(struct spool_directory *spool);
/* The oldest; false: there is none. */
bool spool_oldest(const struct spool_directory *spool, struct spooled *batch);
void spool_remove(struct spool_directory *spool, const struct spooled *batch);
/* Put it apart, where a person can look at it. */
void spool_reject(struct spool_directory *spool, const struct spooled *batch);

/* ---- labels.c: what a process is called ---- */

struct namer;
struct namer *namer_new(const struct agent_options *options);
void namer_free(struct namer *namer);
/* For record_options.add_labels. */
void namer_add(void *namer, int32_t pid, struct text comm, struct text cgroup,
               struct buffer *labels);

/* ---- batch.c: windows to one tree ---- */

struct batch {
    struct tree *tree; /* NULL: nothing yet */
    uint64_t began;    /* CLOCK_MONOTONIC, nanoseconds */
    uint64_t windows;
};
/* Label the tree of a window that began at that time (Unix seconds), and add it. */
void batch_add(struct batch *batch, struct tree *window, uint64_t time,
               const struct agent_options *options, const char *host);
/* Write it into the spool, and begin a new one. */
bool batch_publish(struct batch *batch, struct spool_directory *spool, const char *host,
                   const struct agent_options *options, struct error *error);
void batch_release(struct batch *batch);

/* ---- send.c ---- */

/* What is read when the agent is to end is read whole: a context that is never cancelled. */
struct context agent_patient(const struct agent_options *options);

struct sender;
struct sender *sender_new(const struct agent_options *options, struct spool_directory *spool);
/* There is something new to send. */
void sender_wake(struct sender *sender);
/* Try to send what there is, and end. A server that has not answered after so many nanoseconds is given up; a file is waited for. */
void sender_end(struct sender *sender, uint64_t patience);

/* ---- metrics.c ---- */

struct metrics;
struct metrics *metrics_new(const char *address, const struct agent_counts *counts, uint64_t window,
                            struct error *error);
void metrics_free(struct metrics *metrics);

uint64_t agent_now(int clock); /* nanoseconds */
void agent_say(const struct agent_options *options, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
