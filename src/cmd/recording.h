/*
 * Private to the commands that record: their target and how to sample it.
 */
#ifndef WICK_CMD_RECORDING_H
#define WICK_CMD_RECORDING_H

#include "cmd/cmd.h"
#include "record/record.h"

/* The first member of every command that records. */
struct recording_request {
    struct request request; /* its `events` are those to record */
    struct record_options recording;
    double duration, delay;
    uint64_t frequency;     /* 0: not given */
    bool call_graph_chosen; /* -g was given */
    bool every_chosen;      /* --every was given */
};
/* Before parsing: defaults that are not 0. */
void recording_begin(struct recording_request *r);
extern const struct option options_target[];   /* -p -t -a -C --duration --delay */
extern const struct option options_off_cpu[];  /* --off-cpu --wall --wakers */
extern const struct option options_heap[];     /* --heap --every */
extern const struct option options_sampling[]; /* -e -F -c -g -u -k -i */
bool recording_set_buffer(void *command, const char *value, struct error *error);

/* After parsing: move lists into `recording`. Return 0, or the exit status after an error was printed. */
int recording_settle(struct recording_request *r, char **argv);
/* Report a launched target's own failure and pass it on, as shells do. */
/* Before attaching to a process, report what that will cost it. */
void recording_say_cost(const struct recording_request *r);
int recording_target_status(const struct record_options *recording,
                            const struct record_result *result);

#endif
