/*
 * Private to wick profile: the files of a run, made of its recording.
 */
#ifndef WICK_CMD_PROFILE_FILES_H
#define WICK_CMD_PROFILE_FILES_H

#include "cmd/cmd.h"
#include "run/run.h"

/* Everything that is drawn or counted from the recording at `data`, then run.json and report.txt. */
bool profile_write_files(struct run *run, const char *data, struct error *error);

#endif
