/*
 * agent: a recording of the whole machine that never ends, sent to a store.
 *
 * Recording, turning windows into trees and writing batches happen in the calling thread. A window is a perf.data in memory; it becomes a
 * tree, its series get labels (service, version, host, time), and the trees of a minute add up to one batch: a `.wick` file in the spool
 * directory, called by its sequence number and its id. A second thread sends the oldest batch to the store, again and again with growing
 * pauses until the store has it. A third answers on loopback: metrics, and whether all is well.
 *
 * The store keeps a batch with one id once, and the bytes of a spooled batch never change: sending it twice is harmless, so that nothing is
 * lost or counted twice when the agent, the store or the network fails at any moment. What does not fit the spool is dropped, the oldest
 * first, and counted.
 *
 * The agent watches itself. If it needs more of the machine than it may, it halves the sampling rate and says so in the batch; weights are
 * nanoseconds, so sums stay true. If it needs more memory than it may, it lets go of all that it has opened and begins afresh.
 */
#ifndef WICK_AGENT_H
#define WICK_AGENT_H

#include "base/base.h"
#include "record/record.h"

/* Gives a process a service by what matches first. */
struct agent_rule {
    enum agent_subject { BY_CGROUP, BY_COMM, BY_EXECUTABLE } subject;
    char *pattern; /* a glob, for all of it */
    char *service;
};
struct agent_pair {
    char *key, *value;
};

struct agent_options {
    char *store;       /* a URL or a path */
    char *credentials; /* a file for the store; NULL: none */
    char *spool;       /* a directory; made if it is not there */
    char *host;        /* the label; NULL: the machine's name, asked again for each batch */
    uint64_t frequency;
    uint64_t window, batch; /* nanoseconds */
    enum record_call_graph call_graph;
    uint32_t stack_size;
    uint32_t waits;   /* record one in so many waits, by BPF; 0: none */
    uint64_t timeout; /* nanoseconds for one request to the store */
    uint64_t spool_bytes;
    uint64_t spool_age; /* nanoseconds */
    uint64_t memory;    /* bytes, of the agent itself */
    double cpu;         /* at most so many per cent of the machine */
    uint32_t services;  /* labels a host may have; the rest is `other` */
    char *metrics;      /* "127.0.0.1:9460", "unix:/path"; NULL: none */
    uint64_t duration;  /* nanoseconds; 0: until it is cancelled */
    VECTOR(struct agent_rule) rules;
    VECTOR(struct agent_pair) labels;      /* fixed ones, of everything */
    VECTOR(struct agent_pair) environment; /* variable to label */
    const struct context *context;
    const char *cache; /* for what is derived from files; NULL: none */
    void (*say)(void *user,
                const char *text); /* what an operator should know, a line each; any thread */
    void *user;
};

/* The defaults, as docs/fleet.md has them. */
void agent_options_init(struct agent_options *options);
void agent_options_release(struct agent_options *options);
/* One setting, as a line of the file has it: `key = value`. False: *error says what is wrong with it. */
bool agent_set(struct agent_options *options, struct text line, struct error *error);
/* A file of such lines. Errors have its path and the line's number. */
bool agent_read_config(struct agent_options *options, const char *path, struct error *error);

/* All settings, as such a file would have them. */
void agent_describe(const struct agent_options *options, struct buffer *text);

/* Record until the context is cancelled or the duration is over, then spool what is there and try once more to send it. */
bool agent_run(const struct agent_options *options, struct error *error);

#endif
