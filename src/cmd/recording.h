/*
 * Private to the commands that record: their target and how to sample it.
 */
#ifndef WICK_CMD_RECORDING_H
#define WICK_CMD_RECORDING_H

#include "cmd/cmd.h"
#include "record/record.h"

extern struct record_options recording;
extern const struct option options_target[];   /* -p -t -a -C --duration --delay */
extern const struct option options_off_cpu[];  /* --off-cpu --wall --wakers */
extern const struct option options_sampling[]; /* -e -F -c -g -u -k -i */
bool recording_has_call_graph(void); /* -g was given */
bool recording_set_buffer(const char *value, struct error *error);

/* After parsing: lists into `recording`. Not 0: the exit status, and why was printed. */
int recording_settle(char **argv);
/* A launched target's own failure is said and passed on, as shells do. */
int recording_target_status(const struct record_result *result);

#endif
