/*
 * agent: record the whole machine continuously and send the profiles to a store.
 *
 * The calling thread records. A window is a perf.data in memory; it becomes a tree, its series get labels (service,
 * version, host, time), and the trees of a minute are added up to one batch: a `.wick` file in the spool directory,
 * named by its sequence number and its id. A second thread sends the oldest batch to the store and retries with
 * growing pauses until the store has it. A third serves metrics and a health check on loopback.
 *
 * The recording process has privileges, so it parses nothing. One child reads windows and turns them into trees and
 * batches; another reads batches and talks to the store. Both are confined by the sandbox (child.h). If one dies, that
 * is reported and counted, and a new one is started.
 *
 * The store keeps a batch with one id once, and the bytes of a spooled batch never change: sending it twice is
 * harmless, so nothing is lost or counted twice if the agent, the store or the network fails at any moment. Batches
 * that do not fit into the spool are dropped, oldest first, and counted.
 *
 * The agent limits itself. If it uses more CPU time than allowed, it halves the sampling rate and notes that in the
 * batch; weights are nanoseconds, so sums stay right. If it uses more memory than allowed, it closes everything and
 * starts a new recording.
 */
#ifndef WICK_AGENT_H
#define WICK_AGENT_H

#include "base/base.h"
#include "record/record.h"

/* Sets the service of a process; the first matching rule wins. */
struct agent_rule {
    enum agent_subject { BY_CGROUP, BY_COMM, BY_EXECUTABLE } subject;
    char *pattern; /* a glob that must match completely */
    char *service;
};
struct agent_pair {
    char *key, *value;
};

struct agent_options {
    char *store;       /* a URL or a path */
    char *credentials; /* a file for the store; NULL: none */
    char *spool;       /* a directory; created if it is missing */
    char *host;        /* the label; NULL: the machine's name, asked again for each batch */
    uint64_t frequency;
    uint64_t window, batch; /* nanoseconds */
    enum record_call_graph call_graph;
    uint32_t stack_size;
    uint32_t waits;   /* record one in this many waits, with BPF; 0: none */
    uint64_t timeout; /* nanoseconds for one request to the store */
    uint64_t spool_bytes;
    uint64_t spool_age; /* nanoseconds */
    uint64_t memory;    /* bytes, of the agent itself */
    double cpu;         /* limit in per cent of the machine */
    uint32_t services;  /* services per host; the rest becomes `other` */
    char *metrics;      /* "127.0.0.1:9460", "unix:/path"; NULL: none */
    uint64_t duration;  /* nanoseconds; 0: until it is cancelled */
    VECTOR(struct agent_rule) rules;
    VECTOR(struct agent_pair) labels;      /* fixed labels for everything */
    VECTOR(struct agent_pair) environment; /* variable to label */
    const struct context *context;
    const char *cache;      /* cache for data derived from files; NULL: none */
    bool no_sandbox;        /* do not confine children */
    void (*confined)(void); /* called in each child once it is confined; or NULL */
    void (*say)(void *user,
                const char *text); /* report a line for the operator; called by any thread */
    void *user;
};

/* Set the defaults that docs/agent.md describes. */
void agent_options_init(struct agent_options *options);
void agent_options_release(struct agent_options *options);
/* Apply one setting, a line of the configuration file: `key = value`. */
bool agent_set(struct agent_options *options, struct text line, struct error *error);
/* Read a configuration file. Errors have its path and the line number. */
bool agent_read_config(struct agent_options *options, const char *path, struct error *error);

/* Append all settings in the format of such a file. */
void agent_describe(const struct agent_options *options, struct buffer *text);

/* Record until the context is cancelled or the duration is over, then spool what is there and try once more to send it. */
bool agent_run(const struct agent_options *options, struct error *error);

/* Return the role that an agent gave this process when it started it as a parser, or NULL. A process with a role calls agent_child() instead
   of agent_run(), with its settings read from --config. */
const char *agent_child_role(void);
_Noreturn void agent_child(const struct agent_options *options, const char *role);

#endif
