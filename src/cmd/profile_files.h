/*
 * Private to wick profile: the files of a run, made of its recording.
 */
#ifndef WICK_CMD_PROFILE_FILES_H
#define WICK_CMD_PROFILE_FILES_H

#include "cmd/cmd.h"
#include "run/run.h"

/* What the kind of a run is drawn as: its views, of which the last is what the run is about. */
struct view_names {
    enum times times;
    const char *folded, *svg, *reverse, *functions, *categories;
};
extern const struct view_names view_running, view_waiting, view_wall;

/* Everything that is drawn or counted from the recording at `data`, then run.json and report.txt. */
bool profile_write_files(struct request *request, struct run *run, const char *data,
                         const struct view_names *const *views, size_t view_count,
                         struct error *error);

#endif
